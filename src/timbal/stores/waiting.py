"""Waiting, from any event loop, for what a store's thread does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")


async def wait(future: Future[T]) -> T:
    """The future's result. Being cancelled while waiting leaves the work itself alone."""
    if isinstance(future, Ready):
        value: T = future.value
        return value
    if not future.done():
        loop = asyncio.get_running_loop()
        waiter = loop.create_future()

        def wake(_: Any) -> None:
            with suppress(RuntimeError):  # the loop has been closed: nobody waits any more
                loop.call_soon_threadsafe(_set, waiter)

        future.add_done_callback(wake)
        await waiter
    return future.result()


def _set(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


class Ready(Future[T]):
    """A future that has its result from the start, without the lock and the condition of one that has to wait."""

    def __init__(self, value: T) -> None:
        self.value = value

    def done(self) -> bool:
        return True

    def result(self, timeout: float | None = None) -> T:
        return self.value

    def exception(self, timeout: float | None = None) -> None:
        return None

    def add_done_callback(self, fn: Callable[[Future[T]], Any]) -> None:
        fn(self)


def failed(error: BaseException) -> Future[Any]:
    """A future that has failed already."""
    future: Future[Any] = Future()
    future.set_exception(error)
    return future
