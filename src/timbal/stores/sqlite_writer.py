"""A SQLite connection and the thread that works on it: what arrives together is committed together."""

from __future__ import annotations

import asyncio
import queue
import sqlite3
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, NamedTuple, TypeVar

from ..errors import StoreError
from .waiting import Ready, failed

T = TypeVar("T")

#: The most jobs that share a transaction.
MAX_BATCH = 256
#: A commit that takes less than this is done where it is asked for: handing it to the thread would take as long.
QUICK_SECONDS = 0.0003
#: How long to wait for another process's transaction.
BUSY_SECONDS = 30.0


#: After jobs of its own the thread looks again in so long: they may have left something to look after.
SOON_SECONDS = 0.01
#: For so long after work was done, the thread looks at least so often.
AWAKE_SECONDS = 2.0


class Undo(Exception):
    """Raised by a job that has written and wants nothing of it kept; `result` is what it gives, or its refusal."""

    def __init__(self, result: Any) -> None:
        self.result = result
        super().__init__()


class Job(NamedTuple):
    """Work for the connection. A job that refuses raises a `StoreError` before it has written anything."""

    work: Callable[[sqlite3.Connection], Any]
    writes: bool
    future: Future[Any]


class Writer:
    """Runs jobs in order. `check` raises when the file can't be written to any more. `tick` is called after work and
    when it is time again, and says in how many seconds that is.

    Jobs go to the thread, which commits all that are waiting with one sync. While the disk is quick and nothing else
    wants to run on the caller's loop, so that nobody could share the commit, the caller's own thread does it.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        check: Callable[[], None],
        tick: Callable[[sqlite3.Connection], float],
        explain: Callable[[Exception], StoreError],
        awake: float = AWAKE_SECONDS,
    ) -> None:
        self._awake = awake
        self._check = check
        self._tick = tick
        self._explain = explain
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._waiting = 0
        self._busy = threading.Lock()
        self._connection: sqlite3.Connection | None = connection
        self._quick = True
        self._closed = False
        self._next_tick = 0.0
        self._used = time.monotonic()
        self._thread = threading.Thread(target=self._run, name="timbal-sqlite", daemon=True)
        self._thread.start()

    def submit(self, work: Callable[[sqlite3.Connection], T], *, writes: bool) -> Future[T]:
        """The future of a job's result; it resolves when the transaction that the job is part of is durable."""
        if self._closed:
            return failed(StoreError("this store is closed; open another"))
        if self._quick and not self._waiting and _nobody_else() and self._busy.acquire(blocking=False):
            try:
                done = self._here(work, writes)
            finally:
                self._busy.release()
            if done is not None:
                self._wake()
                return done
        future: Future[T] = Future()
        self._put(Job(work, writes, future))
        return future

    def close(self) -> None:
        """Finish what was submitted and close the connection; returns at once."""
        if not self._closed:
            self._closed = True
            self._jobs.put(None)

    def join(self) -> None:
        self._thread.join()

    def look_soon(self) -> None:
        """Let `tick` be called in a moment."""
        self._next_tick = 0.0
        self._put(Job(_nothing, False, Future()))

    def _wake(self) -> None:
        """Work was done that the thread does not know of: let it look in time."""
        self._used = time.monotonic()
        if self._next_tick > self._used + self._awake:
            self.look_soon()

    def _put(self, job: Job) -> None:
        self._waiting += 1
        self._jobs.put(job)

    def _here(self, work: Callable[[sqlite3.Connection], T], writes: bool) -> Future[T] | None:
        """Do it in this thread; `None` when that can't be done without waiting."""
        connection = self._connection
        if connection is None or self._waiting:
            return None
        if writes:
            try:
                self._check()
                connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                return None
            except StoreError as error:
                return failed(error)
        try:
            result = work(connection)
            if writes:
                self._commit(connection)
        except StoreError as refusal:
            if writes:
                connection.execute("COMMIT")
            return failed(refusal)
        except Undo as undo:
            connection.execute("ROLLBACK")
            return failed(undo.result) if isinstance(undo.result, StoreError) else Ready(undo.result)
        except Exception as error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            return failed(self._explain(error))
        return Ready(result)

    def _commit(self, connection: sqlite3.Connection) -> None:
        start = time.perf_counter()
        connection.execute("COMMIT")
        self._quick = time.perf_counter() - start < QUICK_SECONDS

    # -- the thread ----------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        connection = self._connection
        assert connection is not None
        try:
            self._loop(connection)
        finally:
            with self._busy:
                self._connection = None
                connection.close()

    def _loop(self, connection: sqlite3.Connection) -> None:
        closing = False
        while not closing:
            batch = self._next(max(0.0, self._next_tick - time.monotonic()))
            jobs = [job for job in batch if job is not None]
            closing = len(jobs) != len(batch)
            with self._busy:
                self._waiting -= len(jobs)
                if jobs:
                    self._perform(connection, jobs)
                now = time.monotonic()
                if jobs:
                    self._next_tick = min(self._next_tick, now + SOON_SECONDS)
                if now >= self._next_tick:
                    seconds = self._tick(connection)
                    awake = jobs or now < self._used + self._awake
                    self._next_tick = now + (min(seconds, self._awake) if awake else seconds)

    def _next(self, timeout: float) -> list[Job | None]:
        """The jobs that are there, waiting for the first one."""
        batch: list[Job | None] = []
        try:
            batch.append(self._jobs.get(timeout=timeout))
            while len(batch) < MAX_BATCH:
                batch.append(self._jobs.get_nowait())
        except queue.Empty:
            pass
        return batch

    def _perform(self, connection: sqlite3.Connection, jobs: list[Job]) -> None:
        results = self._transact(connection, jobs)
        if isinstance(results, list):
            for job, result in zip(jobs, results, strict=True):
                _resolve(job, result)
            return
        # Something broke the transaction: nothing of it is kept, and each job gets one of its own.
        for job in jobs:
            alone = self._transact(connection, [job])
            _resolve(job, alone[0] if isinstance(alone, list) else alone)

    def _transact(self, connection: sqlite3.Connection, jobs: list[Job]) -> list[Any] | Exception:
        """Results or refusals of jobs in one transaction; or why nothing of it was kept."""
        writes = any(job.writes for job in jobs)
        results: list[Any] = []
        try:
            if writes:
                self._check()
                _begin(connection)
            for job in jobs:
                try:
                    results.append(job.work(connection))
                except StoreError as refusal:
                    results.append(refusal)
            if writes:
                self._commit(connection)
        except Exception as error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            return error if isinstance(error, StoreError | Undo) else self._explain(error)
        return results


def _begin(connection: sqlite3.Connection) -> None:
    """BEGIN IMMEDIATE, waiting for other processes."""
    until = time.monotonic() + BUSY_SECONDS
    pause = 0.0005
    while True:
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > until:
                raise
            time.sleep(pause)
            pause = min(pause * 1.5, 0.02)
        else:
            return


def _nothing(connection: sqlite3.Connection) -> None:
    """No work: only a reason for the thread to look around."""


def _nobody_else() -> bool:
    """Whether nothing but the caller wants to run on its event loop right now, as far as one can tell."""
    try:
        ready = getattr(asyncio.get_running_loop(), "_ready", None)
    except RuntimeError:
        return True
    return ready is not None and not ready


def _resolve(job: Job, result: Any) -> None:
    if isinstance(result, StoreError):
        job.future.set_exception(result)
    elif isinstance(result, Undo):
        _resolve(job, result.result)
    else:
        job.future.set_result(result)
