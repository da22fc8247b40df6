"""Models by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import ModelError
from ..ports import ModelRequest, Reply

PROVIDERS = ("openai", "anthropic", "google")


class Model:
    """A model of a provider, `"<provider>/<name>"`; `base_url` and `api_key` for servers that speak OpenAI's API."""

    def __init__(self, name: str, base_url: str | None = None, api_key: str | None = None) -> None:
        provider, slash, rest = name.partition("/")
        if not slash or not rest or provider not in PROVIDERS:
            raise ValueError(
                f"a model is named '<provider>/<name>' with a provider out of {', '.join(PROVIDERS)}, not {name!r}"
            )
        self.name = name
        self.base_url = base_url
        self._api_key = api_key

    async def complete(self, request: ModelRequest, emit: Callable[[dict[str, Any]], None]) -> Reply:
        """Ask the provider. Raises `ModelError`."""
        raise ModelError(
            f"{self.name}: this version has no provider adapters yet; use timbal.testing.TestModel, or an object with "
            "a `name` and an async `complete(request, emit)`"
        )
