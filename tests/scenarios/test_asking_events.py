"""What a run that asks tells, in which order, and how it is stopped and listened to (contract sections 2, 3, 4, 6)."""

import asyncio
import hashlib
import json
import re
from collections.abc import AsyncIterator
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
    stands,
    told,
    tool,
    tool_of,
    turn,
    use,
)
from timbal import Agent, Tool, suspend
from timbal.stores.base import BaseStore
from timbal.testing import TestModel
from timbal.types.events import InteractionEvent, OutputEvent, validate_event
from timbal.types.message import Message

PAUSED = ("cancelled", "input_required")
DONE = ("success", None)
INTERACTION_FIELDS = [
    "type",
    "run_id",
    "parent_run_id",
    "path",
    "call_id",
    "parent_call_id",
    "t0",
    "interaction_id",
    "kind",
    "runnable_path",
    "runnable_name",
    "runnable_type",
    "tool_call_id",
    "payload",
    "response_schema",
    "expires_at",
    "audience",
]


def ask() -> str:
    return str(suspend({"question": "Go on?"}, kind="check", response_schema={"type": "string"}))


def asker(store: BaseStore) -> Tool[..., Any]:
    return tool_of(ask, store=store)


def agent(store: BaseStore, *calls: Any) -> Agent[Any]:
    return Agent("assistant", TestModel([turn(*(calls or (use("ask"),))), "done"]), [ask], store=store)


# -- order -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
async def test_a_tool_that_asks_tells_start_interaction_output(world: World, kind: str) -> None:
    events, output = await listen(tool(kind, ask, world.store)())
    assert told(events) == [("START", "handler"), ("INTERACTION", "handler"), ("OUTPUT", "handler")]
    events, output = await listen(tool(kind, ask, world.cold())(parent_id=output.run_id, resume=answers(output, "yes")))
    assert [kind for kind, _ in told(events) if kind != "DELTA"] == ["START", "OUTPUT"]


async def test_an_agent_that_asks_tells_its_model_then_its_tools_then_its_output(world: World) -> None:
    events, output = await listen(agent(world.store)("go"))
    assert told(events) == [
        ("START", "assistant"),
        ("START", "assistant.llm"),
        ("OUTPUT", "assistant.llm"),
        ("START", "assistant.ask"),
        ("INTERACTION", "assistant.ask"),
        ("OUTPUT", "assistant.ask"),
        ("OUTPUT", "assistant"),
    ]
    more, output = await listen(agent(world.cold())(parent_id=output.run_id, resume=answers(output, "yes")))
    assert told(more) == [
        ("START", "assistant"),
        ("START", "assistant.ask"),
        ("OUTPUT", "assistant.ask"),
        ("START", "assistant.llm"),
        ("OUTPUT", "assistant.llm"),
        ("OUTPUT", "assistant"),
    ]
    by_path = {event.path: event.call_id for event in events if event.type == "START"}
    again = {event.path: event.call_id for event in more if event.type == "START"}
    assert (again["assistant"], again["assistant.ask"]) == (by_path["assistant"], by_path["assistant.ask"])
    assert again["assistant.llm"] != by_path["assistant.llm"]


async def test_every_event_of_a_run_that_asks_is_json_that_reads_back_as_itself(world: World) -> None:
    events, output = await listen(agent(world.store)("go"))
    more, output = await listen(agent(world.cold())(parent_id=output.run_id, resume=answers(output, "yes")))
    for event in events + more:
        for back in (validate_event(event.model_dump_json()), validate_event(event.model_dump(mode="json"))):
            assert back.model_dump_json() == event.model_dump_json()
            assert back == event or isinstance(getattr(event, "output", None), Message)
        assert re.fullmatch("[0-9a-f]{32}", event.call_id)
    (question,) = asked(events)
    assert list(json.loads(question.model_dump_json())) == INTERACTION_FIELDS
    start = next(event for event in events if event.path == "assistant.ask")
    assert question.model_dump() == {
        "type": "INTERACTION",
        "run_id": events[0].run_id,
        "parent_run_id": None,
        "path": "assistant.ask",
        "call_id": start.call_id,
        "parent_call_id": events[0].call_id,
        "t0": question.t0,
        "interaction_id": question.interaction_id,
        "kind": "check",
        "runnable_path": "assistant.ask",
        "runnable_name": "ask",
        "runnable_type": "Tool",
        "tool_call_id": "call_ask",
        "payload": {"question": "Go on?"},
        "response_schema": {"type": "string"},
        "expires_at": None,
        "audience": None,
    }
    assert start.model_dump()["t0"] <= question.t0 <= events[-1].model_dump()["t1"]


async def test_what_waits_is_in_the_output_with_all_its_fields_in_python_and_in_json(world: World) -> None:
    events, output = await listen(agent(world.store, use("ask", "1"), use("ask", "2"))("go"))
    by_id = {event.interaction_id: event for event in asked(events)}
    assert len(by_id) == 2
    listed = json.loads(output.model_dump_json())["metadata"]["pending_interactions"]
    assert {item["interaction_id"]: item for item in listed} == {
        id: json.loads(event.model_dump_json()) for id, event in by_id.items()
    }
    assert all(isinstance(event, InteractionEvent) for event in output.pending)
    assert {event.model_dump()["interaction_id"]: event for event in output.pending} == by_id
    read_back = validate_event(output.model_dump_json())
    assert isinstance(read_back, OutputEvent)
    assert read_back.pending == output.pending
    first = output.pending[0].model_dump()
    assert output.output == {
        "interaction_id": first["interaction_id"],
        "suspension_id": first["interaction_id"],
        "status": "input_required",
        "kind": "check",
        "payload": {"question": "Go on?"},
    }
    again = await agent(world.cold())(parent_id=output.run_id, resume={})
    assert (again.pending, again.output, stands(again)) == (output.pending, output.output, PAUSED)


async def test_a_question_is_in_the_store_when_its_event_is_heard_and_can_be_answered_at_once(world: World) -> None:
    async for event in agent(world.store, use("ask", "1"), use("ask", "2"))("go"):
        if isinstance(event, InteractionEvent):
            cold = world.cold()
            waiting = {item.id: item for item in (await cold.pending()).items}
            assert waiting[event.interaction_id].event == event
            assert waiting[event.interaction_id].run_id == event.run_id
            (receipt,) = await cold.answer(event.run_id, {event.interaction_id: "yes"})
            assert receipt["state"] == "accepted"
    output = await agent(world.cold())(parent_id=event.run_id, resume={})
    assert output_text(output) == "done"


# -- ids ---------------------------------------------------------------------------------------------------------------


def named(**parts: Any) -> str:
    """The id that the contract gives a question: section 4, "Id"."""
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


async def test_the_id_of_a_question_is_the_digest_of_its_path_and_payload(world: World) -> None:
    payload = {"question": "Où?", "options": [1.5, None, True], "a": {}}
    output = await tool("sync", lambda: str(suspend(payload)), world.store)()
    assert ids(output) == [named(path="handler", payload=payload)]
    assert ids(output) == ["2b4737cd0c2322309538bed77244cc3e"]


async def test_the_id_of_a_question_holds_the_tool_call_and_the_count_of_equal_ones(world: World) -> None:
    def ask_twice() -> list[Any]:
        return [suspend({"q": 1}), suspend({"q": 1})]

    def fresh() -> Agent[Any]:
        return Agent("assistant", TestModel([turn(use("ask_twice", "x1")), "ok"]), [ask_twice], store=world.cold())

    first = await fresh()("go")
    call = {"path": "assistant.ask_twice", "payload": {"q": 1}, "tool_call_id": "x1"}
    assert ids(first) == [named(**call)]
    second = await fresh()(parent_id=first.run_id, resume=answers(first, "yes"))
    assert ids(second) == [named(**call, count=1)]


# -- listening ---------------------------------------------------------------------------------------------------------


async def test_collect_gives_the_same_output_again_and_again(world: World) -> None:
    handle = asker(world.store)()
    output = await handle.collect()
    assert await handle.collect() is output
    assert await handle is output
    assert output.run_id == handle.run_id
    assert [event async for event in handle] == []


@pytest.mark.parametrize("after", [1, 2, 3])
async def test_collect_works_after_a_part_of_the_events_was_read(world: World, after: int) -> None:
    handle = agent(world.store)("go")
    heard = []
    async for event in handle:
        heard.append(event)
        if len(heard) == after:
            break
    output = await handle.collect()
    assert (stands(output), output.path, output.run_id) == (PAUSED, "assistant", handle.run_id)
    assert await handle.collect() is output


async def test_leaving_the_loop_does_not_stop_the_run(world: World) -> None:
    go_on, finished = asyncio.Event(), asyncio.Event()

    async def work() -> AsyncIterator[str]:
        yield "one"
        await go_on.wait()
        yield "two"
        finished.set()

    handle = tool_of(work, store=world.store)()
    async for event in handle:
        if event.type == "DELTA":
            break
    go_on.set()
    await finished.wait()
    assert (await handle).output == "onetwo"


async def test_nothing_happens_before_a_handle_is_iterated_or_awaited(world: World) -> None:
    runs: list[int] = []
    handle = Tool(lambda: runs.append(1), name="work", store=world.store)()
    assert (runs, (await world.cold().runs()).items) == ([], [])
    await handle
    assert runs == [1]


async def test_usage_counts_what_was_asked_and_answered_in_this_run(world: World) -> None:
    calls = (use("ask", "1"), use("ask", "2"))
    first = await agent(world.store, *calls)("go")
    assert first.usage == {"suspends:required": 2}
    second = await agent(world.cold(), *calls)(parent_id=first.run_id, resume={ids(first)[0]: "yes"})
    assert second.usage == {"suspends:answered": 1}
    again = await agent(world.cold(), *calls)(parent_id=second.run_id, resume={ids(second)[0]: "yes"})
    assert again.usage == {"suspends:answered": 1}
    assert stands(again)[0] == "success"


async def test_usage_counts_what_was_cancelled(world: World) -> None:
    output = await agent(world.store, use("ask", "1"), use("ask", "2"))("go")
    output = await agent(world.cold()).cancel(output.run_id)
    assert (stands(output), output.usage) == (("cancelled", "cancelled"), {"suspends:cancelled": 2})


# -- interrupting ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["aclose", "async with"])
async def test_an_interrupted_run_is_gone_on_with_by_an_empty_resume(world: World, how: str) -> None:
    go_on = asyncio.Event()

    async def work(x: int) -> str:
        await go_on.wait()
        return f"worked {x}"

    def fresh() -> Tool[..., Any]:
        return tool_of(work, store=world.cold())

    handle = fresh()(x=3)
    if how == "aclose":
        async for _ in handle:
            break
        await handle.aclose()
    else:
        async with handle:
            async for _ in handle:
                break
    output = await handle
    assert (stands(output), output.pending) == (("cancelled", "interrupted"), [])
    go_on.set()
    output = await fresh()(parent_id=output.run_id, resume={})
    assert (stands(output), output.output) == (DONE, "worked 3")


async def test_closing_a_paused_run_leaves_it_paused(world: World) -> None:
    async with asker(world.store)() as handle:
        output = await handle
    assert stands(await handle) == PAUSED
    output = await asker(world.cold())(parent_id=output.run_id, resume=answers(output, "yes"))
    assert (stands(output), output.output) == (DONE, "yes")
