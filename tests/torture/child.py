"""What one process does with one execution: begin or go on, answer, until it is over or the process dies."""

import asyncio
import os
from pathlib import Path
from typing import Any, NamedTuple

from tests.stores.urls import store_at
from tests.torture.deadly import Points
from tests.torture.diary import Diary
from tests.torture.samples import SAMPLES
from timbal.core.codec import decode_all
from timbal.core.facts import Ended, Returned, Settled
from timbal.stores.base import BaseStore
from timbal.stores.listings import PendingItem
from timbal.stores.waiting import wait
from timbal.types.events import ApprovalEvent
from timbal.worker import Worker


class Life(NamedTuple):
    """What a process is for. `deadly`: at which point it dies; 0: at none. `way`: `resume` or `worker`."""

    url: str
    diary: Path
    sample: str
    run_id: str
    way: str
    deadly: int


def live(life: Life) -> None:
    asyncio.run(_live(life))


async def _live(life: Life) -> None:
    diary = Diary(life.diary)
    store = store_at(life.url)
    points = Points(life.deadly)
    make, arguments, _ = SAMPLES[life.sample]
    runnable: Any = make(diary, store)
    diary.write("known", attempts=await _attempts(store, life.run_id))
    points.watch_calls(store, diary)
    points.watch_lines()
    stored = await wait(store.load(life.run_id))
    begun = runnable(**arguments, run_id=life.run_id) if stored is None else None
    if life.way == "resume":
        await _by_hand(runnable, life, begun)
    else:
        await _by_worker(runnable, store, life, begun)
    ended = [fact for fact in await _facts(store, life.run_id) if isinstance(fact, Ended)]
    diary.write(
        "over",
        status=ended[-1].code if ended else None,
        points=points.passed,
        attempts=await _attempts(store, life.run_id),
        settled=await _settled(store, life.run_id),
        open=len(await _pending(store, life)),
    )
    await store.aclose()


async def _by_hand(runnable: Any, life: Life, begun: Any) -> None:
    out = await (begun or runnable(parent_id=life.run_id, resume={}))
    while out.pending:
        event = out.pending[0]
        id = event.approval_id if isinstance(event, ApprovalEvent) else event.interaction_id
        out = await runnable(parent_id=life.run_id, resume={id: _answer(event)})


async def _by_worker(runnable: Any, store: BaseStore, life: Life, begun: Any) -> None:
    if begun is not None:
        await begun
    worker = Worker([runnable], store)
    while True:
        while await worker.look():
            await asyncio.gather(*(task for _, task in worker._busy.values()))
        if not (waiting := await _pending(store, life)):
            return
        await store.answer(life.run_id, {waiting[0].id: _answer(waiting[0].event)})


def _answer(event: Any) -> Any:
    """A value that tells who gave it."""
    return True if isinstance(event, ApprovalEvent) else f"{event.payload['q']} by {os.getpid()}"


async def _pending(store: BaseStore, life: Life) -> list[PendingItem]:
    page = await store.pending(runnable=life.sample)
    return [item for item in page.items if item.run_id == life.run_id]


async def _facts(store: BaseStore, run_id: str) -> list[Any]:
    stored = await wait(store.load(run_id))
    return list(decode_all(stored.records)) if stored is not None else []


async def _attempts(store: BaseStore, run_id: str) -> list[Any]:
    """The attempts at steps that are recorded."""
    facts = await _facts(store, run_id)
    return [fact.output for fact in facts if isinstance(fact, Returned) and fact.kind == "step"]


async def _settled(store: BaseStore, run_id: str) -> dict[str, Any]:
    return {fact.id: fact.value for fact in await _facts(store, run_id) if isinstance(fact, Settled)}
