"""What people ask of a store, over the few operations that each kind of store has of its own."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Generic, NamedTuple, Self, TypeVar

from ..core.answers import Claimed, Refuse, plan, receipts
from ..core.codec import decode, encode
from ..core.facts import Asked, Ended, Gated, Opened, Revoked, Settled
from ..core.grants import Grant, standing_in
from ..core.ledger import Ledger
from ..core.narrate import asked_event
from ..core.schema_check import check_against
from ..errors import ResumeRejected, RunNotFound
from ..ports import Lease, QuestionRow, RunRow, Settlement, Settling, Stored
from ..types.approval import Principal
from ..types.events import ApprovalEvent, InteractionEvent
from ..types.message import Message
from .waiting import wait

T = TypeVar("T")

#: How long a lease lasts without a sign of life, in seconds (contract section 7).
LEASE_SECONDS = 30.0


class Page(NamedTuple, Generic[T]):
    """Some of the items; `next` asks for the following ones (`after=page.next`), or is `None`."""

    items: list[T]
    next: str | None


class RunInfo(NamedTuple):
    """What is known of a run. Times in Unix milliseconds; `status` is `running` until the run has ended or paused."""

    run_id: str
    execution_id: str
    parent_run_id: str | None
    runnable: str
    runnable_type: str
    labels: dict[str, str]
    status: str
    reason: str | None
    t0: int
    t1: int | None


class PendingItem(NamedTuple):
    """An open item of the inbox: `event` is what the run emitted, `run_id` the run to resume."""

    id: str
    run_id: str
    kind: str
    runnable: str
    labels: dict[str, str]
    asked_at: int
    expires_at: int | None
    event: InteractionEvent | ApprovalEvent


class RunRecord(NamedTuple):
    """A run with everything that its execution recorded: `facts` in order, `messages` as a model would read them."""

    info: RunInfo
    runs: list[RunInfo]
    facts: list[Any]


class BaseStore(ABC):
    """The public face of every store. Its methods may be called from any thread and event loop."""

    # -- what each kind of store has of its own (see `ports.Store`) ----------------------------------------------------

    @abstractmethod
    def commit(
        self,
        lease: Lease,
        record: bytes = b"",
        opened: Opened | None = None,
        questions: Sequence[QuestionRow] = (),
        ended: Ended | None = None,
        settlements: Sequence[Settlement] = (),
    ) -> Future[str | None]: ...
    @abstractmethod
    def load(self, run_id: str) -> Future[Stored | None]: ...
    @abstractmethod
    def history(self, run_id: str) -> Future[list[list[bytes | str]]]: ...
    @abstractmethod
    def settle(
        self, ref: Any, settlements: Sequence[Settlement], run: RunRow | None, stop: str | None = None
    ) -> Future[Settling]: ...
    @abstractmethod
    def acquire(self, ref: Any, run: RunRow) -> Future[Lease | None]: ...
    @abstractmethod
    def append(self, run_id: str, record: bytes) -> Future[list[bytes | str]]: ...
    @abstractmethod
    def wait(self, ref: Any) -> Future[None]: ...
    @abstractmethod
    def find(self, ids: Sequence[str], runnable: str) -> Future[list[str]]: ...
    @abstractmethod
    def _open_questions(
        self, runnable: str | None, kind: str | None, labels: Mapping[str, str], after: str | None, limit: int
    ) -> Future[list[tuple[str, str, dict[str, str], str, bytes | str]]]: ...
    @abstractmethod
    def _list_runs(
        self, status: str | None, runnable: str | None, labels: Mapping[str, str], after: str | None, limit: int
    ) -> Future[list[RunInfo]]: ...
    @abstractmethod
    def _runs_of(self, run_id: str) -> Future[list[RunInfo]]: ...
    @abstractmethod
    def _erase(self, run_id: str) -> Future[bool]: ...
    @abstractmethod
    async def aclose(self) -> None:
        """Let go of files and threads; what is committed stays."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    # -- what people ask -----------------------------------------------------------------------------------------------

    async def pending(
        self,
        runnable: str | None = None,
        kind: str | None = None,
        labels: Mapping[str, str] | None = None,
        after: str | None = None,
        limit: int = 100,
    ) -> Page[PendingItem]:
        """Open items across runs, oldest first, `limit` at a time."""
        rows = await wait(self._open_questions(runnable, kind, labels or {}, after, limit + 1))
        items = [_item(*row) for row in rows[:limit]]
        return Page(items, rows[limit - 1][0] if len(rows) > limit else None)

    async def runs(
        self,
        status: str | None = None,
        runnable: str | None = None,
        labels: Mapping[str, str] | None = None,
        after: str | None = None,
        limit: int = 100,
    ) -> Page[RunInfo]:
        """Runs, newest first. `status`: `running | paused | success | error | cancelled`."""
        rows = await wait(self._list_runs(status, runnable, labels or {}, after, limit + 1))
        return Page(rows[:limit], rows[limit - 1].run_id if len(rows) > limit else None)

    async def get(self, run_id: str) -> RunRecord:
        """A run and what its execution recorded; raises `RunNotFound`."""
        infos = await wait(self._runs_of(run_id))
        stored = await self._stored(run_id)
        facts = [fact for record in stored.records for fact in decode(record)]
        return RunRecord(next(i for i in infos if i.run_id == run_id), infos, facts)

    async def messages(self, run_id: str) -> list[Message]:
        """The conversation up to this run's execution, as a model would read it; raises `RunNotFound`."""
        from ..core.transcript import transcript

        records = await wait(self.history(run_id))
        if not records:
            raise RunNotFound(f"there is no run {run_id} in this store")
        ledgers = [Ledger.of(f for r in one for f in decode(r)) for one in records]
        return [m for ledger in ledgers for m in transcript(ledger)]

    async def answer(
        self, run_id: str, answers: Mapping[str, Any], by: Principal | None = None, channel: str = "answer"
    ) -> list[dict[str, Any]]:
        """Check and settle, without going on: whoever continues the run next uses the answers. Gives the receipts.

        `channel` is kept with decisions about approvals: by which way they came.
        Raises `ResumeRejected`, with receipts, when an id or a value is not accepted, and `RunNotFound`.
        """
        while True:
            stored = await self._stored(run_id)
            ledger = Ledger.of(fact for record in stored.records for fact in decode(record))
            now = time.time_ns() // 1_000_000
            decision = plan(ledger, answers, by, now, check_against)
            if isinstance(decision, Refuse):
                raise ResumeRejected(decision.message, decision.receipts)
            if isinstance(decision, Claimed):
                lost = next(r for r in decision.receipts if not r["same_value"])
                raise ResumeRejected(f"{lost['id']} was answered already, with another value", decision.receipts)
            who = by.model_dump() if by is not None else None
            gated = {gate.id for gate, _ in ledger.gated_calls}
            facts = [
                Settled(id, "answered", now, value, None, who, channel if id in gated else None)
                for id, value in decision.new.items()
            ]
            stop = None
            if decision.cancel:
                stop = decision.cancel_reason or ""
                waiting = ledger.open_questions
                facts = [Settled(q.asked.id, "cancelled", now, decision.cancel_reason, None, who) for q in waiting]
            rows = [Settlement.of(fact) for fact in facts]
            result = await wait(self.settle(stored.ref, rows, None, stop)) if rows else Settling(False, None)
            if result.conflict:
                continue
            return receipts(ledger, answers, {fact.id: fact for fact in facts})

    async def grants(self, run_id: str) -> list[Grant]:
        """The standing decisions of the conversation up to this run's execution, oldest first; raises `RunNotFound`.

        Those that hold no longer are among them: see `Grant.holds(now)`.
        """
        records = await wait(self.history(run_id))
        if not records:
            raise RunNotFound(f"there is no run {run_id} in this store")
        ledgers = [Ledger.of(f for r in one for f in decode(r)) for one in records]
        return [one.grant for ledger in ledgers for one in standing_in(ledger)]

    async def revoke(self, run_id: str, approval_id: str, by: Principal | None = None) -> Grant:
        """End a standing decision of this run's conversation: no later call passes by it. Gives what became of it.

        Calls that it has let through go on. Raises `RunNotFound` where there is no such run or standing decision.
        """
        found = next((one for one in await self.grants(run_id) if one.id == approval_id), None)
        if found is None:
            raise RunNotFound(f"the conversation of run {run_id} has no standing decision {approval_id}")
        if found.revoked_at is not None:
            return found
        fact = Revoked(approval_id, time.time_ns() // 1_000_000, by.model_dump() if by is not None else None)
        records = await wait(self.append(found.run_id, encode((fact,))))
        ledger = Ledger.of(f for r in records for f in decode(r))
        return next(one.grant for one in standing_in(ledger) if one.gate.id == approval_id)

    async def erase(self, run_id: str) -> None:
        """Remove what the execution of this run recorded, for good; raises `RunNotFound`."""
        if not await wait(self._erase(run_id)):
            raise RunNotFound(f"there is no run {run_id} in this store")

    async def _stored(self, run_id: str) -> Stored:
        stored = await wait(self.load(run_id))
        if stored is None:
            raise RunNotFound(f"there is no run {run_id} in this store")
        return stored


def _item(cursor: str, run_id: str, labels: dict[str, str], runnable: str, body: bytes | str) -> PendingItem:
    (asked,) = decode(body)
    assert isinstance(asked, Asked | Gated)
    event = asked_event(asked)
    return PendingItem(asked.id, run_id, asked.name, runnable, labels, asked.at, asked.expires_at, event)
