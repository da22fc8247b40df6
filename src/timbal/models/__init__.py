"""Models by name."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from itertools import count
from typing import Any

from ..errors import ModelError
from ..ports import ModelRequest, Reply
from .endpoint import API, PROVIDERS, endpoint_of
from .loading import load, preload
from .retries import TryAgain, pause_before

__all__ = ["Model", "preload"]


class Model:
    """A model of a provider, `"<provider>/<name>"`, with a provider out of openai, anthropic and google.

    `base_url` and `api_key` say where it is and how to get in; without them the provider's environment variables do.
    `api`: which of OpenAI's two APIs is spoken, `"responses"` (the default at OpenAI itself) or `"chat"` (the default
    at any other base URL). `timeout`: the longest silence in seconds, before and in an answer. `max_retries`: how often
    a request that failed in passing is made again. docs/models.md has it all.

    Making one checks nothing but its form: no library is loaded and no key is needed before its first run.
    """

    def __init__(
        self,
        name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        api: API | None = None,
        timeout: float = 300,
        max_retries: int = 3,
    ) -> None:
        provider, slash, rest = name.partition("/")
        if not slash or not rest or provider not in PROVIDERS:
            raise ValueError(
                f"a model is named '<provider>/<name>' with a provider out of {', '.join(PROVIDERS)}, not {name!r}"
            )
        if api is not None and (api not in ("responses", "chat") or provider != "openai"):
            raise ValueError(f"Model({name!r}): api is 'responses' or 'chat', and for openai only, not {api!r}")
        if timeout <= 0 or max_retries < 0:
            raise ValueError(
                f"Model({name!r}): timeout is more than 0 seconds and max_retries at least 0, "
                f"not {timeout!r} and {max_retries!r}"
            )
        self.name = name
        self.base_url = base_url
        self.api = api
        self.timeout = timeout
        self.max_retries = max_retries
        self._api_key = api_key

    def __repr__(self) -> str:
        return f"Model({self.name!r})" if self.base_url is None else f"Model({self.name!r}, base_url={self.base_url!r})"

    def preload(self) -> None:
        """Begin to load what the first run will need, in a background thread."""
        preload(self.name)

    async def complete(self, request: ModelRequest, emit: Callable[[dict[str, Any]], None]) -> Reply:
        """Ask the provider, again where it failed in passing and nothing was told yet. Raises `ModelError`."""
        endpoint = endpoint_of(self.name, self.base_url, self._api_key, self.api, os.environ)
        settings = {"timeout": self.timeout, "max_retries": self.max_retries, **request.params}
        ask = await load(endpoint)
        told = False

        def tell(item: dict[str, Any]) -> None:
            nonlocal told
            told = True
            emit(item)

        for attempt in count(1):
            try:
                return await ask(endpoint, request, settings, tell)
            except ModelError as failure:
                if told:
                    raise ModelError(
                        f"{self.name}: the answer broke off before it was complete: {failure}. resume={{}} asks again"
                    ) from failure
                pause = None
                if isinstance(failure, TryAgain):
                    pause = pause_before(attempt, failure.after, settings["max_retries"])
                if pause is None:
                    tries = f" (tried {attempt} times)" if attempt > 1 else ""
                    raise ModelError(f"{self.name}: {failure}{tries}") from failure
            await asyncio.sleep(pause)
        raise AssertionError("unreachable")
