"""What calling a runnable gives: a run that has not begun yet."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from ..core.ids import digest
from ..core.recall import Held, Recalled
from ..state import Pause, Scope, current
from ..types.approval import Principal
from ..types.events import Event, OutputEvent
from ..types.json_value import json_value
from .call import nested
from .drive import cancel, drive
from .eager import start
from .run import Run, Stopped, new_id
from .stream import EventStream

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..runnables.base import Runnable
    from .frame import Frame


class Given(NamedTuple):
    """What a runnable was called with, besides its input."""

    parent_id: str | None = None
    resume: Mapping[str, Any] | None = None
    #: The run id, where the caller chose it: then the same start again follows the first one.
    run_id: str | None = None
    labels: dict[str, str] | None = None
    by: Principal | None = None
    #: A worker goes on by itself: what its code does not match is left to others.
    unattended: bool = False

    @property
    def said_by(self) -> dict[str, Any] | None:
        """Who calls, as it is recorded."""
        return None if self.by is None else self.by.model_dump()


NOTHING = Given()


class Accepted(NamedTuple):
    """What a call came to: `run_id` is the run whose output it gives, its own or one that it follows.

    `receipts`: what became of the ids of its resume.
    """

    run_id: str
    receipts: Sequence[Mapping[str, Any]]


class RunHandle:
    """A run: iterate it for its events, or await it for its output. It begins with the first of these.

    The run has its own task: reading slowly, answering from inside the loop or leaving the loop does not stop it.
    `await handle.aclose()`, or leaving `async with handle`, interrupts it; it can be resumed.
    """

    _task: asyncio.Task[Any] | None = None
    _run: Run | None = None
    _stop: Stopped | None = None
    #: The call in whose handler this one was made, where there is one.
    _outer: Frame | None = None
    _output: OutputEvent | None = None
    _paused = False
    #: By which way its answers came in: kept with them.
    channel = "resume"
    #: How the request that brought them is known when it is sent again: kept with them, too.
    key: str | None = None
    _claimed: tuple[Scope, Recalled | Held] | None = None
    _accepted: Accepted | None = None

    def __init__(self, runnable: Runnable, arguments: dict[str, Any], given: Given = NOTHING) -> None:
        self._runnable = runnable
        self._arguments = arguments
        self._given = given
        self._run_id = given.run_id or new_id()
        self._stream = EventStream()

    @property
    def run_id(self) -> str:
        """The id of this run; inside a handler, of the run that the call belongs to."""
        return self._run_id if self._outer is None else self._outer.run.id

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        if self._task is None:
            self._start()
        stream = self._stream
        if stream:
            return stream.popleft()
        if stream.closed and stream.error is None and not self._paused:
            raise StopAsyncIteration
        try:
            return await stream.next()
        except StopAsyncIteration:
            if self._paused:
                raise Pause from None
            raise

    def __await__(self) -> Generator[Any, None, OutputEvent]:
        return self.collect().__await__()

    async def collect(self) -> OutputEvent:
        """Run to the end (or the pause); gives the root OUTPUT, the same one each time.

        Raises `StoreError` when the store could not keep the run, and `LeaseLost` when another run took it over.
        """
        if self._task is None:
            self._start()
        return await self._stream.drain() if self._outer is None else await self._collect_nested()

    async def accepted(self) -> Accepted | None:
        """Wait until the call has come to a run, which may then last; `None` when it was refused: the output says why.

        Raises as `collect` does.
        """
        if self._task is None:
            self._start()
        await self._stream.until(lambda: self._accepted is not None or self._run is not None)
        if self._accepted is None and self._run is not None:
            self._accepted = Accepted(self._run.id, ())
        return self._accepted

    async def cancel(self, reason: str | None = None) -> None:
        """End the execution for good, `cancelled / cancelled`."""
        await self._end(Stopped(reason, final=True, channel="cancel"))

    async def aclose(self) -> None:
        """Interrupt the run if it is still going: `cancelled / interrupted`, and `resume={}` goes on with it."""
        await self._end(Stopped(None, final=False))

    async def leave(self) -> None:
        """Stop where it is and leave the execution to another worker or server."""
        await self._end(Stopped(None, final=False, left=True))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def claim(self) -> None:
        """Take the call's place among the operations of the running handler, before another thread performs it."""
        scope = current.get()
        if isinstance(scope, Scope):
            self._claimed = scope.frame.begin_call(self._runnable.kind, self._runnable.name, self._digest)

    # -- inside ------------------------------------------------------------------------------------------------------

    def _start(self) -> None:
        scope = current.get()
        if scope is None:
            self._task = start(drive(self), self._runnable.name)
            if self._run is not None:
                self._run.begun()
        elif isinstance(scope, Scope):
            self._start_nested(scope.frame)
        else:
            raise RuntimeError(f"{self._runnable.name} can't be called in {scope.name}; call it in a handler")

    def begun(self, run: Run) -> None:
        """The run has its lease; a stop that came before takes effect now: nothing is cancelled, since nothing runs."""
        self._run = run
        self._stream.look()
        if self._stop is not None:
            run.stop_with(self._stop)

    def accept(self, run_id: str, receipts: Sequence[Mapping[str, Any]] = ()) -> None:
        """The call has come to this run; the first one counts."""
        if self._accepted is None:
            self._accepted = Accepted(run_id, receipts)
            self._stream.look()

    async def _end(self, why: Stopped) -> None:
        if self._stream.closed:
            output = self._stream.output
            if why.final and output is not None and output.pending:
                await cancel(self._runnable, output.run_id, why.reason)
            return
        self._stop = why
        if self._task is None:
            if not why.final:
                return
            self._start()
        if self._run is not None:
            self._run.stop(why)
        elif not why.final and self._task is not None:
            self._task.cancel()
        if self._task is not None:
            await asyncio.wait([self._task])

    # -- as an operation of a handler --------------------------------------------------------------------------------

    def _start_nested(self, frame: Frame) -> None:
        given, target = self._given, self._runnable
        taken = [
            n
            for n, v in (("parent_id", given.parent_id), ("resume", given.resume), ("run_id", given.run_id))
            if v is not None
        ]
        if taken:
            raise TypeError(
                f"{target.name} is called inside a handler: it belongs to that run and takes no {', '.join(taken)}"
            )
        self._outer = frame
        scope, place = self._claimed or frame.begin_call(target.kind, target.name, self._digest)
        self._task = start(self._nested(frame, scope, place), target.name)
        frame.run.keep(self._task)

    async def _nested(self, frame: Frame, scope: Scope, place: Recalled | Held) -> None:
        target, stream, run = self._runnable, self._stream, frame.run
        strand = scope is not frame
        run.busy += strand
        try:
            segment = await frame.sure(place, target.kind, target.name, self._digest)
            outcome = await nested(frame, scope, target, segment, self._arguments, self._tap)
            if outcome.paused:
                frame.asked = [*frame.asked, *outcome.asked]
                self._paused = True
                frame.latch(scope, Pause())
        except BaseException as error:
            stream.close(None, error)
            if isinstance(error, KeyboardInterrupt | SystemExit):
                raise
        else:
            stream.close(None)
        finally:
            run.busy -= strand
            frame.left()

    def _digest(self) -> str:
        try:
            return digest(json_value(self._arguments, f"the input of {self._runnable.name!r}"))
        except TypeError as error:
            raise TypeError(f"{error}. In tasks, a call is known by its input, so it must be JSON") from None

    def _tap(self, event: Event) -> None:
        """What is told of the call and of those inside it; its own OUTPUT comes last."""
        if isinstance(event, OutputEvent):
            self._output = event
        self._stream.put(event)

    async def _collect_nested(self) -> OutputEvent:
        try:
            while True:
                await self._stream.next()
        except StopAsyncIteration:
            pass
        if self._paused:
            raise Pause
        assert self._output is not None
        return self._output
