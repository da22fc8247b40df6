"""Pydantic's JSON reader and writer, loaded at first use so that `import timbal` stays light."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic_core import from_json, to_json

__all__ = ["from_json", "to_json"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import pydantic_core

    globals()[name] = value = getattr(pydantic_core, name)
    return value
