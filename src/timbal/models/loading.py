"""Loads a provider's library at its first use, off the event loop."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from importlib import import_module
from threading import Thread
from typing import Any

from ..errors import ModelError
from ..ports import ModelRequest, Reply
from .endpoint import Endpoint

Ask = Callable[[Endpoint, ModelRequest, dict[str, Any], Callable[[dict[str, Any]], None]], Awaitable[Reply]]

_ADAPTER = "timbal.models.pydantic_ai"
_MODULES = {
    "openai": ("models.openai", "providers.openai", "providers.openai_compatible"),
    "anthropic": ("models.anthropic", "providers.anthropic"),
    "google": ("models.google", "providers.google"),
}


def preload(name: str) -> None:
    """Begin to load what the model `name` needs, in a background thread. What is missing is told by the first run."""
    provider = name.partition("/")[0]
    if provider in _MODULES and provider not in _loaded:
        Thread(target=_try_to_load, args=(provider,), name=f"timbal-preload-{provider}", daemon=True).start()


async def load(endpoint: Endpoint) -> Ask:
    """What asks this endpoint. Raises `ModelError` where its library is not installed."""
    if endpoint.provider not in _loaded:
        try:
            await asyncio.to_thread(_load, endpoint.provider)
        except ImportError as error:
            raise ModelError(
                f"{endpoint.name} needs a library that is not installed ({error.name or error}): "
                f"pip install 'timbal-hitl[{endpoint.provider}]'"
            ) from error
    ask: Ask = sys.modules[_ADAPTER].ask
    return ask


#: Providers whose modules were imported to their end; what another thread is at is in `sys.modules` already.
_loaded: set[str] = set()


def _load(provider: str) -> None:
    for module in _MODULES[provider]:
        import_module(f"pydantic_ai.{module}")
    import_module(_ADAPTER)
    _loaded.add(provider)


def _try_to_load(provider: str) -> None:
    with suppress(ImportError):
        _load(provider)
