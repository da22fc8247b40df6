"""Runs that end in odd ways: what was promised holds, and the execution can be gone on with."""

import asyncio
import os
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.scenarios.conftest import World
from timbal import Agent, Tool, step, suspend
from timbal.errors import StoreError
from timbal.stores import SqliteStore
from timbal.testing import TestModel
from timbal.types.content import ToolUseContent
from timbal.types.events import DeltaEvent
from timbal.types.message import Message

Handler = Callable[..., Any]


@pytest.mark.parametrize(
    "error", [SystemExit(2), GeneratorExit(), BaseException("bare")], ids=lambda e: type(e).__name__
)
@pytest.mark.parametrize("way", ["sync", "async"])
async def test_whatever_a_handler_raises_ends_up_in_the_output_and_the_run_can_be_tried_again(
    world: World, error: BaseException, way: str
) -> None:
    tries = []

    def fails_once() -> str:
        tries.append(1)
        if len(tries) == 1:
            raise error
        return "done"

    async def fails_once_async() -> str:
        return fails_once()

    tool: Tool[..., str] = Tool(fails_once if way == "sync" else fails_once_async, name="tool", store=world.store)
    out = await tool()
    assert (out.status.code, (out.error or {})["type"]) == ("error", type(error).__name__)
    assert (await tool(parent_id=out.run_id, resume={})).output == "done"


async def test_everybody_who_waits_for_a_run_gets_its_output(world: World) -> None:
    gate = asyncio.Event()

    async def waits() -> int:
        await gate.wait()
        return 1

    handle = Tool(waits, store=world.store)()
    readers = [asyncio.create_task(handle.collect()) for _ in range(3)]
    await asyncio.sleep(0)
    gate.set()
    assert [(await reader).output for reader in readers] == [1, 1, 1]


async def test_a_timeout_counts_when_the_handler_swallows_its_cancellation(world: World) -> None:
    done = []

    @step
    async def effect() -> None:
        done.append("late")

    async def stubborn() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await effect()
        return "late"

    out = await Tool(stubborn, timeout=0.05, store=world.store)()
    assert (out.status.code, out.status.reason, done) == ("error", "timeout", [])


async def test_an_agent_that_has_run_out_of_time_does_not_ask_its_model_again(world: World) -> None:
    async def stubborn() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "late"
        return "never"

    model = TestModel([Message("assistant", [ToolUseContent(id="1", name="stubborn", input={})]), "done"])
    out = await Agent[Any]("assistant", model, [stubborn], timeout=0.05, store=world.store)("go")
    assert (out.status.reason, model.call_count) == ("timeout", 1)


async def test_what_a_generator_yields_after_it_swallowed_the_signal_is_not_told(world: World) -> None:
    def talks() -> Iterator[str]:
        try:
            yield "a"
            answer = str(suspend({"q": 1}))
            yield f"b{answer}"
            yield "c"
        except BaseException:
            yield "caught"

    def texts(events: list[Any]) -> list[str]:
        return [event.item["text_delta"] for event in events if isinstance(event, DeltaEvent)]

    events = [event async for event in Tool(talks, store=world.store)()]
    paused: Any = events[-1]
    more: list[Any] = [
        e async for e in Tool(talks, store=world.cold())(parent_id=paused.run_id, resume={paused.pending[0].id: "X"})
    ]
    assert (texts(events), texts(more), more[-1].output) == (["a"], ["bX", "c"], "abXc")


@pytest.mark.parametrize("when", ["5", True, 0, -1, float("nan"), float("inf"), 1e12, timedelta(0)], ids=repr)
async def test_a_time_that_is_none_is_refused_at_the_suspend_line(world: World, when: Any) -> None:
    def asks() -> Any:
        return suspend({"q": 1}, expires_in=when)

    out = await Tool(asks, store=world.store)()
    assert (out.error or {})["type"] in ("TypeError", "ValueError")
    assert "expires_in" in (out.error or {})["message"]


@pytest.mark.parametrize("way", ["sync", "async"])
async def test_a_question_in_a_step_pauses_the_agent_and_each_step_runs_once(world: World, way: str) -> None:
    done = []

    @step
    def effect(what: str) -> None:
        done.append(what)

    def asks() -> str:
        effect("before")
        first, second = suspend({"q": 1}), suspend({"q": 2})
        effect("after")
        return f"{first} {second}"

    async def asks_async() -> str:
        return asks()

    def tool() -> Any:
        return step(asks)()

    async def tool_async() -> Any:
        return await step(asks_async)()

    use = Message("assistant", [ToolUseContent(id="1", name="tool", input={})])

    def agent(store: Any) -> Agent[Any]:
        return Agent(
            "assistant",
            TestModel([use, "done"]),
            [Tool(tool if way == "sync" else tool_async, name="tool")],
            store=store,
        )

    out = await agent(world.store)("go")
    for answer in ("one", "two"):
        assert len(out.pending) == 1
        out = await agent(world.cold())(parent_id=out.run_id, resume={out.pending[0].id: answer})
    assert (out.status.code, done) == ("success", ["before", "after"])


async def test_a_store_whose_file_was_deleted_says_so_and_claims_nothing(tmp_path: Path) -> None:
    async with SqliteStore(tmp_path / "runs.db") as store:
        tool = Tool(lambda: suspend({"q": 1}), name="tool", store=store)
        assert (await tool()).pending
        for suffix in ("", "-wal", "-shm"):
            os.unlink(f"{tmp_path / 'runs.db'}{suffix}")
        with pytest.raises(StoreError, match="deleted or replaced"):
            await tool()


async def test_a_run_that_the_store_could_not_keep_goes_on_when_it_can(tmp_path: Path) -> None:
    done = []

    @step
    def effect(n: int) -> str:
        done.append(n)
        return "x" * 20_000

    def works() -> str:
        for n in range(20):
            effect(n)
        return "done"

    async with SqliteStore(tmp_path / "runs.db") as store:
        connection = store._writer._connection
        assert connection is not None
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count={pages + 20}")
        handle = Tool(works, store=store)()
        with pytest.raises(StoreError, match="full"):
            await handle.collect()
        connection.execute(f"PRAGMA max_page_count={2**30}")
        out = await Tool(works, store=store)(parent_id=handle.run_id, resume={})
        assert out.output == "done"
        assert len(done) == 20 + 1  # the step whose record did not fit, again
