"""S28: a denied call does not run, the model hears why, and nobody is asked the same thing twice."""

from typing import Any

import pytest

from tests.scenarios.conftest import World
from tests.scenarios.gate_tools import Till, approvals, calls, decide, gate_of, gates, result_of
from tests.scenarios.tools import listen, script, stands, tool_of, turn, use
from timbal import Agent
from timbal.types.approval import ApprovalResolution, Cancel
from timbal.types.message import Message


async def test_s28_a_call_that_was_denied_is_not_asked_again_in_that_execution(world: World) -> None:
    till = Till(world)
    replies: list[str | Message] = [calls(50), calls(50), calls(50, 50), calls(50, to="ada"), calls(50), "I give up"]
    paused = await till.agent(*replies)(prompt="go")
    told, done = [], None
    events, done = await listen(
        till.agent(*replies)(
            parent_id=paused.run_id,
            resume={gate_of(paused).approval_id: ApprovalResolution(approved=False, reason="too much")},
        )
    )
    assert stands(done) == ("success", "end_turn")
    assert gates(events) == []
    assert till.paid == []
    told = result_of(await world.cold().messages(done.run_id))
    assert len(told) == 6
    assert all("Denied" in text and "too much" in text for text in told)
    denied = [e for e in events if e.type == "OUTPUT" and e.path == "clerk.refund"]
    assert {stands(e) for e in denied} == {("cancelled", "approval_denied")}
    pointers = {e.metadata["approval"]["approval_id"] for e in denied}
    assert pointers == {gate_of(paused).approval_id}
    assert done.usage == {"approvals:denied": 1}


async def test_s28_other_arguments_are_another_call(world: World) -> None:
    till = Till(world)
    replies: list[str | Message] = [calls(50), calls(51), "done"]
    paused = await till.agent(*replies)(prompt="go")
    again = await decide(lambda: till.agent(*replies), paused, False)
    assert gate_of(again).input["amount"] == 51
    assert stands(await decide(lambda: till.agent(*replies), again, True)) == ("success", "end_turn")
    assert till.paid == [(51, "ada")]


async def test_s28_a_default_that_differs_each_time_does_not_make_it_another_call(world: World) -> None:
    numbers = iter(range(100))
    ran: list[Any] = []

    def send(to: str, nonce: int) -> str:
        ran.append(to)
        return "sent"

    def fresh() -> Any:
        tool = tool_of(send, requires_approval=True, default_params={"nonce": lambda: next(numbers)})
        model = script(turn(use("send", to="a")), turn(use("send", to="a")), "done")
        return Agent("clerk", model, [tool], store=world.cold())

    paused = await fresh()(prompt="go")
    assert stands(await decide(fresh, paused, False)) == ("success", "end_turn")
    assert ran == []


async def test_s28_a_sub_agent_can_not_ask_again_what_was_denied(world: World) -> None:
    till = Till(world)

    def fresh() -> Any:
        inner: Agent[Any] = Agent("inner", script(calls(50), "inner gave up"), [till.tool()])
        model = script(turn(use("inner", "a", prompt="x")), turn(use("inner", "b", prompt="x")), "done")
        return Agent("outer", model, [inner], store=world.cold())

    paused = await fresh()(prompt="go")
    assert stands(await decide(fresh, paused, False)) == ("success", "end_turn")
    assert till.paid == []


async def test_s28_a_later_turn_is_asked_again(world: World) -> None:
    till = Till(world)
    model: list[str | Message] = [calls(50), "no", turn(use("refund", "again", amount=50)), "no again"]
    denied = await decide(lambda: till.agent(*model), await till.agent(*model)(prompt="go"), False)
    paused = await till.agent(*model)(prompt="go", parent_id=denied.run_id)
    assert gate_of(paused).input["amount"] == 50


async def test_a_denied_direct_call_ends_so_and_stays_so(world: World) -> None:
    till = Till(world)
    paused = await till.tool()(amount=50)
    denied = await decide(till.tool, paused, ApprovalResolution(False, "no", approver_id="ada", comment="c"))
    id = gate_of(paused).approval_id
    assert stands(denied) == ("cancelled", "approval_denied")
    assert denied.status.message == "no"
    assert denied.output == {"approval_id": id, "status": "approval_denied", "reason": "no"}
    resolution = denied.metadata["approval"]["resolution"]
    assert (resolution["approved"], resolution["approver_id"], resolution["comment"]) == (False, "ada", "c")
    again = await till.tool()(parent_id=paused.run_id, resume={})
    assert (again.output, again.status, again.metadata["approval"]) == (
        denied.output,
        denied.status,
        denied.metadata["approval"],
    )
    later = await till.tool()(parent_id=paused.run_id, resume={id: True})
    assert stands(later) == ("cancelled", "approval_already_claimed")
    assert till.paid == []


async def test_a_handler_that_calls_a_gated_tool_gets_the_denial_and_goes_on(world: World) -> None:
    till = Till(world)

    async def handler() -> str:
        out = await till.tool()(amount=50)
        return f"{out.status.reason}: {out.output['reason']}" if out.status.code == "cancelled" else str(out.output)

    def fresh() -> Any:
        return tool_of(handler, store=world.cold())

    paused = await fresh()()
    assert gate_of(paused).path == "handler.refund"
    assert (await decide(fresh, paused, {"approved": False, "reason": "no"})).output == "approval_denied: no"
    paused = await fresh()()
    assert (await decide(fresh, paused, True)).output == "refunded 50 to ada"
    assert till.paid == [(50, "ada")]


@pytest.mark.parametrize("cancel", [Cancel("stop"), {"type": "timbal.cancel", "reason": "stop"}])
async def test_a_cancel_on_a_gate_ends_everything(world: World, cancel: Any) -> None:
    till = Till(world)
    paused = await till.agent(calls(1, 2), "done")(prompt="go")
    first, second = approvals(paused)
    done = await till.agent(calls(1, 2), "done")(parent_id=paused.run_id, resume={second.approval_id: cancel})
    assert (stands(done), done.status.message) == (("cancelled", "cancelled"), "stop")
    assert done.usage["approvals:cancelled"] == 2
    assert (await world.cold().pending()).items == []
    late = await till.agent(calls(1, 2), "done")(parent_id=paused.run_id, resume={first.approval_id: True})
    assert [r["state"] for r in late.receipts] == ["cancelled"]
    assert till.paid == []


async def test_usage_counts_what_became_of_gates(world: World) -> None:
    till = Till(world)
    paused = await till.agent(calls(1, 2), "done")(prompt="go")
    assert paused.usage == {"approvals:required": 2}
    one, two = approvals(paused)
    done = await till.agent(calls(1, 2), "done")(
        parent_id=paused.run_id, resume={one.approval_id: True, two.approval_id: False}
    )
    assert done.usage == {"approvals:approved": 1, "approvals:denied": 1}
    assert till.paid == [(1, "ada")]
