"""Threads that read from PostgreSQL, each with a connection while it reads."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from ..errors import StoreError
from .postgres_session import Cut, Session
from .waiting import failed

T = TypeVar("T")

#: How long to wait before connecting again, in seconds.
PAUSE_SECONDS = 0.2


class Readers:
    """At most `most` reads at once. A connection that broke is replaced, for `patience` seconds."""

    def __init__(self, session: Session, connect: Callable[[], Session], most: int, patience: float) -> None:
        self._label = session.target.label
        self._idle = deque([session])
        self._connect = connect
        self._patience = patience
        self._threads = ThreadPoolExecutor(most, "timbal-postgres-read")
        self._closed = False

    def submit(self, read: Callable[[Session], T]) -> Future[T]:
        """The future of what `read` makes of a session; it must not write."""
        try:
            return self._threads.submit(self._read, read)
        except RuntimeError:
            return failed(StoreError("this store is closed; open another"))

    def close(self) -> None:
        """Let what was submitted end, and close the connections; returns at once."""
        self._closed = True
        self._threads.shutdown(wait=False)
        self._close_idle()

    def join(self) -> None:
        self._threads.shutdown()
        self._close_idle()

    def _close_idle(self) -> None:
        while self._idle:
            self._idle.pop().close()

    def _read(self, read: Callable[[Session], T]) -> T:
        until = time.monotonic() + self._patience
        while True:
            session: Session | None = None
            try:
                session = self._take()
                result = read(session)
            except Cut as cut:
                if session is not None:
                    session.close()
                if time.monotonic() > until:
                    raise StoreError(f"{self._label} can't be reached: {cut}") from cut
                time.sleep(PAUSE_SECONDS * (session is None))
            except StoreError:
                self._give_back(session)
                raise
            except BaseException:
                if session is not None:
                    session.close()
                raise
            else:
                self._give_back(session)
                return result

    def _take(self) -> Session:
        try:
            return self._idle.pop()
        except IndexError:
            return self._connect()

    def _give_back(self, session: Session | None) -> None:
        if session is not None:
            self._idle.append(session)
            if self._closed:
                self._close_idle()
