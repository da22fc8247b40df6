"""A store in the memory of this process: for tests, scripts, and runs that need not outlive it."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from itertools import count, islice
from types import MappingProxyType
from typing import Any, NamedTuple

from ..core.facts import Ended, Opened
from ..errors import LeaseLost, RunExists, RunNotFound
from ..ports import COMMITTED, Due, Lease, QuestionRow, RunRow, Settlement, Settling, Stored
from .base import BaseStore
from .clock import now
from .listings import UNFINISHED, Found, Prune, Pruned, RunInfo, Slice, Where, position
from .waiting import Ready, failed

#: After so long whoever waits for an execution looks for itself, in seconds.
LOOK_SECONDS = 1.0


class MemoryStore(BaseStore):
    """Keeps every open execution; of finished ones the newest, `max_finished_bytes` of records (256 MiB)."""

    def __init__(self, max_finished_bytes: int = 256 * 1024 * 1024) -> None:
        self._lock = threading.Lock()
        self._max = max_finished_bytes
        self._by_run: dict[str, _Execution] = {}
        self._open: dict[int, tuple[_Execution, _Question]] = {}
        self._settled: dict[int, tuple[_Execution, _Question]] = {}
        self._erased: dict[str, _Tombstone] = {}
        self._numbers = count(1)
        self._finished: dict[str, int] = {}
        self._finished_bytes = 0
        self._newest_dropped = ""
        #: What runs of a server have told, by run id (see `event_memory`).
        self.kept_events: dict[str, Any] = {}

    # -- writing -----------------------------------------------------------------------------------------------------

    def commit(
        self,
        lease: Lease,
        record: bytes = b"",
        opened: Opened | None = None,
        questions: Sequence[QuestionRow] = (),
        ended: Ended | None = None,
        settlements: Sequence[Settlement] = (),
    ) -> Future[str | None]:
        with self._lock:
            if opened is not None:
                if opened.run_id in self._by_run or opened.run_id in self._erased:
                    return failed(RunExists(f"run {opened.run_id} exists already"))
                lease.ref = self._by_run[opened.run_id] = _Execution(opened, lease)
            execution: _Execution = lease.ref
            if execution.lease is not lease:
                return failed(LeaseLost(f"run {execution.run_id} was taken over by another run, or erased"))
            if record:
                execution.records.append(record)
                execution.size += len(record)
            for row in questions:
                self._ask(execution, row)
            for settlement in settlements:
                question = execution.questions.get(settlement.id)
                if question is not None and question.settled is None:
                    self._settle(execution, question, settlement)
            stop = execution.stop
            if ended is None:
                return COMMITTED if stop is None else Ready(stop)
            self._end(execution, ended)
        if execution.waiters:
            execution.changed()
        return COMMITTED

    def settle(
        self, ref: Any, settlements: Sequence[Settlement], run: RunRow | None, stop: str | None = None
    ) -> Future[Settling]:
        execution: _Execution = ref
        with self._lock:
            questions = execution.questions
            for one in settlements:
                if one.id not in questions or questions[one.id].settled is not None:
                    return Ready(Settling(True, None))
            if run is not None and run.run_id in self._by_run:
                return failed(RunExists(f"run {run.run_id} exists already"))
            for one in settlements:
                self._settle(execution, questions[one.id], one)
            held = execution.held_by()
            holder = held.holder if held is not None else None
            lease = self._take(execution, run) if run is not None else None
            if lease is None:
                execution.due_at = execution.due_at or now()
            if stop is not None and holder is not None:
                execution.stop = stop
        if stop is not None and holder is not None:
            holder.stop_asked(stop)
        return Ready(Settling(False, lease))

    def acquire(self, ref: Any, run: RunRow) -> Future[Lease | None]:
        with self._lock:
            return Ready(self._take(ref, run))

    def append(self, run_id: str, record: bytes) -> Future[list[bytes | str]]:
        with self._lock:
            execution = self._by_run.get(run_id)
            if execution is None:
                return failed(RunNotFound(f"there is no run {run_id} in this store"))
            execution.records.append(record)
            if execution.run_id in self._finished:
                self._finished[execution.run_id] += len(record)
                self._finished_bytes += len(record)
            return Ready(execution.all_records())

    def _take(self, execution: _Execution, run: RunRow) -> Lease | None:
        entered = self._enter(execution, run)
        if execution.held_by() is not None:
            return None
        execution.attempts += execution.lease is not None
        execution.fence += 1
        execution.stop = execution.due_at = None
        execution.parked = False
        entered.fence = execution.fence
        execution.lease = Lease(execution, execution.fence)
        self._reopen(execution)
        return execution.lease

    def release(self, lease: Lease) -> Future[None]:
        execution: _Execution = lease.ref
        with self._lock:
            if execution.lease is not lease:
                return failed(LeaseLost(f"run {execution.run_id} was taken over by another run, or erased"))
            execution.lease = execution.stop = None
            execution.attempts = max(0, execution.attempts - 1)
            execution.due_at = now()
        execution.changed()
        return Ready(None)

    def due(self, runnables: Sequence[str], limit: int) -> Future[list[Due]]:
        with self._lock:
            found = [
                (at, e)
                for e in dict.fromkeys(self._by_run.values())
                if e.runnable in runnables and not e.parked and (at := e.waits_since(now())) is not None
            ]
        found.sort(key=lambda one: one[0])
        return Ready([Due(e.run_id, e.runnable, e.attempts) for _, e in found[:limit]])

    def park(self, run_id: str) -> Future[None]:
        with self._lock:
            execution = self._by_run.get(run_id)
            if execution is not None and execution.held_by() is None:
                execution.parked = True
        return Ready(None)

    def _enter(self, execution: _Execution, run: RunRow) -> _Run:
        if run.run_id not in self._by_run:
            execution.runs.append(_Run(run.run_id, run.parent_run_id, run.at))
            self._by_run[run.run_id] = execution
        return execution.run(run.run_id)

    def _ask(self, execution: _Execution, row: QuestionRow) -> None:
        question = _Question(next(self._numbers), row)
        execution.questions = {**execution.questions, row.name: question}
        execution.size += len(row.body)
        self._open[question.number] = (execution, question)

    def _settle(self, execution: _Execution, question: _Question, settlement: Settlement) -> None:
        question.settled = settlement.body
        execution.size += len(settlement.body)
        question.settled_at = now()
        self._open.pop(question.number, None)
        question.number = next(self._numbers)
        self._settled[question.number] = (execution, question)

    def _end(self, execution: _Execution, ended: Ended) -> None:
        execution.lease = execution.stop = None
        execution.attempts = 0
        if not ended.paused:
            execution.due_at = None
        run = execution.run(ended.run_id)
        run.status, run.reason, run.t1 = ended.code, ended.reason, ended.at
        if ended.reason != "interrupted" and not (execution.questions and execution.has_open_questions()):
            self._finished[execution.run_id] = execution.size
            self._finished_bytes += execution.size
            while self._finished_bytes > self._max and len(self._finished) > 1:
                oldest = next(iter(self._finished))
                self._finished_bytes -= self._finished.pop(oldest)
                self._forget(self._by_run[oldest])
                self._newest_dropped = max(self._newest_dropped, oldest)

    def _reopen(self, execution: _Execution) -> None:
        if execution.run_id in self._finished:
            self._finished_bytes -= self._finished.pop(execution.run_id)

    def _forget(self, execution: _Execution) -> None:
        for run in execution.runs:
            self._by_run.pop(run.run_id, None)
            self.kept_events.pop(run.run_id, None)
        for question in execution.questions.values():
            (self._open if question.settled is None else self._settled).pop(question.number, None)

    def _erase(self, run_id: str) -> Future[bool]:
        with self._lock:
            execution = self._by_run.get(run_id)
            if execution is None:
                return Ready(run_id in self._erased)
            self._reopen(execution)
            self._forget(execution)
            execution.lease = None
            tombstone = _Tombstone.of(execution, now())
            self._erased.update(dict.fromkeys((run.run_id for run in execution.runs), tombstone))
        execution.changed()
        return Ready(True)

    def _prune(self, prune: Prune) -> Future[Pruned]:
        with self._lock:
            every = list(dict.fromkeys(self._by_run.values()))
            found = {e.run_id: is_open for e in every if (is_open := e.prunable(prune)) is not None}
            for execution in every:  # what a kept turn comes after is kept
                parent = self._by_run.get(execution.parent_run_id or "")
                while execution.run_id not in found and parent is not None:
                    found.pop(parent.run_id, None)
                    parent = self._by_run.get(parent.parent_run_id or "")
            if not prune.dry_run:
                for run_id in found:
                    execution = self._by_run[run_id]
                    self._reopen(execution)
                    self._forget(execution)
        return Ready(Pruned(len(found) - sum(found.values()), sum(found.values())))

    def _check(self) -> Future[list[str]]:
        return Ready([])

    @property
    def schema_version(self) -> int:
        return 2

    # -- reading -----------------------------------------------------------------------------------------------------

    def load(self, run_id: str) -> Future[Stored | None]:
        with self._lock:
            execution = self._by_run.get(run_id)
            if execution is None:
                return self._missing(run_id, None)
            held = execution.held_by() is not None
            newest = execution.runs[-1].run_id
            return Ready(Stored(execution, execution.run_id, newest, held, execution.fence, execution.all_records()))

    def history(self, run_id: str) -> Future[list[list[bytes | str]]]:
        found: list[list[bytes | str]] = []
        with self._lock:
            at: str | None = run_id
            while at is not None:
                execution = self._by_run.get(at)
                if execution is None and found and at in self._erased:
                    at = self._erased[at].parent_run_id
                    continue
                if execution is None:
                    return self._missing(at, [])
                found.append(execution.all_records())
                at = execution.parent_run_id
        return Ready(found[::-1])

    def _missing(self, run_id: str, nothing: Any) -> Future[Any]:
        if run_id <= self._newest_dropped and run_id not in self._erased:
            return failed(
                RunNotFound(
                    f"run {run_id} is not here: it never was, or it had finished and was dropped "
                    f"(this MemoryStore keeps {self._max} bytes of finished runs)"
                )
            )
        return Ready(nothing)

    def wait(self, ref: Any) -> Future[None]:
        execution: _Execution = ref
        with self._lock:
            if execution.held_by() is None:
                return Ready(None)
            future: Future[None] = Future()
            execution.waiters = (*execution.waiters, future)
        # Its holder may go without a word: when its event loop is closed.
        timer = threading.Timer(LOOK_SECONDS, execution.changed)
        timer.daemon = True
        timer.start()
        future.add_done_callback(lambda _: timer.cancel())
        return future

    def find(self, ids: Sequence[str], runnable: str) -> Future[list[str]]:
        wanted = set(ids)
        with self._lock:
            found = [e.run_id for e, q in self._open.values() if q.row.name in wanted and e.runnable == runnable]
        return Ready(list(dict.fromkeys(found)))

    def _questions(self, where: Where, page: Slice, *, settled: bool) -> Future[list[Found]]:
        first = None if page.after is None else position(page.after, int)[1]
        with self._lock:
            items = (self._settled if settled else self._open).values()
            found = (
                Found(f"{at}.{q.number}", e.run_id, e.labels, e.runnable, q.row.body, q.settled)
                for e, q in (reversed(items) if page.newest_first else items)
                for at in (q.settled_at if settled else q.row.asked_at,)
                if (first is None or (q.number < first if page.newest_first else q.number > first))
                and (where.kind is None or q.row.kind == where.kind)
                and _matches(where, e.runnable, e.labels, at)
            )
            return Ready(list(islice(found, page.limit)))

    def _list_runs(self, where: Where, page: Slice) -> Future[list[RunInfo]]:
        first = None if page.after is None else position(page.after, str)
        with self._lock:
            kept = [e.info(e.run(run_id)) for run_id, e in self._by_run.items()]
            every = kept + [t.infos[run_id] for run_id, t in self._erased.items()]
        every.sort(key=_place, reverse=page.newest_first)
        found = (
            info
            for info in every
            if (first is None or (_place(info) < first if page.newest_first else _place(info) > first))
            and (where.status is None or info.status == where.status)
            and _matches(where, info.runnable, info.labels, info.t0)
        )
        return Ready(list(islice(found, page.limit)))

    def _runs_of(self, run_id: str) -> Future[list[RunInfo]]:
        with self._lock:
            if run_id in self._erased:
                return Ready(list(self._erased[run_id].infos.values()))
            execution = self._by_run.get(run_id)
            return Ready([execution.info(run) for run in execution.runs] if execution else [])

    async def aclose(self) -> None:
        """Nothing to let go of."""


class _Run:
    __slots__ = ("fence", "parent_run_id", "reason", "run_id", "status", "t0", "t1")

    def __init__(self, run_id: str, parent_run_id: str | None, t0: int, fence: int | None = None) -> None:
        self.run_id, self.parent_run_id, self.t0 = run_id, parent_run_id, t0
        #: The lease that it got; `None`: none.
        self.fence = fence
        self.status = "running"
        self.reason: str | None = None
        self.t1: int | None = None


class _Question:
    """`number` is its place among the open questions, and then among the settled ones."""

    __slots__ = ("number", "row", "settled", "settled_at")

    def __init__(self, number: int, row: QuestionRow) -> None:
        self.number, self.row = number, row
        self.settled: bytes | None = None
        self.settled_at = 0


class _Tombstone(NamedTuple):
    """What is kept of an erased execution: its runs by id, and which turn came before."""

    infos: dict[str, RunInfo]
    parent_run_id: str | None

    @classmethod
    def of(cls, execution: _Execution, at: int) -> _Tombstone:
        infos = [execution.info(run)._replace(labels={}, status="erased", reason=None, t1=at) for run in execution.runs]
        return cls({info.run_id: info for info in infos}, execution.parent_run_id)


class _Execution:
    fence = 1
    #: Of its records, in bytes.
    size = 0
    stop: str | None = None
    #: Since when something of it is settled, or left to others, that no run has taken up.
    due_at: int | None = None
    #: How many runs in a row got the lease and never gave it back.
    attempts = 0
    parked = False
    questions: Mapping[str, _Question] = MappingProxyType({})
    waiters: tuple[Future[None], ...] = ()

    def __init__(self, opened: Opened, lease: Lease) -> None:
        self.run_id, self.runnable, self.kind = opened.run_id, opened.name, opened.kind
        self.parent_run_id, self.labels = opened.parent_run_id, opened.labels or {}
        self.runs = [_Run(opened.run_id, opened.parent_run_id, opened.at, self.fence)]
        self.records: list[bytes] = []
        self.lease: Lease | None = lease

    def run(self, run_id: str) -> _Run:
        newest = self.runs[-1]
        return newest if newest.run_id == run_id else next(run for run in self.runs if run.run_id == run_id)

    def held_by(self) -> Lease | None:
        """The lease, if its holder is still there."""
        return self.lease if self.lease is not None and self.lease.alive() else None

    def waits_since(self, now: int) -> int | None:
        """Since when it waits for a run (see `ports.Store.due`)."""
        if self.held_by() is not None:
            return None
        if self.lease is not None:
            return self.runs[-1].t0
        times = [q.row.due_at for q in self.questions.values() if q.settled is None and (q.row.due_at or now) < now]
        return min((at for at in (self.due_at, *times) if at is not None), default=None)

    def has_open_questions(self) -> bool:
        return any(question.settled is None for question in self.questions.values())

    def prunable(self, prune: Prune) -> bool | None:
        """Whether it is open, if it is to be removed; else `None`."""
        if self.held_by() is not None:
            return None
        ended = [run for run in self.runs if run.t1 is not None]
        last = max(run.t1 or run.t0 for run in self.runs)
        over = self.lease is None and self.due_at is None and bool(ended) and not self.has_open_questions()
        if over and max(ended, key=lambda run: run.t1 or 0).reason not in UNFINISHED:
            return False if last < prune.finished_before else None
        abandoned = prune.abandoned_before
        return True if abandoned is not None and max(last, self.due_at or 0) < abandoned else None

    def all_records(self) -> list[bytes | str]:
        records: list[bytes | str] = [*self.records]
        for question in self.questions.values():
            records.append(question.row.body)
            if question.settled is not None:
                records.append(question.settled)
        return records

    def info(self, run: _Run) -> RunInfo:
        if run.t1 is not None:
            status = "paused" if run.reason in ("input_required", "approval_required") else run.status
        elif self._continued(run):
            status = "continued"
        else:
            status = "parked" if self.parked else "running"
        return RunInfo(
            run.run_id,
            self.run_id,
            run.parent_run_id,
            self.runnable,
            self.kind,
            self.labels,
            status,
            run.reason,
            run.t0,
            run.t1,
        )

    def _continued(self, run: _Run) -> bool:
        """Whether a run that has not ended never will: another one has had the lease since, or used what it brought."""
        if run.fence is None:
            return self.lease is None and self.due_at is None
        return run.fence < self.fence

    def changed(self) -> None:
        """Wake whoever waits for it; not under the lock."""
        waiters, self.waiters = self.waiters, ()
        for waiter in waiters:
            waiter.set_result(None)


def _matches(where: Where, runnable: str, labels: Mapping[str, str], at: int) -> bool:
    return (
        (where.runnable is None or runnable == where.runnable)
        and where.labels.items() <= labels.items()
        and (where.since is None or at >= where.since)
        and (where.until is None or at <= where.until)
    )


def _place(info: RunInfo) -> tuple[int, str]:
    return info.t0, info.run_id
