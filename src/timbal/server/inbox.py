"""The inbox as it changes: what is opened and settled anywhere on the store is told to all who listen here."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from ..errors import StoreError
from ..stores.events import INBOX, EventLog

if TYPE_CHECKING:
    from ..stores.base import BaseStore
    from ..stores.listings import PendingItem, SettledItem

log = logging.getLogger("timbal.server")

#: How far back is looked for what is new: longer than a commit takes and than clocks differ.
WINDOW_SECONDS = 60.0
#: How often at most, and at least while somebody listens, in seconds.
SOONEST, LATEST = 0.05, 1.0
#: What is known of an item: the run that asked, and its id.
Key = tuple[str, str]


class Inbox:
    """One look-out for all readers of this process, at work while there are any."""

    def __init__(self, store: BaseStore, events: EventLog) -> None:
        self._store = store
        self._events = events
        self._queues: set[asyncio.Queue[PendingItem | SettledItem | None]] = set()
        self._look = asyncio.Event()
        self._ready = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._opened: set[Key] = set()
        self._settled: set[Key] = set()

    def look(self) -> None:
        """Something may have changed."""
        self._look.set()

    def end(self) -> None:
        """Wake all who listen, with `None`: the server stops."""
        for queue in self._queues:
            queue.put_nowait(None)

    @contextmanager
    def listen(self) -> Iterator[asyncio.Queue[PendingItem | SettledItem | None]]:
        """A queue of what is opened and settled from now on (await `ready` first)."""
        queue: asyncio.Queue[PendingItem | SettledItem | None] = asyncio.Queue()
        self._queues.add(queue)
        if self._task is None or self._task.done():
            self._ready.clear()
            self._task = asyncio.get_running_loop().create_task(self._watch(), name="timbal inbox")
        try:
            yield queue
        finally:
            self._queues.discard(queue)

    async def ready(self) -> None:
        """Wait until nothing that happens from now on is missed."""
        await self._ready.wait()

    async def aclose(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _watch(self) -> None:
        with self._events.listen(INBOX) as bell:
            self._look = bell
            while self._queues:
                bell.clear()
                try:
                    await self._scan(tell=self._ready.is_set())
                    self._ready.set()
                except StoreError as error:
                    log.warning("the inbox can't be read: %s", error)
                await asyncio.sleep(SOONEST)
                with suppress(TimeoutError):
                    await asyncio.wait_for(bell.wait(), LATEST)

    async def _scan(self, *, tell: bool) -> None:
        # Settled ones last: an item that is both is told in this order.
        opened = {_key(item): item async for item in self._all(self._store.pending)}
        settled = {_key(item): item async for item in self._all(self._store.settled)}
        for known, found in ((self._opened, opened), (self._settled, settled)):
            for key, item in found.items():
                if tell and key not in known:
                    for queue in self._queues:
                        queue.put_nowait(item)
        self._opened, self._settled = set(opened), set(settled)

    async def _all(self, query: Any) -> AsyncIterator[Any]:
        """What is new enough, in pages."""
        after = None
        while True:
            page = await query(newer_than=WINDOW_SECONDS, newest_first=False, after=after, limit=500)
            for item in page.items:
                yield item
            after = page.next
            if after is None:
                return


def _key(item: PendingItem | SettledItem) -> Key:
    return item.run_id, item.id
