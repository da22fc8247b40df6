"""Threads for handlers."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")

_IDLE_SECONDS = 10.0


class ThreadPool:
    """Threads as many as are needed, kept a while for the next call.

    It has no bound: a handler that waits for a nested handler occupies a thread, so a bound would be a deadlock.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: deque[_Worker] = deque()

    def submit(self, work: Callable[[], T]) -> Future[T]:
        future: Future[T] = Future()
        with self._lock:
            worker = self._idle.pop() if self._idle else None
        if worker is None:
            worker = _Worker(self)
        worker.give(work, future)
        return future


class _Worker:
    def __init__(self, pool: ThreadPool) -> None:
        self._pool = pool
        self._work: tuple[Callable[[], Any], Future[Any]] | None = None
        self._wake = threading.Semaphore(0)
        threading.Thread(target=self._run, name="timbal-handler", daemon=True).start()

    def give(self, work: Callable[[], Any], future: Future[Any]) -> None:
        self._work = (work, future)
        self._wake.release()

    def _run(self) -> None:
        pool = self._pool
        while True:
            if not self._wake.acquire(timeout=_IDLE_SECONDS):
                with pool._lock:
                    if self in pool._idle:
                        pool._idle.remove(self)
                        return
                self._wake.acquire()
            assert self._work is not None
            (work, future), self._work = self._work, None
            try:
                result = work()
            except BaseException as error:
                with pool._lock:
                    pool._idle.append(self)
                future.set_exception(error)
            else:
                with pool._lock:
                    pool._idle.append(self)
                future.set_result(result)
            del work, future


handlers = ThreadPool()
