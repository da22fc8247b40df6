"""What a server is, apart from its routes: runnables, one store, and the runs that are at work here."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import signal
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from ..errors import RunNotFound, StoreError
from ..runtime.handle import Given, RunHandle
from ..runtime.run import new_id
from ..stores.clock import now
from ..stores.events import EventLog, open_log
from ..types.approval import Principal
from ..types.events import OutputEvent
from ..worker import Worker
from .access import Access, is_admin
from .bodies import OWN_LABELS, Start, input_errors
from .inbox import Inbox
from .problems import Problem, refusal
from .recording import Recording
from .settings import Limits

if TYPE_CHECKING:
    from ..runnables.base import Runnable
    from ..stores.base import BaseStore
    from ..stores.listings import RunInfo

log = logging.getLogger("timbal.server")

#: The label of a run that says to whom it belongs.
SUBJECT = f"{OWN_LABELS}subject"
#: By which way what comes in here has come, as it is recorded.
CHANNEL = "http"
#: How often old events are looked for, in seconds.
CLEAN_SECONDS = 600.0
#: How long a request waits for what it has asked for to take effect, in seconds.
SOON_SECONDS = 2.0


class Service:
    """Starts runs and keeps what they tell; its lifespan (`start`, `stop`) opens and closes what it needs."""

    store: BaseStore
    log: EventLog
    inbox: Inbox

    def __init__(
        self,
        runnables: Sequence[Runnable],
        default: Runnable | None,
        store: BaseStore | str | None,
        access: Access,
        limits: Limits,
    ) -> None:
        self.runnables = {runnable.name: runnable for runnable in runnables}
        self.default = default
        self.access, self.limits = access, limits
        self.started = False
        #: The server is told to stop: streams end, and readers go on elsewhere.
        self.stopping = False
        self._given_store = store
        self._recordings: dict[str, Recording] = {}
        self._starting = 0
        self._beside: set[asyncio.Task[Any]] = set()
        self._worker: Worker | None = None
        self._signals: dict[int, Any] = {}

    # -- lifespan ------------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Open the store, and let a worker look after what other processes have left."""
        self.stopping = False
        self.store = self._open_store()
        self.log = open_log(self.store)
        self.inbox = Inbox(self.store, self.log)
        for runnable in self.runnables.values():
            runnable.preload()
        self._start_worker()
        self.beside(self._clean())
        self._hear_signals()
        self.started = True
        log.info("serving %s from %r", ", ".join(self.runnables), self.store)

    async def stop(self) -> None:
        """Let running calls end within their grace; what is left then goes on elsewhere."""
        self.begin_stop()
        self.started = False
        tasks = [recording.task for recording in self._recordings.values()]
        if tasks:
            log.info("waiting %g s for %d runs", self.limits.grace, len(tasks))
            await asyncio.wait(tasks, timeout=self.limits.grace)
        for recording in list(self._recordings.values()):
            log.info("leaving run %s to others", recording.run_id)
            await recording.leave()
        if self._worker is not None:
            await self._worker.stop(grace_seconds=0)
        for task in list(self._beside):
            task.cancel()
        await asyncio.gather(*self._beside, return_exceptions=True)
        await self.inbox.aclose()
        await self.log.aclose()
        self._forget_signals()

    def begin_stop(self) -> None:
        """Let streams end: nobody has to wait for them."""
        self.stopping = True
        self.log.ring_all()
        self.inbox.end()

    def _open_store(self) -> BaseStore:
        from ..stores import open_store

        given: Any = self._given_store
        if given is None:
            own = [r for r in self.runnables.values() if r._store is not None or r._store_url is not None]
            given = own[0]._store_in_use() if own else os.environ.get("TIMBAL_STORE") or _default_store()
        store: BaseStore = open_store(given)
        for runnable in self.runnables.values():
            runnable._store = store
        return store

    def _start_worker(self) -> None:
        """Every server is a worker: this is the one place where it becomes one."""
        self._worker = Worker(list(self.runnables.values()), self.store, perform=self._perform)
        self.beside(self._worker.run())

    async def _perform(self, handle: RunHandle) -> OutputEvent:
        """A run that the worker goes on with: it keeps its events, as those do that somebody has asked for."""
        recording = await self._begin(handle)
        return await recording.output()

    def _hear_signals(self) -> None:
        """Streams end as soon as the process is told to stop: a server waits for them before it stops its lifespan."""
        if threading.current_thread() is not threading.main_thread():
            return
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            before = signal.getsignal(number)

            def hear(signum: int, frame: FrameType | None, before: Any = before) -> None:
                with suppress(RuntimeError):  # the loop is closed
                    loop.call_soon_threadsafe(self.begin_stop)
                if callable(before):
                    before(signum, frame)

            if callable(before):
                self._signals[number] = (before, hear)
                signal.signal(number, hear)

    def _forget_signals(self) -> None:
        for number, (before, ours) in self._signals.items():
            if signal.getsignal(number) is ours:
                signal.signal(number, before)
        self._signals.clear()

    def beside(self, work: Any) -> asyncio.Task[Any]:
        """Do it beside everything else, until the server stops."""
        task: asyncio.Task[Any] = asyncio.get_running_loop().create_task(work)
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)
        return task

    async def _clean(self) -> None:
        while True:
            try:
                count = await self.log.drop(now() - int(self.limits.keep_events * 1000))
                if count:
                    log.info("dropped the events of %d old runs", count)
            except StoreError as error:
                log.warning("old events could not be dropped: %s", error)
            await asyncio.sleep(CLEAN_SECONDS)

    # -- runs ----------------------------------------------------------------------------------------------------------

    async def run(self, runnable: Runnable, start: Start, by: Principal | None, key: str | None) -> Recording:
        """Start a run, or go on with one; it has begun when this returns. `key` makes a start idempotent.

        Raises `Problem` where it is refused, and then nothing has changed, and `StoreError`.
        """
        if start.parent_id is not None:
            await self.check_owner(start.parent_id, by)
        labels = {**start.labels, **({SUBJECT: by.sub} if by is not None else {})}
        run_id = key_of(by, key, runnable.name) if key and start.resume is None else new_id()
        given = Given(start.parent_id, start.resume, run_id if start.resume is None else None, labels or None, by)
        return await self._asked(RunHandle(runnable, start.input, given))

    async def resume(
        self, runnable: Runnable, run_id: str, answers: dict[str, Any], by: Principal | None, key: str | None
    ) -> Recording:
        """Go on with a run that may be another's: whoever calls has made sure that `by` may answer. Raises as `run`.

        `key` is kept with the answers.
        """
        handle = RunHandle(runnable, {}, Given(run_id, answers, by=by))
        handle.key = key
        return await self._asked(handle)

    async def _asked(self, handle: RunHandle) -> Recording:
        """Begin what a request has asked for."""
        handle.channel = CHANNEL
        return await self._begin(handle)

    async def _begin(self, handle: RunHandle) -> Recording:
        if self.stopping:
            raise Problem(503, "the server is stopping; ask again", headers={"Retry-After": "1"})
        if len(self._recordings) + self._starting >= self.limits.runs:
            raise Problem(503, f"{self.limits.runs} runs are at work here; ask again", headers={"Retry-After": "1"})
        self._starting += 1
        try:
            accepted = await handle.accepted()
        finally:
            self._starting -= 1
        if accepted is None:
            problem = refusal(await handle.collect())
            if problem.errors == []:
                problem.errors = input_errors(handle._runnable, handle._arguments)
            raise problem
        recording = Recording(handle, self.log, accepted, self.limits.batch)
        place = new_id() if recording.again else recording.run_id
        self._recordings[place] = recording
        recording.task.add_done_callback(lambda task: self._ended(place, recording, task))
        log.info("run %s of %s has begun", recording.run_id, handle._runnable.name, extra={"run_id": recording.run_id})
        return recording

    def _ended(self, place: str, recording: Recording, task: asyncio.Task[Any]) -> None:
        self._recordings.pop(place, None)
        if task.cancelled() or task.exception() is not None or recording.left:
            self.log.forget(recording.run_id)
        self.inbox.look()
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("run %s broke off: %s", recording.run_id, error, extra={"run_id": recording.run_id})

    def is_here(self, run_id: str) -> bool:
        """Whether this process has the run at work."""
        return run_id in self._recordings

    async def settled_soon(self, task: asyncio.Task[None]) -> None:
        """Wait for it a while; raises what it raised."""
        await asyncio.wait([task], timeout=SOON_SECONDS)
        if task.done():
            task.result()

    # -- who may see what ----------------------------------------------------------------------------------------------

    async def info(self, run_id: str) -> tuple[RunInfo, list[RunInfo]]:
        """A run, and those of its execution; raises `Problem`."""
        try:
            runs = await self.store.runs_of(run_id)
        except RunNotFound as error:
            raise Problem(404, str(error)) from None
        return next(info for info in runs if info.run_id == run_id), runs

    async def check_owner(self, run_id: str, by: Principal | None) -> list[RunInfo]:
        """The runs of an execution that belongs to somebody; for others there is no such run."""
        info, runs = await self.info(run_id)
        if not is_admin(by) and by is not None and info.labels.get(SUBJECT) != by.sub:
            raise Problem(404, f"there is no run {run_id} in this store")
        return runs

    def own(self, by: Principal | None) -> dict[str, str]:
        """The labels of the runs that somebody may see."""
        return {} if by is None or is_admin(by) else {SUBJECT: by.sub}


def _default_store() -> str:
    """The store of a server that is given none (contract section 7)."""
    folder = Path(".timbal")
    folder.mkdir(exist_ok=True)
    return f"sqlite:///{folder}/runs.db"


def key_of(by: Principal | None, key: str, *about: str) -> str:
    """What the same request of the same person has each time: of a start, it is the run's id."""
    said = "\0".join((*about, by.sub if by is not None else "", key))
    return hashlib.sha256(said.encode()).hexdigest()[:32]


def shown_labels(labels: Mapping[str, str]) -> dict[str, str]:
    """Labels without the server's own."""
    return {name: value for name, value in labels.items() if not name.startswith(OWN_LABELS)}
