"""The events of runs in the schema of a `PostgresStore`."""

from __future__ import annotations

import asyncio
import select
import socket
import threading
from contextlib import suppress
from hashlib import md5

from ..errors import StoreError
from .clock import now
from .events import INBOX, Batch, EventLog, Piece, cut, joined
from .postgres import PostgresStore
from .postgres_jobs import Job
from .postgres_session import Ask, Cut, Row, Session, Statement
from .waiting import wait

#: How long to wait before connecting again, in seconds.
PAUSE_SECONDS = 0.5

#: Where it is told; names of channels are short, those of schemas need not be.
_CHANNEL = "'timbal_' || md5(current_schema())"
#: $1 run, $2 number of the first event, $3 of the last, $4 when it was closed, $5 events, $6 whether the inbox changed.
_APPEND = Statement(
    "append_events",
    f"""
    WITH log AS (
        INSERT INTO event_logs (run, last, closed_at) SELECT $1, $3::bigint, $4::bigint WHERE $2::bigint = 1
            OR EXISTS (SELECT FROM event_logs WHERE run = $1)
        ON CONFLICT (run) DO UPDATE SET last = excluded.last, closed_at = excluded.closed_at
            WHERE event_logs.last = $2 - 1 AND event_logs.closed_at IS NULL
        RETURNING run
    ), kept AS (INSERT INTO events SELECT run, $2, $5 FROM log)
    SELECT pg_notify({_CHANNEL}, run)::text, CASE WHEN $6::boolean THEN pg_notify({_CHANNEL}, '')::text END FROM log
    """,
    (str, str),
)
_LOG = Statement("event_log", "SELECT last, closed_at, dropped FROM event_logs WHERE run = $1", (int, int, bool))
_EVENTS = Statement(
    "events",
    """
    SELECT first, body FROM events WHERE run = $1 AND first >= coalesce(
        (SELECT max(first) FROM events WHERE run = $1 AND first <= $2::bigint + 1), 0)
        AND first <= $2::bigint + $3::bigint ORDER BY first
    """,
    (int, str),
)
_DROP = Statement(
    "drop_events",
    """
    WITH old AS (UPDATE event_logs SET dropped = true WHERE NOT dropped AND closed_at < $1 RETURNING run),
        gone AS (DELETE FROM events USING old WHERE events.run = old.run)
    SELECT count(*) FROM old
    """,
    (int,),
)
_ANNOUNCE = Statement("announce", f"SELECT pg_notify({_CHANNEL}, '')::text", (str,))


class _Simple(Job):
    """One statement that may be asked twice without harm."""

    def __init__(self, run: str, ask: Ask) -> None:
        super().__init__(run)
        self._ask = ask

    def asks(self) -> list[Ask]:
        return [self._ask]

    def outcome(self, rows: list[list[Row]]) -> list[Row]:
        return rows[0]


class PostgresEventLog(EventLog):
    """Writes with the store's writer, so that a batch shares the transaction of a commit beside it.

    One connection of its own, made when somebody listens first, hears what other processes have written.
    """

    def __init__(self, store: PostgresStore) -> None:
        super().__init__()
        self._store = store
        self._ear: _Ear | None = None

    async def _append(self, batch: Batch) -> None:
        closed_at = now() if batch.closes else None
        values = (batch.run_id, batch.first, batch.last, closed_at, joined(batch.events), batch.asks)
        await self._write(batch.run_id, Ask(_APPEND, values))

    async def _read(self, run_id: str, after: int, limit: int) -> Piece | None:
        def read(session: Session) -> Piece | None:
            # Events first: those that are seen are covered by the log that is read after them.
            rows, log = session.run([Ask(_EVENTS, (run_id, after, limit)), Ask(_LOG, (run_id,))])
            if not log:
                return None
            last, closed_at, dropped = log[0]
            return Piece(cut(rows, after, limit), last + 1 if dropped else 1, last, closed_at is not None)

        self._store._here()
        return await wait(self._store._readers.submit(read))

    async def drop(self, before: int) -> int:
        rows = await self._write("", Ask(_DROP, (before,)))
        count: int = rows[0][0]
        return count

    async def announce(self) -> None:
        await self._write("", Ask(_ANNOUNCE, ()))
        self._ring(INBOX)

    async def aclose(self) -> None:
        ear, self._ear = self._ear, None
        if ear is not None:
            await asyncio.to_thread(ear.close)

    async def _write(self, run: str, ask: Ask) -> list[Row]:
        self._store._here()
        rows: list[Row] = await wait(self._store._writer.submit(_Simple(run, ask)))
        return rows

    def _listening(self) -> None:
        if self._ear is None:
            self._ear = _Ear(self._store, self, asyncio.get_running_loop())

    def heard(self, run_ids: list[str] | None) -> None:
        """Other processes have written events of these runs; `None`: of any."""
        if run_ids is None:
            self.ring_all()
        for run_id in run_ids or ():
            self._ring(run_id)


class _Ear:
    """A thread that hears what other processes announce; where its connection breaks it makes another."""

    def __init__(self, store: PostgresStore, log: PostgresEventLog, loop: asyncio.AbstractEventLoop) -> None:
        self._target = store._target
        self._log = log
        self._loop = loop
        self._closing = threading.Event()
        self._bell, self._bell_here = socket.socketpair()
        self._thread = threading.Thread(target=self._run, name="timbal-events", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._closing.set()
        self._bell.send(b"!")
        self._thread.join()
        self._bell.close()
        self._bell_here.close()

    def _run(self) -> None:
        while not self._closing.is_set():
            session: Session | None = None
            try:
                session = Session(self._target)
                session.script(f"LISTEN timbal_{md5(self._target.schema.encode(), usedforsecurity=False).hexdigest()}")
                self._tell(None)  # what was told before is not heard
                self._hear(session)
            except (Cut, StoreError):
                self._closing.wait(PAUSE_SECONDS)
            finally:
                if session is not None:
                    session.close()

    def _hear(self, session: Session) -> None:
        poll = select.poll()
        poll.register(session.fileno(), select.POLLIN)
        poll.register(self._bell_here, select.POLLIN)
        while not self._closing.is_set():
            poll.poll()
            if heard := session.told():
                self._tell(heard)

    def _tell(self, run_ids: list[str] | None) -> None:
        with suppress(RuntimeError):  # its loop has been closed
            self._loop.call_soon_threadsafe(self._log.heard, run_ids)
