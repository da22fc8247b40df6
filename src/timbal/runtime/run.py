"""One run of an execution, from its lease to its end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from threading import get_ident
from typing import TYPE_CHECKING, Any

import uuid_utils

from ..core.facts import AnyAsked, Ended, Fact, Gated, Opened, Settled
from ..core.gates import secrets_in
from ..core.ledger import Ledger
from ..core.narrate import asked_event, pause_output, pause_status, pending_metadata
from ..errors import ReplayMismatch, StoreError
from ..ports import GONE, Clock, Lease, Settlement, Store
from ..stores.clock import now
from ..stores.waiting import wait
from ..types.events import OutputEvent
from ..types.run_status import RunStatus
from .failures import describe, public
from .journal import Journal
from .stream import EventStream

if TYPE_CHECKING:
    from ..core.grants import Standing
    from ..types.message import Message
    from .call import Outcome
    from .frame import Frame


#: How long a question may stay unpublished in a handler that swallowed its signal and works on.
PUBLISH_SECONDS = 0.05


def new_id() -> str:
    """32 hex digits, ordered by time."""
    return uuid_utils.uuid7().hex


class Stopped(Exception):
    """The run was told to stop. `final`: the execution is over; else it can be gone on with.

    `left`: it is left to others, workers or servers, as if this run had not been. `by` and `channel`: who ended it, and
    by which way, where that is known.
    """

    def __init__(
        self,
        reason: str | None,
        *,
        final: bool,
        left: bool = False,
        by: dict[str, Any] | None = None,
        channel: str | None = None,
    ) -> None:
        self.reason, self.final, self.left = reason, final, left
        self.by, self.channel = by, channel
        super().__init__(reason or ("cancelled" if final else "interrupted"))


class Run(Journal):
    """The state that all calls of one run share.

    `busy` counts its strands: calls that run side by side. When the last one comes to rest the run ends or pauses.
    """

    new_id = staticmethod(new_id)
    #: Why no operation of this run is performed any more.
    halt: BaseException | None = None
    #: Whether its task is in a handler: only there a stop cancels it. How it ends is committed and told in any case.
    performing = False
    busy = 1
    #: What runs beside the root's own task.
    tasks: set[asyncio.Future[Any]] | frozenset[Any] = frozenset()
    #: Whether the run is still in the step with which it began, inside the call of whoever started it.
    first_step = True
    _asking: tuple[Frame, ...] = ()
    #: What was said in this conversation before this execution.
    history: Sequence[Message] = ()
    #: Whether an execution that this code does not match is left to others, instead of being refused.
    unattended = False
    #: Whether a gate was reached before this run: where the code has lost it, it guards its call all the same.
    gated = False
    #: Standing decisions from before this execution, once they are needed.
    standing: Sequence[Standing] | None = None
    labels: dict[str, str]
    clock: Clock = staticmethod(now)

    def __init__(
        self,
        store: Store,
        stream: EventStream,
        ledger: Ledger,
        run_id: str,
        parent_id: str | None,
        execution_id: str,
        lease: Lease,
        opened: Opened | None = None,
    ) -> None:
        super().__init__(store, lease, opened)
        self.id = run_id
        self.parent_id = parent_id
        self.execution_id = execution_id
        self.ledger = ledger
        self.stream = stream
        self.task = asyncio.current_task()
        self.loop = asyncio.get_running_loop()
        self._thread = get_ident()
        lease.holder = self

    # -- facts -------------------------------------------------------------------------------------------------------

    def record(self, fact: Fact) -> None:
        """A fact: known to this run at once, durable with the next flush."""
        self.ledger.apply(fact)
        self.add(fact)

    def note(self, fact: Fact) -> None:
        """As `record`; it becomes durable with whatever comes next."""
        self.ledger.apply(fact)
        self.add_note(fact)

    def open_question(self, frame: Frame, fact: AnyAsked) -> None:
        self.record(fact)
        frame.count(counter(fact, "required"))
        self.hold(frame.tell, asked_event(fact))

    def unless_ended_soon(self, frame: Frame) -> asyncio.Handle | None:
        """Publish what a handler has asked, should it swallow the signal and work on; gives what calls that off."""
        if not self.first_step:
            return self.soon(lambda: self._publish_later(frame))
        self._asking = (*self._asking, frame)
        return None

    def begun(self) -> None:
        """The first step is over: the run goes on in turns of the loop, or has ended."""
        self.first_step = False
        asking, self._asking = self._asking, ()
        for frame in asking:
            self._publish_later(frame)

    def _publish_later(self, frame: Frame) -> None:
        if not frame.closed:
            self.loop.call_later(PUBLISH_SECONDS, self._publish, frame)

    def _publish(self, frame: Frame) -> None:
        if not frame.closed:
            self.spawn(self.flush())

    # -- stopping ----------------------------------------------------------------------------------------------------

    def stop_with(self, error: BaseException) -> None:
        """No operation of this run is performed any more; the first reason counts."""
        if self.halt is None:
            self.halt = error

    def stop(self, why: Stopped) -> None:
        """Stop the run's handlers where they are (on the loop's thread)."""
        if self.halt is None:
            self.halt = why
            for task in self.tasks:
                task.cancel()
            if self.performing and self.task is not None:
                self.task.cancel()

    def stopped_by_store(self, reason: str) -> None:
        self.soon(lambda: self.stop(Stopped(reason or None, final=True)))

    def stop_asked(self, reason: str) -> None:
        with suppress(RuntimeError):  # its loop is gone, and so is the run
            self.loop.call_soon_threadsafe(lambda: self.stop(Stopped(reason or None, final=True)))

    def alive(self) -> bool:
        return not self.loop.is_closed()

    def close(self) -> None:
        """It has come to its end, one way or another: a lease that it still has can be taken."""
        self.lease.holder = GONE

    # -- the loop ----------------------------------------------------------------------------------------------------

    def soon(self, work: Callable[[], Any]) -> asyncio.Handle:
        """Call `work` when the loop comes to it; from any thread."""
        if get_ident() == self._thread:
            return self.loop.call_soon(work)
        return self.loop.call_soon_threadsafe(work)

    def spawn(self, work: Coroutine[Any, Any, Any]) -> None:
        """Do it beside everything else; the run waits for it at its end."""
        task = self.loop.create_task(work)
        self.keep(task)
        task.add_done_callback(self._spawned_done)

    def keep(self, task: asyncio.Future[Any]) -> None:
        """The run ends what is left of this task at its end."""
        if not self.tasks:
            self.tasks = set()
        tasks = self.tasks
        assert isinstance(tasks, set)
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    def _spawned_done(self, task: asyncio.Future[Any]) -> None:
        if not task.cancelled() and task.exception() is not None:
            self.stop_with(task.exception())  # type: ignore[arg-type]

    async def finish_tasks(self) -> None:
        """End what was left running: it can't be part of the run any more."""
        while self.tasks:
            left = list(self.tasks)
            for task in left:
                task.cancel()
            await asyncio.wait(left)
            self.tasks = self.tasks.difference(left)

    # -- the end -----------------------------------------------------------------------------------------------------

    async def end(self, frame: Frame, outcome: Outcome, metadata: dict[str, Any]) -> OutputEvent:
        """Commit how the run ended, give the lease back, and tell it."""
        ledger = self.ledger
        status, output = outcome.status, outcome.output
        dumped, form, error = outcome.dumped, outcome.form, outcome.error
        seen: list[str] | None = None
        settled: Sequence[Settlement] = ()
        by: dict[str, Any] | None = None
        channel: str | None = None
        if self.halt is not None:
            status, output, error = self._halted(self.halt)
            dumped, form = output, None
            if isinstance(self.halt, Stopped) and self.halt.final:
                settled = self._cancel_questions(frame, self.halt)
                by, channel = self.halt.by, self.halt.channel
        elif outcome.asked:
            seen = ledger.seen_by_open_calls() or None
            first = ledger.open_questions[0].asked
            status, output, dumped, form = pause_status(first), pause_output(first), None, None
        if frame.emitted and status.code != "success":
            self.record(frame.called())
        t1 = self.clock()
        fact = Ended(
            self.id,
            status.code,
            t1,
            status.reason,
            status.message,
            dumped,
            form,
            error,
            frame.usage,
            seen,
            by,
            channel,
        )
        if self._is_left():
            await self.flush()
            await wait(self.store.release(self.lease))
        elif (work := self.commit(fact, settled)) is not None:
            await work
        if ledger.questions and (waiting := ledger.open_questions):
            metadata.update(pending_metadata(waiting))
        if outcome.audit is not None:
            metadata["approval"] = outcome.audit
        event = output_event(frame, status, output, error, t1, metadata, outcome.cause)
        frame.tell(event)
        return event

    def _is_left(self) -> bool:
        """Whether the execution stays as it is, for others to go on with."""
        if isinstance(self.halt, Stopped):
            return self.halt.left
        return self.unattended and isinstance(self.halt, ReplayMismatch)

    def _cancel_questions(self, frame: Frame, why: Stopped) -> list[Settlement]:
        """Settlements for all that is open, known to this run at once."""
        settled = []
        for question in self.ledger.open_questions:
            fact = Settled(question.asked.id, "cancelled", self.clock(), why.reason, self.id, why.by, why.channel)
            self.ledger.apply(fact)
            settled.append(Settlement.of(fact))
            frame.count(counter(question.asked, "cancelled"))
        return settled

    def _halted(self, halt: BaseException) -> tuple[RunStatus, Any, dict[str, Any] | None]:
        if isinstance(halt, StoreError):
            raise halt
        if isinstance(halt, Stopped):
            reason = "cancelled" if halt.final else "interrupted"
            output = {"status": "cancelled", "reason": halt.reason} if halt.final else None
            return RunStatus("cancelled", reason, halt.reason), output, None
        code = "replay_mismatch" if isinstance(halt, ReplayMismatch) else None
        error = public(describe(halt, hidden=secrets_in(self.ledger)))
        return RunStatus("error", code, error["message"]), None, error


def counter(asked: AnyAsked, what: str) -> str:
    """What usage counts a question under."""
    return f"{'approvals' if isinstance(asked, Gated) else 'suspends'}:{what}"


def output_event(
    frame: Frame,
    status: RunStatus,
    output: Any,
    error: dict[str, Any] | None,
    t1: int,
    metadata: dict[str, Any],
    cause: BaseException | None = None,
) -> OutputEvent:
    """The OUTPUT of a call."""
    parent = frame.parent
    event = OutputEvent._of(
        {
            "type": "OUTPUT",
            "run_id": frame.run.id,
            "parent_run_id": frame.run.parent_id,
            "path": frame.path,
            "call_id": frame.call_id,
            "parent_call_id": None if parent is None else parent.call_id,
            "input": frame.input,
            "status": status,
            "output": output,
            "error": error,
            "t0": frame.t0,
            "t1": t1,
            "usage": frame.usage or {},
            "metadata": metadata,
        }
    )
    return event if cause is None else with_cause(event, cause)


def with_cause(event: OutputEvent, cause: BaseException) -> OutputEvent:
    """The event, with the exception that `raise_for_status()` raises."""
    object.__setattr__(event, "_cause", cause)
    return event
