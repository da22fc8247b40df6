"""The thread that owns a SQLite connection: what arrives together is committed together."""

from __future__ import annotations

import queue
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, NamedTuple, TypeVar

from ..errors import StoreError

T = TypeVar("T")

#: The most jobs that share a transaction.
MAX_BATCH = 256


class Job(NamedTuple):
    """Work for the connection. A job that refuses raises a `StoreError` before it has written anything."""

    work: Callable[[sqlite3.Connection], Any]
    writes: bool
    future: Future[Any]


class Worker:
    """Runs jobs in order. `connect` opens the connection; `tick` is called while idle and says when to be called next."""

    def __init__(
        self, connect: Callable[[], sqlite3.Connection], tick: Callable[[sqlite3.Connection], float], explain: Callable[[Exception], StoreError]
    ) -> None:
        self._connect = connect
        self._tick = tick
        self._explain = explain
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="timbal-sqlite", daemon=True)
        self._thread.start()

    def submit(self, work: Callable[[sqlite3.Connection], T], *, writes: bool) -> Future[T]:
        """The future of a job's result; it resolves when the transaction that the job is part of is durable."""
        future: Future[T] = Future()
        if self._closed:
            future.set_exception(StoreError("this store is closed; open another"))
        else:
            self._jobs.put(Job(work, writes, future))
        return future

    def close(self) -> None:
        """Finish what was submitted and close the connection; returns at once."""
        if not self._closed:
            self._closed = True
            self._jobs.put(None)

    def join(self) -> None:
        self._thread.join()

    def nudge(self) -> None:
        """Let `tick` be called soon."""
        self._jobs.put(Job(lambda connection: None, False, Future()))

    def _run(self) -> None:
        try:
            connection = self._connect()
        except Exception as error:
            self._fail_all(error if isinstance(error, StoreError) else self._explain(error))
            return
        try:
            self._loop(connection)
        finally:
            connection.close()

    def _loop(self, connection: sqlite3.Connection) -> None:
        timeout = self._tick(connection)
        closing = False
        while not closing:
            batch = self._next(timeout)
            jobs = [job for job in batch if job is not None]
            closing = len(jobs) != len(batch)
            if jobs:
                self._perform(connection, jobs)
            timeout = self._tick(connection)

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
        if results is None:  # something broke the transaction: nothing of it is kept, and each job gets its own
            for job in jobs:
                alone = self._transact(connection, [job])
                self._resolve([job], alone if alone is not None else [self._error])
            return
        self._resolve(jobs, results)

    def _transact(self, connection: sqlite3.Connection, jobs: list[Job]) -> list[Any] | None:
        """Results or refusals of jobs in one transaction; `None` when it failed as a whole, for `self._error`."""
        writes = any(job.writes for job in jobs)
        results: list[Any] = []
        try:
            if writes:
                connection.execute("BEGIN IMMEDIATE")
            for job in jobs:
                try:
                    results.append(job.work(connection))
                except StoreError as refusal:
                    results.append(refusal)
            if writes:
                connection.execute("COMMIT")
        except Exception as error:
            self._error = error if isinstance(error, StoreError) else self._explain(error)
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            return None
        return results

    def _resolve(self, jobs: list[Job], results: list[Any]) -> None:
        for job, result in zip(jobs, results, strict=True):
            if isinstance(result, StoreError):
                job.future.set_exception(result)
            else:
                job.future.set_result(result)

    def _fail_all(self, error: StoreError) -> None:
        while (job := self._jobs.get()) is not None:
            job.future.set_exception(type(error)(*error.args))
