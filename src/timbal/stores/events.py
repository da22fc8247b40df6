"""What a server's runs have told, kept by sequence, so that anybody can read it at their own pace."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from .base import BaseStore

#: The name under which those listen who care for the inbox: questions opened and settled, of any run.
INBOX = ""
#: How many of a run's newest events are kept at hand while it is at work here.
AT_HAND = 1000


class Piece(NamedTuple):
    """Events of one run: `items` are numbers and JSON. `first`: the number of the oldest one kept, those before were
    dropped. `closed`: none comes after `last`."""

    items: list[tuple[int, str]]
    first: int
    last: int
    closed: bool


class Batch(NamedTuple):
    """Events of one run that are kept together; `first` is the number of the first one, from 1."""

    run_id: str
    first: int
    events: Sequence[str]
    closes: bool
    #: Whether the inbox may have changed with it.
    asks: bool

    @property
    def last(self) -> int:
        return self.first + len(self.events) - 1


class EventLog(ABC):
    """Keeps the events of runs beside the runs, in the same store; used from one event loop.

    Each run has one writer, the process that runs it, and any number of readers in any process. All methods raise
    `StoreError` when the store can't do it. What is kept of a run at work here is at hand too, for its readers here.
    """

    def __init__(self) -> None:
        self._listeners: dict[str, set[asyncio.Event]] = {}
        self._at_hand: dict[str, Piece] = {}

    def begin(self, run_id: str) -> None:
        """A run is at work here that has told nothing yet."""
        self._at_hand[run_id] = Piece([], 1, 0, False)

    async def append(self, batch: Batch) -> None:
        """Keep a batch, once, and wake who listens; the same batch again, or one to a closed log, changes nothing."""
        await self._append(batch)
        self._put_at_hand(batch)
        self._ring(batch.run_id)
        if batch.asks:
            self._ring(INBOX)

    async def read(self, run_id: str, after: int, limit: int) -> Piece | None:
        """The first events after number `after`, `limit` at most; `None` where none of this run were ever kept."""
        here = self._at_hand.get(run_id)
        if here is None or after + 1 < here.first:
            return await self._read(run_id, after, limit)
        begin = after + 1 - here.first
        return Piece(here.items[begin : begin + limit], 1, here.last, here.closed)

    @abstractmethod
    async def _append(self, batch: Batch) -> None: ...
    @abstractmethod
    async def _read(self, run_id: str, after: int, limit: int) -> Piece | None: ...

    @abstractmethod
    async def drop(self, before: int) -> int:
        """Drop the events of runs that were over before that time (Unix milliseconds); gives of how many runs."""

    @abstractmethod
    async def announce(self) -> None:
        """Tell all processes that the inbox may have changed."""

    @contextmanager
    def listen(self, run_id: str) -> Iterator[asyncio.Event]:
        """An `asyncio.Event` that is set whenever there may be more to read of this run, or of the `INBOX`.

        Clear it, then read, then wait: nothing is missed. It may be set for no reason.
        """
        bell = asyncio.Event()
        self._listeners.setdefault(run_id, set()).add(bell)
        self._listening()
        try:
            yield bell
        finally:
            bells = self._listeners[run_id]
            bells.discard(bell)
            if not bells:
                del self._listeners[run_id]
                if run_id in self._at_hand and self._at_hand[run_id].closed:
                    del self._at_hand[run_id]

    async def aclose(self) -> None:
        """Let go of what it has of its own; the store stays open."""
        return

    def _listening(self) -> None:
        """Somebody began to listen."""
        return

    def _ring(self, run_id: str) -> None:
        for bell in self._listeners.get(run_id, ()):
            bell.set()

    def ring_all(self) -> None:
        """Wake all who listen here."""
        for bells in self._listeners.values():
            for bell in bells:
                bell.set()

    def _put_at_hand(self, batch: Batch) -> None:
        """Until the run is over and nobody here listens any more."""
        here = self._at_hand.pop(batch.run_id, None)
        if not batch.closes or batch.run_id in self._listeners:
            items = [*(here.items if here is not None else ()), *enumerate(batch.events, start=batch.first)][-AT_HAND:]
            self._at_hand[batch.run_id] = Piece(items, items[0][0], batch.last, batch.closes)

    def forget(self, run_id: str) -> None:
        """The run is not at work here any more, and its log stays open."""
        self._at_hand.pop(run_id, None)


def cut(batches: Sequence[tuple[int, str]], after: int, limit: int) -> list[tuple[int, str]]:
    """The first events after `after` out of stored batches, each the number of its first event and lines of JSON."""
    found = [
        (number, line)
        for first, body in batches
        for number, line in enumerate(body.split("\n"), start=first)
        if number > after
    ]
    return found[:limit]


def joined(events: Sequence[str]) -> str:
    """Events as a batch is stored: JSON has no raw newline."""
    return "\n".join(events)


def open_log(store: BaseStore) -> EventLog:
    """The log of a store; each server has one of its own. Raises `TypeError` for a store without one."""
    from .memory import MemoryStore

    if isinstance(store, MemoryStore):
        from .event_memory import MemoryEventLog

        return MemoryEventLog(store)
    from .sqlite import SqliteStore

    if isinstance(store, SqliteStore):
        from .event_sqlite import SqliteEventLog

        return SqliteEventLog(store)
    from .postgres import PostgresStore

    if isinstance(store, PostgresStore):
        from .event_postgres import PostgresEventLog

        return PostgresEventLog(store)
    raise TypeError(f"a server keeps the events of its runs beside them, which {type(store).__name__} has no place for")
