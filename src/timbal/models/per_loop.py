"""One thing for each event loop, closed when its loop ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from threading import Lock
from typing import Generic, Protocol, TypeVar
from weakref import WeakKeyDictionary


class Closable(Protocol):
    def aclose(self) -> Awaitable[None]: ...


T = TypeVar("T", bound=Closable)


class PerLoop(Generic[T]):
    """Makes a thing at its first use in an event loop: connections can't move between loops, and are closed in theirs.

    A loop tells nobody that it ends, but it closes the async generators that began in it: the thing lives in one.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._lives: WeakKeyDictionary[asyncio.AbstractEventLoop, tuple[AsyncGenerator[T], T]] = WeakKeyDictionary()
        self._lock = Lock()

    async def get(self) -> T:
        """The running loop's thing."""
        loop = asyncio.get_running_loop()
        with self._lock:
            life = self._lives.get(loop)
        if life is None:
            generator = self._life(loop)
            life = generator, await anext(generator)
            with self._lock:
                self._lives[loop] = life
        return life[1]

    async def _life(self, loop: asyncio.AbstractEventLoop) -> AsyncGenerator[T]:
        thing = self._make()
        try:
            yield thing
        finally:
            with self._lock:
                self._lives.pop(loop, None)
            await thing.aclose()
