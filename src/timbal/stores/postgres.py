"""A store in PostgreSQL, for any number of processes of any number of hosts."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Literal

from ..core.facts import Ended, Opened
from ..errors import StoreError
from ..ports import Due, Lease, QuestionRow, RunRow, Settlement, Settling, Stored
from . import postgres_queries as queries
from . import postgres_statements as sql
from .base import LEASE_SECONDS, BaseStore
from .listings import Found, Prune, Pruned, RunInfo, Slice, Where
from .postgres_jobs import Append, Commit, Erase, Park, Release, Remove, Settle, Take
from .postgres_leases import Leases
from .postgres_readers import Readers
from .postgres_schema import VERSION, check_schema, set_up_reader, set_up_writer
from .postgres_session import Cut, Session, read_url
from .postgres_writer import Writer
from .waiting import wait


class PostgresStore(BaseStore):
    """Keeps everything in one schema of the database at `url`, made when missing: `postgresql://user@host/database`.

    `schema`: where the tables are (`timbal`; also `?schema=` in the URL). `synchronous="full"`: what is reported is
    durable as the server is set up, `"normal"` trades the last moments before a crash of the server for speed.
    `lease_seconds`: after so long without a sign of life another run may take an execution over. `connections`: the
    most this object opens. `retry_seconds`: for so long a broken connection is made again before calls fail.

    Raises `StoreError` when the database does not answer, or the schema is not ours; `ValueError` for a URL that can't
    be read; `ImportError` without psycopg.
    """

    def __init__(
        self,
        url: str,
        *,
        schema: str | None = None,
        synchronous: Literal["full", "normal"] = "full",
        lease_seconds: float = LEASE_SECONDS,
        connections: int = 4,
        retry_seconds: float = 5.0,
    ) -> None:
        if synchronous not in ("full", "normal"):
            raise ValueError(f"synchronous is 'full' or 'normal', not {synchronous!r}")
        if connections < 2:
            raise ValueError(f"connections is at least 2, one to write and one to read, not {connections!r}")
        self._target = read_url(url, schema)
        self._synchronous = synchronous
        self._lease_ms = int(lease_seconds * 1000)
        self._connections = connections
        self._patience = retry_seconds
        self._lock = threading.Lock()
        self._open()

    def __repr__(self) -> str:
        return f"<PostgresStore: {self._target.label}>"

    def _open(self) -> None:
        self._pid = os.getpid()
        target, synchronous = self._target, self._synchronous

        def ready_to_write(session: Session) -> None:
            set_up_writer(session, synchronous, sql.FIRST)

        def write() -> Session:
            return _ready(Session(target), check_schema, ready_to_write)

        def read() -> Session:
            return _ready(Session(target), lambda session: set_up_reader(session, queries.FIRST))

        with ThreadPoolExecutor(1) as beside:
            try:
                writing = _ready(Session(target), check_schema)
                reader = beside.submit(read)
                _ready(writing, ready_to_write)
                reading = reader.result()
            except Cut as cut:
                raise StoreError(
                    f"{target.label} does not answer: {cut}: check that it runs, and the address, user and password in "
                    "the URL"
                ) from cut
        self._leases = Leases(self._lease_ms)
        self._writer = Writer(writing, write, self._leases, self._patience)
        self._readers = Readers(reading, read, self._connections - 1, self._patience)
        self._finalizer = weakref.finalize(self, _close, self._writer, self._readers)
        self._finalizer.atexit = False

    def _here(self) -> None:
        """After a fork: connections and threads of our own. The parent's are left alone."""
        if os.getpid() != self._pid:
            with self._lock:
                if os.getpid() != self._pid:
                    self._parents = (self._writer, self._readers)
                    self._finalizer.detach()
                    self._open()

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
        self._here()
        return self._writer.submit(Commit(self._leases, lease, record, opened, questions, ended, settlements))

    def load(self, run_id: str) -> Future[Stored | None]:
        self._here()
        leases = self._leases

        def read(session: Session) -> Stored | None:
            found = queries.stored(session, run_id)
            if found is None:
                return None
            (run, fence, lasts, holder, newest), records = found
            held = holder is not None and lasts and leases.shows_life(run, holder, fence)
            return Stored(run, run, newest or run, held, fence, records)

        return self._readers.submit(read)

    def history(self, run_id: str) -> Future[list[list[bytes | str]]]:
        self._here()
        return self._readers.submit(lambda session: queries.history(session, run_id))

    def settle(
        self, ref: Any, settlements: Sequence[Settlement], run: RunRow | None, stop: str | None = None
    ) -> Future[Settling]:
        self._here()
        return self._writer.submit(Settle(self._leases, ref, settlements, run, stop))

    def acquire(self, ref: Any, run: RunRow) -> Future[Lease | None]:
        self._here()
        return self._writer.submit(Take(self._leases, ref, run))

    def append(self, run_id: str, record: bytes) -> Future[list[bytes | str]]:
        self._here()
        return self._writer.submit(Append(run_id, record))

    def release(self, lease: Lease) -> Future[None]:
        self._here()
        return self._writer.submit(Release(self._leases, lease))

    def due(self, runnables: Sequence[str], limit: int) -> Future[list[Due]]:
        self._here()
        leases = self._leases

        def read(session: Session) -> list[Due]:
            found = queries.due(session, runnables)
            return [
                due
                for due, holder, fence, lasts in found
                if holder is None or not (lasts and leases.shows_life(due.run_id, holder, fence))
            ][:limit]

        return self._readers.submit(read)

    def park(self, run_id: str) -> Future[None]:
        self._here()
        return self._writer.submit(Park(run_id))

    def wait(self, ref: Any) -> Future[None]:
        self._here()
        return self._writer.wait(ref)

    def find(self, ids: Sequence[str], runnable: str) -> Future[list[str]]:
        self._here()
        return self._readers.submit(lambda session: queries.find(session, ids, runnable))

    def _questions(self, where: Where, page: Slice, *, settled: bool) -> Future[list[Found]]:
        self._here()
        return self._readers.submit(lambda session: queries.questions(session, where, page, settled=settled))

    def _list_runs(self, where: Where, page: Slice) -> Future[list[RunInfo]]:
        self._here()
        return self._readers.submit(lambda session: queries.runs(session, where, page))

    def _runs_of(self, run_id: str) -> Future[list[RunInfo]]:
        self._here()
        return self._readers.submit(lambda session: queries.runs_of(session, run_id))

    def _erase(self, run_id: str) -> Future[bool]:
        self._here()
        return self._writer.submit(Erase(run_id))

    def _prune(self, prune: Prune) -> Future[Pruned]:
        self._here()
        return self._writer.submit(Remove(prune))

    def _check(self) -> Future[list[str]]:
        self._here()
        return self._readers.submit(queries.check)

    @property
    def schema_version(self) -> int:
        return VERSION

    async def aclose(self) -> None:
        writer, readers = self._writer, self._readers
        _close(writer, readers)
        done: Future[None] = Future()

        def finish() -> None:
            writer.join()
            readers.join()
            done.set_result(None)

        threading.Thread(target=finish, name="timbal-close").start()
        await wait(done)


def _close(writer: Writer, readers: Readers) -> None:
    writer.close()
    readers.close()


def _ready(session: Session, *steps: Callable[[Session], object]) -> Session:
    """The session after these steps; closed where one fails."""
    try:
        for step in steps:
            step(session)
    except BaseException:
        session.close()
        raise
    return session
