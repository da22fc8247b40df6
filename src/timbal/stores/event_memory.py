"""The events of runs beside a `MemoryStore`."""

from __future__ import annotations

from .clock import now
from .events import INBOX, Batch, EventLog, Piece
from .memory import MemoryStore


class KeptEvents:
    """Of one run."""

    __slots__ = ("closed_at", "dropped", "events")

    def __init__(self) -> None:
        self.events: list[str] = []
        self.closed_at: int | None = None
        self.dropped = 0


class MemoryEventLog(EventLog):
    """Lives as long as the store; a run that the store drops or erases takes its events along."""

    def __init__(self, store: MemoryStore) -> None:
        super().__init__()
        self._kept: dict[str, KeptEvents] = store.kept_events

    async def _append(self, batch: Batch) -> None:
        kept = self._kept.setdefault(batch.run_id, KeptEvents())
        if kept.closed_at is None and len(kept.events) == batch.first - 1:
            kept.events += batch.events
            if batch.closes:
                kept.closed_at = now()

    async def _read(self, run_id: str, after: int, limit: int) -> Piece | None:
        kept = self._kept.get(run_id)
        if kept is None:
            return None
        last = kept.dropped or len(kept.events)
        items = list(enumerate(kept.events[after : after + limit], start=after + 1))
        return Piece(items, kept.dropped + 1, last, kept.closed_at is not None)

    async def drop(self, before: int) -> int:
        old = [k for k in self._kept.values() if k.events and k.closed_at is not None and k.closed_at < before]
        for kept in old:
            kept.dropped, kept.events = len(kept.events), []
        return len(old)

    async def announce(self) -> None:
        self._ring(INBOX)
