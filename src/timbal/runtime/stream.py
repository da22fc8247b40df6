"""Events from a run to whoever listens, at the listener's own pace."""

from __future__ import annotations

import asyncio
from collections import deque
from threading import get_ident

from ..types.events import Event, OutputEvent


class EventStream:
    """A queue without a bound: it never makes the run wait. Events may come from any thread."""

    _waiter: asyncio.Future[None] | None = None
    _loop: asyncio.AbstractEventLoop | None = None
    _thread = 0
    closed = False
    output: OutputEvent | None = None
    error: BaseException | None = None

    def __init__(self) -> None:
        self.events: deque[Event] = deque()

    def put(self, event: Event) -> None:
        self.events.append(event)
        if self._waiter is not None:
            self._wake()

    def close(self, output: OutputEvent | None, error: BaseException | None = None) -> None:
        """Nothing comes any more."""
        self.output, self.error, self.closed = output, error, True
        if self._waiter is not None:
            self._wake()

    async def next(self) -> Event:
        """The next event; raises `StopAsyncIteration` after the last, or the error that broke the run off."""
        events = self.events
        while not events:
            if self.closed:
                if self.error is not None:
                    raise self.error
                raise StopAsyncIteration
            self._loop = asyncio.get_running_loop()
            self._thread = get_ident()
            waiter = self._waiter = self._loop.create_future()
            if events or self.closed:
                self._waiter = None
                continue
            try:
                await waiter
            finally:
                if self._waiter is waiter:
                    self._waiter = None
        return events.popleft()

    async def drain(self) -> OutputEvent:
        """Wait for the end; gives the root OUTPUT."""
        while True:
            self.events.clear()
            try:
                await self.next()
            except StopAsyncIteration:
                break
        assert self.output is not None
        return self.output

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is None or waiter.done():
            return
        if get_ident() == self._thread:
            waiter.set_result(None)
        else:
            assert self._loop is not None
            self._loop.call_soon_threadsafe(_set, waiter)


def _set(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
