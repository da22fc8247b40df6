"""A human-in-the-loop runtime for AI agents: any tool can stop the run and ask a person."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._version import __version__

if TYPE_CHECKING:
    from .models import Model
    from .runnables.agent import Agent
    from .runnables.tool import Tool
    from .state import idempotency_key, step, suspend

__all__ = ["Agent", "Model", "Tool", "__version__", "idempotency_key", "step", "suspend"]

_HOMES = {
    "Agent": "runnables.agent",
    "Model": "models",
    "Tool": "runnables.tool",
    "idempotency_key": "state",
    "step": "state",
    "suspend": "state",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
