"""From a call to its output: begin an execution, a turn of a conversation, or go on with what was asked."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from ..core.answers import Accept, Claimed, Refuse, plan, receipts
from ..core.codec import decode, encode
from ..core.facts import Asked, Ended, Gated, Opened, Resumed, Settled
from ..core.gates import audit_of, decision
from ..core.ids import ROOT
from ..core.ledger import Ledger, Question
from ..core.narrate import pause_output, pause_status, pending_metadata
from ..core.redaction import secrets
from ..core.schema_check import check_against
from ..core.transcript import output_value, transcript
from ..errors import ResumeRejected, RunExists, RunNotFound
from ..ports import Lease, RunRow, Settlement, Store, Stored
from ..state import Halt
from ..stores.waiting import wait
from ..types.events import OutputEvent
from ..types.message import Message
from ..types.run_status import RunStatus
from .call import Outcome, execute, tell_start
from .failures import describe, public, without_secrets
from .frame import Frame
from .gated import execute_gated, gate_of_call, is_gated, show
from .run import Run, Stopped, counter, new_id, now, with_cause
from .schema import InvalidInput, presentable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..runnables.base import Runnable
    from .handle import RunHandle


async def drive(handle: RunHandle) -> None:
    """The task of a run: everything it tells goes into the handle's stream."""
    stream, given = handle._stream, handle._given
    work = _Drive(handle)
    try:
        output = await (work.begin() if given.resume is None else work.resume(given.resume))
    except Refused as refusal:
        stream.close(work.refusal(refusal))
    except asyncio.CancelledError:
        stream.close(None, asyncio.CancelledError("the run was interrupted before it had begun"))
    except BaseException as error:
        stream.close(None, error)
        if not isinstance(error, Exception):
            raise
    else:
        stream.close(output)


async def cancel(runnable: Runnable, run_id: str, reason: str | None) -> OutputEvent:
    """End the execution of `run_id` for good, wherever it runs or waits; gives the OUTPUT it ended with."""
    from .handle import Given, RunHandle

    handle = RunHandle(runnable, Given({}, run_id, {}))
    return await _Drive(handle).cancel(run_id, reason)


class Refused(Exception):
    """The call is refused with this status, and nothing has changed."""

    def __init__(
        self, message: str, receipts: list[dict[str, Any]] | None = None, status: RunStatus | None = None
    ) -> None:
        self.status = status or RunStatus("error", "resume_rejected", message)
        self.receipts = receipts or []
        super().__init__(message)


class _Drive:
    """One call of a runnable from outside."""

    receipts: Sequence[dict[str, Any]] = ()
    #: What is open in the execution that a resume is for.
    _waiting: Sequence[Question] = ()

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
            ledger = _fold(stored)
            self._check_runnable(ledger)
            ended = ledger.ended
            if ended is not None and not stored.held and not _is_paused(ended) and not _cut_off(ended):
                return self._state(stored, ledger)
            settled = [Settled(q.asked.id, "cancelled", now(), reason, self.run_id) for q in ledger.open_questions]
            row = RunRow(self.run_id, run_id, now())
            result = await wait(self.store.settle(stored.ref, [_row(s) for s in settled], row, reason or ""))
            if result.conflict:
                continue
            if result.lease is None or stored.held or result.lease.fence != stored.fence + 1:
                return await self._in_turn(stored, result.lease, row)
            for fact in settled:
                ledger.apply(fact)
            return await self._go_on(stored, ledger, result.lease, row, Stopped(reason, final=True))

    # -- a new execution ---------------------------------------------------------------------------------------------

    async def begin(self) -> OutputEvent:
        given, runnable, run_id = self.given, self.runnable, self.run_id
        try:
            values, stored = runnable._prepare(given.arguments)
        except Exception as error:
            return self._invalid(error)
        history = await self._turn_after(given.parent_id) if given.parent_id is not None else ()
        run = Run(self.store, self.stream, Ledger(), run_id, given.parent_id, run_id, Lease())
        run.labels = given.labels or {}
        run.history = history
        frame = Frame(run, ROOT, runnable.name, runnable.name, runnable.kind, new_id(), None)
        frame.t0 = now()
        frame.input = stored
        if runnable._gate is not None:
            show(frame, runnable, stored)
        by = given.by.model_dump() if given.by is not None else None
        run.open(
            Opened(
                run_id, frame.call_id, runnable.name, runnable.kind, stored, frame.t0, given.parent_id, given.labels, by
            )
        )
        if given.run_id is not None:
            try:
                await run.flush()
            except RunExists:
                return await self._follow_first()
        self.handle.begun(run)
        return await self._run(run, frame, values)

    def _invalid(self, error: Exception) -> OutputEvent:
        """Arguments that don't fit: nothing is stored, nothing has run."""
        reason = "invalid_input" if isinstance(error, InvalidInput) else None
        given = presentable(self.given.arguments)
        told = describe(error, hidden=secrets(given, self._visible(given, Ledger())))
        if reason is not None:
            told["traceback"] = None
        event = self._aside(RunStatus("error", reason, told["message"]), told, {}, error)
        self.stream.put(event)
        return event

    async def _follow_first(self) -> OutputEvent:
        """The run id is in use: the same start follows the first run, another one is refused."""
        stored = await self._load(self.run_id)
        ledger = _fold(stored)
        try:
            self._check_same(ledger)
        except Refused as refusal:
            raise Refused(f"run {self.run_id} exists already, with another input: {refusal}") from None
        return await self._follow(stored, again=False)

    async def _turn_after(self, parent_id: str) -> list[Message]:
        """The messages of a conversation, up to the run that this turn comes after."""
        while True:
            records = await wait(self.store.history(parent_id))
            if not records:
                raise Refused(
                    f"there is no run {parent_id} in this store: check parent_id, and that the store is the same"
                )
            ledgers = [Ledger.of(f for r in one for f in decode(r)) for one in records]
            last = ledgers[-1]
            self._check_runnable(last)
            if last.ended is None:
                raise Refused(
                    f"run {parent_id} has not ended: wait for it or, if its process is gone, go on with resume={{}}"
                )
            if not _is_paused(last.ended):
                return [m for one in ledgers for m in transcript(one)] if self.runnable.kind == "Agent" else []
            await self._supersede(parent_id, last)

    async def _supersede(self, parent_id: str, ledger: Ledger) -> None:
        """A new message instead of an answer (contract section 6)."""
        waiting = ledger.open_questions
        what = ", ".join(f"{q.asked.id} ({q.asked.name} of {q.asked.path})" for q in waiting)
        if self.runnable.kind != "Agent":
            raise Refused(f"run {parent_id} waits for {what}: answer with resume={{id: value}}")
        policy = self.runnable.on_new_message
        guarded = [q for q in waiting if q.asked.audience is not None or isinstance(q.asked, Gated)]
        if policy == "refuse" or (policy is None and guarded):
            raise Refused(f"run {parent_id} waits for {what}: answer it or cancel it before a new message")
        stored = await self._load(parent_id)
        run_id = new_id()
        settlements = [_settlement(q, "superseded", None, self.run_id) for q in waiting]
        result = await wait(self.store.settle(stored.ref, settlements, RunRow(run_id, parent_id, now())))
        if result.conflict:
            return
        lease = result.lease
        if lease is None:
            raise Refused(f"run {parent_id} is going on with an answer: wait for it")
        ended = Ended(run_id, "cancelled", now(), "cancelled", "superseded by a new message")
        await wait(self.store.commit(lease, encode((ended,)), ended=ended))

    # -- going on ----------------------------------------------------------------------------------------------------

    async def resume(self, resume: Mapping[str, Any]) -> OutputEvent:
        given = self.given
        parent_id = given.parent_id if given.parent_id is not None else await self._find(resume)
        while True:
            stored = await self._load(parent_id)
            ledger = _fold(stored)
            self._check_runnable(ledger)
            self._check_same(ledger)
            expiring = [
                q for q in ledger.open_questions if q.asked.expires_at is not None and q.asked.expires_at <= now()
            ]
            if expiring:
                await wait(self.store.settle(stored.ref, [_expiry(q, self.run_id) for q in expiring], None))
                continue
            self._waiting = ledger.open_questions
            decision = plan(ledger, resume, given.by, now(), check_against)
            if isinstance(decision, Refuse):
                raise Refused(decision.message, decision.receipts)
            if isinstance(decision, Claimed):
                lost = next(r for r in decision.receipts if not r["same_value"])
                message = f"{lost['id']} was answered already: with {lost['value']!r}, by run {lost['run_id']}"
                raise Refused(message, decision.receipts, RunStatus("cancelled", decision.reason, message))
            if not decision.new and not decision.cancel:
                self.receipts = receipts(ledger, resume, {})
                return await self._follow(stored, again=not resume)
            settlements = self._settlements(ledger, decision)
            row = RunRow(self.run_id, parent_id, now())
            stop = (decision.cancel_reason or "") if decision.cancel else None
            result = await wait(self.store.settle(stored.ref, [_row(s) for s in settlements], row, stop))
            if result.conflict:
                continue
            self.receipts = receipts(ledger, resume, {fact.id: fact for fact in settlements})
            if result.lease is None or stored.held or result.lease.fence != stored.fence + 1:
                return await self._in_turn(stored, result.lease, row)
            for fact in settlements:
                ledger.apply(fact)
            return await self._go_on(stored, ledger, result.lease, row)

    def _settlements(self, ledger: Ledger, decision: Accept) -> list[Settled]:
        by = self.given.by.model_dump() if self.given.by is not None else None
        made = [
            Settled(id, "answered", now(), value, self.run_id, by, _channel(ledger.questions[id]))
            for id, value in decision.new.items()
        ]
        if decision.cancel:
            made = [
                Settled(q.asked.id, "cancelled", now(), decision.cancel_reason, self.run_id, by, _channel(q))
                for q in ledger.open_questions
            ]
        return made

    async def _in_turn(self, stored: Stored, lease: Lease | None, row: RunRow) -> OutputEvent:
        """Our answers are committed and another run is at work: wait for the lease, and see what is left to do."""
        while True:
            if lease is None:
                lease = await wait(self.store.acquire(stored.ref, row))
            if lease is None:
                await wait(self.store.wait(stored.ref))
                continue
            stored = await self._load(stored.run_id)
            ledger = _fold(stored)
            if ledger.ended is None or (_is_paused(ledger.ended) and _has_news(ledger)) or _cut_off(ledger.ended):
                return await self._go_on(stored, ledger, lease, row)
            await self._give_back(lease, ledger)
            return self._state(stored, ledger)

    async def _give_back(self, lease: Lease, ledger: Ledger) -> None:
        """The lease is not needed: the execution stays as it was left."""
        ended = ledger.ended
        assert ended is not None
        await wait(self.store.commit(lease, ended=ended._replace(run_id=self.run_id, at=now())))

    async def _follow(self, stored: Stored, *, again: bool) -> OutputEvent:
        """Nothing new came: wait for the run at work, or continue where none is. `again`: failed ones, too."""
        waited = False
        while stored.held:
            waited = True
            await wait(self.store.wait(stored.ref))
            stored = await self._load(stored.run_id)
        ledger = _fold(stored)
        ended = ledger.ended
        over = ended is not None and not (_is_paused(ended) and _has_news(ledger)) and not _cut_off(ended)
        if over and not (again and not waited and ended is not None and ended.code == "error"):
            return self._state(stored, ledger)
        row = RunRow(self.run_id, stored.newest_run_id, now())
        lease = await wait(self.store.acquire(stored.ref, row))
        if lease is None:
            return await self._follow(await self._load(stored.run_id), again=again)
        if lease.fence != stored.fence + 1:  # another run was at work since we looked
            return await self._in_turn(stored, lease, row)
        return await self._go_on(stored, _fold(stored), lease, row)

    async def _go_on(
        self, stored: Stored, ledger: Ledger, lease: Lease, row: RunRow, stop: Stopped | None = None
    ) -> OutputEvent:
        """Run the execution over its ledger, with the lease in hand."""
        runnable, opened = self.runnable, ledger.root
        run = Run(self.store, self.stream, ledger, row.run_id, row.parent_run_id, opened.run_id, lease)
        run.labels = opened.labels or {}
        if opened.parent_run_id is not None and runnable.kind == "Agent":
            records = await wait(self.store.history(opened.parent_run_id))
            run.history = [m for one in records for m in transcript(Ledger.of(f for r in one for f in decode(r)))]
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
        if stop is not None:
            run.halt = stop
            tell_start(frame)
            return await run.end(frame, Outcome(RunStatus("cancelled", "cancelled")), self._metadata())
        self.handle.begun(run)
        try:
            values = runnable._restore(opened.input)
        except Exception as error:
            tell_start(frame)
            why = without_secrets(frame, str(error))
            frame.mismatch(f"the stored input does not fit its parameters any more ({why})")
            return await run.end(frame, Outcome(RunStatus("error")), self._metadata())
        return await self._run(run, frame, values)

    async def _run(self, run: Run, frame: Frame, values: dict[str, Any]) -> OutputEvent:
        """The root call, and the end of the run."""
        try:
            tell_start(frame)
            outcome = await self._perform(run, frame, values)
            if run.tasks:
                await run.finish_tasks()
            return await run.end(frame, outcome, self._metadata())
        finally:
            run.over = True

    async def _perform(self, run: Run, frame: Frame, values: dict[str, Any]) -> Outcome:
        try:
            if run.halt is not None:
                raise Halt
            if frame.effective is not None:
                return await execute_gated(frame, self.runnable, self.given.arguments)
            return await execute(frame, self.runnable, values)
        except Halt:
            pass
        except asyncio.CancelledError:
            run.stop_with(Stopped(None, final=False))
            task = asyncio.current_task()
            while task is not None and task.cancelling():
                task.uncancel()
        return Outcome(RunStatus("cancelled", "interrupted"))

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
        event = OutputEvent._of(
            {
                "type": "OUTPUT",
                "run_id": ended.run_id,
                "parent_run_id": ledger.runs[position - 1] if position else opened.parent_run_id,
                "path": opened.name,
                "call_id": opened.call_id,
                "parent_call_id": None,
                "input": self._visible(opened.input, ledger),
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

    def refusal(self, refusal: Refused) -> OutputEvent:
        """The OUTPUT of a call that was refused."""
        status, error = refusal.status, None
        if status.code == "error":
            error = {"type": "ResumeRejected", "message": str(refusal), "traceback": None}
        metadata: dict[str, Any] = {"receipts": refusal.receipts}
        if self._waiting:
            metadata.update(pending_metadata(self._waiting))
        event = self._aside(
            status, error, metadata, None if error is None else ResumeRejected(str(refusal), refusal.receipts)
        )
        self.stream.put(event)
        return event

    def _aside(
        self, status: RunStatus, error: dict[str, Any] | None, metadata: dict[str, Any], cause: BaseException | None
    ) -> OutputEvent:
        """An OUTPUT of a call that came to no run."""
        t = now()
        event = OutputEvent._of(
            {
                "type": "OUTPUT",
                "run_id": self.run_id,
                "parent_run_id": self.given.parent_id,
                "path": self.runnable.name,
                "call_id": new_id(),
                "parent_call_id": None,
                "input": self._visible(presentable(self.given.arguments), Ledger()),
                "status": status,
                "output": None,
                "error": error,
                "t0": t,
                "t1": t,
                "usage": {},
                "metadata": metadata,
            }
        )
        return event if cause is None else with_cause(event, cause)

    def _visible(self, input: dict[str, Any], ledger: Ledger) -> dict[str, Any]:
        """The root's input as events show it."""
        gate = gate_of_call(self.runnable, ledger, ROOT)
        return input if gate is None else gate.redacted(input)

    # -- checks ------------------------------------------------------------------------------------------------------

    async def _load(self, run_id: str) -> Stored:
        stored = await wait(self.store.load(run_id))
        if stored is None:
            raise Refused(f"there is no run {run_id} in this store: check parent_id, and that the store is the same")
        return stored

    async def _find(self, resume: Mapping[str, Any]) -> str:
        """The run that asked, where the caller did not say it."""
        if not resume:
            raise Refused("resume={} needs a parent_id: the run to go on with")
        found = await wait(self.store.find(list(map(str, resume)), self.runnable.name))
        if len(found) != 1:
            where = "is not pending" if not found else f"is pending in {len(found)} runs ({', '.join(found)})"
            raise Refused(
                f"{', '.join(map(str, resume))} {where} for {self.runnable.name!r}: pass parent_id, the run that asked"
            )
        return found[0]

    def _check_runnable(self, ledger: Ledger) -> None:
        opened, runnable = ledger.root, self.runnable
        if (opened.name, opened.kind) != (runnable.name, runnable.kind):
            raise Refused(
                f"run {opened.run_id} is one of {opened.kind} {opened.name!r}, not of {runnable.kind} {runnable.name!r}"
            )

    def _check_same(self, ledger: Ledger) -> None:
        """Input that is given again must be what is stored."""
        given = self.given.arguments
        if not given:
            return
        stored = ledger.root.input
        try:
            _, dumped = self.runnable._prepare({**given})
        except Exception as error:
            raise Refused(f"the input does not fit: {error}") from None
        free = self.runnable._filled - given.keys()
        changed = sorted(n for n in dumped.keys() | stored.keys() if n not in free and dumped.get(n) != stored.get(n))
        if changed:
            raise Refused(
                f"the input differs from the stored one in {', '.join(changed)}; what is stored is what runs, "
                "so leave the input out, or give the same"
            )


def _fold(stored: Stored) -> Ledger:
    return Ledger.of(fact for record in stored.records for fact in decode(record))


def _is_paused(ended: Ended) -> bool:
    return RunStatus(ended.code, ended.reason).paused  # type: ignore[arg-type]


def _cut_off(ended: Ended) -> bool:
    """Whether a run was interrupted, so that what it was about is still to be done."""
    return ended.code == "cancelled" and ended.reason == "interrupted"


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
            return Stopped(settled.value, final=True)
        asked = question.asked
        if settled.state == "expired" and isinstance(asked, Asked) and asked.on_expiry == "cancel":
            return Stopped(f"nobody answered {question.asked.id} in time", final=True)
    return None


def _channel(question: Question) -> str | None:
    """By which way a decision came: part of its audit."""
    return "resume" if isinstance(question.asked, Gated) else None


def _settlement(question: Question, state: str, value: Any, run_id: str | None) -> Settlement:
    return _row(Settled(question.asked.id, state, now(), value, run_id))


def _row(fact: Settled) -> Settlement:
    return Settlement(fact.id, fact.state, encode((fact,)))


def _expiry(question: Question, run_id: str) -> Settlement:
    on_expiry = question.asked.on_expiry if isinstance(question.asked, Asked) else None
    value = on_expiry["default"] if isinstance(on_expiry, dict) else None
    return _settlement(question, "expired", value, run_id)
