"""The thread that writes to PostgreSQL: what arrives while a transaction is under way shares the next one."""

from __future__ import annotations

import select
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from ..errors import LeaseLost, StoreError
from ..ports import Settling
from .postgres_jobs import NOT_KEPT, Job, Watch
from .postgres_leases import Leases
from .postgres_session import Ask, Cut, Row, Session
from .postgres_statements import BEAT
from .waiting import failed

#: The most jobs that share a transaction.
MAX_BATCH = 256
#: How often waiters look for themselves, in seconds: a notification may be lost with its connection.
WAKE_SECONDS = 1.0
#: How long to wait before connecting again, in seconds: first, and at most.
BACKOFF_SECONDS = (0.05, 1.0)


class Writer:
    """Performs jobs in order, keeps leases alive, and wakes who waits.

    `connect` gives a session. One that breaks is replaced, for `patience` seconds; whatever was under way then is asked
    for again in a way that can't do it twice. After that jobs fail, each after one more attempt, until it is back.
    """

    def __init__(self, session: Session, connect: Callable[[], Session], leases: Leases, patience: float) -> None:
        self._session: Session | None = session
        self._label = session.target.label
        self._connect = connect
        self._leases = leases
        self._patience = patience
        self._jobs: deque[Job] = deque()
        self._waiters: dict[str, list[Future[None]]] = {}
        self._bell, self._ear = socket.socketpair()
        self._ear.setblocking(False)
        self._rung = threading.Lock()
        self._gate = threading.Lock()
        self._closed = False
        self._away_since: float | None = None
        self._beat_at: float | None = None
        self._wake_at = 0.0
        self._thread = threading.Thread(target=self._run, name="timbal-postgres", daemon=True)
        self._thread.start()

    def submit(self, job: Job) -> Future[Any]:
        """The future of a job's result; it resolves when the transaction that the job is part of is durable."""
        with self._gate:
            if self._closed:
                return failed(StoreError("this store is closed; open another"))
            job.future.set_running_or_notify_cancel()  # it can't be called off any more
            self._jobs.append(job)
        self._ring()
        return job.future

    def wait(self, run: str) -> Future[None]:
        """Resolves when nobody has this run's lease, when that may be so, and after a second."""
        future: Future[None] = Future()

        def watched(watch: Future[bool]) -> None:  # in the writer's thread
            if (error := watch.exception()) is not None:
                future.set_exception(error)
            elif watch.result():
                self._waiters.setdefault(run, []).append(future)
            else:
                future.set_result(None)

        self.submit(Watch(self._leases, run)).add_done_callback(watched)
        return future

    def close(self) -> None:
        """Finish what was submitted and close the connection; returns at once."""
        with self._gate:
            self._closed = True
        self._ring()

    def join(self) -> None:
        self._thread.join()

    def _ring(self) -> None:
        """Wake the thread; one ring is enough for all that was submitted before it looks."""
        if self._rung.acquire(blocking=False):
            with suppress(OSError):  # it has ended
                self._bell.send(b"!")

    # -- the thread ----------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while not self._closed or self._jobs:
                self._listen()
                if not self._jobs:
                    self._sleep(self._tick())
                if batch := [self._jobs.popleft() for _ in range(min(len(self._jobs), MAX_BATCH))]:
                    batch.sort(key=lambda job: job.run)  # every process locks in this order: no deadlocks
                    self._perform(batch)
        finally:
            self._drop()
            self._ear.close()
            self._bell.close()
            for run in list(self._waiters):
                self._changed(run)

    def _sleep(self, seconds: float) -> None:
        """Until there are jobs, something is heard, or the time is over."""
        poll = select.poll()
        poll.register(self._ear, select.POLLIN)
        if self._session is not None:
            poll.register(self._session.fileno(), select.POLLIN)
        if self._ear.fileno() in (fd for fd, _ in poll.poll(seconds * 1000)):
            self._ear.recv(64)
            self._rung.release()

    def _listen(self) -> None:
        """What other sessions, or jobs of ours, have said."""
        try:
            heard = self._session.told() if self._session is not None else []
        except Cut:
            self._drop()
            return
        for run in heard:
            self._changed(run)
            if self._leases.of(run) is not None:
                self._beat_at = 0.0  # its holder may be asked to stop

    def _changed(self, run: str) -> None:
        for waiter in self._waiters.pop(run, ()):
            waiter.set_result(None)

    def _tick(self) -> float:
        """Keep leases alive, and wake those who have waited for long; gives the seconds until the next look."""
        now = time.monotonic()
        living = self._leases.living()
        if not living or self._beat_at is None or now >= self._beat_at:
            if living and self._beat_at is not None:
                self._beat()
            self._beat_at = now + self._leases.milliseconds / 3000 if living else None
        if self._waiters and now >= self._wake_at:
            self._wake_at = now + WAKE_SECONDS
            for run in list(self._waiters):
                self._changed(run)
        times = [self._beat_at or now + 3600.0, self._wake_at if self._waiters else now + 3600.0]
        return max(0.0, min(times) - now)

    def _beat(self) -> None:
        held = {one.run: one for one in self._leases.living()}
        runs = "{" + ",".join(held) + "}"
        fences = "{" + ",".join(str(one.lease.fence) for one in held.values()) + "}"
        try:
            session = self._connected()
            (rows,) = session.run([Ask(BEAT, (self._leases.milliseconds, runs, fences))])
        except Cut:
            self._drop()
            return
        except StoreError:  # the next commit says so to somebody who can act on it
            return
        for run, stop in rows:
            holder = held.pop(run).lease.holder
            if stop is not None and holder is not None:
                holder.stop_asked(stop)
        for lost in held.values():
            lost.broken = LeaseLost("the run was taken over by another one, or erased")
            self._leases.drop(lost)

    # -- jobs ----------------------------------------------------------------------------------------------------------

    def _perform(self, jobs: list[Job]) -> None:
        """Do them, connecting again where the connection breaks."""
        left = deque((job, asks) for job in jobs if (asks := self._asks(job)))
        pause, longest = BACKOFF_SECONDS
        doubt = False
        while left:
            try:
                session = self._connected()
                if doubt or not self._together(session, left):
                    while left:
                        self._finish(left[0][0], self._alone(session, *left[0], doubt=doubt))
                        left.popleft()
                self._away_since = None
            except Cut as cut:
                self._drop()
                doubt = doubt or cut.sent
                self._away_since = self._away_since or time.monotonic()
                if time.monotonic() > self._away_since + self._patience:
                    self._give_up(left, cut, doubt=doubt)
                    return
                time.sleep(pause)
                pause = min(pause * 2, longest)
            except Exception as error:  # the schema is not ours any more, or a fault of ours
                self._drop()
                self._give_up(left, error, doubt=doubt)
                return

    def _connected(self) -> Session:
        if self._session is None:
            try:
                self._session = self._connect()
            except Cut as cut:
                raise Cut(str(cut), sent=False) from cut
        return self._session

    def _asks(self, job: Job) -> list[Ask]:
        """What to send for it; nothing where it is known to be in vain, and it has failed."""
        try:
            return job.asks()
        except StoreError as error:
            self._finish(job, error)
            return []

    def _together(self, session: Session, work: deque[tuple[Job, list[Ask]]]) -> bool:
        """All in one transaction; False where one of them broke it, and then nothing is kept."""
        try:
            rows = session.run([ask for _, asks in work for ask in asks])
        except StoreError:
            return False
        done = 0
        for job, asks in work:
            self._finish(job, _outcome(job, rows[done : done + len(asks)]))
            done += len(asks)
        work.clear()
        return True

    def _alone(self, session: Session, job: Job, asks: list[Ask], *, doubt: bool) -> Any:
        """The result of a job in a transaction of its own.

        In `doubt` it may have been done before. Then it is refused, after waiting for the locks of whatever was still
        under way in the old connection, and what is stored tells.
        """
        try:
            result = _outcome(job, session.run(asks))
        except StoreError as error:
            result = error
        if doubt and _is_refused(result) and (ask := job.doubt()) is not None:
            (rows,) = session.run([ask])
            kept = job.was_kept(rows)
            result = result if kept is NOT_KEPT else kept
        return result

    def _finish(self, job: Job, result: Any) -> None:
        if isinstance(result, Job):
            result.future = job.future
            self._jobs.appendleft(result)
        elif isinstance(result, StoreError):
            job.failed(result)
            job.future.set_exception(result)
        else:
            job.future.set_result(result)

    def _give_up(self, work: deque[tuple[Job, list[Ask]]], why: Exception, *, doubt: bool) -> None:
        kept = "whether this was kept is not known: load the run again" if doubt else "nothing of this was kept"
        for job, _ in work:
            if job.future.done():
                continue
            error = StoreError(f"{self._label} can't be reached: {why}: {kept}. It can be done again when it is back")
            error.__cause__ = why
            self._finish(job, error)

    def _drop(self) -> None:
        """Let go of the connection."""
        session, self._session = self._session, None
        if session is not None:
            session.close()


def _outcome(job: Job, rows: list[list[Row]]) -> Any:
    try:
        return job.outcome(rows)
    except StoreError as refusal:
        return refusal


def _is_refused(result: Any) -> bool:
    """Whether a job came to nothing: an error, a conflict, or a lease that another one has."""
    return result is None or isinstance(result, StoreError) or (isinstance(result, Settling) and result.conflict)
