"""S12 and S13: calls that stand beside a paused one, and agents below agents, are each done once."""

import asyncio
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.scenarios.answering_tools import answerers
from tests.scenarios.effects_tools import (
    Log,
    World,
    answers,
    ask,
    asked,
    go_on,
    sync_step,
    tool_calls,
    tool_results,
    turns_so_far,
)
from tests.scenarios.programs import house
from tests.scenarios.programs.house import FileLines
from timbal import Agent, Tool, step
from timbal.core.facts import Ended
from timbal.stores import MemoryStore
from timbal.testing import TestModel
from timbal.types.events import InteractionEvent, OutputEvent

Fresh = Callable[[], Agent[Any]]


def siblings(world: World, log: Log, slow: asyncio.Event) -> Fresh:
    """An agent whose model asks for six tools at once: two ask a person, the others end in their own ways."""

    def at_once() -> str:
        log.append("at_once")
        return "there"

    async def gathers() -> list[Any]:
        inner = Tool(at_once, name="inner")
        return [out.output for out in await asyncio.gather(inner(), inner())]

    async def slowly() -> str:
        await slow.wait()
        log.append("slowly")
        return "at last"

    def fails() -> None:
        log.append("fails")
        raise ValueError("no luck")

    def one() -> str:
        return f"one {ask('one?')}"

    async def two() -> str:
        return f"two {ask('two?')}"

    def model(messages: Any) -> Any:
        log.append("model")
        if turns_so_far(messages) == 0:
            return tool_calls(*((name, {}) for name in ("at_once", "one", "gathers", "slowly", "two", "fails")))
        return " | ".join(map(str, tool_results(messages)))

    tools = [at_once, gathers, slowly, fails, one, two]
    return lambda: Agent("desk", TestModel(handler=model), tools, store=world.cold())


@pytest.mark.parametrize("order", [["one?", "two?"], ["two?", "one?"]], ids=" ".join)
async def test_s12_completed_siblings_are_not_run_again_by_a_resume_or_by_a_second_one(
    world: World, order: list[str]
) -> None:
    log: Log = []
    slow = asyncio.Event()
    fresh = siblings(world, log, slow)
    handle = fresh()("go")
    async for event in handle:
        if isinstance(event, InteractionEvent) and event.payload == {"q": "two?"}:
            slow.set()
    paused = await handle
    assert Counter(log) == {"model": 1, "at_once": 3, "slowly": 1, "fails": 1}
    half = await go_on(fresh(), paused, {order[0]: "yes"})
    assert list(asked(half)) == [order[1]]
    done = await fresh()(parent_id=paused.run_id, resume=answers(half, {order[1]: "no"}))
    assert Counter(log) == {"model": 2, "at_once": 3, "slowly": 1, "fails": 1}
    said = {"one?": "yes" if order[0] == "one?" else "no", "two?": "yes" if order[0] == "two?" else "no"}
    expected = [
        "there",
        f"one {said['one?']}",
        '["there","there"]',
        "at last",
        f"two {said['two?']}",
        "ValueError: no luck",
    ]
    assert done.output.collect_text() == " | ".join(expected)


async def test_s12_a_sibling_that_was_still_running_when_the_answer_came_is_run_once(world: World) -> None:
    log: Log = []
    slow = asyncio.Event()
    fresh = siblings(world, log, slow)
    resumes: list[Any] = []
    handle = fresh()("go")
    async for event in handle:
        if isinstance(event, InteractionEvent):
            again = fresh()(parent_id=handle.run_id, resume={event.interaction_id: "yes"})
            resumes.append(asyncio.ensure_future(again.collect()))
            if len(resumes) == 2:
                slow.set()
    outs = [await handle, *await asyncio.gather(*resumes)]
    assert [out for out in outs if out.status.code == "success"]
    assert Counter(log) == {"model": 2, "at_once": 3, "slowly": 1, "fails": 1}


class SlowInThreads(MemoryStore):
    """A store whose commits from worker threads take long: until a run has ended, or a second."""

    def __init__(self) -> None:
        super().__init__()
        self._ended = threading.Event()

    def commit(self, *args: Any, **more: Any) -> Any:
        if threading.current_thread() is not threading.main_thread():
            self._ended.wait(1)
        result = super().commit(*args, **more)
        if any(isinstance(arg, Ended) for arg in args):
            self._ended.set()
        return result


async def test_s12_a_sync_step_beside_a_question_is_recorded_before_the_pause_however_slow_the_store_is() -> None:
    log: Log = []
    store = SlowInThreads()
    entered = asyncio.Event()

    def fresh() -> Tool[..., Any]:
        loop = asyncio.get_running_loop()

        @step
        def effect() -> str:
            log.append("effect")
            loop.call_soon_threadsafe(entered.set)
            return "effect"

        async def asks() -> str:
            await entered.wait()
            return str(ask("go on?"))

        async def side_by_side() -> list[str]:
            return list(await asyncio.gather(asks(), asyncio.to_thread(effect)))

        return Tool(side_by_side, store=store)

    paused = await fresh()()
    done = await go_on(fresh(), paused, {"go on?": "yes"})
    assert (done.output, log) == (["yes", "effect"], ["effect"])


async def test_s12_a_step_in_a_thread_that_begins_as_its_call_pauses_is_done_once(world: World) -> None:
    """A sibling's question ends the group while the step is on its way, in its thread, to its first line."""
    log: Log = []
    begins, paused, over = threading.Event(), threading.Event(), threading.Event()

    def known_by() -> str:
        begins.set()
        paused.wait()
        return "effect"

    effect = step(key=known_by)(lambda: log.append("effect"))

    def in_a_thread() -> None:
        try:
            effect()
        finally:
            over.set()

    async def asks() -> None:
        await asyncio.to_thread(begins.wait)
        ask("go on?")

    async def side_by_side() -> str:
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.to_thread(in_a_thread))
            group.create_task(asks())
        return "done"

    waits = await Tool(side_by_side, store=world.store)()
    paused.set()
    await asyncio.to_thread(over.wait)
    over.clear()
    done = await go_on(Tool(side_by_side, store=world.cold()), waits, {"go on?": "yes"})
    assert (done.output, log) == ("done", ["effect"])


async def test_s12_what_parallel_tools_ask_is_told_before_the_end_of_the_run(world: World) -> None:
    def agent() -> Agent[Any]:
        effect = sync_step([])

        def inner() -> str:
            return str(ask("inner?"))

        async def nested() -> str:
            return str((await Tool(inner)()).output)

        async def asks() -> str:
            return str(ask("task?"))

        async def gathers() -> list[str]:
            return list(await asyncio.gather(asks(), asyncio.to_thread(effect, "x")))

        return Agent(
            "desk", TestModel([tool_calls(("nested", {}), ("gathers", {}))]), [nested, gathers], store=world.store
        )

    for _ in range(50):
        events = [event async for event in agent()("go")]
        told = {event.payload["q"] for event in events if isinstance(event, InteractionEvent)}
        assert isinstance(events[-1], OutputEvent)
        assert events[-1].path == "desk"
        assert told == set(asked(events[-1]))


# -- three deep --------------------------------------------------------------------------------------------------------


def once_each(names: tuple[str, str]) -> Counter[str]:
    log = ["root go 0", "root go 1"]
    for name, branch in zip(names, ("left", "right"), strict=True):
        log += [f"{agent} {branch} {turn}" for agent in (name, "worker") for turn in (0, 1)]
        log += [f"before {branch}", f"after {branch}"]
    return Counter(log)


@pytest.mark.parametrize(
    "names",
    [("team", "team"), ("north", "south")],
    ids=["one agent called twice", "agents of one name below two others"],
)
@pytest.mark.parametrize("order", [["right", "left"], ["left", "right"]], ids=" ".join)
async def test_s13_three_levels_deep_each_model_call_and_tool_is_made_once_whatever_the_order_of_answers(
    world: World, names: tuple[str, str], order: list[str]
) -> None:
    log: Log = []
    paused = await house.branches(world.store, log, *names)("go")
    assert set(asked(paused)) == {"left", "right"}
    assert len({item.path for item in paused.pending}) == len(set(names))
    half = await go_on(house.branches(world.cold(), log, *names), paused, {order[0]: 1})
    assert asked(half) == {order[1]: asked(paused)[order[1]]}
    resume = answers(half, {order[1]: 2})
    done = await house.branches(world.cold(), log, *names)(parent_id=paused.run_id, resume=resume)
    assert done.status.code == "success"
    text = done.output.collect_text()
    assert f"{order[0]}=1" in text
    assert f"{order[1]}=2" in text
    assert Counter(log) == once_each(names)


async def test_s13_both_answers_at_once_make_each_call_once_too(world: World) -> None:
    log: Log = []
    paused = await house.branches(world.store, log)("go")
    done = await go_on(house.branches(world.cold(), log), paused, {"right": 2, "left": 1})
    again = await go_on(house.branches(world.cold(), log), paused, {"left": 1, "right": 2})
    assert done.output == again.output
    assert Counter(log) == once_each(("team", "team"))


@pytest.mark.slow
def test_s13_answers_in_reverse_order_each_in_a_new_process_make_each_call_once(
    tmp_path: Path, shared_world: World
) -> None:
    log = FileLines(tmp_path / "log")
    paused = house.branches(shared_world.store, log).run_sync("go")
    outs = []
    for branch, value in (("right", 2), ("left", 1)):
        with answerers(1, shared_world.url, log, "branches") as (process,):
            process.resume(paused.run_id, answers(paused, {branch: value}))
            outs += process.outputs()
    assert [out["status"]["code"] for out in outs] == ["cancelled", "success"]
    text = outs[-1]["output"]["content"][0]["text"]
    assert "right=2" in text
    assert "left=1" in text
    assert Counter(log.all()) == once_each(("team", "team"))
