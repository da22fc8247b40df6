"""S46: questions and other operations of tasks that wait for each other, or are cancelled by each other's pauses."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

import pytest

from tests.scenarios.effects_tools import Log, World, ask, asked, async_step, go_on, tool
from timbal import Tool, step, suspend


def asking(world: World, order: Sequence[str], drifting: bool, keyed: bool) -> Tool[..., Any]:
    async def one(what: str) -> Any:
        payload = {"q": what} | ({"at": uuid4().hex} if drifting else {})
        return suspend(payload, key=what if keyed else None)

    async def side_by_side() -> list[list[Any]]:
        got = await asyncio.gather(*(one(what) for what in order))
        return [list(pair) for pair in zip(order, got, strict=True)]

    return Tool(side_by_side, store=world.cold())


@pytest.mark.parametrize(("drifting", "keyed"), [(False, False), (False, True), (True, True)])
@pytest.mark.parametrize("order", ["ab", "ba"])
async def test_s46_gathered_questions_that_arrive_in_another_order_get_their_own_answers(
    world: World, order: str, drifting: bool, keyed: bool
) -> None:
    paused = await asking(world, "ab", drifting, keyed)()
    ids = asked(paused)
    assert set(ids) == {"a", "b"}
    half = await go_on(asking(world, order, drifting, keyed), paused, {"b": "answer b"})
    assert asked(half) == {"a": ids["a"]}
    done = await go_on(asking(world, order, drifting, keyed), half, {"a": "answer a"})
    assert done.output == [[what, f"answer {what}"] for what in order]


async def test_s46_gathered_questions_whose_payloads_drift_are_refused_naming_key(world: World) -> None:
    async def side_by_side() -> list[Any]:
        async def one(what: str) -> Any:
            return suspend({"q": what, "at": uuid4().hex})

        return list(await asyncio.gather(one("a"), one("b")))

    paused = await tool(side_by_side, store=world.store)()
    refused = await go_on(tool(side_by_side, store=world.cold()), paused, {"a": 1, "b": 2})
    assert (refused.status.code, refused.status.reason) == ("error", "replay_mismatch")
    assert "key=" in (refused.status.message or "")


async def test_s46_branches_that_ask_equal_questions_in_another_order_each_get_through(world: World) -> None:
    def fresh() -> Tool[..., Any]:
        async def branch(*questions: str) -> list[Any]:
            return [ask(question) for question in questions]

        async def side_by_side() -> list[Any]:
            return list(await asyncio.gather(branch("a", "b"), branch("b", "a")))

        return Tool(side_by_side, store=world.cold())

    out = await fresh()()
    for _ in range(4):
        if not out.pending:
            break
        item = out.pending[-1]
        out = await fresh()(parent_id=out.run_id, resume={item.interaction_id: item.payload["q"]})  # type: ignore[union-attr]
    assert (out.status.code, out.output) == ("success", [["a", "b"], ["b", "a"]])


async def test_s46_in_a_task_group_a_new_question_is_not_refused_because_a_cancelled_sibling_left_its_record(
    world: World,
) -> None:
    reached = asyncio.Event()

    def fresh() -> Tool[..., Any]:
        @step
        async def work() -> None:
            await reached.wait()

        async def works_then_asks() -> str:
            await work()
            return str(ask("x"))

        async def asks() -> str:
            for _ in range(9):  # so that its sibling's pause cancels it before it asks
                await asyncio.sleep(0)
            reached.set()
            return str(ask("z"))

        async def side_by_side() -> list[str]:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(works_then_asks()), group.create_task(asks())]
            return [task.result() for task in tasks]

        return Tool(side_by_side, store=world.cold())

    out = await fresh()()
    for _ in range(3):
        assert out.status.code == "success" or out.status.reason == "input_required", out.status
        if out.pending:
            out = await go_on(fresh(), out, {question: f"answer {question}" for question in asked(out)})
    assert out.output == ["answer x", "answer z"]


async def test_s46_an_operation_that_was_held_when_the_handler_paused_is_not_performed_after_the_pause(
    world: World,
) -> None:
    log: Log = []
    recorded = asyncio.Event()

    def fresh() -> Tool[..., Any]:
        async def asks_only() -> str:
            await recorded.wait()
            return str(ask("first?"))

        async def asks_then_works() -> str:
            await recorded.wait()
            return str(ask("second?")) + str(await async_step(log)("afterwards"))

        async def works() -> str:
            done = await async_step(log)("at once")
            recorded.set()
            return str(done)

        async def side_by_side() -> list[str]:
            return list(await asyncio.gather(asks_only(), asks_then_works(), works()))

        return Tool(side_by_side, store=world.cold())

    paused = await fresh()()
    assert set(asked(paused)) == {"first?", "second?"}
    half = await go_on(fresh(), paused, {"second?": "2 "})
    assert list(asked(half)) == ["first?"]
    done = await go_on(fresh(), half, {"first?": "1"})
    assert done.output == ["1", "2 afterwards", "at once"]
    assert Counter(log) == {"at once": 1, "afterwards": 1}
