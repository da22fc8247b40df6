"""The way of one run's facts into the store: events that speak of a fact leave after it is durable."""

from __future__ import annotations

from _thread import RLock
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING

from ..core.codec import encode
from ..core.facts import AnyAsked, Asked, Ended, Fact, Gated, Opened
from ..ports import COMMITTED, Lease, QuestionRow, Settlement, Store
from ..stores.waiting import wait

if TYPE_CHECKING:
    from ..types.events import Event

    Tell = Callable[[Event], None]


class Journal:
    """Collects facts and held events; a commit makes the facts durable as one record and then lets the events go.

    Handlers' threads add to it, too: a fact before the events that speak of it, and a commit takes the events first.
    Commits take effect in the order of submission. It asks two things of what it is part of: `stop_with(error)` when a
    commit fails, before whoever waits for it hears it, and `stopped_by_store(reason)` when somebody asked the store to
    stop this execution.
    """

    _opened: Opened | None = None
    _notes: tuple[Fact, ...] = ()
    _asked: tuple[AnyAsked, ...] = ()
    _events: tuple[tuple[Tell, Event], ...] = ()
    _last: Future[str | None] = COMMITTED

    def __init__(self, store: Store, lease: Lease, opened: Opened | None) -> None:
        """`opened`: the execution begins with the first commit."""
        self.lease = lease
        #: Held while facts come and go, and while a question is given its number.
        self.lock = RLock()
        self.store = store
        self._facts: list[Fact] = []
        if opened is not None:
            self._opened = opened
            self._facts.append(opened)

    def add(self, fact: Fact) -> None:
        """Take a fact; the next commit makes it durable."""
        with self.lock:
            if type(fact) is Asked or type(fact) is Gated:
                self._asked = (*self._asked, fact)
            else:
                self._facts.append(fact)

    def add_note(self, fact: Fact) -> None:
        """Take a fact that is not worth a commit of its own: it goes with the next one."""
        with self.lock:
            self._notes = (*self._notes, fact)

    def hold(self, tell: Tell, event: Event) -> None:
        """Take an event that speaks of facts added before it; it is told with the next commit."""
        with self.lock:
            self._events = (*self._events, (tell, event))

    def commit(self, ended: Ended | None = None, settled: Sequence[Settlement] = ()) -> Awaitable[None] | None:
        """Make everything so far durable. Gives what is to be awaited, which raises `StoreError`, or None when it is.

        Where there is nothing new it is the last commit, which others' facts may be part of. An end gives the lease
        back.
        """
        with self.lock:
            events, self._events = self._events, ()
            news = self._facts or self._asked or ended is not None
            future = self._submit(ended, settled) if news else self._last
        if future is not COMMITTED:
            return self._released(events, future)
        for tell, event in events:
            tell(event)
        return None

    async def flush(self) -> None:
        """Make everything so far durable, and tell what speaks of it."""
        if (work := self.commit()) is not None:
            await work

    def flush_here(self) -> None:
        """Make everything so far durable, blocking this thread: for sync steps. Held events are left to the loop."""
        with self.lock:
            future = self._submit(None, ()) if self._facts or self._asked else self._last
        if (stop := future.result()) is not None:
            self.stopped_by_store(stop)

    async def _released(self, events: Sequence[tuple[Tell, Event]], future: Future[str | None]) -> None:
        stop = await wait(future)
        for tell, event in events:
            tell(event)
        if stop is not None:
            self.stopped_by_store(stop)

    def _submit(self, ended: Ended | None, settled: Sequence[Settlement]) -> Future[str | None]:
        """The commit of what there is."""
        facts, asked = self._facts, self._asked
        if ended is not None:
            facts.append(ended)
        record = b""
        rows: Sequence[QuestionRow] = ()
        if facts:
            record = encode((*self._notes, *facts) if self._notes else facts)
            self._facts, self._notes = [], ()
        if asked:
            rows = [QuestionRow(f.id, f.name, f.at, f.expires_at, encode((f,))) for f in asked]
            self._asked = ()
        opened, self._opened = self._opened, None
        self._last = future = self.store.commit(self.lease, record, opened, rows, ended, settled)
        if future is not COMMITTED:
            future.add_done_callback(self._look)
        return future

    def _look(self, future: Future[str | None]) -> None:
        error = future.exception()
        if error is not None:
            self.stop_with(error)

    def stop_with(self, error: BaseException) -> None:
        """A commit failed."""
        raise NotImplementedError

    def stopped_by_store(self, reason: str) -> None:
        """Somebody asked this execution to stop, with a reason or ""."""
        raise NotImplementedError
