"""One run of an execution, from its lease to its end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

import uuid_utils

from ..core.codec import encode
from ..core.facts import Asked, Ended, Fact, Settled
from ..core.ledger import Ledger
from ..core.narrate import asked_event, pause_output
from ..errors import ReplayMismatch, StoreError
from ..ports import Clock, Ending, Lease, Opening, Settlement, Store
from ..types.events import OutputEvent
from ..types.run_status import RunStatus
from .failures import describe, public
from .journal import Journal
from .stream import EventStream

if TYPE_CHECKING:
    from ..types.message import Message
    from .call import Outcome
    from .frame import Frame


def now() -> int:
    """Unix milliseconds."""
    return time.time_ns() // 1_000_000


def new_id() -> str:
    """32 hex digits, ordered by time."""
    return uuid_utils.uuid7().hex


class Stopped(Exception):
    """The run was told to stop. `final`: the execution is over; else it can be gone on with."""

    def __init__(self, reason: str | None, *, final: bool) -> None:
        self.reason, self.final = reason, final
        super().__init__(reason or ("cancelled" if final else "interrupted"))


class Run:
    """The state that all calls of one run share.

    `busy` counts its strands: calls that run side by side. When the last one comes to rest the run ends or pauses.
    """

    new_id = staticmethod(new_id)

    def __init__(
        self,
        store: Store,
        stream: EventStream,
        ledger: Ledger,
        run_id: str,
        parent_id: str | None,
        execution_id: str,
        labels: dict[str, str],
        lease: Lease,
        opening: Opening | None = None,
        clock: Clock = now,
    ) -> None:
        self.id = run_id
        self.parent_id = parent_id
        self.execution_id = execution_id
        self.labels = labels
        self.ledger = ledger
        self.stream = stream
        self.clock = clock
        self.store = store
        self.loop = asyncio.get_running_loop()
        self.task: asyncio.Task[Any] | None = asyncio.current_task()
        lease.alive = self._alive
        lease.stop = self._stop_from_store
        self.journal = Journal(store, lease, self._stopped_by_store, self.stop_with, opening)
        self.halt: BaseException | None = None
        self.busy = 1
        self.tasks: set[asyncio.Future[Any]] = set()
        self.signals: dict[str, list[BaseException]] = {}
        #: What was said in this conversation before this execution.
        self.history: list[Message] = []

    # -- facts -------------------------------------------------------------------------------------------------------

    def record(self, fact: Fact) -> None:
        """A fact: known to this run at once, durable with the next flush."""
        self.ledger.apply(fact)
        self.journal.add(fact)

    def open_question(self, frame: Frame, fact: Asked) -> None:
        self.record(fact)
        frame.count("suspends:required")
        self.journal.hold(frame.tell, asked_event(fact))

    async def publish(self) -> None:
        """Make what was asked durable and known while other work goes on."""
        await self.journal.flush()

    # -- stopping ----------------------------------------------------------------------------------------------------

    def stop_with(self, error: BaseException) -> None:
        """No operation of this run is performed any more; the first reason counts."""
        if self.halt is None:
            self.halt = error

    def stop(self, reason: str | None, *, final: bool) -> None:
        """Stop the run's handlers where they are (on the loop's thread)."""
        if self.halt is None:
            self.halt = Stopped(reason, final=final)
            for task in self.tasks:
                task.cancel()
            if self.task is not None:
                self.task.cancel()

    def _stopped_by_store(self, reason: str) -> None:
        self.later(0, lambda: self.stop(reason or None, final=True))

    def _stop_from_store(self, reason: str) -> None:
        try:
            self.loop.call_soon_threadsafe(lambda: self.stop(reason or None, final=True))
        except RuntimeError:  # its loop is gone, and so is the run
            pass

    def _alive(self) -> bool:
        return not self.loop.is_closed()

    # -- the loop ----------------------------------------------------------------------------------------------------

    def later(self, seconds: float, work: Callable[[], Any]) -> Any:
        """Call `work` on the loop after a while; from any thread. The result has `cancel()`."""
        try:
            running: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        except RuntimeError:
            running = None
        if running is self.loop:
            return self.loop.call_later(seconds, work)
        timer = _Timer()
        self.loop.call_soon_threadsafe(timer.start, self.loop, seconds, work)
        return timer

    def spawn(self, work: Coroutine[Any, Any, Any]) -> None:
        """Do it beside everything else; the run waits for it at its end."""
        task = self.loop.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self._spawned_done)

    def _spawned_done(self, task: asyncio.Future[Any]) -> None:
        self.tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self.stop_with(task.exception())  # type: ignore[arg-type]

    async def finish_tasks(self) -> None:
        """End what was left running: it can't be part of the run any more."""
        while self.tasks:
            left = list(self.tasks)
            for task in left:
                task.cancel()
            await asyncio.wait(left)
            self.tasks.difference_update(left)

    # -- the end -----------------------------------------------------------------------------------------------------

    async def end(self, frame: Frame, outcome: Outcome, extra: dict[str, Any]) -> OutputEvent:
        """Commit how the run ended, give the lease back, and tell it."""
        halt = self.halt
        status, output, error = outcome.status, outcome.output, outcome.error
        form, dumped = outcome.form, outcome.dumped
        if halt is not None:
            if isinstance(halt, StoreError):
                raise halt
            status, output, error, form = self._halted(halt)
            dumped = output
        waiting = self.ledger.open_questions
        settled: list[Settlement] = []
        if isinstance(halt, Stopped) and halt.final:
            settled = self.settle_all(waiting, "cancelled", halt.reason)
            if waiting:
                frame.count("suspends:cancelled", len(waiting))
        elif halt is None and outcome.paused and waiting:
            output = dumped = pause_output(waiting[0].asked)
            form = None
        t1 = self.clock()
        fact = Ended(
            self.id,
            status.code,
            t1,
            status.reason,
            status.message,
            None if status.paused else dumped,
            form,
            error,
            frame.usage,
            (self.ledger.seen_by_open_calls() or None) if status.paused else None,
        )
        self.record(fact)
        await self.journal.flush(Ending(self.id, status.code, status.reason, t1), settled)
        metadata = dict(extra)
        if status.paused or waiting and not settled:
            metadata["pending_interactions"] = [asked_event(q.asked).__dict__ for q in self.ledger.open_questions]
        event = output_event(frame, status, output, error, t1, metadata, outcome.cause)
        frame.tell(event)
        return event

    def settle_all(self, questions: list[Any], state: str, reason: str | None) -> list[Settlement]:
        """Settlements for all of them, known to this run at once."""
        settled = []
        for question in questions:
            fact = Settled(question.asked.id, state, self.clock(), reason, self.id)
            self.ledger.apply(fact)
            settled.append(Settlement(fact.id, state, encode((fact,))))
        return settled

    def _halted(self, halt: BaseException) -> tuple[RunStatus, Any, dict[str, Any] | None, None]:
        if isinstance(halt, Stopped):
            reason = "cancelled" if halt.final else "interrupted"
            output = {"status": "cancelled", "reason": halt.reason} if halt.final else None
            return RunStatus("cancelled", reason, halt.reason), output, None, None
        code = "replay_mismatch" if isinstance(halt, ReplayMismatch) else None
        error = public(describe(halt))
        return RunStatus("error", code, error["message"]), None, error, None


class _Timer:
    """A timer that another thread set."""

    def __init__(self) -> None:
        self._handle: asyncio.TimerHandle | None = None
        self._cancelled = False

    def start(self, loop: asyncio.AbstractEventLoop, seconds: float, work: Callable[[], Any]) -> None:
        if not self._cancelled:
            self._handle = loop.call_later(seconds, work)

    def cancel(self) -> None:
        self._cancelled = True
        if self._handle is not None:
            self._handle.cancel()


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
    fields = frame.head("OUTPUT")
    fields["input"] = frame.input
    fields["status"] = status
    fields["output"] = output
    fields["error"] = error
    fields["t0"] = frame.t0
    fields["t1"] = t1
    fields["usage"] = frame.usage or {}
    fields["metadata"] = metadata
    event = OutputEvent._of(fields)
    if cause is not None:
        object.__setattr__(event, "_cause", cause)
    return event
