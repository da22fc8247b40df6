"""A model that repeats tool-call ids, or sends none (S51)."""

from collections.abc import Sequence
from typing import Any

import pytest

from tests.scenarios.conftest import World
from tests.scenarios.tools import (
    answers,
    asked,
    assert_valid,
    ids,
    listen,
    output_text,
    results,
    script,
    stands,
    turn,
    use,
)
from timbal import Agent, suspend
from timbal.stores.base import BaseStore
from timbal.testing import TestModel
from timbal.types.content import ToolUseContent
from timbal.types.events import Event, StartEvent
from timbal.types.message import Message

PAUSED = ("cancelled", "input_required")

#: What a model may send as the ids of the calls in its first and in its second message.
IDS: dict[str, tuple[list[str], list[str]]] = {
    "unique ones": (["a", "b"], ["c"]),
    "one id twice in a message": (["a", "a"], ["b"]),
    "one id thrice in a message": (["a", "a", "a"], ["b"]),
    "the id of an earlier message": (["a", "b"], ["a"]),
    "one id for everything": (["a", "a"], ["a", "a"]),
    "none at all": (["", ""], [""]),
    "none and some": (["", "a", ""], ["a", ""]),
}


def calls(given: Sequence[str]) -> Message:
    """Calls of `pick` with equal arguments."""
    return turn(*(ToolUseContent(id=id, name="pick", input={"what": "one"}) for id in given))


def agent(store: BaseStore, name: str, seen: list[list[Message]] | None = None) -> Agent[Any]:
    first, second = IDS[name]
    replies = [calls(first), calls(second), "done", "done again"]

    def reply(messages: Sequence[Message]) -> Any:
        assert_valid(messages)
        if seen is not None:
            seen.append(list(messages))
        return replies[sum(message.role == "assistant" for message in messages)]

    def pick(what: str) -> Any:
        return suspend({"question": f"Which {what}?"})

    return Agent("assistant", TestModel(handler=reply), [pick], store=store)


def starts(events: Sequence[Event]) -> list[str | None]:
    return [e.tool_call_id for e in events if isinstance(e, StartEvent) and e.path == "assistant.pick"]


@pytest.mark.parametrize("name", IDS)
async def test_s51_every_call_has_its_own_question_and_its_own_result(world: World, name: str) -> None:
    events, output = await listen(agent(world.store, name)("go"))
    first, second = IDS[name]
    assert len(set(ids(output))) == len(ids(output)) == len(first)
    heard, answer = list(asked(events)), 0
    while output.pending:
        one = ids(output)[-1]
        events, output = await listen(
            agent(world.cold(), name)(parent_id=output.run_id, resume={one: f"answer {answer}"})
        )
        heard += asked(events)
        answer += 1
    assert output_text(output) == "done"
    assert len(heard) == len({event.interaction_id for event in heard}) == len(first) + len(second)
    messages = await world.cold().messages(output.run_id)
    assert_valid(messages)
    found = results(messages)
    assert len(found) == len(first) + len(second)
    assert sorted(found.values()) == [f"answer {n}" for n in range(answer)]
    assert set(found) == {event.tool_call_id for event in heard}


@pytest.mark.parametrize("name", IDS)
async def test_s51_events_questions_and_transcript_name_a_call_by_one_id(world: World, name: str) -> None:
    events, output = await listen(agent(world.store, name)("go"))
    started = starts(events)
    assert len(set(started)) == len(IDS[name][0])
    assert all(started)
    assert {event.tool_call_id for event in asked(events)} == set(started)
    given = {event.model_dump()["interaction_id"]: event.model_dump()["tool_call_id"] for event in output.pending}
    events, output = await listen(agent(world.cold(), name)(parent_id=output.run_id, resume=given))
    assert set(started) <= set(starts(events))
    found = results(await world.cold().messages(output.run_id))
    assert {id: found[id] for id in given.values()} == {id: id for id in given.values()}


@pytest.mark.parametrize("name", IDS)
async def test_s51_the_model_is_given_every_result_where_it_asked_for_it(world: World, name: str) -> None:
    seen: list[list[Message]] = []
    output = await agent(world.store, name, seen)("go")
    while output.pending:
        given = answers(output, *(f"for {n}" for n in range(len(output.pending))))
        output = await agent(world.cold(), name, seen)(parent_id=output.run_id, resume=given)
    assert output_text(output) == "done"
    assert len(seen) == 3
    first, second = IDS[name]
    sent = [part.id for part in seen[2][1].content if isinstance(part, ToolUseContent)]
    assert list(results(seen[2]))[: len(first)] == sent
    assert len(results(seen[2])) == len(first) + len(second)


async def test_s51_an_id_that_an_earlier_turn_of_the_conversation_used_is_another_call(world: World) -> None:
    def turns(store: BaseStore) -> Agent[Any]:
        def pick() -> Any:
            return suspend({"question": "Which?"})

        model = script(turn(use("pick", "a")), "one", turn(use("pick", "a")), "two")
        return Agent("assistant", model, [pick], store=store)

    first = await turns(world.store)("go")
    output = await turns(world.cold())(parent_id=first.run_id, resume=answers(first, "left"))
    second = await turns(world.cold())("go on", parent_id=output.run_id)
    assert stands(second) == PAUSED
    assert ids(second) != ids(first)
    output = await turns(world.cold())(parent_id=second.run_id, resume=answers(second, "right"))
    assert output_text(output) == "two"
    messages = await world.cold().messages(output.run_id)
    assert_valid(messages)
    assert list(results(messages).values()) == ["left", "right"]
