"""Answers that come early or not at all, and a new message instead of one (S22, S23, S24)."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from tests.scenarios.conftest import World
from tests.scenarios.tools import (
    answers,
    asked,
    assert_valid,
    by_call,
    ids,
    listen,
    output_text,
    results,
    script,
    stands,
    told,
    tool_of,
    turn,
    use,
)
from timbal import Agent, Tool, suspend
from timbal.stores.base import BaseStore
from timbal.testing import TestModel
from timbal.types.approval import Principal
from timbal.types.events import InteractionEvent
from timbal.types.message import Message

PAUSED = ("cancelled", "input_required")
DONE = ("success", None)
REJECTED = ("error", "resume_rejected")


def ask() -> Any:
    return suspend({"question": "Go on?"})


def fine() -> str:
    return "fine"


def asker(store: BaseStore) -> Tool[..., Any]:
    return tool_of(ask, store=store)


def agent(store: BaseStore, *calls: Any, **options: Any) -> Agent[Any]:
    """It calls its tools in the first turn, and says then how many messages it has read."""

    def reply(messages: Sequence[Message]) -> Any:
        if len(messages) == 1:
            return turn(*(calls or (use("ask"),)))
        assert_valid(messages)
        return f"read {len(messages)}"

    return Agent("assistant", TestModel(handler=reply), [ask, fine], store=store, **options)


# -- S22: the client is quick ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cold", [False, True], ids=["the same store object", "another store object"])
@pytest.mark.parametrize("make", [asker, agent], ids=["a tool", "an agent"])
async def test_s22_an_answer_inside_the_loop_body_before_the_output_goes_on_with_the_run(
    world: World, make: Any, cold: bool
) -> None:
    finals = []
    handle = make(world.store)(**({} if make is asker else {"prompt": "go"}))
    async for event in handle:
        if isinstance(event, InteractionEvent):
            resumed = make(world.cold() if cold else world.store)
            finals.append(await resumed(parent_id=event.run_id, resume={event.interaction_id: "yes"}))
    assert stands(await handle) == PAUSED
    assert [output.status.code for output in finals] == ["success"]
    assert (await world.cold().pending()).items == []


async def test_s22_an_answer_that_the_store_gets_inside_the_loop_body_is_kept(world: World) -> None:
    handle = asker(world.store)()
    async for event in handle:
        if isinstance(event, InteractionEvent):
            await world.cold().answer(event.run_id, {event.interaction_id: "yes"})
    output = await asker(world.cold())(parent_id=handle.run_id, resume={})
    assert (stands(output), output.output) == (DONE, "yes")


async def test_s22_all_answers_one_by_one_inside_the_loop_body_finish_the_run(world: World) -> None:
    calls = (use("ask", "1"), use("fine"), use("ask", "2"))
    finals = []
    handle = agent(world.store, *calls)("go")
    async for event in handle:
        if isinstance(event, InteractionEvent):
            resumed = agent(world.cold(), *calls)
            finals.append(await resumed(parent_id=handle.run_id, resume={event.interaction_id: event.tool_call_id}))
    assert [stands(output)[0] for output in finals] == ["cancelled", "success"]
    assert results(await world.store.messages(handle.run_id)) == {"1": "1", "call_fine": "fine", "2": "2"}


# -- S23: nothing is answered by accident ------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [asker, agent], ids=["a tool", "an agent"])
async def test_s23_an_empty_resume_gives_the_same_pause_and_runs_nothing(world: World, make: Any) -> None:
    output = await make(world.store)(**({} if make is asker else {"prompt": "go"}))
    events, again = await listen(make(world.cold())(parent_id=output.run_id, resume={}))
    assert (stands(again), again.pending, again.output) == (PAUSED, output.pending, output.output)
    assert asked(events) == []
    assert [item.id for item in (await world.cold().pending()).items] == ids(output)


@pytest.mark.parametrize("resume", [[], (), "", "yes", 0, 1, False, True], ids=repr)
@pytest.mark.parametrize("make", [asker, agent], ids=["a tool", "an agent"])
async def test_s23_a_resume_that_is_no_mapping_raises_at_once(world: World, make: Any, resume: Any) -> None:
    output = await make(world.store)(**({} if make is asker else {"prompt": "go"}))
    with pytest.raises(TypeError, match="resume"):
        make(world.cold())(parent_id=output.run_id, resume=resume)
    assert [item.id for item in (await world.cold().pending()).items] == ids(output)


@pytest.mark.parametrize("resume", [{"": "yes"}, {None: "yes"}, {1: "yes"}, {"0" * 32: None}, {("a",): True}], ids=repr)
async def test_s23_an_id_that_is_none_is_refused(world: World, resume: Any) -> None:
    output = await asker(world.store)()
    refused = await asker(world.cold())(parent_id=output.run_id, resume=resume)
    assert (stands(refused), [receipt["state"] for receipt in refused.receipts]) == (REJECTED, ["unknown"])
    assert refused.model_dump_json()
    assert [item.id for item in (await world.cold().pending()).items] == ids(output)


async def test_s23_a_tool_that_waits_is_not_answered_by_a_call_without_a_resume(world: World) -> None:
    output = await asker(world.store)()
    events, refused = await listen(asker(world.cold())(parent_id=output.run_id, resume=None))
    assert (stands(refused), told(events)) == (REJECTED, [("OUTPUT", "ask")])
    assert ids(output)[0] in refused.error["message"]  # type: ignore[index]
    assert [item.id for item in (await world.cold().pending()).items] == ids(output)


@pytest.mark.parametrize(
    "params",
    [{}, {"prompt": object()}, {"promt": "typo"}, {"prompt": "a", "messages": []}, {"messages": []}],
    ids=["nothing", "an object", "another name", "both", "no messages"],
)
async def test_s23_a_new_message_that_is_none_changes_nothing(world: World, params: Any) -> None:
    output = await agent(world.store)("go")
    refused = await agent(world.cold())(parent_id=output.run_id, **params)
    assert refused.status.code == "error"
    assert [item.id for item in (await world.cold().pending()).items] == ids(output)
    output = await agent(world.cold())(parent_id=output.run_id, resume=answers(output, "yes"))
    assert output_text(output) == "read 3"


# -- S24: a new message instead of an answer ---------------------------------------------------------------------------


@pytest.mark.parametrize("calls", [1, 3], ids=["one pause", "three pauses"])
async def test_s24_a_new_message_supersedes_what_waits_and_the_model_knows(world: World, calls: int) -> None:
    uses = (use("fine"), *(use("ask", str(n)) for n in range(calls)))
    paused = await agent(world.store, *uses)("go")
    assert len(paused.pending) == calls
    output = await agent(world.cold(), *uses)("something else", parent_id=paused.run_id)
    assert output_text(output) == "read 4"
    assert (output.parent_run_id, output.pending) == (paused.run_id, [])
    messages = await world.cold().messages(output.run_id)
    assert_valid(messages)
    assert [message.role for message in messages] == ["user", "assistant", "tool", "user", "assistant"]
    found = results(messages)
    assert found.pop("call_fine") == "fine"
    assert len(found) == calls
    assert all("new message" in text for text in found.values())
    assert (await world.cold().pending()).items == []


async def test_s24_an_answered_question_keeps_its_result_when_a_new_message_comes(world: World) -> None:
    uses = (use("ask", "1"), use("ask", "2"))
    paused = await agent(world.store, *uses)("go")
    paused = await agent(world.cold(), *uses)(parent_id=paused.run_id, resume={by_call(paused)["1"]: "yes"})
    output = await agent(world.cold(), *uses)("something else", parent_id=paused.run_id)
    found = results(await world.cold().messages(output.run_id))
    assert (found["1"], "new message" in found["2"]) == ("yes", True)


@pytest.mark.parametrize("calls", [1, 2], ids=["all answered", "one of two answered"])
async def test_s24_an_accepted_answer_that_no_run_has_used_is_not_lost_to_a_new_message(
    world: World, calls: int
) -> None:
    uses = [use("ask", str(n)) for n in range(1, calls + 1)]
    paused = await agent(world.store, *uses)("go")
    await world.cold().answer(paused.run_id, {by_call(paused)["1"]: "yes"})
    refused = await agent(world.cold(), *uses)("something else", parent_id=paused.run_id)
    assert stands(refused) == REJECTED
    assert by_call(paused)["1"] in (refused.status.message or "")
    await agent(world.cold(), *uses)(parent_id=paused.run_id, resume={})
    output = await agent(world.cold(), *uses)("something else", parent_id=paused.run_id)
    found = results(await world.cold().messages(output.run_id))
    assert found["1"] == "yes"
    assert all("new message" in found[str(n)] for n in range(2, calls + 1))


async def test_s24_a_late_answer_is_told_that_it_was_superseded_and_changes_nothing(world: World) -> None:
    paused = await agent(world.store)("go")
    await agent(world.cold())("something else", parent_id=paused.run_id)
    for late in ("yes", None):
        refused = await agent(world.cold())(parent_id=paused.run_id, resume=answers(paused, late))
        assert (stands(refused), [r["state"] for r in refused.receipts]) == (REJECTED, ["superseded"])
    with pytest.raises(Exception, match="superseded"):
        await world.cold().answer(paused.run_id, answers(paused, "yes"))


async def test_s24_a_superseded_question_does_not_come_back_in_later_turns(world: World) -> None:
    paused = await agent(world.store)("go")
    output, heard = paused, []
    for n in range(3):
        events, output = await listen(agent(world.cold())(f"message {n}", parent_id=output.run_id))
        heard += events
    assert (output_text(output), asked(heard), output.pending) == ("read 8", [], [])
    assert (await world.cold().pending()).items == []
    again = await agent(world.cold())(parent_id=paused.run_id, resume={})
    assert (again.status.code, again.pending) == ("cancelled", [])


async def test_s24_a_turn_that_asks_again_has_a_question_of_its_own(world: World) -> None:
    def fresh() -> Agent[Any]:
        model = script(turn(use("ask", "1")), turn(use("ask", "2")), "done")
        return Agent("assistant", model, [ask], store=world.cold())

    first = await fresh()("go")
    second = await fresh()("go on", parent_id=first.run_id)
    assert (stands(second), len(second.pending)) == (PAUSED, 1)
    assert ids(second) != ids(first)
    output = await fresh()(parent_id=second.run_id, resume=answers(second, "yes"))
    assert output_text(output) == "done"
    found = results(await world.cold().messages(output.run_id))
    assert ("new message" in found["1"], found["2"]) == (True, "yes")


async def test_s24_two_new_messages_for_one_pause_are_two_turns_after_it(world: World) -> None:
    paused = await agent(world.store)("go")
    outputs = await asyncio.gather(
        agent(world.cold())("left", parent_id=paused.run_id), agent(world.cold())("right", parent_id=paused.run_id)
    )
    assert [output_text(output) for output in outputs] == ["read 4", "read 4"]
    assert len({output.run_id for output in outputs}) == 2


async def test_s24_a_new_message_and_an_answer_at_the_same_moment_have_one_outcome(world: World) -> None:
    for _ in range(5):
        paused = await agent(world.store)("go")
        answered, moved_on = await asyncio.gather(
            agent(world.cold())(parent_id=paused.run_id, resume=answers(paused, "yes")),
            agent(world.cold())("something else", parent_id=paused.run_id),
        )
        (result,) = results(await world.store.messages(paused.run_id)).values()
        if answered.status.code == "success":
            assert result == "yes"
            assert moved_on.status.code in ("success", "error")
        else:
            assert (stands(answered), stands(moved_on)[0], "new message" in result) == (REJECTED, "success", True)
        assert (await world.cold().pending()).items == []


def ask_finance() -> Any:
    return suspend({"question": "Pay?"}, audience=["role:finance"])


def guarded(store: BaseStore, **options: Any) -> Agent[Any]:
    model = script(turn(use("ask", "1"), use("ask_finance", "2")), "done")
    return Agent("assistant", model, [ask, ask_finance], store=store, **options)


async def test_s24_a_question_with_an_audience_is_not_superseded_by_a_new_message(world: World) -> None:
    paused = await guarded(world.store)("go")
    refused = await guarded(world.cold())("never mind", parent_id=paused.run_id)
    assert stands(refused) == REJECTED
    assert by_call(paused)["2"] in refused.error["message"]  # type: ignore[index]
    assert sorted(item.id for item in (await world.cold().pending()).items) == sorted(ids(paused))
    given = dict.fromkeys(ids(paused), "yes")
    by = Principal("ada", ["finance"])
    output = await guarded(world.cold())(parent_id=paused.run_id, resume=given, by=by)
    assert output_text(output) == "done"


async def test_s24_an_agent_may_supersede_in_any_case_or_never(world: World) -> None:
    paused = await guarded(world.store, on_new_message="supersede")("go")
    output = await guarded(world.cold(), on_new_message="supersede")("never mind", parent_id=paused.run_id)
    assert output_text(output) == "done"
    paused = await agent(world.cold(), on_new_message="refuse")("go")
    refused = await agent(world.cold(), on_new_message="refuse")("never mind", parent_id=paused.run_id)
    assert stands(refused) == REJECTED
    assert ids(paused)[0] in refused.error["message"]  # type: ignore[index]
    assert [item.id for item in (await world.cold().pending()).items] == ids(paused)


async def test_s24_a_new_message_after_an_interrupted_turn_has_a_valid_transcript(world: World) -> None:
    started = asyncio.Event()

    async def slow() -> str:
        started.set()
        await asyncio.Event().wait()
        return "slow"

    def fresh() -> Agent[Any]:
        model = TestModel([turn(use("fine"), use("slow")), "done"])
        return Agent("assistant", model, [fine, slow], store=world.cold())

    handle = fresh()("go")
    async for event in handle:
        if (event.type, event.path) == ("OUTPUT", "assistant.fine"):
            break
    await started.wait()
    await handle.aclose()
    output = await fresh()("never mind", parent_id=handle.run_id)
    assert output_text(output) == "done"
    messages = await world.cold().messages(output.run_id)
    assert_valid(messages)
    found = results(messages)
    assert (found["call_fine"], "Interrupted" in found["call_slow"]) == ("fine", True)
