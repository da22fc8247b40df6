"""Goes on with executions that no person has to be waited for: crashed ones, answered ones, expired ones."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from .errors import StoreError
from .runtime.handle import Given, RunHandle
from .stores.waiting import wait

if TYPE_CHECKING:
    from .ports import Due, Store
    from .runnables.base import Runnable
    from .types.events import OutputEvent

log = logging.getLogger("timbal.worker")

#: How many runs in a row may get the lease of an execution and never give it back, before it is parked.
MAX_ATTEMPTS = 5
#: How long an execution that came to nothing here is left alone: first, and at most, in seconds.
BACKOFF_SECONDS = (1.0, 300.0)


class Worker:
    """Any number of these, on any number of hosts, share the executions of one store.

    `runnables` are those whose executions it goes on with, in `store`; `concurrency` at a time. It looks every
    `poll_seconds`. An execution whose runs end `max_attempts` times in a row without giving their lease back (their
    process died) is parked. One that this code does not match (contract 4, 7) is left to others and costs no attempt.
    `perform` runs a handle to its end, where more is to be done with it than that.
    """

    def __init__(
        self,
        runnables: Sequence[Runnable],
        store: Store,
        *,
        concurrency: int = 16,
        poll_seconds: float = 1.0,
        max_attempts: int = MAX_ATTEMPTS,
        perform: Callable[[RunHandle], Awaitable[OutputEvent]] = RunHandle.collect,
    ) -> None:
        self._runnables = {runnable.name: runnable for runnable in runnables}
        self._store = store
        self._concurrency = concurrency
        self._poll_seconds = poll_seconds
        self._max_attempts = max_attempts
        self._perform = perform
        self._busy: dict[str, tuple[RunHandle, asyncio.Task[None]]] = {}
        #: What came to nothing here: when it may be tried again, and how long the pause was.
        self._shunned: dict[str, tuple[float, float]] = {}
        self._stopping = asyncio.Event()

    async def run(self) -> None:
        """Work until `stop()`."""
        while not self._stopping.is_set():
            try:
                await self.look()
            except StoreError as error:
                log.warning("the store can't be asked what is due: %s", error)
            stopping = asyncio.ensure_future(self._stopping.wait())
            tasks = [task for _, task in self._busy.values()]
            full = len(tasks) >= self._concurrency
            await asyncio.wait(
                [stopping, *tasks] if full else [stopping],
                timeout=self._poll_seconds,
                return_when=asyncio.FIRST_COMPLETED,
            )
            stopping.cancel()

    async def look(self) -> int:
        """Begin with what is due now, as far as there is room; gives how many."""
        room = self._concurrency - len(self._busy)
        if room <= 0:
            return 0
        now = time.monotonic()
        begun = 0
        for due in await wait(self._store.due(list(self._runnables), room + len(self._busy) + len(self._shunned))):
            if begun == room:
                break
            if due.run_id in self._busy or self._shunned.get(due.run_id, (0.0, 0.0))[0] > now:
                continue
            if due.attempts >= self._max_attempts:
                log.error("run %s is parked: its process died %d times in a row", due.run_id, due.attempts)
                await wait(self._store.park(due.run_id))
                continue
            self._begin(due)
            begun += 1
        return begun

    async def stop(self, grace_seconds: float = 10.0) -> None:
        """Begin nothing new, give what is at work so long to finish, and leave the rest to others."""
        self._stopping.set()
        if tasks := [task for _, task in self._busy.values()]:
            await asyncio.wait(tasks, timeout=grace_seconds)
        for handle, _ in list(self._busy.values()):
            await handle.leave()
        await asyncio.gather(*(task for _, task in self._busy.values()), return_exceptions=True)

    def _begin(self, due: Due) -> None:
        log.info("goes on with run %s of %s", due.run_id, due.runnable)
        given = Given(parent_id=due.run_id, resume={}, unattended=True)
        handle = RunHandle(self._runnables[due.runnable], {}, given)
        task = asyncio.ensure_future(self._go_on(due, handle))
        self._busy[due.run_id] = handle, task
        task.add_done_callback(lambda _: self._busy.pop(due.run_id, None))

    async def _go_on(self, due: Due, handle: RunHandle) -> None:
        try:
            output = await self._perform(handle)
        except Exception as error:
            log.warning("run %s could not be gone on with: %s", due.run_id, error)
            self._shun(due)
            return
        status = output.status
        log.info("run %s is %s", due.run_id, f"{status.code} / {status.reason}" if status.reason else status.code)
        if _came_to_nothing(output):
            log.warning("run %s is left to others: %s", due.run_id, status.message)
            self._shun(due)
        else:
            self._shunned.pop(due.run_id, None)

    def _shun(self, due: Due) -> None:
        shortest, longest = BACKOFF_SECONDS
        pause = min(self._shunned.get(due.run_id, (0.0, shortest / 2))[1] * 2, longest)
        self._shunned[due.run_id] = time.monotonic() + pause, pause


def _came_to_nothing(output: OutputEvent) -> bool:
    return output.status.reason in ("replay_mismatch", "resume_rejected")
