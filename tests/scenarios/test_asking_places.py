"""Where nobody can be asked, asking is a clear error that names the place (S7)."""

import asyncio
import importlib
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.scenarios.conftest import World
from tests.scenarios.tools import KINDS, asked, listen, stands, tool, tool_of, turn, use
from timbal import Agent, Tool, step, suspend
from timbal.state import get_run_context
from timbal.testing import TestModel

DONE = ("success", None)
OUTSIDE = "outside a run"


def ask() -> Any:
    return suspend({"question": "Anybody there?"})


async def ask_async() -> Any:
    return suspend({"question": "Anybody there?"})


def work(x: int = 0) -> str:
    return f"worked {x}"


# -- no run at all -----------------------------------------------------------------------------------------------------


def in_a_thread() -> Any:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(ask).result()


@pytest.mark.parametrize("call", [ask, in_a_thread, get_run_context], ids=["here", "in a thread", "the run context"])
def test_s7_outside_a_run_asking_is_a_runtime_error_that_says_so(call: Callable[[], Any]) -> None:
    with pytest.raises(RuntimeError, match=OUTSIDE):
        call()


async def test_s7_outside_a_run_asking_in_async_code_is_a_runtime_error_that_says_so() -> None:
    with pytest.raises(RuntimeError, match=OUTSIDE):
        await ask_async()
    with pytest.raises(RuntimeError, match=OUTSIDE):
        await asyncio.create_task(ask_async())
    with pytest.raises(RuntimeError, match=OUTSIDE):
        await asyncio.to_thread(ask)


def test_s7_asking_at_import_is_a_runtime_error_that_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "asks_at_import"
    (tmp_path / f"{name}.py").write_text("from timbal import suspend\n\nANSWER = suspend({'question': 'Now?'})\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(RuntimeError, match=OUTSIDE):
        importlib.import_module(name)
    assert name not in sys.modules


async def test_s7_after_a_run_asking_is_outside_of_it(world: World) -> None:
    await tool_of(work, store=world.store)()
    async for event in Tool(work, store=world.store)():
        with pytest.raises(RuntimeError, match=OUTSIDE):
            ask()
        assert event.path == "work"


def test_s7_outside_a_run_a_step_is_the_plain_function() -> None:
    assert step(work)(x=3) == "worked 3"


# -- code of a run that is no handler ----------------------------------------------------------------------------------


def tool_with(**options: Any) -> Any:
    return Tool(work, **options)


def agent_with(**options: Any) -> Any:
    return Agent(
        "assistant", TestModel(["hello"]), default_params={"prompt": "go"} | options.pop("defaults", {}), **options
    )


#: name: (makes the runnable, what the message has to name)
PLACES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "a pre_hook": (lambda store: tool_with(pre_hook=ask, store=store), "pre_hook"),
    "an async pre_hook": (lambda store: tool_with(pre_hook=ask_async, store=store), "pre_hook"),
    "a post_hook": (lambda store: tool_with(post_hook=ask, store=store), "post_hook"),
    "an async post_hook": (lambda store: tool_with(post_hook=ask_async, store=store), "post_hook"),
    "a default": (lambda store: tool_with(default_params={"x": ask}, store=store), "default_params"),
    "a pre_hook of an agent": (lambda store: agent_with(pre_hook=ask, store=store), "pre_hook"),
    "a post_hook of an agent": (lambda store: agent_with(post_hook=ask, store=store), "post_hook"),
    "a default of an agent": (
        lambda store: agent_with(defaults={"prompt": ask}, store=store),
        "default_params",
    ),
    "a system prompt": (lambda store: agent_with(system_prompt=ask, store=store), "system prompt"),
    "an async system prompt": (lambda store: agent_with(system_prompt=ask_async, store=store), "system prompt"),
}


@pytest.mark.parametrize("name", PLACES)
async def test_s7_asking_in_code_that_is_no_handler_is_an_error_that_names_the_place(world: World, name: str) -> None:
    make, named = PLACES[name]
    events, output = await listen(make(world.store)())
    assert (output.status.code, asked(events), output.pending) == ("error", [], [])
    assert output.error is not None
    assert output.error["type"] == "RuntimeError"
    assert named in output.error["message"]
    assert "suspend()" in output.error["message"]
    assert (await world.cold().pending()).items == []


@pytest.mark.parametrize("place", ["pre_hook", "post_hook", "system_prompt"])
async def test_s7_a_tool_called_in_code_that_is_no_handler_is_an_error_that_names_the_place(
    world: World, place: str
) -> None:
    async def call() -> Any:
        return (await tool_of(ask, name="asker")()).output

    output = await agent_with(**{place: call}, store=world.store)()
    assert output.status.code == "error"
    assert place.replace("_", " ") in output.error["message"].replace("_", " ")
    assert (await world.cold().pending()).items == []


async def test_s7_asking_in_the_hook_of_a_tool_is_an_error_that_the_model_is_told(world: World) -> None:
    model = TestModel([turn(use("work", x=1)), "sorry"])
    events, output = await listen(Agent("assistant", model, [tool_with(pre_hook=ask)], store=world.store)("go"))
    assert (output.status.code, asked(events)) == ("success", [])


# -- threads -----------------------------------------------------------------------------------------------------------


def in_a_thread_of_ones_own() -> str:
    said: list[str] = []

    def run() -> None:
        try:
            ask()
        except RuntimeError as error:
            said.append(str(error))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return said[0]


def in_a_pool_of_ones_own() -> str:
    try:
        in_a_thread()
    except RuntimeError as error:
        return str(error)
    return "asked"


@pytest.mark.parametrize("start", [in_a_thread_of_ones_own, in_a_pool_of_ones_own])
@pytest.mark.parametrize("kind", KINDS)
async def test_s7_in_a_thread_that_the_handler_started_asking_is_outside_the_run(
    world: World, kind: str, start: Callable[[], str]
) -> None:
    events, output = await listen(tool(kind, start, world.store)())
    assert (stands(output), asked(events)) == (DONE, [])
    assert OUTSIDE in output.output
    assert "thread" in output.output


async def test_s7_in_an_executor_of_the_loop_asking_is_outside_the_run(world: World) -> None:
    async def handler() -> Any:
        return await asyncio.get_running_loop().run_in_executor(None, ask)

    output = await tool_of(handler, store=world.store)()
    assert output.error is not None
    assert (output.error["type"], OUTSIDE in output.error["message"]) == ("RuntimeError", True)
