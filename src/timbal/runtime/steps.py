"""A `@step` in a handler: recorded at most once, and never run again once it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core.facts import Returned
from ..core.ids import child, digest
from ..core.recall import Held
from ..errors import StepFailed
from ..state import Pause, Scope, Step, current, home
from ..types.json_value import json_value
from .failures import describe, revive
from .schema import return_codec

if TYPE_CHECKING:
    from .frame import Frame


def step(call: Frame, step: Step) -> Any:
    """A sync step: its recorded result, or perform and record it, blocking."""
    scope = call.enter()
    name = _step_name(step)
    place = call.place(scope, "step", name, lambda: _step_digest(step, name))
    if isinstance(place, Held):
        what = _step_digest(step, name)
        if place.segment not in call.cleared:
            # A sync step can't wait. It ends this execution of the handler; the next one comes when it can be told.
            call.held = [*call.held, ("step", name, what)]
            raise call.latch(scope, Pause())
        place = call.recall.fresh("step", name, what)
    key = child(call.key, place.segment)
    frame, replay = _begin(call, key, name)
    if replay is not None:
        return _replay(call, replay, step)
    call.set_off()
    token = current.set(frame)
    try:
        frame.home = home()
        fact, value = _returned(call, frame, step, step.function(*step.args, **step.kwargs))
        call.run.record(fact)
        call.run.flush_here()
    except Exception as error:
        raise _failed(call, frame, error, scope) from None
    except Pause:
        call.adopt(frame, scope)
        raise
    finally:
        current.reset(token)
        call.left()
    return value


async def step_async(call: Frame, step: Step) -> Any:
    """An async step: its recorded result, or perform and record it."""
    scope = call.enter()
    name = _step_name(step)
    what = lambda: _step_digest(step, name)  # noqa: E731
    segment = await call.sure(call.place(scope, "step", name, what), "step", name, what)
    frame, replay = _begin(call, child(call.key, segment), name)
    if replay is not None:
        return _replay(call, replay, step)
    if scope is call:
        return await _perform_step(call, frame, step, scope)
    return await call.shielded(_perform_step(call, frame, step, scope))


async def _perform_step(call: Frame, frame: Frame, step: Step, scope: Scope) -> Any:
    call.set_off()
    token = current.set(frame)
    try:
        frame.home = home()
        fact, value = _returned(call, frame, step, await step.function(*step.args, **step.kwargs))
        call.run.record(fact)
        await call.run.flush()
    except Exception as error:
        raise _failed(call, frame, error, scope) from None
    except Pause:
        call.adopt(frame, scope)
        raise
    finally:
        current.reset(token)
        call.left()
    return value


def _begin(call: Frame, key: str, name: str) -> tuple[Frame, Returned | None]:
    recorded = call.run.ledger.outcomes.get(key)
    called = call.run.ledger.calls.get(key)
    from .frame import Frame

    frame = Frame(call.run, key, call.path, name, "step", called.call_id if called else call.run.new_id(), call)
    frame.skip = called.streamed if called else 0
    frame.t0 = call.run.clock()
    return frame, recorded


def _returned(call: Frame, frame: Frame, step: Step, result: Any) -> tuple[Returned, Any]:
    """The fact of a step's result, and the result as it is read back from it."""
    frame.closed = True
    if frame.asked:
        raise Pause
    codec = return_codec(step.function)
    try:
        output = codec.dump(result) if codec else json_value(result, "the result")
    except Exception as error:
        raise TypeError(f"step {frame.name!r}: {error}") from None
    fact = Returned(frame.key, frame.call_id, frame.name, "step", frame.t0, call.run.clock(), output)
    return fact, codec.load(output) if codec else output


def _failed(call: Frame, frame: Frame, error: Exception, scope: Scope) -> Exception:
    frame.closed = True
    told = describe(error, with_class=True)
    fact = Returned(frame.key, frame.call_id, frame.name, "step", frame.t0, call.run.clock(), error=told)
    call.fail(fact, error, scope)
    return error


def _replay(call: Frame, recorded: Returned, step: Step) -> Any:
    if recorded.error is not None:
        error = revive(recorded.error) or StepFailed(recorded.error["type"], recorded.error["message"])
        call.failed_before(recorded, error)
        raise error
    codec = return_codec(step.function)
    return codec.load(recorded.output) if codec else recorded.output


def _step_name(step: Step) -> str:
    return getattr(step.function, "__name__", type(step.function).__name__)


def _step_digest(step: Step, name: str) -> str:
    if step.key is not None:
        return step.key(*step.args, **step.kwargs)
    try:
        return digest(json_value([list(step.args), step.kwargs], f"the arguments of step {name!r}"))
    except TypeError as error:
        raise TypeError(f"{error}. In tasks, a step is known by its arguments: name it with @step(key=...)") from None
