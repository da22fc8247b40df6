"""Go on with an execution: with answers, after a crash, or to end it."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from ..core.answers import Accept, Claimed, Refuse, plan, receipts
from ..core.codec import encode
from ..core.facts import Asked, Ended, Gated, Resumed, Settled, SettledState
from ..core.gates import audit_of, decision
from ..core.ids import ROOT
from ..core.ledger import Ledger, Question
from ..core.narrate import pause_output, pause_status, pending_metadata
from ..core.schema_check import check_against
from ..core.transcript import conversation, output_value
from ..errors import RunNotFound
from ..ports import GONE, Lease, RunRow, Settlement, Settling, Store, Stored
from ..stores.clock import now
from ..stores.waiting import wait
from ..types.events import OutputEvent
from ..types.run_status import RunStatus
from .executions import Refused, check_runnable, check_same, cut_off, fold, is_paused, load
from .failures import public, without_secrets
from .frame import Frame
from .gated import is_gated, show, visible
from .root import run_root
from .run import Run, Stopped, counter

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ..core.facts import Opened
    from ..runnables.base import Runnable
    from ..types.message import Message
    from .handle import RunHandle

L = TypeVar("L")


class Resumption:
    """One call that goes on with an execution."""

    receipts: Sequence[dict[str, Any]] = ()

    def __init__(self, handle: RunHandle) -> None:
        self.handle = handle
        self.runnable: Runnable = handle._runnable
        self.given = handle._given
        self.run_id = handle._run_id
        self.stream = handle._stream
        self.store: Store = self.runnable._store or self.runnable._store_in_use()

    async def cancel(self, run_id: str, reason: str | None) -> OutputEvent:
        while True:
            stored = await wait(self.store.load(run_id))
            if stored is None:
                raise RunNotFound(f"there is no run {run_id} in this store")
            ledger = fold(stored)
            check_runnable(self.runnable, ledger)
            ended = ledger.ended
            if ended is not None and not stored.held and not is_paused(ended) and not cut_off(ended):
                return self._state(stored, ledger)
            settled = [self._settled(q.asked.id, "cancelled", reason) for q in ledger.open_questions]
            row = RunRow(self.run_id, run_id, now())
            result = await _granted(
                self.store.settle(stored.ref, [Settlement.of(fact) for fact in settled], row, reason or "")
            )
            if result.conflict:
                continue
            if result.lease is None or stored.held or result.lease.fence != stored.fence + 1:
                return await self._in_turn(stored, result.lease, row, cancels=True)
            for fact in settled:
                ledger.apply(fact)
            stop = Stopped(reason, final=True, by=self.given.said_by, channel=self.handle.channel)
            return await self._go_on(stored, ledger, result.lease, row, stop)

    async def resume(self, resume: Mapping[str, Any]) -> OutputEvent:
        given = self.given
        parent_id = given.parent_id if given.parent_id is not None else await _find(self.store, self.runnable, resume)
        while True:
            stored = await load(self.store, parent_id)
            ledger = fold(stored)
            check_runnable(self.runnable, ledger)
            check_same(self.runnable, ledger, self.handle._arguments)
            waiting = ledger.open_questions
            expiring = [q for q in waiting if q.asked.expires_at is not None and q.asked.expires_at <= now()]
            if expiring:
                await wait(self.store.settle(stored.ref, [_expiry(q, self.run_id) for q in expiring], None))
                continue
            decision = plan(ledger, resume, given.by, now(), check_against)
            if isinstance(decision, Refuse):
                raise Refused(decision.message, decision.receipts, waiting=waiting)
            if isinstance(decision, Claimed):
                lost = next(r for r in decision.receipts if not r["same_value"])
                message = f"{lost['id']} was answered already: with {lost['value']!r}, by run {lost['run_id']}"
                status = RunStatus("cancelled", decision.reason, message)
                raise Refused(message, decision.receipts, status, waiting)
            if not decision.new and not decision.cancel:
                self.receipts = receipts(ledger, resume, {})
                return await self.follow(stored, again=not resume)
            settlements = self._settlements(ledger, decision)
            row = RunRow(self.run_id, parent_id, now())
            stop = (decision.cancel_reason or "") if decision.cancel else None
            rows = [Settlement.of(fact) for fact in settlements]
            result = await _granted(self.store.settle(stored.ref, rows, row, stop))
            if result.conflict:
                continue
            self.receipts = receipts(ledger, resume, {fact.id: fact for fact in settlements})
            if result.lease is None or stored.held or result.lease.fence != stored.fence + 1:
                return await self._in_turn(stored, result.lease, row, cancels=decision.cancel)
            for fact in settlements:
                ledger.apply(fact)
            return await self._go_on(stored, ledger, result.lease, row)

    def _settlements(self, ledger: Ledger, decision: Accept) -> list[Settled]:
        if decision.cancel:
            waiting = ledger.open_questions
            return [self._settled(q.asked.id, "cancelled", decision.cancel_reason) for q in waiting]
        return [self._settled(id, "answered", value) for id, value in decision.new.items()]

    def _settled(self, id: str, state: SettledState, value: Any) -> Settled:
        """A question settled by this call: by whom, and by which way."""
        handle = self.handle
        return Settled(id, state, now(), value, self.run_id, self.given.said_by, handle.channel, handle.key)

    async def _in_turn(self, stored: Stored, lease: Lease | None, row: RunRow, *, cancels: bool = False) -> OutputEvent:
        """Our answers are committed and another run is at work: wait for the lease, and see what is left to do.

        `cancels`: we have asked that run to end for good.
        """
        self.handle.accept(self.run_id, self.receipts)
        while True:
            if lease is None:
                lease = await _granted(self.store.acquire(stored.ref, row))
            if lease is None:
                await wait(self.store.wait(stored.ref))
                continue
            with _given_up_at_an_error(lease):
                stored = await load(self.store, stored.run_id)
                ledger = fold(stored)
                if ledger.ended is None or (is_paused(ledger.ended) and _has_news(ledger)) or cut_off(ledger.ended):
                    return await self._go_on(stored, ledger, lease, row)
                await self._give_back(lease, ledger.ended, cancels=cancels)
                return self._state(stored, ledger)

    async def _give_back(self, lease: Lease, ended: Ended, *, cancels: bool) -> None:
        """The lease is not needed: the execution stays as it was left; one that we cancelled did not know by whom."""
        record = b""
        if cancels and ended.reason == "cancelled" and ended.channel is None:
            record = encode((ended._replace(by=self.given.said_by, channel=self.handle.channel),))
        await wait(self.store.commit(lease, record, ended=ended._replace(run_id=self.run_id, at=now())))

    async def follow(self, stored: Stored, *, again: bool) -> OutputEvent:
        """Nothing new came: wait for the run at work, or continue where none is. `again`: failed ones, too."""
        waited = False
        if stored.held:
            self.handle.accept(stored.newest_run_id, self.receipts)
        while stored.held:
            waited = True
            await wait(self.store.wait(stored.ref))
            stored = await load(self.store, stored.run_id)
        ledger = fold(stored)
        ended = ledger.ended
        over = ended is not None and not (is_paused(ended) and _has_news(ledger)) and not cut_off(ended)
        over = over and not (again and not waited and ended is not None and ended.code == "error")
        if over and not self.given.unattended:
            return self._state(stored, ledger)
        row = RunRow(self.run_id, stored.newest_run_id, now())
        lease = await _granted(self.store.acquire(stored.ref, row))
        if lease is None:
            return await self.follow(await load(self.store, stored.run_id), again=again)
        # Another run was at work since we looked; or all is done, and somebody who died had taken the lease in vain:
        # it is given back, so that nobody waits for this execution any more.
        if over or lease.fence != stored.fence + 1:
            return await self._in_turn(stored, lease, row)
        return await self._go_on(stored, fold(stored), lease, row)

    async def _go_on(
        self, stored: Stored, ledger: Ledger, lease: Lease, row: RunRow, stop: Stopped | None = None
    ) -> OutputEvent:
        """Run the execution over its ledger, with the lease in hand."""
        runnable, opened = self.runnable, ledger.root
        history = await self._history(opened, lease)
        run = Run(self.store, self.stream, ledger, row.run_id, row.parent_run_id, opened.run_id, lease)
        run.labels = opened.labels or {}
        run.unattended = self.given.unattended
        run.history = history
        self.handle.accept(row.run_id, self.receipts)
        run.note(Resumed(row.run_id, row.parent_run_id, row.at))
        frame = Frame(run, ROOT, runnable.name, runnable.name, runnable.kind, opened.call_id, None)
        frame.t0 = row.at
        frame.input = opened.input
        run.gated = bool(ledger.gated_calls)
        if is_gated(frame, runnable):
            show(frame, runnable, opened.input)
        if ROOT in ledger.calls:
            frame.skip = ledger.calls[ROOT].streamed
        self._count(frame)
        stop = stop or _execution_stop(ledger)
        values = {}
        if stop is not None:
            run.halt = stop
        else:
            self.handle.begun(run)
            try:
                values = runnable._restore(opened.input)
            except Exception as error:
                why = without_secrets(frame, str(error))
                frame.mismatch(f"the stored input does not fit its parameters any more ({why})")
        return await run_root(run, frame, runnable, values, self._metadata(), self.handle._arguments)

    async def _history(self, opened: Opened, lease: Lease) -> Sequence[Message]:
        if opened.parent_run_id is None or self.runnable.kind != "Agent":
            return ()
        with _given_up_at_an_error(lease):
            records = await wait(self.store.history(opened.parent_run_id))
            return conversation(records)

    def _count(self, frame: Frame) -> None:
        for question in frame.run.ledger.questions.values():
            settled = question.settled
            if settled is None or settled.run_id != frame.run.id or settled.state == "superseded":
                continue
            state = settled.state
            if state == "answered" and isinstance(question.asked, Gated):
                state = "approved" if decision(settled).approved else "denied"
            frame.count(counter(question.asked, state))

    # -- what is told ------------------------------------------------------------------------------------------------

    def _metadata(self) -> dict[str, Any]:
        return {"receipts": list(self.receipts)} if self.given.resume is not None else {}

    def _state(self, stored: Stored, ledger: Ledger) -> OutputEvent:
        """The OUTPUT of the run that brought the execution to where it is."""
        ended, opened = ledger.ended, ledger.root
        assert ended is not None
        status = RunStatus(ended.code, ended.reason, ended.message)  # type: ignore[arg-type]
        metadata = self._metadata()
        waiting = ledger.open_questions
        output = self.runnable._revive(output_value(ledger, ROOT, ended.output, ended.form), ended.form)
        if status.paused and waiting:
            first = waiting[0].asked
            status, output = pause_status(first), pause_output(first)
            metadata.update(pending_metadata(waiting))
        if (audit := audit_of(ledger, ROOT)) is not None:
            metadata["approval"] = audit
        position = ledger.runs.index(ended.run_id) if ended.run_id in ledger.runs else 0
        self.handle.accept(ended.run_id, self.receipts)
        event = OutputEvent._of(
            {
                "type": "OUTPUT",
                "run_id": ended.run_id,
                "parent_run_id": ledger.runs[position - 1] if position else opened.parent_run_id,
                "path": opened.name,
                "call_id": opened.call_id,
                "parent_call_id": None,
                "input": visible(self.runnable, opened.input, ledger),
                "status": status,
                "output": output,
                "error": public(ended.error) if ended.error else None,
                "t0": opened.at,
                "t1": ended.at,
                "usage": ended.usage or {},
                "metadata": metadata,
            }
        )
        self.stream.put(event)
        return event


async def _find(store: Store, runnable: Runnable, resume: Mapping[str, Any]) -> str:
    """The run that asked, where the caller did not say it."""
    if not resume:
        raise Refused("resume={} needs a parent_id: the run to go on with")
    found = await wait(store.find(list(map(str, resume)), runnable.name))
    if len(found) != 1:
        where = "is not pending" if not found else f"is pending in {len(found)} runs ({', '.join(found)})"
        raise Refused(
            f"{', '.join(map(str, resume))} {where} for {runnable.name!r}: pass parent_id, the run that asked"
        )
    return found[0]


async def _granted(future: Future[L]) -> L:
    """What may grant a lease. One that comes when nobody waits for it any more is given up."""
    try:
        return await wait(future)
    except asyncio.CancelledError:
        future.add_done_callback(_give_up_granted)
        raise


def _give_up_granted(future: Future[Any]) -> None:
    if future.exception() is None:
        result = future.result()
        lease = result.lease if isinstance(result, Settling) else result
        if lease is not None:
            lease.holder = GONE


@contextmanager
def _given_up_at_an_error(lease: Lease) -> Iterator[None]:
    """A lease that no run has taken over yet is not kept alive by a process that has failed with it."""
    try:
        yield
    except BaseException:
        if lease.holder is None:
            lease.holder = GONE
        raise


def _has_news(ledger: Ledger) -> bool:
    """Whether something was settled that no run has used yet."""
    return bool(ledger.seen_by_open_calls()) or not ledger.open_questions


def _execution_stop(ledger: Ledger) -> Stopped | None:
    """Why the whole execution ends now, if a question says so by the way it was settled."""
    for question in ledger.questions.values():
        settled = question.settled
        if settled is None:
            continue
        if settled.state == "cancelled":
            return Stopped(settled.value, final=True, by=settled.by, channel=settled.channel)
        asked = question.asked
        if settled.state == "expired" and isinstance(asked, Asked) and asked.on_expiry == "cancel":
            return Stopped(f"nobody answered {question.asked.id} in time", final=True)
    return None


def _expiry(question: Question, run_id: str) -> Settlement:
    on_expiry = question.asked.on_expiry if isinstance(question.asked, Asked) else None
    value = on_expiry["default"] if isinstance(on_expiry, dict) else None
    return Settlement.of(Settled(question.asked.id, "expired", now(), value, run_id))
