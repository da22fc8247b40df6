"""The way of one run's facts into the store: events that speak of a fact leave after it is durable."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING

from ..core.codec import encode
from ..core.facts import Asked, Fact
from ..ports import Commit, Ending, Lease, Opening, QuestionRow, Settlement, Store
from ..stores.waiting import wait

if TYPE_CHECKING:
    from ..types.events import Event

    Tell = Callable[[Event], None]


class Journal:
    """Collects facts and held events; a flush commits the facts as one record and then lets the events go.

    Commits take effect in the order of submission. `on_stop` is called when the store says that somebody asked this
    execution to stop; `on_failure` with the error, before anybody who waits for the commit hears of it.
    """

    def __init__(
        self,
        store: Store,
        lease: Lease,
        on_stop: Callable[[str], None],
        on_failure: Callable[[BaseException], None],
        opening: Opening | None = None,
    ) -> None:
        self.lease = lease
        self._store = store
        self._on_stop = on_stop
        self._on_failure = on_failure
        self._opening = opening
        self._facts: list[Fact] = []
        self._events: list[tuple[Tell, Event]] = []
        self._last: Future[str | None] | None = None

    def add(self, fact: Fact) -> None:
        """Take a fact; the next flush makes it durable."""
        self._facts.append(fact)

    def hold(self, tell: Tell, event: Event) -> None:
        """Take an event that speaks of facts added before it; it is told with the next flush."""
        self._events.append((tell, event))

    async def flush(self, ending: Ending | None = None, settled: Sequence[Settlement] = ()) -> None:
        """Make everything so far durable; raises `StoreError`. An `ending` gives the lease back."""
        if self._facts or self._opening or ending:
            events, self._events = self._events, []
            stop = await wait(self._submit(ending, settled))
            self._released(events, stop)
        else:
            if self._last is not None and not self._last.done():
                await wait(self._last)
            if self._events:
                events, self._events = self._events, []
                self._released(events, None)

    def flush_here(self) -> None:
        """The same, blocking this thread: for sync steps, which can't await."""
        if self._facts or self._opening:
            events, self._events = self._events, []
            self._released(events, self._submit(None, ()).result())

    def _submit(self, ending: Ending | None, settled: Sequence[Settlement]) -> Future[str | None]:
        facts, self._facts = self._facts, []
        opening, self._opening = self._opening, None
        asked = [f for f in facts if type(f) is Asked]
        rest = [f for f in facts if type(f) is not Asked] if asked else facts
        rows = [QuestionRow(f.id, f.name, f.expires_at, encode((f,))) for f in asked]
        future = self._store.commit(Commit(self.lease, encode(rest) if rest else b"", opening, rows, ending, settled))
        if not future.done() or future.exception() is not None:
            future.add_done_callback(self._look)
        self._last = future
        return future

    def _look(self, future: Future[str | None]) -> None:
        error = future.exception()
        if error is not None:
            self._on_failure(error)

    def _released(self, events: list[tuple[Tell, Event]], stop: str | None) -> None:
        for tell, event in events:
            tell(event)
        if stop is not None:
            self._on_stop(stop)

