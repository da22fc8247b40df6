"""Cancelling: one outcome, on all surfaces (S25)."""

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.scenarios.conftest import World
from tests.scenarios.tools import answers, assert_valid, by_call, ids, output_text, results, stands, tool_of, turn, use
from timbal import Agent, Tool, step, suspend
from timbal.core.timeline import timeline
from timbal.errors import ResumeRejected, RunNotFound
from timbal.stores.base import BaseStore
from timbal.testing import TestModel
from timbal.types.approval import Cancel, Principal
from timbal.types.events import InteractionEvent, OutputEvent

PAUSED = ("cancelled", "input_required")
CANCELLED = ("cancelled", "cancelled")
DONE = ("success", None)
REJECTED = ("error", "resume_rejected")
GONE = {"status": "cancelled", "reason": "too late"}


def ask() -> Any:
    return suspend({"question": "Go on?"})


def fine() -> str:
    return "fine"


class Office:
    """An agent with three questions at once and a finished call; it counts what its model and its tools do."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.runs: list[str] = []
        self.model = TestModel([turn(use("ask", "1"), use("fine"), use("ask", "2"), use("ask", "3")), "done"])

    def agent(self, store: BaseStore | None = None) -> Agent[Any]:
        def ask() -> Any:
            self.runs.append("ask")
            return suspend({"question": "Go on?"})

        return Agent("assistant", self.model, [ask, fine], store=store or self.world.cold())


Way = Callable[[Office, Any, OutputEvent], Awaitable[OutputEvent]]


async def by_an_object(office: Office, handle: Any, paused: OutputEvent) -> OutputEvent:
    return await office.agent()(parent_id=paused.run_id, resume={ids(paused)[1]: Cancel(reason="too late")})


async def by_json(office: Office, handle: Any, paused: OutputEvent) -> OutputEvent:
    said = {"type": "timbal.cancel", "reason": "too late"}
    return await office.agent()(parent_id=paused.run_id, resume={ids(paused)[1]: said})


async def by_an_object_among_answers(office: Office, handle: Any, paused: OutputEvent) -> OutputEvent:
    resume = answers(paused, "yes", Cancel(reason="too late"), "no")
    return await office.agent()(parent_id=paused.run_id, resume=resume)


async def by_the_runnable(office: Office, handle: Any, paused: OutputEvent) -> OutputEvent:
    output: OutputEvent = await office.agent().cancel(paused.run_id, "too late")
    return output


async def by_the_handle(office: Office, handle: Any, paused: OutputEvent) -> OutputEvent:
    await handle.cancel("too late")
    return await office.agent()(parent_id=paused.run_id, resume={})


async def by_the_store(office: Office, handle: Any, paused: OutputEvent) -> OutputEvent:
    await office.world.cold().answer(paused.run_id, {ids(paused)[1]: Cancel(reason="too late")})
    return await office.agent()(parent_id=paused.run_id, resume={})


WAYS: list[Way] = [by_an_object, by_json, by_an_object_among_answers, by_the_runnable, by_the_handle, by_the_store]


@pytest.mark.parametrize("cancel", WAYS, ids=lambda way: way.__name__)
async def test_s25_cancelling_one_of_three_questions_ends_the_execution_on_all_surfaces(
    world: World, cancel: Way
) -> None:
    office = Office(world)
    handle = office.agent(world.store)("go")
    paused = await handle
    output = await cancel(office, handle, paused)
    assert (stands(output), output.status.message, output.output) == (CANCELLED, "too late", GONE)
    assert (output.pending, output.error) == ([], None)
    assert (office.model.call_count, office.runs) == (1, ["ask"] * 3)
    assert (await world.cold().pending()).items == []
    newest = (await world.cold().runs()).items[0]
    assert (newest.run_id, newest.status, newest.reason) == (output.run_id, "cancelled", "cancelled")
    again = await office.agent()(parent_id=paused.run_id, resume={})
    assert (stands(again), again.status.message, again.output) == (CANCELLED, "too late", GONE)
    for id, value in ((ids(paused)[0], "yes"), (ids(paused)[1], "yes"), (ids(paused)[2], None)):
        late = await office.agent()(parent_id=paused.run_id, resume={id: value})
        assert (stands(late), [receipt["state"] for receipt in late.receipts]) == (REJECTED, ["cancelled"])
        with pytest.raises(ResumeRejected):
            await world.cold().answer(paused.run_id, {id: value})


async def test_s25_a_cancelled_conversation_goes_on_with_a_new_message(world: World) -> None:
    office = Office(world)
    paused = await office.agent(world.store)("go")
    cancelled = await office.agent().cancel(paused.run_id, "too late")
    output = await office.agent()("again", parent_id=cancelled.run_id)
    assert output_text(output) == "done"
    messages = await world.cold().messages(output.run_id)
    assert_valid(messages)
    found = results(messages)
    assert found.pop("call_fine") == "fine"
    assert ["Cancelled" in text for text in found.values()] == [True] * 3


async def test_s25_cancelling_twice_is_cancelling_once(world: World) -> None:
    paused = await tool_of(ask, store=world.store)()
    for reason in ("too late", "another reason"):
        runnable = tool_of(ask, store=world.cold())
        output = await runnable(parent_id=paused.run_id, resume={ids(paused)[0]: Cancel(reason=reason)})
        assert (stands(output), output.status.message) == (CANCELLED, "too late")
        output = await tool_of(ask, store=world.cold()).cancel(paused.run_id, "a third reason")
        assert (stands(output), output.status.message) == (CANCELLED, "too late")


async def test_s25_cancelling_without_a_reason_gives_none(world: World) -> None:
    paused = await tool_of(ask, store=world.store)()
    runnable = tool_of(ask, store=world.cold())
    output = await runnable(parent_id=paused.run_id, resume={ids(paused)[0]: Cancel()})
    assert (stands(output), output.status.message) == (CANCELLED, None)
    assert output.output == {"status": "cancelled", "reason": None}


async def test_s25_cancelling_a_finished_run_leaves_it_as_it_is(world: World) -> None:
    output = await tool_of(fine, store=world.store)()
    again = await tool_of(fine, store=world.cold()).cancel(output.run_id, "too late")
    assert (stands(again), again.output, again.run_id) == (DONE, "fine", output.run_id)


async def test_s25_cancelling_a_run_that_nobody_knows_says_so(world: World) -> None:
    with pytest.raises(RunNotFound):
        await tool_of(fine, store=world.store).cancel("0" * 32)


async def test_s25_a_run_that_is_cancelled_before_it_began_does_nothing(world: World) -> None:
    runs: list[int] = []
    handle = Tool(lambda: runs.append(1), name="work", store=world.store)()
    await handle.cancel("too late")
    output = await handle
    assert (stands(output), output.status.message, runs) == (CANCELLED, "too late", [])


# -- while something runs ----------------------------------------------------------------------------------------------


class Busy:
    """An agent of which one tool asks while another one works on and on."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.started = asyncio.Event()
        self.cleaned_up: list[str] = []
        self.model = TestModel([turn(use("ask"), use("slow")), "done"])

    def agent(self) -> Agent[Any]:
        async def slow() -> str:
            self.started.set()
            try:
                await asyncio.Event().wait()
            finally:
                self.cleaned_up.append("slow")
            return "slow"

        return Agent("assistant", self.model, [ask, slow], store=self.world.cold())


async def running_by_an_object(busy: Busy, handle: Any, event: InteractionEvent) -> None:
    await busy.agent()(parent_id=event.run_id, resume={event.interaction_id: Cancel(reason="too late")})


async def running_by_the_runnable(busy: Busy, handle: Any, event: InteractionEvent) -> None:
    await busy.agent().cancel(event.run_id, "too late")


async def running_by_the_handle(busy: Busy, handle: Any, event: InteractionEvent) -> None:
    await handle.cancel("too late")


async def running_by_the_store(busy: Busy, handle: Any, event: InteractionEvent) -> None:
    await busy.world.cold().answer(event.run_id, {event.interaction_id: Cancel(reason="too late")})


@pytest.mark.parametrize(
    "cancel",
    [running_by_an_object, running_by_the_runnable, running_by_the_handle, running_by_the_store],
    ids=lambda way: way.__name__,
)
async def test_s25_cancelling_while_a_sibling_runs_stops_the_sibling(world: World, cancel: Any) -> None:
    busy = Busy(world)
    handle = busy.agent()("go")
    async for event in handle:
        if isinstance(event, InteractionEvent):
            await busy.started.wait()
            await cancel(busy, handle, event)
    output = await handle
    assert (stands(output), output.status.message, output.output) == (CANCELLED, "too late", GONE)
    assert (busy.cleaned_up, busy.model.call_count) == (["slow"], 1)
    assert (await world.cold().pending()).items == []
    again = await busy.agent()(parent_id=handle.run_id, resume={})
    assert (stands(again), again.status.message) == (CANCELLED, "too late")


async def test_who_cancelled_a_run_at_work_and_by_which_way_is_recorded(world: World) -> None:
    started = asyncio.Event()

    async def work() -> None:
        started.set()
        await asyncio.Event().wait()

    handle = tool_of(work, store=world.store)()
    running = asyncio.ensure_future(handle.collect())
    await started.wait()
    await tool_of(work, store=world.cold()).cancel(handle.run_id, "too late", by=Principal("ada"))
    assert stands(await running) == CANCELLED
    assert await ended(world, handle.run_id) == [("cancelled", "ada", "cancel")]
    again = await tool_of(work, store=world.cold())(parent_id=handle.run_id, resume={})
    assert (again.run_id, stands(again)) == (handle.run_id, CANCELLED)


async def ended(world: World, run_id: str) -> list[tuple[Any, Any, Any]]:
    """How the execution's runs ended, and who cancelled them, by which way."""
    entries = timeline((await world.cold().get(run_id)).facts)
    return [
        (str(entry.status).split(" / ")[0], (entry.by or {}).get("sub"), entry.channel)
        for entry in entries
        if entry.what == "ended"
    ]


@pytest.mark.parametrize("way", ["cancel", "resume", "answer"])
async def test_who_cancelled_a_paused_run_and_by_which_way_is_recorded(world: World, way: str) -> None:
    ada = Principal("ada")
    paused = await tool_of(ask, store=world.store)()
    runnable, said = tool_of(ask, store=world.cold()), {ids(paused)[0]: Cancel()}
    if way == "cancel":
        await runnable.cancel(paused.run_id, by=ada)
    elif way == "resume":
        await runnable(parent_id=paused.run_id, resume=said, by=ada)
    else:
        await world.cold().answer(paused.run_id, said, by=ada)
        await runnable(parent_id=paused.run_id, resume={})
    (item,) = (await world.cold().settled()).items
    assert (item.state, item.by, item.channel) == ("cancelled", ada.model_dump(), way)
    assert await ended(world, paused.run_id) == [("paused", None, None), ("cancelled", "ada", way)]


@pytest.mark.parametrize("way", ["resume", "answer"])
async def test_by_which_way_an_answer_came_is_recorded(world: World, way: str) -> None:
    paused = await tool_of(ask, store=world.store)()
    said = {ids(paused)[0]: "yes"}
    if way == "resume":
        await tool_of(ask, store=world.cold())(parent_id=paused.run_id, resume=said)
    else:
        await world.cold().answer(paused.run_id, said)
    (item,) = (await world.cold().settled()).items
    assert (item.value, item.channel) == ("yes", way)


async def test_s25_a_sibling_in_a_thread_makes_no_effect_after_the_run_was_cancelled(world: World) -> None:
    go_on, over = threading.Event(), threading.Event()
    charged: list[str] = []

    @step
    def charge() -> None:
        charged.append("charged")

    def slow() -> None:
        try:
            go_on.wait()
            charge()
        finally:
            over.set()

    handle = Agent("assistant", TestModel([turn(use("ask"), use("slow"))]), [ask, slow], store=world.store)("go")
    async for event in handle:
        if isinstance(event, InteractionEvent):
            await handle.cancel("too late")
    assert stands(await handle) == CANCELLED
    go_on.set()
    await asyncio.to_thread(over.wait)
    assert charged == []


async def test_s25_a_handler_that_swallows_its_cancellation_is_cancelled_all_the_same(world: World) -> None:
    started = asyncio.Event()

    async def stubborn() -> str:
        started.set()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return "swallowed"

    handle = tool_of(stubborn, store=world.store)()
    listening = asyncio.ensure_future(handle.collect())
    await started.wait()
    await handle.cancel("too late")
    output = await listening
    assert (stands(output), output.status.message, output.output) == (CANCELLED, "too late", GONE)


async def test_s25_a_question_of_an_agent_inside_an_agent_cancels_the_whole_execution(world: World) -> None:
    outer_model = TestModel([turn(use("inner", prompt="go")), "done"])

    def agent(store: BaseStore) -> Agent[Any]:
        inner: Agent[Any] = Agent("inner", TestModel([turn(use("ask")), "done"]), [ask])
        return Agent("outer", outer_model, [inner], store=store)

    paused = await agent(world.store)("go")
    output = await agent(world.cold())(parent_id=paused.run_id, resume={ids(paused)[0]: Cancel(reason="too late")})
    assert (stands(output), output.path, outer_model.call_count) == (CANCELLED, "outer", 1)


# -- at the same moment ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["an answer", "the runnable"])
@pytest.mark.parametrize("first", ["answer", "cancel"])
async def test_s25_a_cancel_and_an_answer_at_the_same_moment_have_one_outcome(
    world: World, first: str, by: str
) -> None:
    for _ in range(5):
        paused = await tool_of(ask, store=world.store)()
        (question,) = ids(paused)
        answering = tool_of(ask, store=world.cold())
        cancelling = tool_of(ask, store=world.cold())

        async def answer(tool: Any = answering, run: Any = paused.run_id, id: Any = question) -> Any:
            return await tool(parent_id=run, resume={id: "yes"})

        async def cancel(tool: Any = cancelling, run: Any = paused.run_id, id: Any = question) -> Any:
            if by == "the runnable":
                return await tool.cancel(run, "too late")
            return await tool(parent_id=run, resume={id: Cancel(reason="too late")})

        pair = [answer(), cancel()] if first == "answer" else [cancel(), answer()]
        found = dict(
            zip(
                ["answer", "cancel"] if first == "answer" else ["cancel", "answer"],
                await asyncio.gather(*pair),
                strict=True,
            )
        )
        runnable = tool_of(ask, store=world.cold())
        final = await runnable(parent_id=paused.run_id, resume={})
        if stands(final) == DONE:
            assert (stands(found["answer"]), found["answer"].output) == (DONE, "yes")
            lost = found["cancel"]
            assert stands(lost) == (DONE if by == "the runnable" else ("cancelled", "interaction_already_claimed"))
        else:
            assert (stands(final), stands(found["cancel"])) == (CANCELLED, CANCELLED)
            assert stands(found["answer"]) in (REJECTED, CANCELLED)
            assert {receipt["state"] for receipt in found["answer"].receipts} <= {"cancelled", "accepted"}
        assert (await world.cold().pending()).items == []


async def test_s25_a_cancel_that_came_after_the_answer_was_given_and_before_it_was_used_ends_the_execution(
    world: World,
) -> None:
    office = Office(world)
    paused = await office.agent(world.store)("go")
    await world.cold().answer(paused.run_id, {by_call(paused)["1"]: "yes"})
    output = await office.agent().cancel(paused.run_id, "too late")
    assert (stands(output), output.status.message, office.model.call_count) == (CANCELLED, "too late", 1)
    assert (await world.cold().pending()).items == []


@pytest.mark.parametrize("way", ["resume", "answer"])
async def test_s25_an_answer_beside_a_cancel_is_not_called_accepted(world: World, way: str) -> None:
    office = Office(world)
    paused = await office.agent()("go")
    first, second, _ = ids(paused)
    given = {first: "yes", second: Cancel("stop")}
    if way == "resume":
        told = (await office.agent()(parent_id=paused.run_id, resume=given)).receipts
    else:
        told = await world.cold().answer(paused.run_id, given)
    assert [(one["id"], one["state"], one["same_value"]) for one in told] == [
        (first, "cancelled", False),
        (second, "accepted", True),
    ]
    assert office.runs == ["ask"] * 3


async def test_s25_a_cancel_at_the_moment_when_a_run_ends_leaves_every_caller_with_an_output(world: World) -> None:
    done: list[str] = []

    @step
    async def effect(what: str) -> str:
        done.append(what)
        await asyncio.sleep(0)
        return what

    async def order() -> str:
        await effect("reserve")
        answer = suspend({"q": "pay?"})
        await effect("pay")
        return str(answer)

    def fresh() -> Any:
        return tool_of(order, store=world.cold())

    for _ in range(10):
        done.clear()
        paused = await fresh()()
        (id,) = ids(paused)
        await world.store.answer(paused.run_id, {id: "yes"})
        outputs = await asyncio.gather(
            *(fresh()(parent_id=paused.run_id, resume=resume).collect() for resume in ({}, {id: "yes"}, {id: "no"})),
            fresh().cancel(paused.run_id),
        )
        ends = {stands(output) for output in outputs}
        assert ends <= {("success", None), ("cancelled", "cancelled"), ("cancelled", "interaction_already_claimed")}
        assert len(ends) == 2, "one outcome, and who lost"
        assert (done.count("reserve"), done.count("pay") <= 1) == (1, True)
