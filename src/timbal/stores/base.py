"""What people ask of a store, over the few operations that each kind of store has of its own."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from datetime import timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Self, TypeAlias, TypeVar

from ..core.answers import Claimed, Refuse, plan, receipts
from ..core.codec import decode, decode_all, encode
from ..core.facts import Asked, Ended, Gated, Opened, Revoked, Settled
from ..core.gates import public_decision
from ..core.grants import Grant, standing_in
from ..core.ledger import Ledger
from ..core.narrate import asked_event
from ..core.schema_check import check_against
from ..errors import ResumeRejected, RunErased, RunNotFound
from ..ports import Due, Lease, QuestionRow, RunRow, Settlement, Settling, Stored
from ..types.approval import Principal
from ..types.events import ApprovalEvent, InteractionEvent
from ..types.message import Message
from .waiting import wait

if TYPE_CHECKING:
    from .checking import Checked

T = TypeVar("T")
Age: TypeAlias = "float | timedelta"

#: How long a lease lasts without a sign of life, in seconds (contract section 7).
LEASE_SECONDS = 30.0
#: Why a run may have ended though its execution has not.
UNFINISHED = ("input_required", "approval_required", "interrupted")


class Page(NamedTuple, Generic[T]):
    """Some of the items; `next` asks for the following ones (`after=page.next`), or is `None`."""

    items: list[T]
    next: str | None


class RunInfo(NamedTuple):
    """What is known of a run. Times in Unix milliseconds; `status` is `running` until the run has ended or paused.

    Of an erased run, `t1` is when it was erased.
    """

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


class Where(NamedTuple):
    """Which runs or items; `None` and no labels mean any. `since` and `until` are Unix milliseconds, both included."""

    runnable: str | None = None
    kind: str | None = None
    status: str | None = None
    labels: Mapping[str, str] = MappingProxyType({})
    since: int | None = None
    until: int | None = None


class Slice(NamedTuple):
    """Which part of what was found: the first `limit` of those after the position `after`."""

    after: str | None
    newest_first: bool
    limit: int


class Found(NamedTuple):
    """A question as a store finds it: its position, its `Asked` fact, and its `Settled` fact once it has one."""

    position: str
    run_id: str
    labels: dict[str, str]
    runnable: str
    body: bytes | str
    settled: bytes | str | None


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


class SettledItem(NamedTuple):
    """What became of an item: who settled it, when, with what, and by which channel.

    `state`: `answered | cancelled | expired | superseded`; `value`: the answer, or why it was cancelled; `by`: the
    `Principal`, where one was given; `channel`: where the answer came in, where that was said; `settled_by_run_id`: the
    run that brought it, `None` for `store.answer`.
    """

    id: str
    run_id: str
    kind: str
    runnable: str
    labels: dict[str, str]
    asked_at: int
    settled_at: int
    state: str
    value: Any
    by: dict[str, Any] | None
    channel: str | None
    settled_by_run_id: str | None
    event: InteractionEvent | ApprovalEvent


class RunRecord(NamedTuple):
    """A run with everything that its execution recorded: `facts` in order, `messages` as a model would read them."""

    info: RunInfo
    runs: list[RunInfo]
    facts: list[Any]


class Prune(NamedTuple):
    """What is to be removed, by the time of the last sign of life in Unix milliseconds; `None`: no abandoned ones."""

    finished_before: int
    abandoned_before: int | None
    dry_run: bool


class Pruned(NamedTuple):
    """How many executions were removed: those that had finished, and those that were open and abandoned."""

    finished: int
    abandoned: int


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
    def release(self, lease: Lease) -> Future[None]: ...
    @abstractmethod
    def due(self, runnables: Sequence[str], limit: int) -> Future[list[Due]]: ...
    @abstractmethod
    def park(self, run_id: str) -> Future[None]: ...
    @abstractmethod
    def append(self, run_id: str, record: bytes) -> Future[list[bytes | str]]: ...
    @abstractmethod
    def wait(self, ref: Any) -> Future[None]: ...
    @abstractmethod
    def find(self, ids: Sequence[str], runnable: str) -> Future[list[str]]: ...
    @abstractmethod
    def _questions(self, where: Where, page: Slice, *, settled: bool) -> Future[list[Found]]:
        """Open questions by when they were asked; or settled ones by when they were settled."""
        ...

    @abstractmethod
    def _list_runs(self, where: Where, page: Slice) -> Future[list[RunInfo]]:
        """Runs by when they began, then by id."""
        ...

    @abstractmethod
    def _runs_of(self, run_id: str) -> Future[list[RunInfo]]: ...
    @abstractmethod
    def _erase(self, run_id: str) -> Future[bool]:
        """Remove what was recorded; the runs stay, with the status `erased`. Gives whether there was such a run."""
        ...

    @abstractmethod
    def _prune(self, prune: Prune) -> Future[Pruned]:
        """Remove executions with all that was recorded; those that a kept turn of their conversation needs stay."""
        ...

    @abstractmethod
    def _check(self) -> Future[list[str]]:
        """What is wrong with what is kept, in the store's own terms."""
        ...

    @property
    @abstractmethod
    def schema_version(self) -> int:
        """The version of what is kept; opening the store has brought it to the newest that this library knows."""
        ...

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
        *,
        older_than: Age | None = None,
        newer_than: Age | None = None,
        newest_first: bool = False,
        after: str | None = None,
        limit: int = 100,
    ) -> Page[PendingItem]:
        """Open items across runs, oldest first, `limit` at a time. Ages since they were asked, in seconds.

        `runnable` is the one that was called from outside; `labels` are those of its run, and all of them must fit.
        Pages show each item once, however many are settled or asked between them.
        """
        where = _where(runnable, kind, None, labels, older_than, newer_than)
        return await self._page(where, after, newest_first, limit, _pending_item, settled=False)

    async def settled(
        self,
        runnable: str | None = None,
        kind: str | None = None,
        labels: Mapping[str, str] | None = None,
        *,
        older_than: Age | None = None,
        newer_than: Age | None = None,
        newest_first: bool = True,
        after: str | None = None,
        limit: int = 100,
    ) -> Page[SettledItem]:
        """What became of items, the last settled first; otherwise as `pending`. Ages since they were settled."""
        where = _where(runnable, kind, None, labels, older_than, newer_than)
        return await self._page(where, after, newest_first, limit, _settled_item, settled=True)

    async def _page(
        self,
        where: Where,
        after: str | None,
        newest_first: bool,
        limit: int,
        item: Callable[[Found], T],
        *,
        settled: bool,
    ) -> Page[T]:
        rows = await wait(self._questions(where, _slice(after, newest_first, limit), settled=settled))
        return Page([item(row) for row in rows[:limit]], rows[limit - 1].position if len(rows) > limit else None)

    async def runs(
        self,
        status: str | None = None,
        runnable: str | None = None,
        labels: Mapping[str, str] | None = None,
        *,
        older_than: Age | None = None,
        newer_than: Age | None = None,
        newest_first: bool = True,
        after: str | None = None,
        limit: int = 100,
    ) -> Page[RunInfo]:
        """Runs, newest first; otherwise as `pending`. Ages since they began.

        `status`: `running | paused | parked | success | error | cancelled | erased`.
        """
        where = _where(runnable, None, status, labels, older_than, newer_than)
        rows = await wait(self._list_runs(where, _slice(after, newest_first, limit)))
        more = len(rows) > limit
        return Page(rows[:limit], f"{rows[limit - 1].t0}.{rows[limit - 1].run_id}" if more else None)

    async def get(self, run_id: str) -> RunRecord:
        """A run and what its execution recorded; raises `RunNotFound`, or `RunErased`."""
        stored = await self._stored(run_id)
        infos = await wait(self._runs_of(run_id))
        facts = decode_all(stored.records)
        return RunRecord(next(i for i in infos if i.run_id == run_id), infos, facts)

    async def runs_of(self, run_id: str) -> list[RunInfo]:
        """The runs of the execution that this one belongs to, by when they began; raises `RunNotFound`."""
        infos = await wait(self._runs_of(run_id))
        if not infos:
            raise await self._absence(run_id)
        return infos

    async def messages(self, run_id: str) -> list[Message]:
        """The conversation up to this run's execution, as a model would read it; raises `RunNotFound`."""
        from ..core.transcript import conversation

        records = await wait(self.history(run_id))
        if not records:
            raise await self._absence(run_id)
        return conversation(records)

    async def answer(
        self, run_id: str, answers: Mapping[str, Any], by: Principal | None = None, channel: str = "answer"
    ) -> list[dict[str, Any]]:
        """Check and settle, without going on: whoever continues the run next uses the answers. Gives the receipts.

        `channel` is kept with decisions about approvals: by which way they came.
        Raises `ResumeRejected`, with receipts, when an id or a value is not accepted, and `RunNotFound`.
        """
        while True:
            stored = await self._stored(run_id)
            ledger = Ledger.of(decode_all(stored.records))
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
        ledgers = [Ledger.of(decode_all(one)) for one in records]
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
        ledger = Ledger.of(decode_all(records))
        return next(one.grant for one in standing_in(ledger) if one.gate.id == approval_id)

    async def erase(self, run_id: str) -> None:
        """Remove what the execution of this run recorded, its answers and labels, for good; raises `RunNotFound`.

        A tombstone stays: its runs with their ids, runnable and times, status `erased`, so that nothing comes back
        under these ids. A run at work loses its lease. Other turns of its conversation are executions of their own.
        """
        from ..core.transcript import forget_conversations

        if not await wait(self._erase(run_id)):
            raise RunNotFound(f"there is no run {run_id} in this store")
        forget_conversations()

    async def prune(self, older_than: Age, *, abandoned_older_than: Age | None = None, dry_run: bool = False) -> Pruned:
        """Remove executions that finished so many seconds ago, for good and without a tombstone; gives how many.

        An open one (it waits for a person or for a worker, was interrupted, or is parked) is only removed when
        `abandoned_older_than` says so, and one at work never. A turn of a conversation stays as long as a later one.
        `dry_run` removes nothing, and gives what would be.
        """
        now = time.time_ns() // 1_000_000
        abandoned = None if abandoned_older_than is None else now - _milliseconds(abandoned_older_than)
        return await wait(self._prune(Prune(now - _milliseconds(older_than), abandoned, dry_run)))

    async def check(self) -> Checked:
        """Read everything, and say what is there and what is wrong with it."""
        from .checking import check

        return await check(self)

    async def _stored(self, run_id: str) -> Stored:
        stored = await wait(self.load(run_id))
        if stored is None:
            raise await self._absence(run_id)
        return stored

    async def _absence(self, run_id: str) -> RunNotFound:
        """Why nothing of this run can be given."""
        for info in await wait(self._runs_of(run_id)):
            if info.run_id == run_id and info.status == "erased":
                return RunErased(f"run {run_id} was erased; only its id and times are kept", erased_at=info.t1 or 0)
        return RunNotFound(f"there is no run {run_id} in this store")


def _where(
    runnable: str | None,
    kind: str | None,
    status: str | None,
    labels: Mapping[str, str] | None,
    older_than: Age | None,
    newer_than: Age | None,
) -> Where:
    now = time.time_ns() // 1_000_000
    return Where(
        runnable,
        kind,
        status,
        labels or {},
        None if newer_than is None else now - _milliseconds(newer_than),
        None if older_than is None else now - _milliseconds(older_than),
    )


def _milliseconds(age: Age) -> int:
    return int((age.total_seconds() if isinstance(age, timedelta) else age) * 1000)


def _slice(after: str | None, newest_first: bool, limit: int) -> Slice:
    """The page, and one more: it tells whether there are more."""
    if limit < 1:
        raise ValueError(f"limit is at least 1, not {limit!r}")
    if after is not None:
        position(after, str)
    return Slice(after, newest_first, limit + 1)


def position(after: str, of: Callable[[str], T]) -> tuple[int, T]:
    """The time and the id that a page's `.next` names; raises `ValueError` for what is none."""
    at, dot, id = after.partition(".")
    try:
        if dot:
            return int(at), of(id)
    except ValueError:
        pass
    raise ValueError(f"after={after!r} is no position: pass the .next of a page")


def _pending_item(found: Found) -> PendingItem:
    (asked,) = decode(found.body)
    assert isinstance(asked, Asked | Gated)
    event = asked_event(asked)
    return PendingItem(
        asked.id, found.run_id, asked.name, found.runnable, found.labels, asked.at, asked.expires_at, event
    )


def _settled_item(found: Found) -> SettledItem:
    assert found.settled is not None
    (asked,), (settled,) = decode(found.body), decode(found.settled)
    assert isinstance(asked, Asked | Gated)
    assert isinstance(settled, Settled)
    return SettledItem(
        asked.id,
        found.run_id,
        asked.name,
        found.runnable,
        found.labels,
        asked.at,
        settled.at,
        settled.state,
        public_decision(asked, settled.value) if isinstance(asked, Gated) else settled.value,
        settled.by,
        settled.channel,
        settled.run_id,
        asked_event(asked),
    )
