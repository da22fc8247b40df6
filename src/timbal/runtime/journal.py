"""The way of one run's facts into the store: events that speak of a fact leave after it is durable."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from threading import RLock
from typing import TYPE_CHECKING, TypeVar

from ..core.codec import encode
from ..core.facts import AnyAsked, Asked, Ended, Fact, Gated, Opened
from ..ports import COMMITTED, Lease, QuestionRow, Settlement, Store
from ..stores.waiting import wait

if TYPE_CHECKING:
    from ..types.events import Event

    Tell = Callable[[Event], None]

T = TypeVar("T")


class Journal:
    """Collects facts and held events; a flush commits the facts as one record and then lets the events go.

    Handlers' threads add to it, too: a fact before the events that speak of it, and a flush takes the events first.
    Commits take effect in the order of submission. `on_stop` is called with the reason when the store says that
    somebody asked this execution to stop; `on_failure` with the error, before whoever waits for the commit hears it.
    """

    __slots__ = (
        "_asked",
        "_events",
        "_facts",
        "_last",
        "_lock",
        "_notes",
        "_on_failure",
        "_on_stop",
        "_opened",
        "lease",
        "store",
    )

    def __init__(
        self,
        store: Store,
        lease: Lease,
        on_stop: Callable[[str], None],
        on_failure: Callable[[BaseException], None],
    ) -> None:
        self.lease = lease
        self._lock = RLock()
        self.store = store
        self._on_stop = on_stop
        self._on_failure = on_failure
        self._opened: Opened | None = None
        self._facts: list[Fact] = []
        self._notes: tuple[Fact, ...] = ()
        self._asked: list[AnyAsked] = []
        self._events: list[tuple[Tell, Event]] = []
        self._last: Future[str | None] = COMMITTED

    def add(self, fact: Fact) -> None:
        """Take a fact; the next flush makes it durable."""
        if type(fact) is Asked or type(fact) is Gated:
            self._asked.append(fact)
        else:
            self._facts.append(fact)

    def note(self, fact: Fact) -> None:
        """Take a fact that is not worth a commit of its own: it goes with the next one."""
        with self._lock:
            self._notes = (*self._notes, fact)

    def open(self, fact: Opened) -> None:
        """The execution begins with the next flush."""
        self._opened = fact
        self._facts.append(fact)

    def hold(self, tell: Tell, event: Event) -> None:
        """Take an event that speaks of facts added before it; it is told with the next flush."""
        self._events.append((tell, event))

    def flush(self, ended: Ended | None = None, settled: Sequence[Settlement] = ()) -> Awaitable[None] | None:
        """Make everything so far durable. Gives what is to be awaited, which raises `StoreError`, or None when it is.

        An end gives the lease back.
        """
        with self._lock:
            events = _take(self._events)
            future = self._submit(ended, settled)
        if future is not COMMITTED:
            return self._wait(future, events)
        for tell, event in events:
            tell(event)
        return None

    def flush_here(self) -> None:
        """Make everything so far durable, blocking this thread: for sync steps. Held events are left to the loop."""
        with self._lock:
            future = self._submit(None, ())
        self._released((), future.result())

    async def _wait(self, future: Future[str | None], events: Sequence[tuple[Tell, Event]]) -> None:
        self._released(events, await wait(future))

    def _submit(self, ended: Ended | None, settled: Sequence[Settlement]) -> Future[str | None]:
        """The commit of what there is; where there is nothing, the last one, which others' facts may be part of."""
        facts, asked = _take(self._facts), _take(self._asked)
        if not facts and not asked and ended is None:
            return self._last
        record = b""
        if facts or self._notes:
            record = encode((*self._notes, *facts) if self._notes else facts)
            self._notes = ()
        rows: Sequence[QuestionRow] = ()
        if asked:
            rows = [QuestionRow(f.id, f.name, f.at, f.expires_at, encode((f,))) for f in asked]
        opened, self._opened = self._opened, None
        self._last = future = self.store.commit(self.lease, record, opened, rows, ended, settled)
        if future is not COMMITTED:
            future.add_done_callback(self._look)
        return future

    def _look(self, future: Future[str | None]) -> None:
        error = future.exception()
        if error is not None:
            self._on_failure(error)

    def _released(self, events: Sequence[tuple[Tell, Event]], stop: str | None) -> None:
        for tell, event in events:
            tell(event)
        if stop is not None:
            self._on_stop(stop)


def _take(items: list[T]) -> Sequence[T]:
    """What is in the list, out of it; what other threads append meanwhile stays in."""
    if not items:
        return ()
    taken = items[:]
    del items[: len(taken)]
    return taken
