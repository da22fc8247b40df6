"""One execution of a handler: its operations are recognised, performed once, and recorded."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakSet

from ..core.facts import Asked, Called, Reopened, Returned
from ..core.ids import child, digest, interaction_id
from ..core.recall import Held, Mismatch, Recall, Recalled
from ..errors import InteractionExpired, ReplayMismatch, StepFailed
from ..state import Ask, Branch, Halt, Pause, Scope, Step, current, home
from ..types.approval import Default
from ..types.events import DeltaEvent
from ..types.json_value import json_value
from .failures import describe, revive
from .schema import codec_of, return_codec

if TYPE_CHECKING:
    from ..types.events import Event
    from .run import Run

#: How long an operation that can't be told apart waits while nothing else of its call moves (contract section 4).
HOLD_SECONDS = 1.0
#: The longest that a question may wait.
MOST_SECONDS = 100 * 365 * 24 * 3600


class Failure(NamedTuple):
    """An operation that raised; it is recorded when the handler goes on all the same."""

    fact: Returned
    error: BaseException
    scope: Scope


class Unsure(NamedTuple):
    """A `suspend()` in a task that can't be told yet; `what` is its key or the digest of its payload."""

    ask: Ask
    what: str
    payload: dict[str, Any]


class Frame(Scope):
    """Everything one execution of a handler (or of an agent's loop, or of a step) needs while it runs.

    It is also the `RunContext` of that handler.
    """

    #: What handlers rarely need is made when it is needed; until then these stand for it.
    parent_scope: Scope | None = None
    tool_call_id: str | None = None
    #: Gives an event to the run's listener, and to whoever iterates a call on the way up.
    tell: Callable[[Event], None]
    t0 = 0
    input: Any = None
    #: Unanswered questions that this execution ran into, here or in a call inside it.
    asked: list[Asked] | tuple[()] = ()
    #: Suspends in tasks that match no record while records of their name are unclaimed.
    unsure: list[Unsure] | tuple[()] = ()
    #: Sync steps in tasks that match no record while records of their name are unclaimed, and those of the execution
    #: before for which that was cleared up.
    held: list[tuple[str, str, str]] | tuple[()] = ()
    cleared: frozenset[str] = frozenset()
    #: Operations that failed since the last one began, and those whose failure is recorded.
    failures: list[Failure] | tuple[()] = ()
    recorded_failures: list[Failure] | tuple[()] = ()
    #: Operations in flight: they are recorded before this call ends, whatever becomes of its tasks.
    running = 0
    waiters: list[asyncio.Future[None]] | tuple[()] = ()
    #: Grows with everything that happens in this call.
    moved = 0
    closed = False
    #: The time that it has, where it is limited.
    limit: asyncio.Timeout | None = None
    #: Whether the handler's own code has come to its end; what it started may still be at work.
    ended = False
    #: Deltas that this execution gave, and how many of them an earlier one had told.
    emitted = 0
    skip = 0
    usage: dict[str, int] | None = None
    #: Tasks that were there when the first question in a task stayed unanswered, and the signals of such questions.
    snapshot: WeakSet[Any] | None = None
    signals: list[BaseException] | tuple[()] = ()
    _recall: Recall | None = None
    _timer: Any = None

    def __init__(self, run: Run, key: str, path: str, name: str, kind: str, call_id: str, parent: Frame | None) -> None:
        self.run = run
        self.key = key
        self.path = path
        self.name = name
        self.kind = kind
        self.call_id = call_id
        self.parent = parent
        self.pausing = False
        if parent is None:
            self.home = run.task
            self.tell = run.stream.put
        else:
            self.home = parent.home
            self.tell = parent.tell
            self.tool_call_id = parent.tool_call_id

    @property
    def recall(self) -> Recall:
        """The operations that were recorded of this call."""
        if self._recall is None:
            self._recall = Recall(self.run.ledger.operations.get(self.key))
        return self._recall

    def check_complete(self) -> None:
        """The handler returns; raises `Halt` when it left recorded operations out."""
        if self.key in self.run.ledger.operations:
            try:
                self.recall.check_complete()
            except Mismatch as problem:
                raise self.mismatch(str(problem)) from None

    # -- RunContext --------------------------------------------------------------------------------------------------

    @property
    def run_id(self) -> str:
        return self.run.id

    @property
    def parent_run_id(self) -> str | None:
        return self.run.parent_id

    @property
    def parent_call_id(self) -> str | None:
        return self.parent.call_id if self.parent is not None else None

    @property
    def labels(self) -> dict[str, str]:
        return self.run.labels

    def emit(self, data: Any) -> None:
        self.delta({"type": "custom", "data": json_value(data, "data")})

    def delta(self, item: dict[str, Any]) -> None:
        """Tell the listeners of a piece of output, unless an earlier execution of this call has told it."""
        if self.kind == "step" and self.parent is not None:
            self.parent.delta(item)
            return
        if self.pausing:  # it swallowed the signal of a question: what it says now, it will not have said
            return
        self.emitted += 1
        if self.emitted > self.skip:
            run, parent = self.run, self.parent
            self.tell(
                DeltaEvent._of(
                    {
                        "type": "DELTA",
                        "run_id": run.id,
                        "parent_run_id": run.parent_id,
                        "path": self.path,
                        "call_id": self.call_id,
                        "parent_call_id": None if parent is None else parent.call_id,
                        "item": {"id": self.call_id, **item},
                    }
                )
            )

    def idempotency_key(self) -> str:
        return digest([self.run.execution_id, self.key])

    # -- events ------------------------------------------------------------------------------------------------------

    def count(self, what: str, n: int = 1) -> None:
        """Add to this call's usage; it counts for every call that this one is part of."""
        frame: Frame | None = self
        while frame is not None:
            if frame.usage is None:
                frame.usage = {}
            frame.usage[what] = frame.usage.get(what, 0) + n
            frame = frame.parent

    # -- operations: common ------------------------------------------------------------------------------------------

    def _enter(self) -> Scope:
        """The scope of the code that asks for an operation; raises when it may not go on."""
        run = self.run
        if run.halt is not None:
            raise Halt(str(run.halt))
        scope = self._scope()
        if scope.pausing:
            raise Pause
        if self.timed_out():
            raise RuntimeError(f"{self.path} has run out of time; its handler can't go on with the run")
        if self.closed:
            if self.asked:
                raise Pause
            raise RuntimeError(
                f"the handler of {self.path} has returned; a task that it left running can't go on with the run"
            )
        return scope

    def timed_out(self) -> bool:
        """Whether this call, or one that it is part of, has run out of time."""
        frame: Frame | None = self
        while frame is not None:
            if frame.limit is not None and frame.limit.expired():
                return True
            frame = frame.parent
        return False

    def _scope(self) -> Scope:
        scope = current.get()
        assert isinstance(scope, Scope)
        here = home()
        if scope.home is None or scope.home is here or scope.home == here:
            return scope
        scope = Branch(self, scope, here)
        current.set(scope)
        if self.snapshot is not None:
            scope.pausing = self._came_after_the_signal(here)
        return scope

    def _came_after_the_signal(self, here: object) -> bool:
        """Whether the code of a new task or thread was started by code that has caught the signal of a question."""
        if not isinstance(here, int):
            return here not in (self.snapshot or ()) or self._signal_went_through(_stack())
        return any(self._signal_went_through(_awaiting(task)) for task in self.snapshot or ())

    def _signal_went_through(self, stack: set[Any]) -> bool:
        for signal in self.signals:
            trace = signal.__traceback__
            while trace is not None:
                if trace.tb_frame in stack and not _is_ours(trace.tb_frame):
                    return True
                trace = trace.tb_next
        return False

    def _place(self, scope: Scope, kind: str, name: str, what: Callable[[], str]) -> Recalled | Held:
        """Recognise an operation; raises `Halt` when the handler does not follow what was recorded."""
        if self.failures:
            self._record_failures(scope)
        self.moved += 1
        if scope is not self:
            return self.recall.spawned(kind, name, what())
        try:
            return self.recall.own(kind, name)
        except Mismatch as error:
            raise self.mismatch(str(error)) from None

    def mismatch(self, what: str) -> Halt:
        """End the run: the code does not follow the ledger."""
        error = ReplayMismatch(
            f"{self.path}: {what}. The code was changed while this run was waiting, or does not do the same each time; "
            "nothing is lost: put it right and go on with resume={}"
        )
        self.run.stop_with(error)
        return Halt(str(error))

    def _refuse_unsure(self, kind: str, name: str, unclaimed: tuple[str, ...]) -> Halt:
        return self.mismatch(
            f"in a task of its own it asked for {kind} {name!r} with arguments that were not recorded, while "
            f"{len(unclaimed)} recorded {'one was' if len(unclaimed) == 1 else 'ones were'} not asked for; "
            "where arguments differ each time, name the operation with key="
        )

    def _record_failures(self, scope: Scope) -> None:
        """The code in `scope` goes on after something failed: in it, in tasks it started, or in the handler itself.

        What failed in the handler's own task was caught at once, or has ended the handler.
        """
        self._keep_failures(lambda one: _started(scope, one.scope) or (one.scope is self and not self.ended))

    def keep_caught_failures(self, error: BaseException | None) -> None:
        """The handler has paused, and ended with `error`: what is not part of that was caught."""
        causes = _tree(error) if error is not None else []
        self._keep_failures(lambda one: all(one.error is not cause for cause in causes))

    def _keep_failures(self, caught: Callable[[Failure], bool]) -> None:
        left = []
        for failure in self.failures:
            if caught(failure):
                self.run.record(failure.fact)
                self.recorded_failures = [*self.recorded_failures, failure]
            else:
                left.append(failure)
        self.failures = left

    def reopen_failures(self, error: BaseException) -> None:
        """The handler ended with `error`: what failed with it in a task was not caught after all, and is open again."""
        causes = _tree(error) if self.recorded_failures else []
        for failure in self.recorded_failures:
            if failure.scope is not self and any(failure.error is cause for cause in causes):
                self.run.record(Reopened(failure.fact.key))

    # -- suspend -----------------------------------------------------------------------------------------------------

    def suspend(self, ask: Ask) -> Any:
        scope = self._enter()
        payload = _payload(ask)
        if scope is self:
            place = self._place(scope, "suspend", ask.kind, str)
        else:
            place = self._place(scope, "suspend", ask.kind, lambda: ask.key or digest(payload))
        if isinstance(place, Held):
            # A suspend() can't wait. It would pause anyway, so it pauses, and is opened once the others are claimed.
            unsure = Unsure(ask, ask.key or digest(payload), payload)
            self.unsure = [*self.unsure, unsure]
            raise self.latch(scope, Pause())
        key = child(self.key, place.segment)
        question = self.run.ledger.question_at(key)
        if question is None:
            raise self._ask(scope, key, ask, payload)
        if question.settled is None:
            self.asked = [*self.asked, question.asked]
            raise self.latch(scope, Pause())
        return self._answered(scope, key, ask, question.asked, question.settled)

    def _answered(self, scope: Scope, key: str, ask: Ask, asked: Asked, settled: Any) -> Any:
        if settled.state == "expired" and asked.on_expiry == "raise":
            raise InteractionExpired(f"nobody answered the question {asked.id} of {asked.path} in time")
        if settled.state not in ("answered", "expired") or (asked.on_expiry == "cancel" and settled.state == "expired"):
            raise self.latch(scope, Pause())
        if ask.response_type is None:
            return settled.value
        from pydantic import ValidationError

        try:
            return codec_of(ask.response_type).load(settled.value)
        except ValidationError as error:
            problem = "; ".join(f"{'.'.join(map(str, e['loc'])) or 'answer'}: {e['msg']}" for e in error.errors())
            raise self._ask(scope, key, ask, {**asked.payload, "error": problem}, asked.round + 1) from None

    def _ask(self, scope: Scope, key: str, ask: Ask, payload: dict[str, Any], round: int = 0) -> Pause:
        """Open a question. It becomes durable, then public, when the call pauses."""
        run, call = self.run, self
        while call.kind == "step" and call.parent is not None:
            call = call.parent
        schema = ask.response_schema
        if ask.response_type is not None and schema is None:
            schema = codec_of(ask.response_type).json_schema
        at = run.clock()
        with run.asking:
            fact = self._question(call, key, ask, payload, schema, at, round)
            run.open_question(self, fact)
            self.asked = [*self.asked, fact]
        return self.latch(scope, Pause())

    def _question(
        self,
        call: Frame,
        key: str,
        ask: Ask,
        payload: dict[str, Any],
        schema: dict[str, Any] | None,
        at: int,
        round: int,
    ) -> Asked:
        run = self.run
        count = run.ledger.count_equal(call.path, payload, call.tool_call_id)
        return Asked(
            key,
            interaction_id(call.path, payload, call.tool_call_id, count),
            run.id,
            call.path,
            call.call_id,
            ask.kind,
            call.name,
            payload,
            at,
            run.parent_id,
            call.parent_call_id,
            call.kind,
            call.tool_call_id,
            schema,
            ask.response_type is not None,
            None if ask.expires_in is None else at + _milliseconds(ask.expires_in),
            {"default": json_value(ask.on_expiry.value, "on_expiry")}
            if isinstance(ask.on_expiry, Default)
            else ask.on_expiry,
            None if ask.audience is None else list(ask.audience),
            count,
            round,
        )

    def latch(self, scope: Scope, signal: Pause) -> Pause:
        """From here on this task, and those that started it, only pause, whatever they do with the signal.

        Tasks don't know their parents. One that does an operation is known by its scope; one that did none yet is known
        by having come after the signal, or by having the signal's traceback on its stack.
        """
        step: Scope | None = scope
        while step is not None:
            step.pausing = True
            step = step.parent_scope
        if scope is not self:
            self.signals = [*self.signals, signal]
            if self.snapshot is None:
                self.snapshot = WeakSet(asyncio.all_tasks(self.run.loop))
        if self._timer is None and not self.closed:
            self._timer = self.run.unless_ended_soon(self)
        return signal

    # -- steps -------------------------------------------------------------------------------------------------------

    def step(self, step: Step) -> Any:
        scope = self._enter()
        name = _step_name(step)
        place = self._place(scope, "step", name, lambda: _step_digest(step, name))
        if isinstance(place, Held):
            what = _step_digest(step, name)
            if place.segment not in self.cleared:
                # A sync step can't wait. It ends this execution of the handler; the next one comes when it can be told.
                self.held = [*self.held, ("step", name, what)]
                raise self.latch(scope, Pause())
            place = self.recall.fresh("step", name, what)
        key = child(self.key, place.segment)
        frame, replay = self._begin(key, name)
        if replay is not None:
            return self._replay(replay, step)
        token = current.set(frame)
        self.running += 1
        try:
            frame.home = home()
            fact, value = self._returned(frame, step, step.function(*step.args, **step.kwargs))
            self.run.record(fact)
            self.run.journal.flush_here()
        except Exception as error:
            raise self._failed(frame, error, scope) from None
        except Pause:
            self.adopt(frame, scope)
            raise
        finally:
            current.reset(token)
            self.left()
        return value

    async def step_async(self, step: Step) -> Any:
        scope = self._enter()
        name = _step_name(step)
        what = lambda: _step_digest(step, name)  # noqa: E731
        segment = await self.sure(self._place(scope, "step", name, what), "step", name, what)
        frame, replay = self._begin(child(self.key, segment), name)
        if replay is not None:
            return self._replay(replay, step)
        if scope is self:
            return await self._perform_step(frame, step, scope)
        return await self.shielded(self._perform_step(frame, step, scope))

    async def _perform_step(self, frame: Frame, step: Step, scope: Scope) -> Any:
        token = current.set(frame)
        self.running += 1
        try:
            frame.home = home()
            fact, value = self._returned(frame, step, await step.function(*step.args, **step.kwargs))
            self.run.record(fact)
            await self.run.flush()
        except Exception as error:
            raise self._failed(frame, error, scope) from None
        except Pause:
            self.adopt(frame, scope)
            raise
        finally:
            current.reset(token)
            self.left()
        return value

    def _begin(self, key: str, name: str) -> tuple[Frame, Returned | None]:
        recorded = self.run.ledger.outcomes.get(key)
        called = self.run.ledger.calls.get(key)
        frame = Frame(self.run, key, self.path, name, "step", called.call_id if called else self.run.new_id(), self)
        frame.skip = called.streamed if called else 0
        frame.t0 = self.run.clock()
        return frame, recorded

    def _returned(self, frame: Frame, step: Step, result: Any) -> tuple[Returned, Any]:
        """The fact of a step's result, and the result as it is read back from it."""
        frame.closed = True
        if frame.asked:
            raise Pause
        codec = return_codec(step.function)
        try:
            output = codec.dump(result) if codec else json_value(result, "the result")
        except Exception as error:
            raise TypeError(f"step {frame.name!r}: {error}") from None
        fact = Returned(frame.key, frame.call_id, frame.name, "step", frame.t0, self.run.clock(), output)
        return fact, codec.load(output) if codec else output

    def _failed(self, frame: Frame, error: Exception, scope: Scope) -> Exception:
        frame.closed = True
        told = describe(error, with_class=True)
        fact = Returned(frame.key, frame.call_id, frame.name, "step", frame.t0, self.run.clock(), error=told)
        self.fail(fact, error, scope)
        return error

    def fail(self, fact: Returned, error: BaseException, scope: Scope) -> None:
        """An operation raised: its failure is kept aside until the handler goes on."""
        failure = Failure(fact, error, scope)
        self.failures = [*self.failures, failure]

    def _replay(self, recorded: Returned, step: Step) -> Any:
        if recorded.error is not None:
            error = revive(recorded.error) or StepFailed(recorded.error["type"], recorded.error["message"])
            failure = Failure(recorded, error, self)
            self.recorded_failures = [*self.recorded_failures, failure]
            raise error
        codec = return_codec(step.function)
        return codec.load(recorded.output) if codec else recorded.output

    async def _next_move(self) -> bool:
        """Wait until another operation of this call begins or ends; `False` when for a second none has."""
        before = self.moved
        waiter = asyncio.get_running_loop().create_future()
        self.waiters = [*self.waiters, waiter]
        try:
            async with asyncio.timeout(HOLD_SECONDS):
                await waiter
        except TimeoutError:
            return self.moved != before
        finally:
            self.waiters = [other for other in self.waiters if other is not waiter]
        return True

    def move(self) -> None:
        """Something happened in this call: whoever waits for it looks again."""
        self.moved += 1
        waiters, self.waiters = self.waiters, ()
        for waiter in waiters:
            if not waiter.done():
                waiter.get_loop().call_soon_threadsafe(_wake, waiter)

    # -- calls of runnables ------------------------------------------------------------------------------------------

    def begin_call(self, kind: str, name: str, what: Callable[[], str]) -> tuple[Scope, Recalled | Held]:
        """A call of a runnable begins, in the task that asks for it."""
        scope = self._enter()
        place = self._place(scope, kind, name, what)
        self.running += 1
        return scope, place

    async def sure(self, place: Recalled | Held, kind: str, name: str, what: Callable[[], str]) -> str:
        """The segment of an operation; one that can't be told yet waits for the others, or until nothing moves."""
        while isinstance(place, Held):
            moved = await self._next_move()
            if self.run.halt is not None:
                raise Halt
            if self.closed or self.pausing:
                raise Pause
            if not moved:
                raise self._refuse_unsure(kind, name, place.unclaimed)
            place = self.recall.spawned(kind, name, what())
        return place.segment

    def adopt(self, frame: Frame, scope: Scope) -> None:
        """A step has paused: so does this call."""
        frame.closed = True
        frame.keep_caught_failures(None)
        self.asked = [*self.asked, *frame.asked]
        self.latch(scope, Pause())

    async def shielded(self, work: Awaitable[Any]) -> Any:
        """Do it in a task of its own, so that it is finished and recorded when a sibling's pause cancels this one."""
        task = asyncio.ensure_future(work)
        self.run.keep(task)
        return await asyncio.shield(task)

    def left(self) -> None:
        """An operation of this call is no longer in flight."""
        self.running -= 1
        self.move()

    # -- the end -----------------------------------------------------------------------------------------------------

    async def settle(self, error: BaseException | None) -> None:
        """Wait until no operation of this call is in flight and its unsure questions are told apart; then close it."""
        if self.asked and (self.running or self.unsure):
            await self.run.flush()
        while self.running:
            waiter = asyncio.get_running_loop().create_future()
            self.waiters = [*self.waiters, waiter]
            if self.running:
                await waiter
        while self.unsure:
            ask, what, payload = self.unsure[0]
            place = self.recall.spawned("suspend", ask.kind, what)
            if isinstance(place, Held):
                if await self._next_move():
                    continue
                if len(self.unsure) > 1 or not isinstance(error, BaseExceptionGroup):
                    raise self._refuse_unsure("suspend", ask.kind, place.unclaimed)
                # A TaskGroup cancelled the others, which had not come to their questions again: they will next time.
                place = self.recall.fresh("suspend", ask.kind, what)
            self.unsure = self.unsure[1:]
            key = child(self.key, place.segment)
            question = self.run.ledger.question_at(key)
            if question is None:
                self._ask(self, key, ask, payload)
            elif question.settled is None:
                self.asked = [*self.asked, question.asked]
        if self.held and not self.asked:
            self.cleared |= {await self._clear(*one) for one in self.held}
        self.close()

    async def _clear(self, kind: str, name: str, what: str) -> str:
        """Wait until the records that a held operation might have been are claimed by others; gives its segment."""
        while True:
            place = self.recall.spawned(kind, name, what)
            if not isinstance(place, Held):
                return place.segment
            if not await self._next_move():
                raise self._refuse_unsure(kind, name, place.unclaimed)

    def again(self) -> Frame:
        """The frame of another execution of this handler in the same run, over what is recorded by now."""
        ledger = self.run.ledger
        ledger.take_stock(self.key)
        frame = Frame(self.run, self.key, self.path, self.name, self.kind, self.call_id, self.parent)
        frame.t0, frame.input, frame.tool_call_id = self.t0, self.input, self.tool_call_id
        frame.home, frame.tell, frame.usage = self.home, self.tell, self.usage
        frame.skip, frame.cleared = max(self.skip, self.emitted), self.cleared
        return frame

    def close(self) -> None:
        """No operation is taken any more."""
        self.closed = True
        if self._timer is not None:
            self._timer.cancel()

    def called(self) -> Called:
        """The fact that this call is under way."""
        return Called(self.key, self.call_id, self.name, self.kind, self.t0, max(self.emitted, self.skip))


def _started(scope: Scope, other: Scope | None) -> bool:
    """Whether code in `scope` started what runs in `other`, or is the same."""
    while other is not None and other is not scope:
        other = other.parent_scope
    return other is scope


def _payload(ask: Ask) -> dict[str, Any]:
    payload: Any = ask.payload
    kind: Any = ask.kind
    if not isinstance(payload, dict):
        with suppress(TypeError):
            payload = json_value(payload, "payload")
    if not isinstance(payload, dict):
        raise TypeError(
            f"suspend() takes a dict as its payload, not {type(ask.payload).__name__}: it is what a front end renders"
        )
    if not isinstance(kind, str) or not kind:
        raise TypeError("suspend(kind=) is a name, such as 'ask_user'")
    json_value(kind, "kind")
    if ask.response_schema is not None and (ask.response_type is not None or not isinstance(ask.response_schema, dict)):
        raise TypeError(
            "suspend() takes a response_schema (a dict, advice for the client) or a response_type (enforced)"
        )
    if ask.response_schema is not None:
        json_value(ask.response_schema, "response_schema")
    audience: Any = ask.audience
    if audience is not None and not (
        isinstance(audience, list | tuple) and all(isinstance(one, str) for one in audience)
    ):
        raise TypeError(f"suspend(audience=) is a list such as ['user:ada', 'role:finance'], not {audience!r}")
    json_value(ask.audience, "audience")
    if ask.expires_in is not None:
        _check_time(ask.expires_in)
    if ask.key is not None and not isinstance(ask.key, str):
        raise TypeError(f"suspend(key=) is a str, not {type(ask.key).__name__}")
    if ask.on_expiry not in ("cancel", "raise") and not isinstance(ask.on_expiry, Default):
        raise TypeError("suspend(on_expiry=) is 'cancel', 'raise' or Default(value)")
    result: dict[str, Any] = json_value(payload, "payload")
    return result


def _check_time(expires_in: Any) -> None:
    if isinstance(expires_in, timedelta):
        expires_in = expires_in.total_seconds()
    if isinstance(expires_in, bool) or not isinstance(expires_in, int | float):
        raise TypeError(f"suspend(expires_in=) is a number of seconds or a timedelta, not {expires_in!r}")
    if not 0 < expires_in < MOST_SECONDS:
        raise ValueError(f"suspend(expires_in=) is more than 0 seconds and less than a century, not {expires_in!r}")


def _milliseconds(seconds: float | timedelta) -> int:
    return int((seconds.total_seconds() if isinstance(seconds, timedelta) else seconds) * 1000)


def _step_name(step: Step) -> str:
    return getattr(step.function, "__name__", type(step.function).__name__)


def _step_digest(step: Step, name: str) -> str:
    if step.key is not None:
        return step.key(*step.args, **step.kwargs)
    try:
        return digest(json_value([list(step.args), step.kwargs], f"the arguments of step {name!r}"))
    except TypeError as error:
        raise TypeError(f"{error}. In tasks, a step is known by its arguments: name it with @step(key=...)") from None


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


def _stack() -> set[Any]:
    """The frames of the running code, up to its task."""
    frame: FrameType | None = sys._getframe(1)
    found = set()
    while frame is not None:
        found.add(frame)
        frame = frame.f_back
    return found


def _is_ours(frame: FrameType) -> bool:
    """Whether it is the library's own code, which catches signals to act on them."""
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] == __name__.partition(".")[0]


def _awaiting(task: Any) -> set[Any]:
    """The frames of a task that is waiting."""
    found: set[Any] = set()
    work = task.get_coro()
    while work is not None and hasattr(work, "cr_frame"):
        found.add(work.cr_frame)
        work = work.cr_await
    return found


def _tree(error: BaseException) -> list[BaseException]:
    """The exception, what it was raised from or during, and the members of groups."""
    seen: list[BaseException] = []
    todo: list[BaseException | None] = [error]
    while todo:
        one = todo.pop()
        if one is None or any(one is other for other in seen):
            continue
        seen.append(one)
        todo += [one.__cause__, one.__context__]
        if isinstance(one, BaseExceptionGroup):
            todo += one.exceptions
    return seen
