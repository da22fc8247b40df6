"""Connections belong to an event loop: they are used again in it, and closed with it."""

import asyncio
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.fake_api import FakeApi
from timbal import Agent, Model
from timbal.models.per_loop import PerLoop


def test_one_agent_works_in_one_loop_after_another(api: FakeApi, model: Model) -> None:
    api.say({"content": "hello"})
    agent: Agent[Any] = Agent("greeter", model)
    for _ in range(3):
        assert agent.run_sync("go").output.collect_text() == "hello"


async def test_run_sync_works_where_a_loop_is_running(api: FakeApi, model: Model) -> None:
    api.say({"content": "hello"})
    agent: Agent[Any] = Agent("greeter", model)
    assert (await agent("go")).output.collect_text() == "hello"
    assert agent.run_sync("go").output.collect_text() == "hello"
    assert (await agent("go")).output.collect_text() == "hello"


def test_loops_in_several_threads_ask_at_once(api: FakeApi, model: Model) -> None:
    api.say({"content": "hello"})
    agent: Agent[Any] = Agent("greeter", model)
    with ThreadPoolExecutor(4) as threads:
        outputs = list(threads.map(agent.run_sync, ["go"] * 8))
    assert [output.output.collect_text() for output in outputs] == ["hello"] * 8


async def test_runs_at_once_get_their_own_answers(api: FakeApi, model: Model) -> None:
    for i in range(12):
        api.say({"content": f"answer {i}"}, userMessage=f"question {i}.")
    agent: Agent[Any] = Agent("greeter", model)
    outputs = await asyncio.gather(*(agent(f"question {i}.").collect() for i in range(12)))
    assert [output.output.collect_text() for output in outputs] == [f"answer {i}" for i in range(12)]


async def test_a_connection_is_used_again_by_every_agent_of_a_loop(api: FakeApi, model: Model) -> None:
    api.say({"content": "hello"})
    for _ in range(3):
        await Agent("greeter", model)("go")
    assert len({asked.client for asked in api.requests}) == 1


async def test_a_run_that_is_stopped_in_the_middle_leaves_the_others_alone(api: FakeApi, model: Model) -> None:
    api.say({"content": "a long story, told in many pieces, one after the other"})
    agent: Agent[Any] = Agent("teller", model)
    async with agent("go") as handle:
        async for event in handle:
            if event.type == "DELTA":
                break
    assert (await agent("go")).status.code == "success"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["openai/gpt-5", "anthropic/claude-sonnet-4-5", "google/gemini-2.5-pro"])
def test_a_process_ends_without_a_word_about_what_is_open(api: FakeApi, name: str) -> None:
    api.say({"content": "hello"})
    code = f"""
import gc
from timbal import Agent
print(Agent("greeter", {name!r}).run_sync("go").output.collect_text())
gc.collect()
"""
    command = [sys.executable, "-W", "always::ResourceWarning", "-c", code]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ)
    assert ran.stdout == "hello\n"
    assert "ResourceWarning" not in ran.stderr
    assert "unclosed" not in ran.stderr


class Thing:
    def __init__(self) -> None:
        self.closed_in: asyncio.AbstractEventLoop | None = None

    async def aclose(self) -> None:
        self.closed_in = asyncio.get_running_loop()


def test_each_loop_has_its_own_thing_and_closes_it() -> None:
    things = PerLoop(Thing)

    async def get() -> tuple[Thing, Thing, asyncio.AbstractEventLoop]:
        return await things.get(), await things.get(), asyncio.get_running_loop()

    first, again, loop = asyncio.run(get())
    other, _, other_loop = asyncio.run(get())
    assert first is again
    assert first is not other
    assert (first.closed_in, other.closed_in) == (loop, other_loop)
