"""S31: an approval is for one call, however often that call has to be tried; and crashes lose nothing."""

import asyncio
from typing import Any

import pytest

from tests.scenarios.conftest import World
from tests.scenarios.gate_tools import Till, calls, decide, gate_of, gates
from tests.scenarios.tools import in_another_process, listen, script, stands, tool_of, turn, use
from timbal import Agent, step, suspend
from timbal.types.events import InteractionEvent
from timbal.types.message import Message


async def test_s31_a_failed_call_is_tried_again_under_the_recorded_approval(world: World) -> None:
    till = Till(world)
    till.failures = 2
    paused = await till.tool()(amount=50)
    id = gate_of(paused).approval_id
    failed = await decide(till.tool, paused, True)
    assert stands(failed) == ("error", None)
    second = await till.tool()(parent_id=failed.run_id, resume={id: True})
    assert (stands(second), second.run_id) == (("error", None), failed.run_id)
    refused = await till.tool()(parent_id=failed.run_id, resume={id: False})
    assert stands(refused) == ("cancelled", "approval_already_claimed")
    assert till.paid == []
    assert stands(await till.tool()(parent_id=paused.run_id, resume={})) == ("error", None)
    events, done = await listen(till.tool()(parent_id=paused.run_id, resume={}))
    assert (done.output, gates(events)) == ("refunded 50 to ada", [])
    assert till.paid == [(50, "ada")]
    assert (await till.tool()(parent_id=paused.run_id, resume={})).output == done.output
    assert till.paid == [(50, "ada")]


async def test_s31_in_an_agent_the_same_call_after_a_failure_is_a_new_one(world: World) -> None:
    till = Till(world)
    till.failures = 1
    replies: list[str | Message] = [calls(50), calls(50), "done"]
    paused = await till.agent(*replies)(prompt="go")
    again = await decide(lambda: till.agent(*replies), paused, True)
    assert gate_of(again).approval_id != gate_of(paused).approval_id
    assert till.paid == []
    assert stands(await decide(lambda: till.agent(*replies), again, True)) == ("success", "end_turn")
    assert till.paid == [(50, "ada")]


async def test_a_gated_handler_that_asks_and_does_steps_goes_on_under_its_approval(world: World) -> None:
    log: list[str] = []

    @step
    def booked(what: str) -> str:
        log.append(what)
        return what

    async def handler(amount: int) -> str:
        booked("before")
        answer = suspend({"q": "sure?"})
        booked("after")
        return f"{answer} {amount}"

    def fresh() -> Any:
        gate = {"requires_approval": True, "approval_expires_in": 60}
        model = script(turn(use("handler", amount=3)), "done")
        return Agent("clerk", model, [tool_of(handler, **gate)], store=world.cold())

    paused = await fresh()(prompt="go")
    assert log == []
    asked = await decide(fresh, paused, {"approved": True, "override_input": {"amount": 9}})
    assert asked.status.reason == "input_required"
    events, done = await listen(fresh()(parent_id=asked.run_id, resume={asked.pending[0].id: "yes"}))
    assert gates(events) == []
    assert log == ["before", "after"]
    assert [e.output for e in events if e.type == "OUTPUT" and e.path == "clerk.handler"] == ["yes 9"]
    assert stands(done) == ("success", "end_turn")


async def test_interactions_and_gates_of_one_turn_surface_together_and_are_answered_in_one_resume(
    world: World,
) -> None:
    till = Till(world)

    def ask(question: str) -> str:
        return str(suspend({"question": question}, kind="ask"))

    def free() -> str:
        till.paid.append("free")
        return "free"

    def fresh() -> Any:
        model = script(turn(use("ask", question="q"), use("free"), use("refund", amount=5)), "done")
        return Agent("clerk", model, [ask, free, till.tool()], store=world.cold())

    events, paused = await listen(fresh()(prompt="go"))
    kinds = sorted(type(event).__name__ for event in paused.pending)
    assert kinds == ["ApprovalEvent", "InteractionEvent"]
    assert {e.id for e in paused.pending} == {e.id for e in events if e.type in ("APPROVAL", "INTERACTION")}
    assert [e["approval_id"] for e in paused.metadata["pending_approvals"]] == [g.approval_id for g in gates(events)]
    assert len(paused.metadata["pending_interactions"]) == 1
    assert paused.status.reason in ("approval_required", "input_required")
    assert {item.id for item in (await world.cold().pending()).items} == {e.id for e in paused.pending}
    resume = {e.id: ("yes" if isinstance(e, InteractionEvent) else True) for e in paused.pending}
    done = await fresh()(parent_id=paused.run_id, resume=resume)
    assert stands(done) == ("success", "end_turn")
    assert till.paid == ["free", (5, "ada")]


async def test_a_decision_given_while_the_sibling_still_runs_waits_for_it(world: World) -> None:
    till = Till(world)
    go = asyncio.Event()

    async def slow() -> str:
        await go.wait()
        till.paid.append("slow")
        return "slow"

    def fresh() -> Any:
        return Agent(
            "clerk", script(turn(use("refund", amount=5), use("slow")), "done"), [till.tool(), slow], store=world.cold()
        )

    handle = fresh()(prompt="go")
    async for event in handle:
        if event.type == "APPROVAL":
            await world.cold().answer(handle.run_id, {event.approval_id: True})
            go.set()
    done = await fresh()(parent_id=handle.run_id, resume={})
    assert stands(done) == ("success", "end_turn")
    assert till.paid == ["slow", (5, "ada")]


def test_s26_a_gate_of_one_process_is_decided_in_a_second_and_read_in_a_third(shared_world: World) -> None:
    _, paused = in_another_process("gated_refund", shared_world.url, amount=50)
    gate = gate_of(paused)
    assert gate.input == {"amount": 50, "to": "[redacted]"}
    odd = {"parent_id": paused.run_id, "resume": {gate.approval_id: "true"}}
    assert stands(in_another_process("gated_refund", shared_world.url, **odd)[1]) == ("error", "resume_rejected")
    decision = {"approved": True, "override_input": {"amount": 9}}
    yes = {"parent_id": paused.run_id, "resume": {gate.approval_id: decision}}
    events, done = in_another_process("gated_refund", shared_world.url, **yes)
    assert (done.output, gates(events)) == ("refunded 9 to ada", [])
    _, again = in_another_process("gated_refund", shared_world.url, **yes)
    assert (again.output, again.run_id) == (done.output, done.run_id)
    assert again.metadata["approval"] == done.metadata["approval"]


@pytest.mark.parametrize("way", ["answer", "interrupt"])
async def test_a_decision_that_nobody_went_on_with_is_used_by_whoever_goes_on(world: World, way: str) -> None:
    till = Till(world)
    paused = await till.tool()(amount=50)
    id = gate_of(paused).approval_id
    if way == "answer":
        (receipt,) = await world.cold().answer(paused.run_id, {id: True}, channel="http")
        assert receipt["state"] == "accepted"
    else:
        begun = asyncio.Event()

        async def hangs(amount: int, to: str = "ada", notes: list[str] | None = None) -> str:
            begun.set()
            await asyncio.Event().wait()
            raise AssertionError

        handle = tool_of(hangs, name="refund", requires_approval=True, store=world.cold())(
            parent_id=paused.run_id, resume={id: True}
        )
        running = asyncio.create_task(handle.collect())
        await begun.wait()
        await handle.aclose()
        assert stands(await running) == ("cancelled", "interrupted")
    done = await till.tool()(parent_id=paused.run_id, resume={})
    assert done.output == "refunded 50 to ada"
    channel = done.metadata["approval"]["resolution"]["channel"]
    assert channel == ("http" if way == "answer" else "resume")
    assert till.paid == [(50, "ada")]


async def test_a_run_that_is_cut_off_while_a_gate_is_open_comes_back_to_that_gate(world: World) -> None:
    till = Till(world)

    async def hangs() -> str:
        await asyncio.Event().wait()
        raise AssertionError

    def fresh() -> Any:
        model = script(turn(use("refund", amount=5), use("hangs")), "done")
        return Agent("clerk", model, [till.tool(), hangs], store=world.cold())

    handle = fresh()(prompt="go")
    gate = None
    async for event in handle:
        if event.type == "APPROVAL":
            gate = event
            await handle.aclose()
    again = fresh()(parent_id=handle.run_id, resume={})
    events = []
    async for event in again:
        events.append(event)
        if event.type == "START" and event.path == "clerk.hangs":
            await again.aclose()
    assert gate is not None
    assert gates(events) == []
    assert [item.event for item in (await world.cold().pending()).items] == [gate]
    assert till.paid == []


async def test_the_gate_opens_before_anything_even_when_the_run_is_cut_off_right_after(world: World) -> None:
    """The client has seen the event; the run is gone: the id can be answered."""
    till = Till(world)
    id = ""
    handle = till.tool()(amount=50)
    async for event in handle:
        if event.type == "APPROVAL":
            id = event.approval_id
            await handle.aclose()
    done = await till.tool()(parent_id=handle.run_id, resume={id: True})
    assert done.output == "refunded 50 to ada"
