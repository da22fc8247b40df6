"""One run that a server has started: it goes on by itself, and what it tells is kept."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from ..stores.events import Batch, EventLog
from ..types.events import Event, OutputEvent

if TYPE_CHECKING:
    from ..runtime.handle import Accepted, RunHandle
    from ..runtime.stream import EventStream


class Recording:
    """Takes the events of a run out of its handle and keeps them, whoever reads them."""

    def __init__(self, handle: RunHandle, log: EventLog, accepted: Accepted, seconds: float) -> None:
        """`seconds`: deltas that come within so long are kept together."""
        self.handle = handle
        self.run_id = handle.run_id
        #: The run whose output this gives: its own, or one that it follows.
        self.gives = accepted.run_id
        self.receipts = accepted.receipts
        self.task = asyncio.get_running_loop().create_task(self._record(), name=f"timbal run {self.run_id}")
        self._log = log
        self._seconds = seconds
        self._next = 1
        self.left = False
        #: Whether the same start has come before: the run of this id is that one's, and its events too.
        self.again = handle._given.run_id is not None and handle._run is None
        if not self.follows:
            log.begin(self.run_id)

    @property
    def follows(self) -> bool:
        """Whether it only waits for another run."""
        return self.again or self.gives != self.run_id

    async def output(self) -> OutputEvent:
        """The root OUTPUT; waiting for it can be given up. Raises `StoreError` where the run could not be kept."""
        return await asyncio.shield(self.task)

    async def leave(self) -> None:
        """Stop the run where it is, for another server or worker to go on with."""
        self.left = True
        await self.handle.leave()
        await asyncio.wait([self.task])

    async def _record(self) -> OutputEvent:
        batch: list[Event] = []
        since = 0.0
        stream = self.handle._stream
        async for event in self.handle:
            if not batch:
                since = time.monotonic()
            batch.append(event)
            waits = event.type in ("DELTA", "START") and not stream.closed
            if waits and (left := since + self._seconds - time.monotonic()) > 0:
                if not stream:
                    await (asyncio.sleep(left) if event.type == "DELTA" else _more(stream, left))
                if stream:
                    continue
            elif stream and time.monotonic() < since + self._seconds:
                continue
            await self._keep(batch)
            batch = []
        if batch:
            await self._keep(batch)
        return await self.handle.collect()

    async def _keep(self, events: list[Event]) -> None:
        last = events[-1]
        end = last if isinstance(last, OutputEvent) and last.parent_call_id is None else None
        if self.left and end is not None and end.status.reason == "interrupted":  # somebody goes on with it
            events, end = events[:-1], None
        if not events or self.again or (self.follows and self._next == 1 and events[0].run_id != self.run_id):
            return
        asks = any(event.type in ("INTERACTION", "APPROVAL") for event in events)
        batch = Batch(
            self.run_id, self._next, [as_json(event) for event in events], end is not None, asks or end is not None
        )
        await self._log.append(batch)
        self._next = batch.last + 1


async def _more(stream: EventStream, seconds: float) -> None:
    """Wait for the next event, for so long at most. What has broken a run off is told to those who take its events."""
    with suppress(Exception):
        async with asyncio.timeout(seconds):
            await stream.until(stream.__len__)


def as_json(event: Event) -> str:
    """An event as it is sent: without tracebacks, which are for whoever has the log of the server."""
    if isinstance(event, OutputEvent) and event.error is not None and event.error.get("traceback"):
        event = event.model_copy(update={"error": {**event.error, "traceback": None}})
    return event.model_dump_json()
