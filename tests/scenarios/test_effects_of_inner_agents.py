"""S14: an agent called in a tool's body is part of the run that calls it."""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from tests.scenarios.effects_tools import Log, World, ask, asked, go_on, tool, tool_calls, tool_results, turns_so_far
from timbal import Agent, step
from timbal.testing import TestModel
from timbal.types.events import InteractionEvent, OutputEvent, StartEvent

Body = Callable[[Agent[Any], Callable[[str], str]], Callable[..., Any]]


def helper(log: Log) -> Agent[Any]:
    """An agent that asks a person about its prompt and passes the answer on."""

    def inquire(about: str) -> str:
        answer = ask(about)
        log.append(f"inquired {about}")
        return f"{about} is {answer}"

    def model(messages: Any) -> Any:
        prompt = messages[0].collect_text()
        log.append(f"helper {prompt} {turns_so_far(messages)}")
        if turns_so_far(messages) == 0:
            return tool_calls(("inquire", {"about": prompt}))
        return f"I heard: {tool_results(messages)[-1]}"

    return Agent("helper", TestModel(handler=model), [inquire])


def awaited(agent: Agent[Any], effect: Callable[[str], str]) -> Callable[..., Any]:
    async def consult() -> str:
        effect("before")
        out = await agent(prompt="color")
        effect("after")
        return f"{out.status.code}: {out.output.collect_text()}"

    return consult


def iterated(agent: Agent[Any], effect: Callable[[str], str]) -> Callable[..., Any]:
    async def consult() -> str:
        effect("before")
        handle = agent(prompt="color")
        async for _ in handle:
            pass
        out = await handle.collect()
        effect("after")
        return f"{out.status.code}: {out.output.collect_text()}"

    return consult


def in_a_worker_thread(agent: Agent[Any], effect: Callable[[str], str]) -> Callable[..., Any]:
    def consult() -> str:
        effect("before")
        out = agent.run_sync(prompt="color")
        effect("after")
        return f"{out.status.code}: {out.output.collect_text()}"

    return consult


def run_sync_on_the_loop(agent: Agent[Any], effect: Callable[[str], str]) -> Callable[..., Any]:
    async def consult() -> str:
        effect("before")
        out = agent.run_sync(prompt="color")
        effect("after")
        return f"{out.status.code}: {out.output.collect_text()}"

    return consult


def through_another_tool(agent: Agent[Any], effect: Callable[[str], str]) -> Callable[..., Any]:
    inner = tool(awaited(agent, effect), name="inner")

    async def consult() -> str:
        return str((await inner()).output)

    return consult


def caught_and_called(agent: Agent[Any], effect: Callable[[str], str]) -> Callable[..., Any]:
    async def consult() -> str:
        effect("before")
        try:
            out = await agent(prompt="color")
        except BaseException:
            effect("after")
            raise
        effect("after")
        return f"{out.status.code}: {out.output.collect_text()}"

    return consult


BODIES: list[Body] = [
    awaited,
    iterated,
    in_a_worker_thread,
    run_sync_on_the_loop,
    through_another_tool,
    caught_and_called,
]


def desk(world: World, log: Log, body: Body) -> Callable[[], Agent[Any]]:
    @step
    def effect(what: str) -> str:
        log.append(what)
        return what

    def model(messages: Any) -> Any:
        log.append(f"desk {turns_so_far(messages)}")
        return tool_calls(("consult", {})) if turns_so_far(messages) == 0 else str(tool_results(messages)[-1])

    def fresh() -> Agent[Any]:
        consult = tool(body(helper(log), effect), name="consult")
        return Agent("desk", TestModel(handler=model), [consult], store=world.cold())

    return fresh


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
async def test_s14_an_agent_called_in_a_tool_pauses_the_outer_run_and_the_tool_goes_on_with_its_output(
    world: World, body: Body
) -> None:
    log: Log = []
    fresh = desk(world, log, body)
    events = [event async for event in fresh()("go")]
    (question,) = [event for event in events if isinstance(event, InteractionEvent)]
    inside = "consult.inner" if body is through_another_tool else "consult"
    assert question.path == question.runnable_path == f"desk.{inside}.helper.inquire"
    paused = events[-1]
    assert isinstance(paused, OutputEvent)
    assert (paused.path, paused.status.code, paused.status.reason) == ("desk", "cancelled", "input_required")
    assert paused.pending == [question]
    assert {event.run_id for event in events} == {paused.run_id}
    done = await go_on(fresh(), paused, {"color": "blue"})
    assert done.output.collect_text() == "success: I heard: color is blue"
    again = await go_on(fresh(), paused, {"color": "blue"})
    assert again.output == done.output
    once = ["desk 0", "desk 1", "before", "after", "helper color 0", "helper color 1", "inquired color"]
    assert Counter(log) == Counter(once)


def one_after_the_other(agent: Agent[Any], effect: Callable[[str], str]) -> Callable[..., Any]:
    async def consult() -> list[str]:
        first = await agent(prompt="color")
        effect("between")
        second = await agent(prompt="size")
        return [first.output.collect_text(), second.output.collect_text()]

    return consult


def one_after_the_other_in_a_thread(agent: Agent[Any], effect: Callable[[str], str]) -> Callable[..., Any]:
    def consult() -> list[str]:
        first = agent.run_sync(prompt="color")
        effect("between")
        second = agent.run_sync(prompt="size")
        return [first.output.collect_text(), second.output.collect_text()]

    return consult


def gathered(agent: Agent[Any], effect: Callable[[str], str]) -> Callable[..., Any]:
    async def consult() -> list[str]:
        outs = await asyncio.gather(agent(prompt="color"), agent(prompt="size"))
        effect("between")
        return [out.output.collect_text() for out in outs]

    return consult


def in_a_group(agent: Agent[Any], effect: Callable[[str], str]) -> Callable[..., Any]:
    async def consult() -> list[str]:
        async def one(prompt: str) -> str:
            return str((await agent(prompt=prompt)).output.collect_text())

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(prompt)) for prompt in ("color", "size")]
        effect("between")
        return [task.result() for task in tasks]

    return consult


@pytest.mark.parametrize(
    "body", [one_after_the_other, one_after_the_other_in_a_thread, gathered, in_a_group], ids=lambda body: body.__name__
)
@pytest.mark.parametrize("last_first", [False, True], ids=["in order", "last first"])
async def test_s14_an_agent_called_twice_in_a_tool_is_run_twice_and_no_more(
    world: World, body: Body, last_first: bool
) -> None:
    log: Log = []
    fresh = desk(world, log, body)
    out = await fresh()("go")
    rounds = 0
    while out.status.reason == "input_required":
        rounds += 1
        question = list(asked(out))[-1 if last_first else 0]
        out = await go_on(fresh(), out, {question: f"good ({question})"})
    assert rounds == 2
    assert out.status.code == "success"
    expected = '["I heard: color is good (color)","I heard: size is good (size)"]'
    assert out.output.collect_text() == expected
    prompts = ("color", "size")
    once = [*(f"helper {p} {turn}" for p in prompts for turn in (0, 1)), *(f"inquired {p}" for p in prompts)]
    assert Counter(log) == Counter(["desk 0", "desk 1", "between", *once])


async def test_s14_a_finished_inner_agent_tells_nothing_again(world: World) -> None:
    log: Log = []
    fresh = desk(world, log, one_after_the_other)
    out = await go_on(fresh(), await fresh()("go"), {"color": "blue"})
    events = [event async for event in fresh()(parent_id=out.run_id, resume={asked(out)["size"]: "big"})]
    started = [
        event.input["prompt"] for event in events if isinstance(event, StartEvent) and event.runnable_name == "helper"
    ]
    assert started == ["size"]


@pytest.mark.parametrize("name", ["parent_id", "resume", "run_id"])
async def test_s14_an_inner_agent_takes_no_run_of_its_own(world: World, name: str) -> None:
    inner = helper([])
    value: Any = {} if name == "resume" else "0" * 32

    async def consult() -> None:
        await inner(prompt="color", **{name: value})

    out = await tool(consult, store=world.store)()
    assert out.error is not None
    assert name in out.error["message"]
