"""A lease that somebody took and could not use is not kept from others, and nobody waits for it for ever."""

import asyncio
from concurrent.futures import Future
from typing import Any

import pytest

from tests.scenarios.conftest import World
from timbal import Tool, suspend
from timbal.errors import StoreError
from timbal.ports import GONE, Lease, RunRow
from timbal.runtime.resume import Resumption, _granted
from timbal.runtime.run import new_id
from timbal.stores import MemoryStore
from timbal.stores.clock import now
from timbal.stores.waiting import failed, wait
from timbal.worker import Worker


def order() -> Any:
    return suspend({"q": "pay?"})


class Trouble:
    """A store that goes away once a lease was taken."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self._failing = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def load(self, run_id: str) -> Any:
        return failed(StoreError("the store has failed")) if self._failing else self._store.load(run_id)

    def acquire(self, ref: Any, run: RunRow) -> Any:
        self._failing = True
        return self._store.acquire(ref, run)


async def test_an_execution_that_is_over_is_not_due_for_ever_when_who_took_its_lease_in_vain_has_died(
    world: World,
) -> None:
    out = await Tool(order, store=world.store)()
    await Tool(order, store=world.store)(parent_id=out.run_id, resume={out.pending[0].id: "yes"})
    stored = await wait(world.store.load(out.run_id))
    assert stored is not None
    lease = await wait(world.store.acquire(stored.ref, RunRow(new_id(), out.run_id, now())))
    assert lease is not None
    lease.holder = GONE
    assert await wait(world.store.due(["order"], 10)) != []
    worker = Worker([Tool(order, store=world.store)], world.store)
    await worker.look()
    await worker.stop()
    assert await wait(world.store.due(["order"], 10)) == []
    assert (await Tool(order, store=world.store)(parent_id=out.run_id, resume={})).output == "yes"


async def test_a_lease_is_given_up_when_the_store_fails_before_a_run_has_begun_with_it(world: World) -> None:
    out = await Tool(order, store=world.store)()
    await world.store.answer(out.run_id, {out.pending[0].id: "yes"})
    trouble: Any = Trouble(world.store)
    stored = await wait(world.store.load(out.run_id))
    assert stored is not None
    in_turn = Resumption(Tool(order, store=trouble)(parent_id=out.run_id, resume={}))
    with pytest.raises(StoreError, match="the store has failed"):
        await in_turn._in_turn(stored, None, RunRow(new_id(), out.run_id, now()))
    assert (await Tool(order, store=world.store)(parent_id=out.run_id, resume={})).output == "yes"


async def test_a_lease_that_comes_when_nobody_waits_for_it_any_more_is_given_up() -> None:
    asked: Future[Lease | None] = Future()
    waiting = asyncio.ensure_future(_granted(asked))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    lease = Lease()
    asked.set_result(lease)
    assert lease.holder is GONE


async def test_who_waits_in_memory_goes_on_when_the_holder_goes_without_a_word() -> None:
    store = MemoryStore()
    out = await Tool(order, store=store)()
    stored = await wait(store.load(out.run_id))
    assert stored is not None
    lease = await wait(store.acquire(stored.ref, RunRow(new_id(), out.run_id, now())))
    assert lease is not None
    answer = {out.pending[0].id: 1}
    resuming = asyncio.ensure_future(Tool(order, store=store)(parent_id=out.run_id, resume=answer).collect())
    await asyncio.sleep(0)
    lease.holder = GONE
    assert (await asyncio.wait_for(resuming, 30)).output == 1
