"""What follows a caught pause, and questions of tasks that a handler started (S4)."""

import asyncio
import contextlib
import threading
from typing import Any

import pytest

from tests.scenarios.conftest import World
from tests.scenarios.tools import (
    KINDS,
    answers,
    asked,
    ids,
    listen,
    output_text,
    results,
    stands,
    tool,
    tool_of,
    turn,
    use,
)
from timbal import Agent, Tool, step, suspend
from timbal.stores.base import BaseStore
from timbal.testing import ScriptedHuman, TestModel

PAUSED = ("cancelled", "input_required")
DONE = ("success", None)


@pytest.mark.parametrize("kind", KINDS)
async def test_s4_after_a_caught_pause_no_step_runs_and_no_other_question_is_opened(world: World, kind: str) -> None:
    charged: list[str] = []

    @step
    def charge(card: str) -> str:
        charged.append(card)
        return card

    def body() -> str:
        said = []
        for act in (lambda: suspend({"card": 1}), lambda: charge("red"), lambda: suspend({"card": 2})):
            try:
                said.append(act())
            except BaseException:
                said.append("swallowed")
        return " ".join(said)

    heard, output = await listen(tool(kind, body, world.store)())
    assert (stands(output), [e.payload for e in asked(heard)], charged) == (PAUSED, [{"card": 1}], [])
    more, output = await listen(tool(kind, body, world.cold())(parent_id=output.run_id, resume=answers(output, "a")))
    assert (stands(output), [e.payload for e in asked(more)], charged) == (PAUSED, [{"card": 2}], ["red"])
    output = await tool(kind, body, world.cold())(parent_id=output.run_id, resume=answers(output, "b"))
    assert (stands(output), output.output, charged) == (DONE, "a red b", ["red"])


async def test_s4_after_a_caught_pause_no_tool_is_called_by_the_task_that_asked_or_by_the_one_that_started_it(
    world: World,
) -> None:
    called: list[str] = []

    async def other() -> str:
        called.append("other")
        return "other"

    async def catching() -> str:
        with contextlib.suppress(BaseException):
            return str(suspend({"question": "Go on?"}))
        with contextlib.suppress(BaseException):
            await tool_of(other)()
        return "swallowed"

    async def handler() -> str:
        said = await asyncio.create_task(catching())
        with contextlib.suppress(BaseException):
            said += str((await tool_of(other)()).output)
        return said

    output = await tool_of(handler, store=world.store)()
    assert (stands(output), len(output.pending), called) == (PAUSED, 1, [])
    runnable = tool_of(handler, store=world.cold())
    output = await runnable(parent_id=output.run_id, resume=answers(output, "yes "))
    assert (stands(output), output.output, called) == (DONE, "yes other", ["other"])


async def test_s4_a_handler_that_retries_for_long_is_heard_before_it_has_returned(world: World) -> None:
    known = asyncio.Event()

    async def handler() -> str:
        with contextlib.suppress(BaseException):
            return str(suspend({"question": "Go on?"}))
        await known.wait()
        return "swallowed"

    handle = tool_of(handler, store=world.store)()
    async for event in handle:
        if event.type == "INTERACTION":
            assert [item.id for item in (await world.cold().pending()).items] == ids_of(event)
            known.set()
    assert stands(await handle) == PAUSED


def ids_of(event: Any) -> list[str]:
    return [event.interaction_id]


@pytest.mark.parametrize("swallow", [False, True], ids=["", "with the exceptions swallowed"])
async def test_s4_gathered_questions_are_opened_in_one_pause_and_answered_in_any_order(
    world: World, swallow: bool
) -> None:
    async def ask(name: str) -> str:
        return f"{name}={suspend({'name': name})}"

    async def handler() -> Any:
        return await asyncio.gather(*map(ask, "abc"), return_exceptions=swallow)

    def fresh() -> Tool[..., Any]:
        return tool_of(handler, store=world.cold())

    heard, output = await listen(fresh()())
    assert (stands(output), len(set(ids(output)))) == (PAUSED, 3)
    for id, answer in list(answers(output, 1, 2, 3).items())[::-1]:
        more, output = await listen(fresh()(parent_id=output.run_id, resume={id: answer}))
        heard += more
    assert (stands(output), output.output) == (DONE, ["a=1", "b=2", "c=3"])
    assert [event.payload["name"] for event in asked(heard)] == ["a", "b", "c"]


async def test_s4_questions_of_threads_that_all_were_reached_are_opened_in_one_pause(world: World) -> None:
    def fresh() -> Tool[..., Any]:
        reached = threading.Barrier(3)

        def ask(name: str) -> str:
            reached.wait()
            return f"{name}={suspend({'name': name})}"

        async def handler() -> Any:
            return await asyncio.gather(*(asyncio.to_thread(ask, n) for n in "abc"), return_exceptions=True)

        return tool_of(handler, store=world.cold())

    output = await fresh()()
    by_name = {event.model_dump()["payload"]["name"]: event.model_dump()["interaction_id"] for event in output.pending}
    assert sorted(by_name) == ["a", "b", "c"]
    output = await fresh()(parent_id=output.run_id, resume={by_name[name]: name.upper() for name in "abc"})
    assert (stands(output), output.output) == (DONE, ["a=A", "b=B", "c=C"])


async def test_s4_questions_of_threads_are_each_asked_once(world: World) -> None:
    def ask(name: str) -> str:
        return f"{name}={suspend({'name': name})}"

    async def handler() -> Any:
        return await asyncio.gather(*(asyncio.to_thread(ask, name) for name in "abc"))

    human = ScriptedHuman({"suspend": lambda event: event.payload["name"].upper()})
    output = await human.run(tool_of(handler, store=world.store))
    assert (stands(output), output.output) == (DONE, ["a=A", "b=B", "c=C"])
    assert sorted(event.model_dump()["payload"]["name"] for event in human.asked) == ["a", "b", "c"]


async def test_s4_in_a_task_group_the_questions_of_cancelled_siblings_come_in_the_next_run(world: World) -> None:
    async def ask(name: str, hops: int) -> str:
        for _ in range(hops):
            await asyncio.sleep(0)
        return f"{name}={suspend({'name': name})}"

    async def handler() -> list[str]:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(ask("quick", 0)), group.create_task(ask("slow", 20))]
        return [task.result() for task in tasks]

    def fresh() -> Tool[..., Any]:
        return tool_of(handler, store=world.cold())

    output = await fresh()()
    assert [event.model_dump()["payload"] for event in output.pending] == [{"name": "quick"}]
    output = await fresh()(parent_id=output.run_id, resume=answers(output, 1))
    assert [event.model_dump()["payload"] for event in output.pending] == [{"name": "slow"}]
    output = await fresh()(parent_id=output.run_id, resume=answers(output, 2))
    assert (stands(output), output.output) == (DONE, ["quick=1", "slow=2"])


async def test_s4_a_task_that_the_handler_left_running_can_ask_nothing(world: World) -> None:
    returned = asyncio.Event()
    left: list[asyncio.Task[Any]] = []

    async def late() -> Any:
        await returned.wait()
        return suspend({"question": "Anybody there?"})

    async def handler() -> str:
        left.append(asyncio.create_task(late()))
        return "done"

    heard, output = await listen(tool_of(handler, store=world.store)())
    assert (stands(output), output.output, asked(heard)) == (DONE, "done", [])
    returned.set()
    with pytest.raises(RuntimeError):
        await left[0]
    assert (await world.cold().pending()).items == []


@pytest.mark.parametrize("kind", KINDS)
async def test_s4_a_tool_of_an_agent_that_catches_its_pause_gives_the_model_no_made_up_result(
    world: World, kind: str
) -> None:
    def body() -> str:
        with contextlib.suppress(BaseException):
            return str(suspend({"question": "Go on?"}))
        return "swallowed"

    def agent(store: BaseStore) -> Agent[Any]:
        return Agent("assistant", TestModel([turn(use("go")), "done"]), [tool(kind, body, store, "go")], store=store)

    output = await agent(world.store)("go")
    assert (stands(output), len(output.pending)) == (PAUSED, 1)
    output = await agent(world.cold())(parent_id=output.run_id, resume=answers(output, "yes"))
    assert output_text(output) == "done"
    assert results(await world.store.messages(output.run_id)) == {"call_go": "yes"}


async def test_s4_an_agent_called_in_a_tool_that_catches_everything_pauses_that_tool(world: World) -> None:
    def ask() -> str:
        return str(suspend({"question": "Go on?"}))

    async def delegate() -> str:
        try:
            return output_text(await Agent("inner", TestModel([turn(use("ask")), "inner is done"]), [ask])("go"))
        except BaseException:
            return "swallowed"

    def agent(store: BaseStore) -> Agent[Any]:
        return Agent("outer", TestModel([turn(use("delegate")), "outer is done"]), [delegate], store=store)

    heard, output = await listen(agent(world.store)("go"))
    assert (stands(output), [event.path for event in asked(heard)]) == (PAUSED, ["outer.delegate.inner.ask"])
    output = await agent(world.cold())(parent_id=output.run_id, resume=answers(output, "yes"))
    assert output_text(output) == "outer is done"
    assert results(await world.store.messages(output.run_id)) == {"call_delegate": "inner is done"}
