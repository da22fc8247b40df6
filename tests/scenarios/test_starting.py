"""The same start sent twice is one run (S48)."""

import asyncio
from typing import Any
from uuid import uuid4

import pytest

from tests.scenarios.conftest import World
from tests.scenarios.tools import (
    answers,
    asked,
    ids,
    in_another_process,
    listen,
    output_text,
    stands,
    tool_of,
    turn,
    use,
)
from timbal import Agent, Tool, suspend
from timbal.stores.base import BaseStore
from timbal.testing import TestModel

PAUSED = ("cancelled", "input_required")
DONE = ("success", None)
REFUSED = ("error", "resume_rejected")


class Shop:
    """A tool that counts what it does."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.orders: list[str] = []
        self.started, self.go_on = asyncio.Event(), asyncio.Event()

    def tool(self, **options: Any) -> Tool[..., Any]:
        async def order(item: str, at: str = "now") -> str:
            self.orders.append(item)
            self.started.set()
            await self.go_on.wait()
            return f"ordered {item}"

        return tool_of(order, store=self.world.cold(), **options)

    def asker(self) -> Tool[..., Any]:
        def order(item: str) -> str:
            self.orders.append(item)
            return f"ordered {item}: {suspend({'question': 'Sure?'})}"

        return tool_of(order, store=self.world.cold())


async def test_s48_a_start_sent_again_after_the_run_has_finished_gets_its_result(world: World) -> None:
    shop, run_id = Shop(world), uuid4().hex
    shop.go_on.set()
    first = await shop.tool()(item="tea", run_id=run_id)
    again = await shop.tool()(item="tea", run_id=run_id)
    assert (stands(first), first.output, first.run_id) == (DONE, "ordered tea", run_id)
    assert (stands(again), again.output, again.run_id) == (DONE, "ordered tea", run_id)
    assert shop.orders == ["tea"]
    assert len((await world.cold().runs()).items) == 1


async def test_s48_a_start_sent_again_while_the_run_is_at_work_waits_for_its_result(world: World) -> None:
    shop, run_id = Shop(world), uuid4().hex
    handles = [shop.tool()(item="tea", run_id=run_id) for _ in range(5)]
    async for event in handles[0]:
        assert event.type == "START"
        break
    await shop.started.wait()
    waiting = [asyncio.ensure_future(handle.collect()) for handle in handles]
    shop.go_on.set()
    outputs = await asyncio.gather(*waiting)
    assert {(stands(output), output.output, output.run_id) for output in outputs} == {(DONE, "ordered tea", run_id)}
    assert shop.orders == ["tea"]


async def test_s48_starts_at_the_same_moment_are_one_run(world: World) -> None:
    shop, run_id = Shop(world), uuid4().hex
    shop.go_on.set()
    outputs = await asyncio.gather(*(shop.tool()(item="tea", run_id=run_id) for _ in range(20)))
    assert {(stands(output), output.output, output.run_id) for output in outputs} == {(DONE, "ordered tea", run_id)}
    assert shop.orders == ["tea"]


async def test_s48_a_start_sent_again_after_the_run_has_paused_gets_the_same_question(world: World) -> None:
    shop, run_id = Shop(world), uuid4().hex
    events, first = await listen(shop.asker()(item="tea", run_id=run_id))
    more, again = await listen(shop.asker()(item="tea", run_id=run_id))
    assert (len(asked(events)), asked(more)) == (1, [])
    assert (stands(again), again.pending, again.output, again.run_id) == (PAUSED, first.pending, first.output, run_id)
    assert shop.orders == ["tea"]
    output = await shop.asker()(parent_id=run_id, resume=answers(again, "yes"))
    assert (stands(output), output.output) == (DONE, "ordered tea: yes")
    again = await shop.asker()(item="tea", run_id=run_id)
    assert (stands(again), again.output, shop.orders) == (DONE, "ordered tea: yes", ["tea", "tea"])


async def test_s48_a_start_sent_again_after_the_run_was_interrupted_goes_on_with_it(world: World) -> None:
    shop, run_id = Shop(world), uuid4().hex
    async with shop.tool()(item="tea", run_id=run_id) as handle:
        async for _ in handle:
            break
    assert stands(await handle) == ("cancelled", "interrupted")
    shop.go_on.set()
    output = await shop.tool()(item="tea", run_id=run_id)
    assert (stands(output), output.output) == (DONE, "ordered tea")


@pytest.mark.parametrize("when", ["finished", "paused"])
async def test_s48_the_same_id_with_another_input_is_refused(world: World, when: str) -> None:
    shop, run_id = Shop(world), uuid4().hex
    shop.go_on.set()
    start = shop.tool if when == "finished" else shop.asker
    first = await start()(item="tea", run_id=run_id)
    events, refused = await listen(start()(item="gold", run_id=run_id))
    assert stands(refused) == REFUSED
    assert run_id in refused.error["message"]  # type: ignore[index]
    assert [event.type for event in events] == ["OUTPUT"]
    assert shop.orders == ["tea"]
    again = await start()(item="tea", run_id=run_id)
    assert (stands(again), again.output) == (stands(first), first.output)


async def test_s48_the_same_id_for_another_runnable_is_refused(world: World) -> None:
    run_id = uuid4().hex
    shop = Shop(world)
    shop.go_on.set()
    await shop.tool()(item="tea", run_id=run_id)
    runs: list[str] = []

    def other(item: str) -> None:
        runs.append(item)

    runnable = tool_of(other, store=world.cold())
    assert stands(await runnable(item="tea", run_id=run_id)) == REFUSED
    assert runs == []


async def test_s48_a_default_that_is_another_one_each_time_does_not_make_it_another_start(world: World) -> None:
    shop, run_id = Shop(world), uuid4().hex
    shop.go_on.set()
    outputs = [await shop.tool(default_params={"at": lambda: uuid4().hex})(item="tea", run_id=run_id) for _ in range(2)]
    assert [output.output for output in outputs] == ["ordered tea"] * 2
    assert shop.orders == ["tea"]


async def test_s48_an_agents_start_sent_twice_asks_its_model_once(world: World) -> None:
    model = TestModel([turn(use("fine")), "done"])

    def fine() -> str:
        return "fine"

    def agent(store: BaseStore) -> Agent[Any]:
        return Agent("assistant", model, [fine], store=store)

    run_id = uuid4().hex
    first, again = await asyncio.gather(
        agent(world.store)("go", run_id=run_id), agent(world.cold())("go", run_id=run_id)
    )
    assert (output_text(first), output_text(again), model.call_count) == ("done", "done", 2)
    refused = await agent(world.cold())("something else", run_id=run_id)
    assert (stands(refused), model.call_count) == (REFUSED, 2)


@pytest.mark.parametrize("run_id", ["", "x", "A" * 32, "0" * 31, "0" * 33, 1, "g" * 32], ids=repr)
def test_s48_an_id_that_is_none_is_refused_at_once(run_id: Any) -> None:
    runnable = tool_of(lambda: None, name="work")
    with pytest.raises((ValueError, TypeError), match="run_id"):
        runnable(run_id=run_id)


async def test_s48_an_input_that_does_not_fit_leaves_the_id_free(world: World) -> None:
    shop, run_id = Shop(world), uuid4().hex
    shop.go_on.set()
    wrong = await shop.tool()(itm="tea", run_id=run_id)
    assert stands(wrong) == ("error", "invalid_input")
    output = await shop.tool()(item="tea", run_id=run_id)
    assert (stands(output), output.output) == (DONE, "ordered tea")


def test_s48_a_start_sent_again_from_another_process_gets_the_same_question(shared_world: World) -> None:
    run_id = uuid4().hex
    events, first = in_another_process("three_questions", shared_world.url, item="socks", run_id=run_id)
    more, again = in_another_process("three_questions", shared_world.url, item="socks", run_id=run_id)
    assert (len(asked(events)), asked(more), again.run_id) == (1, [], run_id)
    assert (stands(again), ids(again)) == (PAUSED, ids(first))
    _, refused = in_another_process("three_questions", shared_world.url, item="hats", run_id=run_id)
    assert stands(refused) == REFUSED
