"""Questions one after the other, the same one again, changing ones, and several at once (S1, S2, S3, S8, S9)."""

import asyncio
import time
from collections.abc import Iterator
from datetime import datetime
from itertools import count
from typing import Any
from uuid import uuid4

import pytest

from tests.scenarios.conftest import World
from tests.scenarios.tools import (
    KINDS,
    answers,
    asked,
    assert_valid,
    by_call,
    ids,
    in_another_process,
    listen,
    output_text,
    results,
    stands,
    tool,
    tool_of,
    turn,
    use,
)
from timbal import Agent, Tool, suspend
from timbal.stores.base import BaseStore
from timbal.testing import ScriptedHuman, TestModel

PAUSED = ("cancelled", "input_required")
DONE = ("success", None)


# -- S1: three questions, one after the other --------------------------------------------------------------------------


def three() -> str:
    return " ".join(suspend({"question": q}, kind=q) for q in ("name", "colour", "size"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("parent", ["the first run", "the newest run"])
async def test_s1_three_questions_take_three_resumes_that_bring_only_the_newest_answer(
    world: World, kind: str, parent: str
) -> None:
    heard, output = await listen(tool(kind, three, world.store)())
    first = output.run_id
    for answer in ("Ada", "red", "small"):
        assert stands(output) == PAUSED
        assert len(output.pending) == 1
        events, output = await listen(
            tool(kind, three, world.cold())(
                parent_id=first if parent == "the first run" else output.run_id, resume=answers(output, answer)
            )
        )
        heard += events
    assert (stands(output), output.output) == (DONE, "Ada red small")
    assert [event.kind for event in asked(heard)] == ["name", "colour", "size"]
    assert len({event.interaction_id for event in asked(heard)}) == 3
    assert (await world.cold().pending()).items == []


def test_s1_three_questions_take_three_resumes_each_in_a_process_of_its_own(shared_world: World) -> None:
    heard, output = in_another_process("three_questions", shared_world.url, item="socks")
    for answer in ("small", "red", True):
        assert stands(output) == PAUSED
        events, output = in_another_process(
            "three_questions", shared_world.url, parent_id=output.run_id, resume=answers(output, answer)
        )
        heard += events
    assert (stands(output), output.output) == (DONE, "socks, small, red, True")
    assert [event.kind for event in asked(heard)] == ["size", "colour", "confirm"]
    assert asked(heard)[2].payload == {"question": "small and red, sure?"}


async def test_s1_answers_of_all_earlier_questions_may_be_sent_again_with_the_newest(world: World) -> None:
    output = await tool("sync", three, world.store)()
    given: dict[str, str] = {}
    for answer in ("Ada", "red", "small"):
        given |= answers(output, answer)
        output = await tool("sync", three, world.cold())(parent_id=output.run_id, resume=given)
    assert (stands(output), output.output) == (DONE, "Ada red small")
    assert [receipt["state"] for receipt in output.receipts] == ["already_settled", "already_settled", "accepted"]


# -- S2: the same question again ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
async def test_s2_the_same_question_asked_twice_has_two_ids_and_two_answers(world: World, kind: str) -> None:
    def body() -> str:
        return f"{suspend({'question': 'Why?'})} then {suspend({'question': 'Why?'})}"

    heard, output = await listen(tool(kind, body, world.store)())
    for answer in ("because", "so"):
        events, output = await listen(
            tool(kind, body, world.cold())(parent_id=output.run_id, resume=answers(output, answer))
        )
        heard += events
    assert (stands(output), output.output) == (DONE, "because then so")
    first, second = asked(heard)
    assert first.payload == second.payload
    assert first.interaction_id != second.interaction_id


@pytest.mark.parametrize("kind", KINDS)
async def test_s2_a_question_is_asked_in_a_loop_until_its_answer_is_valid(world: World, kind: str) -> None:
    def body() -> str:
        tries: Iterator[int] = count(1)
        while not isinstance(age := suspend({"question": "How old?"}, kind="age"), int):
            next(tries)
        return f"{age} after {next(tries)}"

    output = await tool(kind, body, world.store)()
    seen = ids(output)
    given: list[Any] = ["old", None, [], 36]
    for answer in given:
        output = await tool(kind, body, world.cold())(parent_id=output.run_id, resume=answers(output, answer))
        seen += ids(output)
    assert (stands(output), output.output) == (DONE, "36 after 4")
    assert len(set(seen)) == 4


async def test_s2_an_answer_for_the_first_asking_is_not_taken_for_the_second(world: World) -> None:
    def body() -> str:
        return f"{suspend({'question': 'Why?'})} then {suspend({'question': 'Why?'})}"

    runnable = tool("async", body, world.store)
    first = await runnable()
    second = await runnable(parent_id=first.run_id, resume=answers(first, "because"))
    again = await tool("async", body, world.cold())(parent_id=second.run_id, resume=answers(first, "because"))
    assert (stands(again), ids(again)) == (PAUSED, ids(second))


# -- S3: a payload that is another one each time -----------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
async def test_s3_a_payload_with_the_time_of_day_and_a_fresh_id_can_be_resumed_cold(world: World, kind: str) -> None:
    def body() -> str:
        first = suspend({"at": datetime.now().astimezone(), "ns": time.time_ns(), "token": uuid4()})
        return f"{first} {suspend({'at': time.time_ns(), 'token': uuid4().hex})}"

    heard, output = await listen(tool(kind, body, world.store)())
    for answer in ("one", "two"):
        assert stands(output) == PAUSED
        events, output = await listen(
            tool(kind, body, world.cold())(parent_id=output.run_id, resume=answers(output, answer))
        )
        heard += events
    assert (stands(output), output.output) == (DONE, "one two")
    assert len(asked(heard)) == 2


def test_s3_a_payload_with_the_time_of_day_can_be_resumed_in_another_process(shared_world: World) -> None:
    heard, output = in_another_process("time_of_day", shared_world.url)
    for answer in ("one", "two"):
        assert stands(output) == PAUSED
        events, output = in_another_process(
            "time_of_day", shared_world.url, parent_id=output.run_id, resume=answers(output, answer)
        )
        heard += events
    assert (stands(output), output.output) == (DONE, ["one", "two"])
    assert len(asked(heard)) == len({event.payload["process"] for event in asked(heard)}) == 2


async def test_s3_what_was_asked_first_stands_when_the_payload_drifts(world: World) -> None:
    def body() -> str:
        return str(suspend({"token": uuid4()}))

    first = await tool("sync", body, world.store)()
    again = await tool("sync", body, world.cold())(parent_id=first.run_id, resume={})
    assert (ids(again), again.pending, again.output) == (ids(first), first.pending, first.output)


@pytest.mark.parametrize("order", [1, -1], ids=["in order", "in reverse"])
async def test_s3_payloads_that_drift_in_tasks_are_told_apart_by_their_keys(world: World, order: int) -> None:
    async def ask(name: str) -> str:
        return f"{name}={suspend({'token': uuid4()}, key=name)}"

    async def handler() -> Any:
        return await asyncio.gather(ask("a"), ask("b"), ask("c"))

    output = await tool_of(handler, store=world.store)()
    assert len(output.pending) == 3
    given = list(answers(output, 1, 2, 3).items())[::order]
    for id, answer in given:
        runnable = tool_of(handler, store=world.cold())
        output = await runnable(parent_id=output.run_id, resume={id: answer})
    assert (stands(output), output.output) == (DONE, ["a=1", "b=2", "c=3"])


# -- S8: five calls in one turn ----------------------------------------------------------------------------------------


async def test_s8_of_five_calls_in_one_turn_the_three_that_ask_go_on_and_the_other_two_never_run_again(
    world: World,
) -> None:
    runs: list[str] = []
    model = TestModel([turn(use("a"), use("fine"), use("b"), use("broken"), use("c")), "done"])

    def agent(store: BaseStore) -> Agent[Any]:
        def asking(name: str) -> Tool[..., Any]:
            def ask() -> str:
                runs.append(name)
                return f"{name}: {suspend({'question': name})}"

            return Tool(ask, name=name)

        def fine() -> str:
            runs.append("fine")
            return "fine"

        def broken() -> str:
            runs.append("broken")
            raise OSError("the disk is full")

        return Agent("assistant", model, tools=[asking("a"), fine, asking("b"), broken, asking("c")], store=store)

    heard, output = await listen(agent(world.store)("go"))
    assert (stands(output), len(output.pending)) == (PAUSED, 3)
    assert sorted(event.payload["question"] for event in asked(heard)) == ["a", "b", "c"]
    for call in ("call_c", "call_a", "call_b"):
        assert model.call_count == 1
        answer = {by_call(output)[call]: "yes"}
        events, output = await listen(agent(world.cold())(parent_id=output.run_id, resume=answer))
        heard += events
    assert (stands(output)[0], output_text(output)) == ("success", "done")
    assert sorted(runs) == ["a", "a", "b", "b", "broken", "c", "c", "fine"]
    assert (model.call_count, len(asked(heard))) == (2, 3)
    transcript = await world.cold().messages(output.run_id)
    assert_valid(transcript)
    assert results(transcript) == {
        "call_a": "a: yes",
        "call_fine": "fine",
        "call_b": "b: yes",
        "call_broken": "OSError: the disk is full",
        "call_c": "c: yes",
    }
    assert list(results(transcript)) == ["call_a", "call_fine", "call_b", "call_broken", "call_c"]


# -- S9: equal questions at the same time ------------------------------------------------------------------------------


@pytest.mark.parametrize("first", [0, 1], ids=["the first is answered first", "the second is answered first"])
async def test_s9_two_parallel_calls_with_equal_payloads_have_two_ids_and_each_its_answer(
    world: World, first: int
) -> None:
    def pick() -> str:
        return str(suspend({"question": "Which?"}))

    def agent(store: BaseStore) -> Agent[Any]:
        return Agent("assistant", TestModel([turn(use("pick", "1"), use("pick", "2")), "ok"]), [pick], store=store)

    output = await agent(world.store)("go")
    assert len(set(ids(output))) == 2
    given = [(by_call(output)["1"], "left"), (by_call(output)["2"], "right")]
    for id, answer in (given[first], given[1 - first]):
        output = await agent(world.cold())(parent_id=output.run_id, resume={id: answer})
    assert results(await world.store.messages(output.run_id)) == {"1": "left", "2": "right"}


async def test_s9_two_equal_questions_in_gathered_tasks_have_two_ids_and_two_answers(world: World) -> None:
    async def ask() -> str:
        return str(suspend({"question": "Which?"}))

    async def handler() -> Any:
        return await asyncio.gather(ask(), ask())

    output = await tool_of(handler, store=world.store)()
    assert len(set(ids(output))) == 2
    for id, answer in list(answers(output, "left", "right").items())[::-1]:
        runnable = tool_of(handler, store=world.cold())
        output = await runnable(parent_id=output.run_id, resume={id: answer})
    assert (stands(output), output.output) == (DONE, ["left", "right"])


async def test_s9_a_tool_called_twice_inside_a_handler_asks_twice(world: World) -> None:
    def pick() -> str:
        return str(suspend({"question": "Which?"}))

    async def handler() -> list[Any]:
        return [(await Tool(pick)()).output, (await Tool(pick)()).output]

    numbers = count()
    human = ScriptedHuman({"suspend": lambda event: f"answer {next(numbers)}"})
    output = await human.run(tool_of(handler, store=world.store))
    assert (stands(output), output.output) == (DONE, ["answer 0", "answer 1"])
    assert len({item.model_dump()["interaction_id"] for item in human.asked}) == 2
