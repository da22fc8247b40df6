"""What people ask of a store, over the few operations that each kind of store has of its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Self, TypeVar

from ..core.answers import Claimed, Refuse, plan, receipts
from ..core.codec import decode_all, encode
from ..core.facts import Ended, Opened, Revoked, Settled
from ..core.grants import Grant, standing_in
from ..core.ledger import Ledger
from ..core.schema_check import check_against
from ..errors import ResumeRejected, RunErased, RunNotFound
from ..ports import Due, Lease, QuestionRow, RunRow, Settlement, Settling, Stored
from ..types.approval import Principal
from ..types.message import Message
from . import clock
from .listings import (
    Age,
    Found,
    Page,
    PendingItem,
    Prune,
    Pruned,
    RunInfo,
    RunRecord,
    SettledItem,
    Slice,
    Where,
    milliseconds,
    pending_item,
    settled_item,
    slice_of,
    where_of,
)
from .waiting import wait

if TYPE_CHECKING:
    from .checking import Checked

T = TypeVar("T")

#: How long a lease lasts without a sign of life, in seconds (contract section 7).
LEASE_SECONDS = 30.0


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
        where = where_of(runnable, kind, None, labels, older_than, newer_than)
        return await self._page(where, after, newest_first, limit, pending_item, settled=False)

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
        where = where_of(runnable, kind, None, labels, older_than, newer_than)
        return await self._page(where, after, newest_first, limit, settled_item, settled=True)

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
        rows = await wait(self._questions(where, slice_of(after, newest_first, limit), settled=settled))
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

        `status`: `running | paused | parked | continued | success | error | cancelled | erased`.
        """
        where = where_of(runnable, None, status, labels, older_than, newer_than)
        rows = await wait(self._list_runs(where, slice_of(after, newest_first, limit)))
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
        self,
        run_id: str,
        answers: Mapping[str, Any],
        by: Principal | None = None,
        channel: str = "answer",
        key: str | None = None,
    ) -> list[dict[str, Any]]:
        """Check and settle, without going on: whoever continues the run next uses the answers. Gives the receipts.

        `channel`, by which way the answers came, is kept with them, and so is `key`, a name of the request.
        Raises `ResumeRejected`, with receipts, when an id or a value is not accepted, and `RunNotFound`.
        """
        while True:
            stored = await self._stored(run_id)
            ledger = Ledger.of(decode_all(stored.records))
            now = clock.now()
            decision = plan(ledger, answers, by, now, check_against)
            if isinstance(decision, Refuse):
                raise ResumeRejected(decision.message, decision.receipts)
            if isinstance(decision, Claimed):
                lost = next(r for r in decision.receipts if not r["same_value"])
                raise ResumeRejected(f"{lost['id']} was answered already, with another value", decision.receipts)
            who = by.model_dump() if by is not None else None
            how = (None, who, channel, key)
            facts = [Settled(id, "answered", now, value, *how) for id, value in decision.new.items()]
            stop = None
            if decision.cancel:
                stop = decision.cancel_reason or ""
                waiting = ledger.open_questions
                reason = decision.cancel_reason
                facts = [Settled(q.asked.id, "cancelled", now, reason, *how) for q in waiting]
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
        fact = Revoked(approval_id, clock.now(), by.model_dump() if by is not None else None)
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
        now = clock.now()
        abandoned = None if abandoned_older_than is None else now - milliseconds(abandoned_older_than)
        return await wait(self._prune(Prune(now - milliseconds(older_than), abandoned, dry_run)))

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
