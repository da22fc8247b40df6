"""Perform one call, or give what is recorded of it: the one place where work happens."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NamedTuple

from ..core.facts import AnyAsked, Returned
from ..core.ids import child
from ..core.narrate import pause_output, pause_status
from ..core.outputs import DENIED
from ..core.redaction import scrub
from ..core.transcript import output_value, resolve_output
from ..errors import StoreError
from ..state import Halt, Pause, Scope, current, home
from ..types.events import StartEvent
from ..types.run_status import RunStatus, success
from .failures import describe, hidden_from, public, tells
from .frame import Frame
from .run import Run, Stopped, output_event
from .schema import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..runnables.base import Runnable
    from ..types.content import ToolUseContent
    from ..types.events import Event

    Tell = Callable[[Event], None]


class CallFailed(Exception):
    """A call ends with an error that has a reason of its own (contract section 3)."""

    def __init__(self, reason: str, message: str, type: str | None = None) -> None:
        self.reason, self.message, self.type = reason, message, type
        super().__init__(message)


class Outcome(NamedTuple):
    """How a call came out: `output` as Python sees it, `dumped` with its `form` as the record keeps it."""

    status: RunStatus
    output: Any = None
    dumped: Any = None
    form: str | None = None
    error: dict[str, Any] | None = None
    cause: BaseException | None = None
    asked: tuple[AnyAsked, ...] = ()
    #: What a gate tells of the call: `metadata.approval` of its OUTPUT.
    audit: dict[str, Any] | None = None

    @property
    def paused(self) -> bool:
        return bool(self.asked)


async def call(
    parent: Frame, target: Runnable | None, use: ToolUseContent, segment: str, missing: str, *, alone: bool
) -> Outcome:
    """One of an agent's tool calls, in the agent's task or, if not `alone`, one of its own; always recorded.

    `missing` is what to say where there is no such tool.
    """
    name, arguments = use.name, use.input
    run = parent.run
    key = child(parent.key, segment)
    done = run.ledger.outcomes.get(key)
    if done is not None:
        return replay(run, done)
    frame = _frame_of(parent, key, name, target.kind if target is not None else "Tool")
    frame.tool_call_id = use.id
    if not alone:
        frame.home = home()
    outcome = resting(frame)
    if outcome is not None:
        return outcome
    if target is not None:
        outcome = await perform(frame, target, arguments)
    else:
        frame.t0, frame.input = run.clock(), arguments
        outcome = refused(frame, CallFailed("tool_not_found", missing, "ToolNotFound"), "tool_not_found")
    if outcome.paused:
        await rest(frame, outcome)
        return outcome
    run.record(_returned(frame, outcome))
    if (work := run.commit()) is not None:
        await work
    tell_output(frame, outcome)
    return outcome


async def nested(
    parent: Frame, scope: Scope, target: Runnable, segment: str, arguments: dict[str, Any], tap: Tell
) -> Outcome:
    """A runnable called inside a handler: as `call`, but a failure is recorded only when the handler goes on."""
    run = parent.run
    key = child(parent.key, segment)
    frame = _frame_of(parent, key, target.name, target.kind)
    frame.home = home()
    frame.tell = _both(parent.tell, tap)
    done = run.ledger.outcomes.get(key)
    if done is not None:
        outcome = replay(run, done)
        outcome = outcome._replace(output=target._revive(outcome.output, outcome.form))
        tap(_silent_output(frame, done, outcome))
        return outcome
    if (still := resting(frame)) is not None:
        return still
    outcome = await perform(frame, target, arguments)
    if outcome.paused:
        await rest(frame, outcome)
    elif outcome.error is not None:
        fact = _returned(frame, outcome)
        if outcome.cause is not None:
            fact = fact._replace(error=describe(outcome.cause, with_class=True))
        cause = outcome.cause or RuntimeError(outcome.error["message"])
        parent.fail(fact, cause, scope)
        tell_output(frame, outcome)
    else:
        run.record(_returned(frame, outcome))
        await run.flush()
        tell_output(frame, outcome)
    return outcome


def _both(one: Tell, other: Tell) -> Tell:
    def tell(event: Event) -> None:
        one(event)
        other(event)

    return tell


def _frame_of(parent: Frame, key: str, name: str, kind: str) -> Frame:
    run = parent.run
    called = run.ledger.calls.get(key)
    if called is None:
        return Frame(run, key, f"{parent.path}.{name}", name, kind, run.new_id(), parent)
    frame = Frame(run, key, f"{parent.path}.{name}", name, kind, called.call_id, parent)
    frame.skip = called.streamed
    return frame


def replay(run: Run, done: Returned) -> Outcome:
    """What a recorded call gave."""
    if done.error is not None:
        return Outcome(RunStatus("error", done.reason, done.error["message"]), error=public(done.error))
    status = success(done.reason) if done.form != DENIED else RunStatus("cancelled", done.reason, done.output["reason"])
    dumped, form = resolve_output(run.ledger, done.key, done.output, done.form)
    return Outcome(status, output_value(run.ledger, done.key, done.output, done.form), dumped, form)


def resting(frame: Frame) -> Outcome | None:
    """A call that waits, and in which nothing was answered since it ran, is left alone."""
    run = frame.run
    if frame.key not in run.ledger.calls or not run.ledger.at_rest(frame.key):
        return None
    frame.close()
    asked = tuple(q.asked for q in run.ledger.open_questions if (q.call + "/").startswith(frame.key + "/"))
    return Outcome(pause_status(asked[0]), pause_output(asked[0]), asked=asked)


async def perform(frame: Frame, target: Runnable, arguments: dict[str, Any]) -> Outcome:
    """START, and the handler up to its end: what came out is for the caller to record and tell."""
    run = frame.run
    if run.halt is not None:
        raise Halt(str(run.halt))
    frame.t0 = run.clock()
    if target._gate is not None or run.gated:
        from .gated import is_gated, perform_gated

        if is_gated(frame, target):
            return await perform_gated(frame, target, arguments)
    try:
        values, frame.input = target._prepare(arguments)
    except Exception as error:
        frame.input = arguments
        return refused(frame, error, "invalid_input" if isinstance(error, InvalidInput) else None)
    tell_start(frame)
    return await execute(frame, target, values)


def refused(frame: Frame, error: Exception, reason: str | None) -> Outcome:
    """A call whose handler can't even be started."""
    tell_start(frame)
    if frame.key in frame.run.ledger.calls:
        raise frame.mismatch(f"it had begun, and now can't be called: {error}")
    frame.close()
    return failed(frame, error, reason)


async def execute(frame: Frame, target: Runnable, values: dict[str, Any]) -> Outcome:
    """Run the handler under its frame."""
    run = frame.run
    if target.kind == "Tool" and (work := run.commit()) is not None:
        await work
    token = current.set(frame)
    error: BaseException | None = None
    value: Any = None
    limit = frame.limit = None if target.timeout is None else asyncio.timeout(target.timeout)
    try:
        if limit is None:
            value = await target._handle(frame, values)
        else:
            async with limit:
                value = await target._handle(frame, values)
    except BaseException as problem:
        error = problem
        if isinstance(problem, asyncio.CancelledError) and was_cancelled(run):
            frame.close()
            tell_stopped(frame)
            raise
    finally:
        current.reset(token)
    frame.ended = True
    if limit is not None and limit.expired():
        frame.closed = True
        error = CallFailed("timeout", f"{target.name} took longer than {target.timeout} s", "TimeoutError")
    if (frame.unsure or frame.held or not frame.close_if_idle()) and run.halt is None:
        await frame.settle(error)
        if frame.cleared and frame.held and not frame.asked:
            return await execute(frame.again(), target, values)
    frame.close()
    if run.halt is not None:
        if isinstance(run.halt, StoreError):
            raise run.halt
        tell_stopped(frame)
        raise Halt(str(run.halt)) from None
    if frame.asked:
        if frame.failures:
            frame.keep_caught_failures(error)
        error = None  # its traceback holds this frame
        first = frame.asked[0]
        return Outcome(pause_status(first), pause_output(first), asked=tuple(_unique(frame.asked)))
    if error is not None:
        return _ended_by(frame, error)
    return target._conclude(frame, value)


def was_cancelled(run: Run) -> bool:
    """Whether a CancelledError is the run's own, and not one that the handler's code made."""
    if run.halt is not None:
        return True
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _ended_by(frame: Frame, error: BaseException) -> Outcome:
    if isinstance(error, CallFailed):
        return failed(frame, error, error.reason)
    if isinstance(error, Pause | Halt):
        error = RuntimeError("a handler raised the signal of a question that is no longer open")
    if isinstance(error, KeyboardInterrupt):
        raise error
    frame.reopen_failures(error)
    return failed(frame, error, None)


def failed(frame: Frame, error: BaseException, reason: str | None) -> Outcome:
    """The outcome of a call that ended with an exception."""
    hidden = hidden_from(frame)
    told = describe(error, hidden=hidden)
    if isinstance(error, CallFailed):
        message = scrub(error.message, hidden)
        told = {"type": error.type or reason or "Error", "message": message, "traceback": None}
    elif isinstance(error, InvalidInput):
        told["traceback"] = None
    cause = error if not isinstance(error, CallFailed) else error.__cause__
    if frame.parent is None and cause is not None and tells(cause, hidden):
        cause = None  # `raise_for_status()` raises what the event tells
    return Outcome(RunStatus("error", reason, told["message"]), error=told, cause=cause)


async def rest(frame: Frame, outcome: Outcome) -> None:
    """A call has paused: note that it is under way, and tell at once if other work keeps the run going."""
    run = frame.run
    fact = frame.called()
    if run.ledger.calls.get(frame.key) != fact:
        run.record(fact)
    run.hold(frame.tell, output_event(frame, outcome.status, outcome.output, None, run.clock(), {}))
    if run.busy > 1:
        await run.flush()


def _returned(frame: Frame, outcome: Outcome) -> Returned:
    status = outcome.status
    return Returned(
        frame.key,
        frame.call_id,
        frame.name,
        frame.kind,
        frame.t0,
        frame.run.clock(),
        outcome.dumped,
        outcome.form,
        outcome.error,
        status.reason,
        frame.usage,
    )


def tell_start(frame: Frame) -> None:
    parent = frame.parent
    frame.tell(
        StartEvent._of(
            {
                "type": "START",
                "run_id": frame.run.id,
                "parent_run_id": frame.run.parent_id,
                "path": frame.path,
                "call_id": frame.call_id,
                "parent_call_id": None if parent is None else parent.call_id,
                "t0": frame.t0,
                "runnable_name": frame.name,
                "runnable_type": frame.kind,
                "tool_call_id": frame.tool_call_id,
                "input": frame.input,
            }
        )
    )


def tell_output(frame: Frame, outcome: Outcome) -> None:
    """OUTPUT of a call that has ended."""
    metadata = {} if outcome.audit is None else {"approval": outcome.audit}
    status, at = outcome.status, frame.run.clock()
    frame.tell(output_event(frame, status, outcome.output, outcome.error, at, metadata, outcome.cause))


def _silent_output(frame: Frame, done: Returned, outcome: Outcome) -> Any:
    """The OUTPUT that the handler gets for a recorded call; nobody else hears it again."""
    frame.t0, frame.call_id, frame.usage = done.t0, done.call_id, done.usage
    cause = None
    if done.error is not None:
        from .failures import revive

        cause = revive(done.error)
    return output_event(frame, outcome.status, outcome.output, outcome.error, done.t1, {}, cause)


def tell_stopped(frame: Frame) -> None:
    """OUTPUT of a call that the end of its run cut off; how far it had streamed is noted."""
    if frame.emitted:
        frame.run.record(frame.called())
    halt = frame.run.halt
    if frame.parent is None or isinstance(halt, StoreError):
        return
    if isinstance(halt, Stopped) or halt is None:
        final = isinstance(halt, Stopped) and halt.final
        status = RunStatus("cancelled", "cancelled" if final else "interrupted", str(halt) if halt else None)
        frame.tell(output_event(frame, status, None, None, frame.run.clock(), {}))
    else:
        status = RunStatus("error", "replay_mismatch", str(halt))
        frame.tell(output_event(frame, status, None, public(describe(halt)), frame.run.clock(), {}))


def _unique(asked: Sequence[AnyAsked]) -> list[AnyAsked]:
    return list({fact.id: fact for fact in asked}.values())
