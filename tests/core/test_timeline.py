"""A timeline is made from the facts of an execution."""

from typing import Any

from timbal import Agent, Tool, step
from timbal.core.timeline import Entry, timeline
from timbal.stores import MemoryStore
from timbal.testing import TestModel
from timbal.tools import ask_user, confirm
from timbal.types.approval import Principal
from timbal.types.message import Message


@step
def prepare(what: str) -> str:
    return what.upper()


def work(what: str) -> str:
    """Work."""
    prepare(what)
    if what == "bad":
        raise ValueError("bad work")
    return f"{ask_user('How?')} {confirm('Really')}"


def uses(*inputs: str) -> Message:
    return Message(
        "assistant",
        [{"type": "tool_use", "id": f"u{i}", "name": "work", "input": {"what": text}} for i, text in enumerate(inputs)],
    )


def by_name(entries: list[Entry], name: str) -> list[Entry]:
    return [entry for entry in entries if entry.name == name]


async def test_calls_stand_where_they_began_with_their_arguments_and_their_depth() -> None:
    store = MemoryStore()
    agent: Agent[Any] = Agent("a", TestModel(responses=[uses("good", "bad"), "done"]), tools=[work], store=store)
    paused = await agent(prompt="go")
    entries = timeline((await store.get(paused.run_id)).facts)
    good, bad = (entry for entry in by_name(entries, "work") if entry.what == "call")
    assert {(entry.status, entry.given["what"]) for entry in (good, bad)} == {("open", "good"), ("error", "bad")}
    assert [entry.error for entry in (good, bad) if entry.error] == ["ValueError: bad work"]
    assert {entry.value for entry in by_name(entries, "prepare")} == {"GOOD", "BAD"}
    assert [entry.depth for entry in by_name(entries, "prepare")] == [2, 2]
    assert [entry.what for entry in entries][0 :: len(entries) - 1] == ["started", "ended"]

    asked = paused.pending[0].id
    output = await agent(parent_id=paused.run_id, resume={asked: "well"}, by=Principal("ada"))
    output = await agent(parent_id=output.run_id, resume={output.pending[0].id: True})
    entries = timeline((await store.get(output.run_id)).facts)
    calls = [entry for entry in by_name(entries, "work") if entry.what == "call"]
    assert [(entry.status, entry.value) for entry in calls if entry.given == {"what": "good"}] == [
        ("success", "well True")
    ]
    settled = [entry for entry in entries if entry.what == "settled"]
    assert [(entry.value, entry.by) for entry in settled] == [("well", {"sub": "ada", "roles": []}), (True, None)]
    assert [entry.at for entry in entries] == sorted(entry.at for entry in entries)
    assert [entry.status for entry in entries if entry.what == "ended"] == ["paused", "paused", "success"]


async def test_a_model_of_an_inner_agent_is_told_from_that_of_the_outer_one() -> None:
    store = MemoryStore()
    inner: Agent[Any] = Agent("inner", TestModel(responses=["in"]))
    use = {"type": "tool_use", "id": "u", "name": "inner", "input": {"prompt": "hi"}}
    outer: Agent[Any] = Agent(
        "outer", TestModel(responses=[Message("assistant", [use]), "out"]), tools=[inner], store=store
    )
    output = await outer(prompt="go")
    calls = [entry for entry in timeline((await store.get(output.run_id)).facts) if entry.what == "call"]
    assert [(entry.name, entry.value) for entry in calls if entry.kind == "model"] == [
        ("llm", ""),
        ("inner.llm", "in"),
        ("llm", "out"),
    ]


async def test_what_the_model_was_told_of_its_answer_stands_after_it() -> None:
    store = MemoryStore()
    agent: Agent[Any] = Agent("a", TestModel(responses=["no number", "5"]), output_model=int, store=store)
    output = await agent(prompt="go")
    entries = timeline((await store.get(output.run_id)).facts)
    assert [entry.what for entry in entries if entry.what != "call"] == ["started", "note", "ended"]
    assert entries.index(by_name(entries, "llm")[0]) < [entry.what for entry in entries].index("note")


async def test_a_tool_of_its_own_has_its_input_at_the_start() -> None:
    store = MemoryStore()
    output = await Tool(work, store=store)(what="bad")
    entries = timeline((await store.get(output.run_id)).facts)
    assert [(entry.what, entry.given) for entry in entries if entry.given] == [("started", {"what": "bad"})]
    assert (entries[-1].status, entries[-1].error) == ("error", "ValueError: bad work")


async def test_entries_name_the_calls_of_the_events() -> None:
    store = MemoryStore()
    agent: Agent[Any] = Agent("a", TestModel(responses=[uses("good", "bad"), "done"]), tools=[work], store=store)
    handle = agent(prompt="go")
    told = {(e.call_id, e.parent_call_id) async for e in handle if e.type == "START"}
    asked = [e.call_id for e in (await handle.collect()).pending]
    entries = timeline((await store.get(handle.run_id)).facts)
    assert {
        (e.call_id, e.parent_call_id) for e in entries if e.what in ("started", "call") and e.kind != "step"
    } == told
    assert [e.call_id for e in entries if e.what == "question"] == asked
