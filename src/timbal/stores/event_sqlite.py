"""The events of runs in the file of a `SqliteStore`."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import suppress

from ..errors import StoreError
from .clock import now
from .events import INBOX, Batch, EventLog, Piece, cut, joined
from .sqlite import SqliteStore
from .sqlite_queries import key
from .waiting import wait

#: How often another process's changes are looked for while somebody listens, in seconds.
POLL_SECONDS = 0.02

_EXTEND = "UPDATE event_logs SET last = ?, closed_at = ? WHERE run = ? AND last = ? AND closed_at IS NULL"
_BEGIN = "INSERT INTO event_logs (run, last, closed_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"


class SqliteEventLog(EventLog):
    """Writes with the store's own connection, so that a batch shares the transaction of a commit beside it."""

    def __init__(self, store: SqliteStore) -> None:
        super().__init__()
        self._store = store
        self._poller: asyncio.Task[None] | None = None

    async def _append(self, batch: Batch) -> None:
        await wait(self._store._do(lambda db: _append(db, batch), writes=True))

    async def _read(self, run_id: str, after: int, limit: int) -> Piece | None:
        return await wait(self._store._do(lambda db: _read(db, run_id, after, limit), writes=False))

    async def drop(self, before: int) -> int:
        return await wait(self._store._do(lambda db: _drop(db, before), writes=True))

    async def announce(self) -> None:
        # Other processes see that the file has changed: whatever was announced is in it.
        self._ring(INBOX)

    async def aclose(self) -> None:
        if self._poller is not None:
            self._poller.cancel()
            with suppress(asyncio.CancelledError):
                await self._poller

    def _listening(self) -> None:
        if self._poller is None or self._poller.done():
            self._poller = asyncio.get_running_loop().create_task(self._poll(), name="timbal events")

    async def _poll(self) -> None:
        """While somebody listens: wake all when another process has written to the file."""
        seen = None
        while self._listeners:
            with suppress(StoreError):  # who reads next is told
                version = await wait(self._store._do(_version, writes=False))
                if version != seen:
                    if seen is not None:
                        self.ring_all()
                    seen = version
            await asyncio.sleep(POLL_SECONDS)


def _version(db: sqlite3.Connection) -> int:
    version: int = db.execute("PRAGMA data_version").fetchone()[0]
    return version


def _append(db: sqlite3.Connection, batch: Batch) -> None:
    closed_at = now() if batch.closes else None
    run = key(batch.run_id)
    if batch.first == 1:
        kept = db.execute(_BEGIN, (run, batch.last, closed_at)).rowcount
    else:
        kept = db.execute(_EXTEND, (batch.last, closed_at, run, batch.first - 1)).rowcount
    if kept:
        db.execute("INSERT INTO events VALUES (?, ?, ?)", (run, batch.first, joined(batch.events)))


def _read(db: sqlite3.Connection, run_id: str, after: int, limit: int) -> Piece | None:
    log = db.execute("SELECT last, closed_at, dropped FROM event_logs WHERE run = ?", (key(run_id),)).fetchone()
    if log is None:
        return None
    last, closed_at, dropped = log
    rows: list[tuple[int, str]] = []
    if after < last and not dropped:
        rows = db.execute(
            "SELECT first, body FROM events WHERE run = ?1 AND first >= coalesce("
            "(SELECT max(first) FROM events WHERE run = ?1 AND first <= ?2 + 1), 0)"
            " AND first <= ?2 + ?3 ORDER BY first",
            (key(run_id), after, limit),
        ).fetchall()
    return Piece(cut(rows, after, limit), last + 1 if dropped else 1, last, closed_at is not None)


def _drop(db: sqlite3.Connection, before: int) -> int:
    rows = db.execute(
        "UPDATE event_logs SET dropped = 1 WHERE NOT dropped AND closed_at < ? RETURNING run", (before,)
    ).fetchall()
    db.executemany("DELETE FROM events WHERE run = ?", rows)
    return len(rows)
