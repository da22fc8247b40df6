"""The transactions of a SQLite store: who writes what, leases and their signs of life, and who waits for them."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, NoReturn

from ..core.facts import Ended, Opened
from ..errors import LeaseLost, RunExists, RunNotFound, StoreError
from ..ports import Due, Lease, QuestionRow, RunRow, Settlement, Settling, Stored
from . import sqlite_queries as queries
from .clock import now
from .process import is_gone, process_name
from .sqlite_file import data_version
from .sqlite_queries import SHIFT, TOP, id_of, key
from .sqlite_writer import Undo

_ADD_FACT = "INSERT INTO facts SELECT max(id) + 1, ? FROM facts WHERE id <= ?"  # the first lies at the base
_ADD_QUESTION = (
    "INSERT INTO questions (id, name, kind, asked_at, due_at, body)"
    " SELECT coalesce(max(id) + 1, ?), ?, ?, ?, ?, ? FROM questions WHERE id BETWEEN ? AND ?"
)
#: The statement that decides a race: who sets it first has won.
_SETTLE = "UPDATE questions SET settled = ? WHERE id BETWEEN ? AND ? AND name = ? AND settled IS NULL"

_OPEN = (
    "INSERT INTO executions (run, runnable, kind, parent, labels, holder, lease_until, fence)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, 1)"
)
_OPEN_RUN = (
    "INSERT INTO runs (id, execution, t0, fence, status, reason, t1) VALUES (?, ?, ?, 1, ?, ?, ?)"
    " ON CONFLICT DO NOTHING"
)
_FIRST_FACT = "INSERT INTO facts VALUES (?, ?)"
#: A run that goes on with an execution, and the lease that it got.
_ENTER = "INSERT INTO runs (id, execution, parent, t0, fence) VALUES (?, ?, ?, ?, ?) ON CONFLICT (id)"
_ENTER_NEW = f"{_ENTER} DO NOTHING"
_TAKE = (
    "UPDATE executions SET holder = ?, fence = fence + 1, lease_until = ?, stop = NULL, due_at = NULL, parked = 0,"
    " attempts = attempts + (holder IS NOT NULL) WHERE id = ?"
)
_TAKE_FREE = f"{_TAKE} AND (holder IS NULL OR lease_until < ?) RETURNING fence"
_CHECK = "SELECT fence, stop, holder FROM executions WHERE id = ?"
_GIVE_BACK = (
    "UPDATE executions SET holder = NULL, lease_until = NULL, stop = NULL, attempts = 0,"
    " due_at = CASE WHEN ? THEN due_at END WHERE id = ? AND fence = ? AND holder = ?"
)
_END_RUN = "UPDATE runs SET status = ?, reason = ?, t1 = ? WHERE id = ?"
#: What a pause and a resume write, in statements that are prepared when the file is opened.
_WRITES = (
    *(_OPEN, _OPEN_RUN, _FIRST_FACT, _ADD_FACT, _ADD_QUESTION),
    *(_SETTLE, _TAKE_FREE, _ENTER_NEW, _GIVE_BACK, _END_RUN),
)
#: The attempt does not count, and somebody else is to take it up.
_RELEASE = (
    "UPDATE executions SET holder = NULL, lease_until = NULL, stop = NULL, attempts = max(0, attempts - 1), due_at = ?"
    " WHERE id = ? AND fence = ? AND holder = ?"
)

_LOAD = (
    "SELECT e.id, e.run, e.fence, e.holder, e.lease_until,"
    " (SELECT max(id) FROM runs WHERE execution = e.id AND parent IS NOT NULL)"
    " FROM runs r JOIN executions e ON e.id = r.execution WHERE r.id = ? AND r.status IS NOT 'erased'"
)

#: How often another process's changes are looked for while somebody waits for them, in seconds.
POLL_SECONDS = 0.01
#: How often a store that holds leases looks whether its holders are asked to stop, in seconds.
WATCH_SECONDS = 0.5
#: How often a store without work looks, in seconds: it has nothing to look for.
IDLE_SECONDS = 3600.0


class Desk:
    """What the writer's thread does with the connection; only that thread touches it."""

    def __init__(self, db: sqlite3.Connection, lease_ms: int) -> None:
        self._lease_ms = lease_ms
        self._holder = f"{process_name()}/{os.urandom(4).hex()}"
        self._leases: dict[int, Lease] = {}
        self._waiters: dict[int, list[Future[None]]] = {}
        self._data_version = data_version(db)
        self._beat_at = 0.0
        self._wake_at = 0.0
        self._prepare(db)

    def _prepare(self, db: sqlite3.Connection) -> None:
        """Let the connection compile what every run needs, once and before any run waits for it."""
        for statement in _WRITES:
            db.executemany(statement, ())
        self.load(db, "")
        queries.records(db, 0)
        db.execute(_CHECK, (0,))

    # -- writing -------------------------------------------------------------------------------------------------------

    def commit(
        self,
        db: sqlite3.Connection,
        lease: Lease,
        record: bytes,
        opened: Opened | None,
        questions: Sequence[QuestionRow],
        ended: Ended | None,
        settlements: Sequence[Settlement],
    ) -> str | None:
        stop = None
        if opened is not None:
            self._open(db, lease, opened, ended)
        elif ended is not None:
            self._give_back(db, lease, ended)
        else:
            stop = self._check_lease(db, lease)
        base = lease.ref << SHIFT
        if record:
            if opened is not None:
                db.execute(_FIRST_FACT, (base, record.decode()))
            else:
                db.execute(_ADD_FACT, (record.decode(), base + TOP))
        for q in questions:
            row = (key(q.name), q.kind, q.asked_at, q.due_at, q.body.decode())
            db.execute(_ADD_QUESTION, (base, *row, base, base + TOP))
        for s in settlements:
            db.execute(_SETTLE, (s.body.decode(), base, base + TOP, key(s.id)))
        return stop

    def _check_lease(self, db: sqlite3.Connection, lease: Lease) -> str | None:
        """The reason when the holder is asked to stop; raises `LeaseLost`."""
        row = db.execute(_CHECK, (lease.ref,)).fetchone()
        if row is None or row[0] != lease.fence or row[2] != self._holder:
            self._lost(lease)
        stop: str | None = row[1]
        return stop

    def _lost(self, lease: Lease) -> NoReturn:
        if self._leases.get(lease.ref) is lease:
            del self._leases[lease.ref]
        raise LeaseLost("the run was taken over by another one, or erased; what it had not committed does not count")

    def _give_back(self, db: sqlite3.Connection, lease: Lease, ended: Ended) -> None:
        if not db.execute(_GIVE_BACK, (ended.paused, lease.ref, lease.fence, self._holder)).rowcount:
            self._lost(lease)
        db.execute(_END_RUN, (ended.code, ended.reason, ended.at, key(ended.run_id)))
        self._leases.pop(lease.ref, None)
        self._changed(lease.ref)

    def _open(self, db: sqlite3.Connection, lease: Lease, opened: Opened, ended: Ended | None) -> None:
        run, parent = key(opened.run_id), opened.parent_run_id
        held = (self._holder, now() + self._lease_ms) if ended is None else (None, None)
        ref = db.execute(
            _OPEN,
            (
                run,
                opened.name,
                opened.kind,
                None if parent is None else key(parent),
                json.dumps(opened.labels) if opened.labels else None,
                *held,
            ),
        ).lastrowid
        entered = db.execute(
            _OPEN_RUN,
            (run, ref, opened.at, *((None, None, None) if ended is None else (ended.code, ended.reason, ended.at))),
        ).rowcount
        if not entered:
            db.execute("DELETE FROM executions WHERE id = ?", (ref,))
            raise RunExists(f"run {opened.run_id} exists already")
        assert ref is not None
        lease.ref = ref
        if ended is None:
            self._leases[ref] = lease

    def settle(
        self, db: sqlite3.Connection, ref: int, settlements: Sequence[Settlement], run: RunRow | None, stop: str | None
    ) -> Settling:
        base = ref << SHIFT
        for number, s in enumerate(settlements):
            if not db.execute(_SETTLE, (s.body.decode(), base, base + TOP, key(s.id))).rowcount:
                if number:
                    raise Undo(Settling(True, None))
                return Settling(True, None)
        lease = None
        if run is not None:
            fence = self._take(db, ref)
            if not db.execute(_ENTER_NEW, (*_run_values(ref, run), fence)).rowcount:
                raise Undo(RunExists(f"run {run.run_id} exists already"))
            lease = self._leased(ref, fence)
        if lease is None and settlements:
            db.execute("UPDATE executions SET due_at = coalesce(due_at, ?) WHERE id = ?", (now(), ref))
        if stop is not None and lease is None:
            db.execute("UPDATE executions SET stop = ? WHERE id = ? AND holder IS NOT NULL", (stop, ref))
            if (held := self._leases.get(ref)) is not None:
                _ask_to_stop(held, stop)
        return Settling(False, lease)

    def append(self, db: sqlite3.Connection, run_id: str, record: bytes) -> list[bytes | str]:
        row = db.execute(
            "SELECT execution FROM runs WHERE id = ? AND status IS NOT 'erased'", (key(run_id),)
        ).fetchone()
        if row is None:
            raise RunNotFound(f"there is no run {run_id} in this store")
        db.execute(_ADD_FACT, (record.decode(), (row[0] << SHIFT) + TOP))
        return queries.records(db, row[0])

    def take(self, db: sqlite3.Connection, ref: int, run: RunRow) -> Lease | None:
        """The lease for this run, if nobody has it who shows signs of life."""
        fence = self._take(db, ref)
        if fence is not None:
            db.execute(f"{_ENTER} DO UPDATE SET fence = excluded.fence", (*_run_values(ref, run), fence))
        return self._leased(ref, fence)

    def _take(self, db: sqlite3.Connection, ref: int) -> int | None:
        """The fence of a lease that was free, and now is ours."""
        mine = (self._holder, now() + self._lease_ms, ref)
        row = db.execute(_TAKE_FREE, (*mine, now())).fetchone()
        if row is None:
            row = db.execute("SELECT holder, lease_until FROM executions WHERE id = ?", (ref,)).fetchone()
            if row is None:
                raise StoreError("the run was erased")
            if self._shows_life(ref, *row):
                return None
            row = db.execute(f"{_TAKE} RETURNING fence", mine).fetchone()
        fence: int = row[0]
        return fence

    def _leased(self, ref: int, fence: int | None) -> Lease | None:
        if fence is None:
            return None
        lease = self._leases[ref] = Lease(ref, fence)
        return lease

    def release(self, db: sqlite3.Connection, lease: Lease) -> None:
        if not db.execute(_RELEASE, (now(), lease.ref, lease.fence, self._holder)).rowcount:
            self._lost(lease)
        self._leases.pop(lease.ref, None)
        self._changed(lease.ref)

    def due(self, db: sqlite3.Connection, runnables: Sequence[str], limit: int) -> list[Due]:
        found = queries.due(db, runnables, now())
        return [due for due, ref, holder, until in found if not self._shows_life(ref, holder, until)][:limit]

    def _shows_life(self, ref: int, holder: str | None, until: int | None) -> bool:
        """Whether the holder of a lease is still there."""
        if holder is None or until is None or until < now():
            return False
        if holder == self._holder:
            lease = self._leases.get(ref)
            return lease is not None and lease.alive()
        return not is_gone(holder)

    def erase(self, db: sqlite3.Connection, run_id: str) -> bool:
        row = db.execute("SELECT execution FROM runs WHERE id = ?", (key(run_id),)).fetchone()
        if row is None:
            return False
        db.execute("PRAGMA secure_delete=ON")  # what is deleted is overwritten
        base = row[0] << SHIFT
        for table in ("facts", "questions"):
            db.execute(f"DELETE FROM {table} WHERE id BETWEEN ? AND ?", (base, base + TOP))
        for table in ("events", "event_logs"):
            db.execute(f"DELETE FROM {table} WHERE run IN (SELECT id FROM runs WHERE execution = ?)", row)
        db.execute(
            "UPDATE executions SET labels = NULL, holder = NULL, lease_until = NULL, stop = NULL, fence = fence + 1"
            " WHERE id = ?",
            row,
        )
        db.execute(
            "UPDATE runs SET status = 'erased', reason = NULL, t1 = ? WHERE execution = ? AND status IS NOT 'erased'",
            (now(), *row),
        )
        self._changed(row[0])
        return True

    # -- reading -------------------------------------------------------------------------------------------------------

    def load(self, db: sqlite3.Connection, run_id: str) -> Stored | None:
        row = db.execute(_LOAD, (key(run_id),)).fetchone()
        if row is None:
            return None
        ref, first, fence, holder, until, newest = row
        held = self._shows_life(ref, holder, until)
        return Stored(ref, id_of(first), id_of(newest or first), held, fence, queries.records(db, ref))

    # -- waiting -------------------------------------------------------------------------------------------------------

    def watch(self, db: sqlite3.Connection, ref: int, future: Future[None]) -> None:
        row = db.execute("SELECT holder, lease_until FROM executions WHERE id = ?", (ref,)).fetchone()
        if row is None or not self._shows_life(ref, *row):
            future.set_result(None)
        else:
            self._waiters.setdefault(ref, []).append(future)

    def _changed(self, ref: int) -> None:
        for waiter in self._waiters.pop(ref, ()):
            waiter.set_result(None)

    def tick(self, db: sqlite3.Connection) -> float:
        """Keep leases alive, and look for what other processes did; gives the seconds until the next look."""
        now = time.monotonic()
        if self._leases and now >= self._beat_at:
            self._beat_at = now + self._lease_ms / 3000
            self._beat(db)
        if self._waiters or self._leases:
            version = data_version(db)
            if version != self._data_version or (self._waiters and now >= self._wake_at):
                self._data_version = version
                self._wake_at = now + 1.0
                self._look(db)
        if self._waiters:
            return POLL_SECONDS
        return min(WATCH_SECONDS, self._lease_ms / 3000) if self._leases else IDLE_SECONDS

    def _beat(self, db: sqlite3.Connection) -> None:
        self._leases = {ref: lease for ref, lease in self._leases.items() if lease.alive()}
        with suppress(sqlite3.Error):  # the next commit says so to somebody who can act on it
            db.executemany(
                "UPDATE executions SET lease_until = ? WHERE id = ? AND fence = ?",
                [(now() + self._lease_ms, ref, lease.fence) for ref, lease in self._leases.items()],
            )

    def _look(self, db: sqlite3.Connection) -> None:
        for ref, lease in list(self._leases.items()):
            row = db.execute("SELECT stop, fence FROM executions WHERE id = ?", (ref,)).fetchone()
            if row is not None and row[0] is not None and row[1] == lease.fence:
                _ask_to_stop(lease, row[0])
        for ref in list(self._waiters):
            self._changed(ref)


def _run_values(ref: int, run: RunRow) -> tuple[Any, ...]:
    return key(run.run_id), ref, key(run.parent_run_id), run.at


def _ask_to_stop(lease: Lease, reason: str) -> None:
    if lease.holder is not None:
        lease.holder.stop_asked(reason)
