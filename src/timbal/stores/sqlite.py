"""A store in one SQLite file, for any number of processes of one host."""

from __future__ import annotations

import os
import sqlite3
import threading
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, Literal, TypeVar

from ..core.facts import Ended, Opened
from ..ports import Due, Lease, QuestionRow, RunRow, Settlement, Settling, Stored
from . import sqlite_queries as queries
from .base import LEASE_SECONDS, BaseStore
from .clock import now
from .listings import Found, Prune, Pruned, RunInfo, Slice, Where
from .sqlite_desk import Desk
from .sqlite_file import SCHEMA_VERSION, SqliteFile
from .sqlite_writer import AWAKE_SECONDS, Writer
from .waiting import wait

T = TypeVar("T")


class SqliteStore(BaseStore):
    """Keeps everything in the file `path` (made when missing), beside its `-wal` and `-shm`.

    `synchronous="full"`: what is reported is on the disk, through a power loss too; `"normal"` trades that for speed.
    `lease_seconds`: after so long without a sign of life another run may take an execution over; where its process was
    on this host and is gone, at once. Raises `StoreError` when the file is not ours or can't be used.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        synchronous: Literal["full", "normal"] = "full",
        lease_seconds: float = LEASE_SECONDS,
    ) -> None:
        if synchronous not in ("full", "normal"):
            raise ValueError(f"synchronous is 'full' or 'normal', not {synchronous!r}")
        self.path = os.path.abspath(path)
        self._synchronous = synchronous
        self._lease_ms = int(lease_seconds * 1000)
        self._lock = threading.Lock()
        self._open_writer()

    def _open_writer(self) -> None:
        self._pid = os.getpid()
        file = SqliteFile(self.path, self._synchronous)
        db = file.connect()
        self._desk = Desk(db, self._lease_ms)
        awake = min(AWAKE_SECONDS, self._lease_ms / 6000)
        self._writer = Writer(db, file.check, self._desk.tick, file.explain, awake)
        self._finalizer = weakref.finalize(self, self._writer.close)
        self._finalizer.atexit = False

    def _do(self, work: Callable[[sqlite3.Connection], T], *, writes: bool) -> Future[T]:
        if os.getpid() != self._pid:
            with self._lock:
                if os.getpid() != self._pid:
                    self._open_writer()
        return self._writer.submit(work, writes=writes)

    # -- the operations of every store (see `ports.Store`) -------------------------------------------------------------

    def commit(
        self,
        lease: Lease,
        record: bytes = b"",
        opened: Opened | None = None,
        questions: Sequence[QuestionRow] = (),
        ended: Ended | None = None,
        settlements: Sequence[Settlement] = (),
    ) -> Future[str | None]:
        desk = self._desk
        return self._do(lambda db: desk.commit(db, lease, record, opened, questions, ended, settlements), writes=True)

    def load(self, run_id: str) -> Future[Stored | None]:
        desk = self._desk
        return self._do(lambda db: desk.load(db, run_id), writes=False)

    def history(self, run_id: str) -> Future[list[list[bytes | str]]]:
        return self._do(lambda db: queries.history(db, run_id), writes=False)

    def settle(
        self, ref: Any, settlements: Sequence[Settlement], run: RunRow | None, stop: str | None = None
    ) -> Future[Settling]:
        desk = self._desk
        return self._do(lambda db: desk.settle(db, ref, settlements, run, stop), writes=True)

    def acquire(self, ref: Any, run: RunRow) -> Future[Lease | None]:
        desk = self._desk
        return self._do(lambda db: desk.take(db, ref, run), writes=True)

    def release(self, lease: Lease) -> Future[None]:
        desk = self._desk
        return self._do(lambda db: desk.release(db, lease), writes=True)

    def due(self, runnables: Sequence[str], limit: int) -> Future[list[Due]]:
        desk = self._desk
        return self._do(lambda db: desk.due(db, runnables, limit), writes=False)

    def park(self, run_id: str) -> Future[None]:
        return self._do(lambda db: queries.park(db, run_id), writes=True)

    def append(self, run_id: str, record: bytes) -> Future[list[bytes | str]]:
        desk = self._desk
        return self._do(lambda db: desk.append(db, run_id, record), writes=True)

    def wait(self, ref: Any) -> Future[None]:
        future: Future[None] = Future()
        desk = self._desk
        self._do(lambda db: desk.watch(db, ref, future), writes=False).add_done_callback(lambda f: _pass_on(f, future))
        self._writer.look_soon()
        return future

    def find(self, ids: Sequence[str], runnable: str) -> Future[list[str]]:
        return self._do(lambda db: queries.find(db, ids, runnable), writes=False)

    def _questions(self, where: Where, page: Slice, *, settled: bool) -> Future[list[Found]]:
        return self._do(lambda db: queries.questions(db, where, page, settled=settled), writes=False)

    def _list_runs(self, where: Where, page: Slice) -> Future[list[RunInfo]]:
        return self._do(lambda db: queries.list_runs(db, where, page), writes=False)

    def _runs_of(self, run_id: str) -> Future[list[RunInfo]]:
        return self._do(lambda db: queries.runs_of(db, run_id), writes=False)

    def _erase(self, run_id: str) -> Future[bool]:
        desk = self._desk
        return self._do(lambda db: desk.erase(db, run_id), writes=True)

    def _prune(self, prune: Prune) -> Future[Pruned]:
        return self._do(lambda db: queries.prune(db, prune, now()), writes=True)

    def _check(self) -> Future[list[str]]:
        return self._do(queries.check, writes=False)

    @property
    def schema_version(self) -> int:
        return SCHEMA_VERSION

    async def aclose(self) -> None:
        self._writer.close()
        done: Future[None] = Future()

        def finish() -> None:
            self._writer.join()
            done.set_result(None)

        threading.Thread(target=finish, name="timbal-close").start()
        await wait(done)


def _pass_on(asked: Future[None], future: Future[None]) -> None:
    error = asked.exception()
    if error is not None and not future.done():
        future.set_exception(error)
