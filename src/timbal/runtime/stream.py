"""Events from a run to whoever listens, at the listener's own pace."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from threading import get_ident
from typing import NamedTuple

from ..types.events import Event, OutputEvent


class _Waiter(NamedTuple):
    loop: asyncio.AbstractEventLoop
    thread: int
    future: asyncio.Future[None]


class EventStream(deque[Event]):
    """A queue without a bound: it never makes the run wait. Events may come from any thread."""

    #: Those who wait for something to come.
    _waiters: tuple[_Waiter, ...] = ()
    closed = False
    output: OutputEvent | None = None
    error: BaseException | None = None

    def put(self, event: Event) -> None:
        self.append(event)
        if self._waiters:
            self._wake()

    def close(self, output: OutputEvent | None, error: BaseException | None = None) -> None:
        """Nothing comes any more."""
        self.output, self.error, self.closed = output, error, True
        if self._waiters:
            self._wake()

    async def next(self) -> Event:
        """The next event; raises `StopAsyncIteration` after the last, or the error that broke the run off."""
        await self.until(self.__len__)
        if not self:
            raise StopAsyncIteration
        return self.popleft()

    async def until(self, ready: Callable[[], object]) -> None:
        """Wait until that is so, or nothing comes any more; raises the error that broke the run off."""
        while not ready():
            if self.closed:
                if self.error is not None:
                    raise self.error
                return
            loop = asyncio.get_running_loop()
            waiter = _Waiter(loop, get_ident(), loop.create_future())
            self._waiters = (*self._waiters, waiter)
            if ready() or self.closed:  # it came meanwhile, from another thread
                continue
            try:
                await waiter.future
            finally:
                self._waiters = tuple(other for other in self._waiters if other is not waiter)

    def look(self) -> None:
        """Something has changed that one may wait for with `until`."""
        if self._waiters:
            self._wake()

    async def drain(self) -> OutputEvent:
        """Wait for the end; gives the root OUTPUT."""
        while True:
            self.clear()
            try:
                await self.next()
            except StopAsyncIteration:
                break
        assert self.output is not None
        return self.output

    def _wake(self) -> None:
        waiters, self._waiters = self._waiters, ()
        for loop, thread, future in waiters:
            if get_ident() == thread:
                _set(future)
            else:
                with suppress(RuntimeError):  # its loop has been closed: nobody waits any more
                    loop.call_soon_threadsafe(_set, future)


def _set(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
