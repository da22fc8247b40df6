"""A worker goes on with what needs nobody."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tests.scenarios.conftest import World
from timbal import Agent, Tool, step, suspend
from timbal.stores.base import BaseStore
from timbal.stores.waiting import wait
from timbal.testing import TestModel
from timbal.types.approval import Cancel, Default
from timbal.types.content import ToolUseContent
from timbal.types.message import Message
from timbal.worker import Worker


class Shop:
    """A tool with an effect before its question and one after it."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.more: Callable[[], Any] = lambda: None

    def tool(self, store: BaseStore, **asking: Any) -> Tool[..., Any]:
        @step
        def effect(what: str) -> str:
            self.done.append(what)
            return what

        async def order(amount: int = 10) -> str:
            effect("reserve")
            answer = suspend({"q": "pay?"}, **asking)
            if (waiting := self.more()) is not None:
                await waiting
            effect("pay")
            return f"{amount}: {answer}"

        return Tool(order, store=store)


async def work_off(worker: Worker) -> None:
    """Let the worker do all that is due."""
    while await worker.look():
        await asyncio.gather(*(task for _, task in worker._busy.values()))


async def status(store: BaseStore, run_id: str) -> tuple[str, str | None]:
    newest = (await store.get(run_id)).runs[-1]
    return newest.status, newest.reason


async def test_a_run_that_was_answered_in_the_store_goes_on_with_no_process_of_its_own(world: World) -> None:
    shop = Shop()
    out = await shop.tool(world.store)(amount=7)
    store = world.cold()
    await store.answer(out.run_id, {out.pending[0].id: "yes"})
    await work_off(Worker([shop.tool(store)], store))
    assert shop.done == ["reserve", "pay"]
    assert (await shop.tool(world.cold())(parent_id=out.run_id, resume={})).output == "7: yes"


async def test_an_agent_that_was_answered_in_the_store_asks_its_model_again(world: World) -> None:
    def ask(question: str) -> Any:
        return suspend({"q": question})

    def agent(store: BaseStore) -> Agent[Any]:
        use = Message("assistant", [ToolUseContent("1", "ask", {"question": "?"})], "tool_use")
        return Agent("clerk", TestModel([use, "thanks"]), [ask], store=store)

    out = await agent(world.store)(prompt="go")
    store = world.cold()
    await store.answer(out.run_id, {out.pending[0].id: 1})
    await work_off(Worker([agent(store)], store))
    assert [message.role for message in await store.messages(out.run_id)] == ["user", "assistant", "tool", "assistant"]


@pytest.mark.parametrize(
    ("on_expiry", "ends", "done"),
    [
        (Default("later"), ("success", None), ["reserve", "pay"]),
        ("cancel", ("cancelled", "cancelled"), ["reserve"]),
        ("raise", ("error", None), ["reserve"]),
    ],
)
async def test_s49_a_question_expires_with_no_process_of_the_run_alive(
    world: World, on_expiry: Any, ends: tuple[str, str | None], done: list[str]
) -> None:
    shop = Shop()
    asking = {"expires_in": 0.05, "on_expiry": on_expiry}
    out = await shop.tool(world.store, **asking)()
    assert out.status.reason == "input_required"
    store = world.cold()
    worker = Worker([shop.tool(store, **asking)], store, poll_seconds=0.01)
    working = asyncio.ensure_future(worker.run())
    async with asyncio.timeout(30):
        while await status(store, out.run_id) != ends:  # noqa: ASYNC110  (a store can't be waited on)
            await asyncio.sleep(0.01)
    await worker.stop()
    await working
    assert shop.done == done


async def test_a_cancel_that_was_given_to_the_store_is_carried_out(world: World) -> None:
    shop = Shop()
    out = await shop.tool(world.store)()
    await world.store.answer(out.run_id, {out.pending[0].id: Cancel("enough")})
    await work_off(Worker([shop.tool(world.store)], world.store))
    assert await status(world.store, out.run_id) == ("cancelled", "cancelled")
    assert shop.done == ["reserve"]


async def test_what_is_paused_failed_or_was_interrupted_by_its_user_is_left_alone(world: World) -> None:
    shop = Shop()
    paused = await shop.tool(world.store)()

    def fail() -> None:
        raise ValueError("no")

    failed = await Tool(fail, store=world.store)()
    waits = asyncio.Event()
    waiting = Tool(waits.wait, name="waiting", store=world.store)()
    await asyncio.wait_for(anext(waiting), 10)
    await waiting.aclose()
    worker = Worker([shop.tool(world.store), Tool(fail, store=world.store)], world.store)
    assert await worker.look() == 0
    assert (await status(world.store, paused.run_id))[0] == "paused"
    assert (await status(world.store, failed.run_id))[0] == "error"


async def test_s40_what_this_code_does_not_match_is_left_to_others_and_costs_no_attempt(world: World) -> None:
    shop = Shop()
    out = await shop.tool(world.store)()
    await world.store.answer(out.run_id, {out.pending[0].id: "yes"})

    async def order(amount: int = 10) -> str:
        suspend({"q": "something else first"}, kind="other")
        return "never"

    old = Worker([Tool(order, store=world.store)], world.store)
    await work_off(old)
    assert await old.look() == 0, "it tries again after a while only"
    (due,) = await wait(world.store.due(["order"], 10))
    assert due.attempts == 0
    await work_off(Worker([shop.tool(world.store)], world.store))
    assert (await status(world.store, out.run_id))[0] == "success"
    assert shop.done == ["reserve", "pay"]


async def test_a_worker_that_is_stopped_leaves_what_is_at_work_to_the_next_one(world: World) -> None:
    shop, at_work = Shop(), asyncio.Event()

    def more() -> Any:
        at_work.set()
        return asyncio.Event().wait()

    out = await shop.tool(world.store)()
    await world.store.answer(out.run_id, {out.pending[0].id: "yes"})
    shop.more = more
    first = Worker([shop.tool(world.store)], world.store)
    await first.look()
    await asyncio.wait_for(at_work.wait(), 10)
    await first.stop(grace_seconds=0)
    (due,) = await wait(world.store.due(["order"], 10))
    assert due.attempts == 0
    shop.more = lambda: None
    await work_off(Worker([shop.tool(world.store)], world.store))
    assert (await status(world.store, out.run_id))[0] == "success"
    assert shop.done == ["reserve", "pay"]


async def test_two_workers_share_what_is_due_and_nothing_is_done_twice(shared_world: World) -> None:
    shop = Shop()
    outs = [await shop.tool(shared_world.store)(amount=n) for n in range(20)]
    for out in outs:
        await shared_world.store.answer(out.run_id, {out.pending[0].id: "yes"})
    stores = [shared_world.cold(), shared_world.cold()]
    await asyncio.gather(*(work_off(Worker([shop.tool(store)], store, concurrency=3)) for store in stores))
    assert sorted(shop.done) == ["pay"] * 20 + ["reserve"] * 20
    page = await shared_world.store.runs(status="success")
    assert len({info.execution_id for info in page.items}) == 20
