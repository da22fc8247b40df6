"""One execution of a handler: its operations are recognised, performed once, and recorded."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakSet

from ..core.facts import AnyAsked, Called, Reopened, Returned
from ..core.ids import child, digest
from ..core.recall import Held, Mismatch, Recall, Recalled
from ..errors import ReplayMismatch
from ..state import Ask, Branch, Halt, Pause, Scope, Step, current, home
from ..types.events import DeltaEvent
from ..types.json_value import json_value
from . import questions, steps
from .questions import Unsure

if TYPE_CHECKING:
    from ..types.events import Event
    from .run import Run

#: How long an operation that can't be told apart waits while nothing else of its call moves (contract section 4).
HOLD_SECONDS = 1.0


class Failure(NamedTuple):
    """An operation that raised; it is recorded when the handler goes on all the same."""

    fact: Returned
    error: BaseException
    scope: Scope


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
    #: What events show of the input, and where a gate may hide some of it, the whole of it.
    input: Any = None
    effective: dict[str, Any] | None = None
    #: Unanswered questions that this execution ran into, here or in a call inside it.
    asked: list[AnyAsked] | tuple[()] = ()
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

    def enter(self) -> Scope:
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
            raise self._too_late()
        return scope

    def _too_late(self) -> BaseException:
        """What an operation of a call that is closed is told."""
        if self.asked:
            return Pause()
        return RuntimeError(
            f"the handler of {self.path} has returned; a task that it left running can't go on with the run"
        )

    def set_off(self) -> None:
        """An operation is in flight from here on, so that the call waits for it; raises where that is closed meanwhile.

        A step may come from any thread: it is either waited for, or never performed.
        """
        with self.run.lock:
            if self.closed:
                raise self._too_late()
            self.running += 1

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

    def place(self, scope: Scope, kind: str, name: str, what: Callable[[], str]) -> Recalled | Held:
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

    def refuse_unsure(self, kind: str, name: str, unclaimed: tuple[str, ...]) -> Halt:
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

    # -- operations: each kind ---------------------------------------------------------------------------------------

    def suspend(self, ask: Ask) -> Any:
        return questions.suspend(self, ask)

    def step(self, step: Step) -> Any:
        return steps.step(self, step)

    async def step_async(self, step: Step) -> Any:
        return await steps.step_async(self, step)

    # -- pausing -----------------------------------------------------------------------------------------------------

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

    # -- what goes on ------------------------------------------------------------------------------------------------

    def fail(self, fact: Returned, error: BaseException, scope: Scope) -> None:
        """An operation raised: its failure is kept aside until the handler goes on."""
        failure = Failure(fact, error, scope)
        self.failures = [*self.failures, failure]

    def failed_before(self, fact: Returned, error: BaseException) -> None:
        """A recorded failure is raised again."""
        failure = Failure(fact, error, self)
        self.recorded_failures = [*self.recorded_failures, failure]

    async def next_move(self) -> bool:
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
        scope = self.enter()
        place = self.place(scope, kind, name, what)
        self.set_off()
        return scope, place

    async def sure(self, place: Recalled | Held, kind: str, name: str, what: Callable[[], str]) -> str:
        """The segment of an operation; one that can't be told yet waits for the others, or until nothing moves."""
        while isinstance(place, Held):
            moved = await self.next_move()
            if self.run.halt is not None:
                raise Halt
            if self.closed or self.pausing:
                raise Pause
            if not moved:
                raise self.refuse_unsure(kind, name, place.unclaimed)
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
        with self.run.lock:
            self.running -= 1
        self.move()

    # -- the end -----------------------------------------------------------------------------------------------------

    async def settle(self, error: BaseException | None) -> None:
        """Wait until no operation of this call is in flight and its unsure questions are told apart; then close it."""
        if self.asked and (self.running or self.unsure):
            await self.run.flush()
        while not await self._settled(error):
            pass

    async def _settled(self, error: BaseException | None) -> bool:
        while self.running:
            waiter = asyncio.get_running_loop().create_future()
            self.waiters = [*self.waiters, waiter]
            if self.running:
                await waiter
        while self.unsure:
            ask, what, payload = self.unsure[0]
            place = self.recall.spawned("suspend", ask.kind, what)
            if isinstance(place, Held):
                if await self.next_move():
                    continue
                if len(self.unsure) > 1 or not isinstance(error, BaseExceptionGroup):
                    raise self.refuse_unsure("suspend", ask.kind, place.unclaimed)
                # A TaskGroup cancelled the others, which had not come to their questions again: they will next time.
                place = self.recall.fresh("suspend", ask.kind, what)
            self.unsure = self.unsure[1:]
            key = child(self.key, place.segment)
            question = self.run.ledger.question_at(key)
            if question is None:
                questions.open_question(self, self, key, ask, payload)
            elif question.settled is None:
                self.asked = [*self.asked, question.asked]
        if self.held and not self.asked:
            self.cleared |= {await self._clear(*one) for one in self.held}
        return self.close_if_idle()

    def close_if_idle(self) -> bool:
        """Close it, unless an operation of it is in flight; gives whether it is closed."""
        with self.run.lock:
            if self.running:
                return False
            self.close()
        return True

    async def _clear(self, kind: str, name: str, what: str) -> str:
        """Wait until the records that a held operation might have been are claimed by others; gives its segment."""
        while True:
            place = self.recall.spawned(kind, name, what)
            if not isinstance(place, Held):
                return place.segment
            if not await self.next_move():
                raise self.refuse_unsure(kind, name, place.unclaimed)

    def again(self) -> Frame:
        """The frame of another execution of this handler in the same run, over what is recorded by now."""
        ledger = self.run.ledger
        ledger.take_stock(self.key)
        frame = Frame(self.run, self.key, self.path, self.name, self.kind, self.call_id, self.parent)
        frame.t0, frame.input, frame.tool_call_id = self.t0, self.input, self.tool_call_id
        frame.effective = self.effective
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
