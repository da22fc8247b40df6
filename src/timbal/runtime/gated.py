"""A call behind a gate: nothing of it runs until a person, a standing decision or its policy lets it through."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..core.codec import decode_all, encode
from ..core.facts import Gated, Passed, Settled, Used
from ..core.gates import (
    Decision,
    Verdict,
    audit,
    call_digest,
    changed_names,
    decision,
    denial_output,
    denied_before,
    gate_digest,
    gated_schema,
    is_late,
)
from ..core.grants import Standing, applying, decides, standing_in
from ..core.ids import GATE, ROOT, approval_id, child
from ..core.ledger import Ledger
from ..core.narrate import pause_output, pause_status
from ..core.outputs import DENIED
from ..core.redaction import scrub, secrets
from ..errors import RunNotFound
from ..state import Halt
from ..stores.waiting import wait
from ..types.json_value import json_value
from ..types.run_status import RunStatus
from .call import CallFailed, Outcome, execute, failed, refused, tell_start, tell_stopped, was_cancelled
from .failures import describe, without_secrets
from .gate import Gate
from .schema import InvalidInput

if TYPE_CHECKING:
    from ..runnables.base import Runnable
    from .frame import Frame
    from .run import Run


class Through(NamedTuple):
    """The gate is open for this call: the input as its handler takes it, and what its OUTPUT tells of it."""

    values: dict[str, Any]
    audit: dict[str, Any] | None


async def perform_gated(frame: Frame, target: Runnable, arguments: dict[str, Any]) -> Outcome:
    """`call.perform` for a target with a gate. What was recorded of the call stands; nothing of it is made again."""
    try:
        effective = _recorded_input(frame)
        if effective is None:
            _, effective = target._prepare(arguments)
    except Exception as error:
        show(frame, target, arguments)
        return refused(frame, error, "invalid_input" if isinstance(error, InvalidInput) else None)
    show(frame, target, effective)
    tell_start(frame)
    return await execute_gated(frame, target, arguments)


async def execute_gated(frame: Frame, target: Runnable, arguments: dict[str, Any]) -> Outcome:
    """`call.execute` for a target with a gate, called with these arguments."""
    through = await _pass(frame, target, _call_digest(target, arguments, frame.effective or {}))
    if not isinstance(through, Through):
        frame.close()
        return through
    if frame.run.halt is not None:
        frame.close()
        tell_stopped(frame)
        raise Halt(str(frame.run.halt))
    outcome = await execute(frame, target, through.values)
    return outcome if through.audit is None else outcome._replace(audit=through.audit)


def is_gated(frame: Frame, target: Runnable) -> bool:
    """Whether the call stands behind a gate: of the code as it is, or as it was when the call was reached before."""
    return target._gate is not None or _recorded(frame.run.ledger, frame.key) is not None


def gate_of_call(target: Runnable, ledger: Ledger, key: str) -> Gate | None:
    """The gate of the call at `key`. What the code has lost of it meanwhile still hides and guards what it did."""
    recorded = _recorded(ledger, key)
    if recorded is None:
        return target._gate
    gate = target._gate
    if gate is None:
        options = {"approval_audience": recorded.audience, "approval_grantable": recorded.grantable}
        gate = Gate(target.name, target._input_names, options)
    return gate.and_hides(recorded.redacts or [])


def visible(target: Runnable, input: dict[str, Any], ledger: Ledger | None = None) -> dict[str, Any]:
    """The input of a call from outside as events show it."""
    gate = gate_of_call(target, ledger if ledger is not None else Ledger(), ROOT)
    return input if gate is None else gate.redacted(input)


def _recorded(ledger: Ledger, key: str) -> Gated | None:
    question = ledger.question_at(child(key, GATE))
    return question.asked if question is not None and isinstance(question.asked, Gated) else None


def show(frame: Frame, target: Runnable, input: dict[str, Any]) -> None:
    """Let the call's events show its input as its gate lets anybody see it."""
    frame.effective, frame.input = input, _gate(frame, target).redacted(input)


def _call_digest(target: Runnable, arguments: dict[str, Any], effective: dict[str, Any]) -> str:
    """What was asked for, without the gaps that `default_params` fills: they may be filled otherwise the next time."""
    given = {n: v for n, v in effective.items() if n in arguments or n not in target._filled}
    return call_digest(target.name, given)


# -- the way through ---------------------------------------------------------------------------------------------------


async def _pass(frame: Frame, target: Runnable, call: str) -> Through | Outcome:
    ledger = frame.run.ledger
    question = ledger.question_at(child(frame.key, GATE))
    passed = ledger.passed(frame.key)
    if question is None:
        return await _new(frame, target, call) if passed is None else await _again(frame, target, passed)
    gate, settled = question.asked, question.settled
    assert isinstance(gate, Gated)
    if settled is None:
        return _paused(gate)
    made = decision(settled)
    if not made.approved:
        return _denied(frame, gate, settled)
    if passed is not None and passed.approval_id == gate.id:
        return await _again(frame, target, passed, gate, settled)
    return await _approved(frame, target, gate, settled, made)


async def _approved(frame: Frame, target: Runnable, gate: Gated, settled: Settled, made: Decision) -> Through | Outcome:
    """A person has approved: run what that person saw, with the edit, or ask again."""
    if is_late(made.fields, frame.run.clock()):
        return await _reopen(frame, target, gate, gate.proposed, "the decision was over before it was used", [])
    values, again = _reread(frame, target, gate.proposed)
    if gate_digest(frame.path, again, gate.preview) != gate.digest:
        changed = changed_names(gate.proposed, again)
        return await _reopen(frame, target, gate, again, "the code was changed: something else would run", changed)
    if made.edit:
        merged = {**again, **json_value(made.edit)}
        try:
            values, ran = target._reread(json_value(merged))
            settles = target._reread(json_value(ran))[1] == ran
        except InvalidInput as error:
            return await _reopen(frame, target, gate, again, f"the edit can't be: {error}", list(made.edit))
        if not settles or any(ran[name] != again[name] for name in ran.keys() - made.edit.keys()):
            return await _reopen(frame, target, gate, again, "the edit changes more than it says", list(made.edit))
        again = ran
    show(frame, target, again)
    edited = bool(made.edit)
    passed = Passed(
        frame.key,
        frame.run.clock(),
        gate_digest(frame.path, again),
        gate.id,
        None,
        again if edited else None,
        frame.input if edited and gate.redacts else None,
    )
    frame.run.note(passed)
    return Through(values, audit(gate, settled, passed, gate.payload, frame.input))


async def _again(
    frame: Frame, target: Runnable, passed: Passed, gate: Gated | None = None, settled: Settled | None = None
) -> Through | Outcome:
    """It was let through before: with that input, and by that decision."""
    input = passed.input
    if input is None:
        assert gate is not None
        input = gate.proposed
    values, again = _reread(frame, target, input)
    if gate_digest(frame.path, again) != passed.digest:
        if gate is None and passed.grant is None:
            show(frame, target, again)
            return await _new(frame, target, call_digest(target.name, again))
        changed = changed_names(input, again)
        return await _reopen(frame, target, gate, again, "the code was changed: something else would run", changed)
    show(frame, target, again)
    if gate is not None and settled is not None:
        return Through(values, audit(gate, settled, passed, gate.payload, frame.input))
    return Through(values, {"grant": passed.grant} if passed.grant is not None else None)


async def _new(frame: Frame, target: Runnable, call: str) -> Through | Outcome:
    """The call comes for the first time: ask its policy, and where that says so, a person."""
    run, gate = frame.run, _gate(frame, target)
    effective = frame.effective or {}
    try:
        values, again = target._reread(json_value(effective))
    except InvalidInput as error:
        return _failed(frame, InvalidInput(f"its JSON does not fit its parameters, so no gate can hold it: {error}"))
    if gate_digest(frame.path, again) != gate_digest(frame.path, effective):
        changed = ", ".join(changed_names(effective, again))
        return _failed(frame, InvalidInput(f"{changed} would not run as shown: validated twice, it changes"))
    try:
        verdict = await gate.judge(lambda: target._reread(json_value(effective))[0])
    except BaseException as error:
        return _policy_failed(frame, error)
    if not verdict.required:
        shown = frame.input if gate.redacts else None
        digest = gate_digest(frame.path, effective)
        run.note(Passed(frame.key, run.clock(), digest, input=effective, shown=shown))
        return Through(values, None)
    before = denied_before(run.ledger, target.name, call, effective)
    if before is not None:
        return _denied(frame, *before)
    standing = await _standing(frame, gate)
    if standing is not None:
        return await _by_standing(frame, target, standing, values)
    return await _open(frame, target, verdict, call)


async def _open(
    frame: Frame,
    target: Runnable,
    verdict: Verdict,
    call: str,
    round: int = 0,
    reopened: dict[str, Any] | None = None,
) -> Outcome:
    """Ask a person. What is shown is made once, here."""
    run, gate = frame.run, _gate(frame, target)
    effective, shown = frame.effective or {}, frame.input

    def values() -> dict[str, Any]:
        return target._reread(json_value(effective))[0]

    try:
        told = {
            "prompt": await gate.prompt(verdict, values),
            "description": await gate.description(verdict, values),
            "ui": await gate.ui(shown),
            "preview": await gate.preview(values),
            "metadata": verdict.metadata,
        }
        schema = gated_schema(json_value(target.input_schema), effective, shown)
    except BaseException as error:
        return _policy_failed(frame, error)
    told = scrub(told, secrets(effective, shown))
    at = run.clock()
    with run.lock:
        count = run.ledger.count_equal_gates(frame.path, effective, frame.tool_call_id)
        fact = Gated(
            child(frame.key, GATE),
            approval_id(frame.path, effective, frame.tool_call_id, count),
            run.id,
            frame.path,
            frame.call_id,
            gate.kind,
            frame.name,
            shown,
            at,
            run.parent_id,
            frame.parent_call_id,
            frame.kind,
            frame.tool_call_id,
            schema,
            None if gate.expires_in is None else at + gate.expires_in,
            gate.audience,
            count,
            round,
            effective if gate.redacts else None,
            gate_digest(frame.path, effective, told["preview"]),
            call,
            redacts=gate.redacts,
            grantable=gate.grantable,
            reopened=reopened,
            **told,
        )
        if frame.parent is not None:  # with the gate: the call is known again, in tasks too, if it is cut off here
            run.record(frame.called())
        run.open_question(frame, fact)
    return _paused(fact)


async def _reopen(
    frame: Frame, target: Runnable, gate: Gated | None, input: dict[str, Any], why: str, changed: Sequence[str]
) -> Outcome:
    """The decision that is there is not about what would run: ask again, and say what changed."""
    show(frame, target, input)
    before = gate.id if gate is not None else None
    reopened = without_secrets(frame, {"approval_id": before, "reason": why, "changed": list(changed)})
    verdict = Verdict(True)
    if gate is not None and gate.metadata is not None:
        verdict = Verdict(True, metadata=gate.metadata)
    call = gate.call if gate is not None else call_digest(target.name, input)
    return await _open(frame, target, verdict, call, gate.round + 1 if gate is not None else 1, reopened)


# -- standing decisions ------------------------------------------------------------------------------------------------


async def _standing(frame: Frame, gate: Gate) -> Standing | None:
    """The standing decision that decides this call, with its use of it recorded."""
    run = frame.run
    known = [*standing_in(run.ledger), *await _of_earlier_turns(run)]
    for one in applying(known, frame.path, gate.grantable, gate.audience, run.clock()):
        use = Used(one.gate.id, run.execution_id, frame.key, run.clock())
        try:
            records = await wait(run.store.append(one.grant.run_id, encode((use,))))
        except RunNotFound:  # erased meanwhile, and the decision with it
            continue
        made_in = Ledger.of(decode_all(records))
        _take_note(run, made_in)
        if decides(made_in, one.gate.id, use):
            return one
    return None


def _take_note(run: Run, made_in: Ledger) -> None:
    """What became meanwhile of the standing decisions of an execution."""
    run_id = made_in.root.run_id
    if run_id == run.execution_id:
        run.ledger.note_standing(made_in)
    else:
        others = [one for one in run.standing or () if one.grant.run_id != run_id]
        run.standing = [*others, *standing_in(made_in)]


async def _of_earlier_turns(run: Run) -> Sequence[Standing]:
    """Those of the conversation before this execution; read once in a run."""
    if run.standing is None:
        found = await _read_earlier_turns(run)
        if run.standing is None:  # a call beside this one may have read them meanwhile, and used some
            run.standing = found
    return run.standing


async def _read_earlier_turns(run: Run) -> list[Standing]:
    parent_id = run.ledger.root.parent_run_id
    if parent_id is None:
        return []
    try:
        records = await wait(run.store.history(parent_id))
    except RunNotFound:  # dropped meanwhile, and its decisions with it
        return []
    return [standing for one in records for standing in standing_in(Ledger.of(decode_all(one)))]


async def _by_standing(frame: Frame, target: Runnable, standing: Standing, values: dict[str, Any]) -> Through | Outcome:
    run, grant = frame.run, standing.grant
    if not grant.approved:
        return _denied(frame, standing.gate, standing.settled)
    effective = frame.effective or {}
    pointer = {"run_id": grant.run_id, "approval_id": grant.id}
    shown = frame.input if _gate(frame, target).redacts else None
    digest = gate_digest(frame.path, effective)
    passed = Passed(frame.key, run.clock(), digest, None, pointer, effective, shown)
    run.record(passed)
    await run.flush()
    frame.count("approvals:granted")
    return Through(values, audit(standing.gate, standing.settled, passed, frame.input, frame.input))


# -- ends --------------------------------------------------------------------------------------------------------------


def _paused(gate: Gated) -> Outcome:
    return Outcome(pause_status(gate), pause_output(gate), asked=(gate,))


def _denied(frame: Frame, gate: Gated, settled: Settled) -> Outcome:
    reason = decision(settled).fields.get("reason")
    output = denial_output(gate.id, reason)
    told = audit(gate, settled, None, frame.input, None)
    return Outcome(RunStatus("cancelled", "approval_denied", reason), output, output, DENIED, audit=told)


def _policy_failed(frame: Frame, error: BaseException) -> Outcome:
    if isinstance(error, KeyboardInterrupt):
        raise error
    if isinstance(error, asyncio.CancelledError) and was_cancelled(frame.run):
        frame.close()
        tell_stopped(frame)
        raise error
    told = describe(error)
    failure = CallFailed("approval_policy_error", f"{told['type']}: {told['message']}", "ApprovalPolicyError")
    return _failed(frame, failure)


def _failed(frame: Frame, error: Exception) -> Outcome:
    return failed(frame, error, error.reason if isinstance(error, CallFailed) else "invalid_input")


def _reread(frame: Frame, target: Runnable, input: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What is recorded, as the handler takes it today and as JSON; refused where it does not fit any more."""
    try:
        return target._reread(json_value(input))
    except InvalidInput as error:
        what = without_secrets(frame, f"its recorded input does not fit its parameters any more: {error}")
        raise frame.mismatch(what) from None


def _recorded_input(frame: Frame) -> dict[str, Any] | None:
    """The input with which the gate of this call was reached before."""
    ledger = frame.run.ledger
    gate = _recorded(ledger, frame.key)
    if gate is not None:
        return gate.proposed
    passed = ledger.passed(frame.key)
    return passed.input if passed is not None else None


def _gate(frame: Frame, target: Runnable) -> Gate:
    gate = gate_of_call(target, frame.run.ledger, frame.key)
    assert gate is not None
    return gate
