"""What is asked of a PostgreSQL store's writer: each job is statements, and what their rows come to."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

from ..core.facts import Ended, Opened
from ..errors import LeaseLost, RunExists, RunNotFound, StoreError
from ..ports import Lease, QuestionRow, RunRow, Settlement, Settling
from . import postgres_queries as queries
from . import postgres_statements as sql
from .listings import Prune, Pruned
from .postgres_leases import Held, Leases
from .postgres_session import Ask, Row

#: What a job gives when nothing of it was kept.
NOT_KEPT: Any = object()


class Job(ABC):
    """Work that is kept all or not at all. Jobs of one `run` stay in order."""

    def __init__(self, run: str) -> None:
        self.run = run
        self.future: Future[Any] = Future()

    @abstractmethod
    def asks(self) -> list[Ask]:
        """What to send; raises `StoreError` where that is known to be in vain."""

    @abstractmethod
    def outcome(self, rows: list[list[Row]]) -> Any:
        """What it came to, or the `Job` that goes on with it; raises `StoreError` where it was refused."""

    def doubt(self) -> Ask | None:
        """What tells, after a refusal, that it was done before: by ourselves, and the answer was lost."""
        return None

    def was_kept(self, rows: list[Row]) -> Any:
        """What it came to then, or `NOT_KEPT`."""
        return NOT_KEPT

    def failed(self, error: StoreError) -> None:
        """It was refused or given up."""
        return


class Commit(Job):
    """A commit of the run that holds a lease."""

    def __init__(
        self,
        leases: Leases,
        lease: Lease,
        record: bytes,
        opened: Opened | None,
        questions: Sequence[QuestionRow],
        ended: Ended | None,
        settlements: Sequence[Settlement],
    ) -> None:
        if opened is not None:
            lease.ref = Held(lease, opened.run_id)
        self._held: Held = lease.ref
        super().__init__(self._held.run)
        self._leases = leases
        self._record = record or b"[]"
        self._opened = opened
        self._ended = ended
        now_settled = {s.id: s.body.decode() for s in settlements}
        self._questions = _questions(questions, now_settled)
        self._settlements = _settlements([s for s in settlements if s.id in now_settled])
        self._seq = 0

    def asks(self) -> list[Ask]:
        held = self._held
        if held.broken is not None:
            raise held.broken
        if not self._seq:
            held.seq += 1
            self._seq = held.seq
        return [self._open(self._opened) if self._opened is not None else self._continue()]

    def _open(self, opened: Opened) -> Ask:
        leases, ended = self._leases, self._ended
        return Ask(
            sql.OPEN,
            (
                self.run,
                opened.name,
                opened.kind,
                opened.parent_run_id,
                json.dumps(opened.labels) if opened.labels else None,
                opened.at,
                leases.me if ended is None else None,
                leases.milliseconds,
                self._record,
                self._questions,
                "running" if ended is None else run_state(ended),
                None if ended is None else ended.reason,
                None if ended is None else ended.at,
            ),
        )

    def _continue(self) -> Ask:
        leases, ended = self._leases, self._ended
        return Ask(
            sql.COMMIT,
            (
                self.run,
                self._held.lease.fence,
                self._seq,
                leases.milliseconds,
                leases.me,
                self._record,
                self._questions,
                self._settlements,
                None if ended is None else ended.run_id,
                None if ended is None else run_state(ended),
                None if ended is None else ended.reason,
                None if ended is None else ended.at,
            ),
        )

    def outcome(self, rows: list[list[Row]]) -> str | None:
        if not rows[0]:
            if self._opened is not None:
                raise RunExists(f"run {self.run} exists already")
            raise self._held.broken or LeaseLost(
                "the run was taken over by another one, or erased; what it had not committed does not count"
            )
        stop: str | None = None if self._opened is not None else rows[0][0][0]
        return self._kept(stop)

    def _kept(self, stop: str | None) -> str | None:
        if self._ended is not None:
            self._held.broken = LeaseLost("the run has ended and given its lease back")
            self._leases.drop(self._held)
        elif self._opened is not None:
            self._leases.keep(self._held)
        return stop

    def doubt(self) -> Ask:
        return Ask(sql.WAS_COMMITTED, (self.run, self._held.lease.fence, self._seq))

    def was_kept(self, rows: list[Row]) -> Any:
        # An opening has no fence of its own yet: its record, with its call id, tells it from another one's.
        if rows and (self._opened is None or rows[0][0] == self._record.decode()):
            return self._kept(None)
        return NOT_KEPT

    def failed(self, error: StoreError) -> None:
        held = self._held
        if isinstance(error, LeaseLost):
            self._leases.drop(held)
            held.broken = held.broken or error
        held.broken = held.broken or StoreError(f"an earlier commit of this run was not kept: {error}")


class Settle(Job):
    """Questions settled all or none, and the lease for a run if it is free."""

    def __init__(
        self, leases: Leases, run: str, settlements: Sequence[Settlement], row: RunRow | None, stop: str | None
    ) -> None:
        super().__init__(run)
        self._leases = leases
        self._settlements = _settlements(settlements)
        self._count = len(settlements)
        self._row = row
        self._stop = stop

    def asks(self) -> list[Ask]:
        leases, row = self._leases, self._row or RunRow(None, None, None)  # type: ignore[arg-type]
        values = (
            *(self.run, self._settlements, self._count, row.run_id, row.parent_run_id, row.at),
            *(leases.me, leases.milliseconds, leases.dead_fence(self.run), self._stop),
        )
        return [Ask(sql.LOCK, (self.run,)), Ask(sql.SETTLE, values)]

    def outcome(self, rows: list[list[Row]]) -> Any:
        done, exists, fence, holder, _ = rows[1][0]
        if exists:
            assert self._row is not None
            raise RunExists(f"run {self._row.run_id} exists already")
        if not done:
            return Settling(True, None)
        return self._settled(fence, holder)

    def _settled(self, fence: int | None, holder: str | None) -> Any:
        if self._row is None:
            return Settling(False, None)
        if fence is None and holder is not None and self._leases.has_gone(holder):
            return Take(self._leases, self.run, self._row, gone=holder, settling=True)
        return Settling(False, None if fence is None else self._leases.granted(self.run, fence))

    def doubt(self) -> Ask:
        run_id = None if self._row is None else self._row.run_id
        return Ask(sql.WAS_SETTLED, (self.run, self._settlements, self._count, run_id))

    def was_kept(self, rows: list[Row]) -> Any:
        done, fence = rows[0]
        return self._settled(fence, None) if done else NOT_KEPT


class Take(Job):
    """The lease, if nobody has it who shows signs of life."""

    def __init__(self, leases: Leases, run: str, row: RunRow, gone: str = "", *, settling: bool = False) -> None:
        super().__init__(run)
        self._leases = leases
        self._row = row
        self._gone = gone
        self._settling = settling

    def asks(self) -> list[Ask]:
        leases, row = self._leases, self._row
        values = (
            *(self.run, leases.me, leases.milliseconds, leases.dead_fence(self.run), self._gone),
            *(row.run_id, row.parent_run_id, row.at),
        )
        return [Ask(sql.TAKE, values)]

    def outcome(self, rows: list[list[Row]]) -> Any:
        if not rows[0]:
            raise StoreError("the run was erased")
        fence, holder = rows[0][0]
        if fence is None and holder is not None and holder != self._gone and self._leases.has_gone(holder):
            return Take(self._leases, self.run, self._row, holder, settling=self._settling)
        return self._taken(fence)

    def _taken(self, fence: int | None) -> Any:
        lease = None if fence is None else self._leases.granted(self.run, fence)
        return Settling(False, lease) if self._settling else lease

    def doubt(self) -> Ask:
        return Ask(sql.WAS_TAKEN, (self._row.run_id,))

    def was_kept(self, rows: list[Row]) -> Any:
        return self._taken(rows[0][0]) if rows else NOT_KEPT


class Append(Job):
    """Facts beside whoever holds the lease; gives all records as they are then."""

    def __init__(self, run_id: str, record: bytes) -> None:
        super().__init__(run_id)
        self._record = record

    def asks(self) -> list[Ask]:
        return [
            Ask(sql.LOCK, (self.run,)),
            Ask(sql.APPEND, (self.run, self._record)),
            Ask(queries.RECORDS, (self.run,)),
        ]

    def outcome(self, rows: list[list[Row]]) -> list[bytes | str]:
        records = queries.texts(rows[2])
        if self._record.decode() not in records:
            raise RunNotFound(f"there is no run {self.run} in this store")
        return records


class Release(Job):
    """The lease given back without an end."""

    def __init__(self, leases: Leases, lease: Lease) -> None:
        self._held: Held = lease.ref
        super().__init__(self._held.run)
        self._leases = leases

    def asks(self) -> list[Ask]:
        if self._held.broken is not None:
            raise self._held.broken
        return [Ask(sql.RELEASE, (self.run, self._held.lease.fence, self._leases.me))]

    def outcome(self, rows: list[list[Row]]) -> None:
        self._held.broken = LeaseLost("the run was taken over by another one, or erased, or was left to others")
        self._leases.drop(self._held)
        if not rows[0]:
            raise self._held.broken

    def doubt(self) -> Ask:
        return Ask(sql.WAS_RELEASED, (self.run, self._held.lease.fence))

    def was_kept(self, rows: list[Row]) -> Any:
        return None if rows else NOT_KEPT


class Park(Job):
    """An execution that nobody takes up but by hand."""

    def asks(self) -> list[Ask]:
        return [Ask(sql.PARK, (self.run,))]

    def outcome(self, rows: list[list[Row]]) -> None:
        return None


class Watch(Job):
    """Whoever gives this run's lease back shall tell; gives whether somebody has it."""

    def __init__(self, leases: Leases, run: str) -> None:
        super().__init__(run)
        self._leases = leases

    def asks(self) -> list[Ask]:
        return [Ask(sql.WATCH, (self.run,)), Ask(sql.HOLDER, (self.run,))]

    def outcome(self, rows: list[list[Row]]) -> bool:
        return bool(rows[1]) and self._leases.shows_life(self.run, *rows[1][0])


class Erase(Job):
    """What an execution recorded, removed; gives whether it was there."""

    def asks(self) -> list[Ask]:
        return [Ask(sql.LOCK, (self.run,)), Ask(sql.ERASE, (self.run,))]

    def outcome(self, rows: list[list[Row]]) -> bool:
        return bool(rows[1])


class Remove(Job):
    """Old executions, removed; gives how many."""

    def __init__(self, prune: Prune) -> None:
        super().__init__("")
        self._prune = prune

    def asks(self) -> list[Ask]:
        values = (self._prune.finished_before, self._prune.abandoned_before)
        return [Ask(sql.PRUNABLE if self._prune.dry_run else sql.PRUNE, values)]

    def outcome(self, rows: list[list[Row]]) -> Pruned:
        abandoned = sum(bool(is_open) for _, is_open in rows[0])
        return Pruned(len(rows[0]) - abandoned, abandoned)


def run_state(ended: Ended) -> str:
    """What `runs` says of a run that ended so."""
    return "paused" if ended.reason in ("input_required", "approval_required") else ended.code


def _questions(rows: Sequence[QuestionRow], settled: dict[str, str]) -> str:
    """Rows as JSON, each with its settlement if it comes in the same commit: that is taken out of `settled`."""
    if not rows:
        return "[]"
    return json.dumps([{**q._asdict(), "body": q.body.decode(), "settled": settled.pop(q.name, None)} for q in rows])


def _settlements(settlements: Sequence[Settlement]) -> str:
    if not settlements:
        return "[]"
    return json.dumps([{"name": s.id, "body": s.body.decode()} for s in settlements])
