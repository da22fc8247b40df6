"""Decisions that hold for later calls of a tool in the conversation: bounded, listed, revoked, and never stretched."""

import asyncio
import time
from typing import Any

import pytest

from tests.scenarios.conftest import World
from tests.scenarios.gate_tools import Till, approvals, calls, decide, gate_of, gates, later, result_of
from tests.scenarios.tools import listen, script, stands, turn, use
from timbal import Agent
from timbal.errors import RunNotFound
from timbal.testing import TestModel
from timbal.types.approval import ApprovalResolution, Principal
from timbal.types.events import OutputEvent
from timbal.types.message import Message

ALWAYS = {"approved": True, "scope": "conversation"}


def now() -> int:
    return time.time_ns() // 1_000_000


def shopper(till: Till, **more: Any) -> Agent[Any]:
    """Each turn of the user that says a number is a refund of it; several numbers are several at once."""

    def model(messages: Any) -> Any:
        if messages[-1].role != "user":
            return "done"
        amounts = messages[-1].collect_text().split()
        parts = [use("refund", f"c{len(messages)}.{i}", amount=int(a)) for i, a in enumerate(amounts)]
        return turn(*parts)

    options: dict[str, Any] = {"store": till.world.cold(), **more}
    return Agent("clerk", TestModel(handler=model), [till.tool()], **options)


async def granted(till: Till, decision: Any = ALWAYS, **more: Any) -> OutputEvent:
    """A conversation in which this decision was made about the first refund."""
    paused = await shopper(till)(prompt="1")
    return await decide(lambda: shopper(till), paused, decision, **more)


async def test_a_standing_decision_lets_later_calls_pass_and_each_says_by_which(world: World) -> None:
    till = Till(world)
    first = await granted(till, ApprovalResolution(True, "fine", scope="conversation", approver_id="ada"))
    (grant,) = await world.cold().grants(first.run_id)
    assert (grant.path, grant.approved, grant.approver_id, grant.uses) == ("clerk.refund", True, "ada", [])
    events, second = await listen(shopper(till)(prompt="2 3", parent_id=first.run_id))
    assert gates(events) == []
    assert stands(second) == ("success", "end_turn")
    assert second.usage == {"approvals:granted": 2}
    assert sorted(till.paid) == [(1, "ada"), (2, "ada"), (3, "ada")]
    pointer = {"run_id": grant.run_id, "approval_id": grant.id}
    told = [e.metadata["approval"] for e in events if isinstance(e, OutputEvent) and e.path == "clerk.refund"]
    assert [one["grant"] for one in told] == [pointer, pointer]
    assert {one["resolution"]["approver_id"] for one in told} == {"ada"}
    (grant,) = await world.cold().grants(second.run_id)
    assert [use.execution_id for use in grant.uses] == [second.run_id] * 2
    third = await shopper(till)(prompt="4", parent_id=second.run_id)
    assert stands(third) == ("success", "end_turn")


async def test_a_standing_decision_holds_in_the_same_execution_and_in_no_other_conversation(world: World) -> None:
    till = Till(world)
    replies: list[str | Message] = [calls(1), calls(2), "done"]
    done = await decide(lambda: till.agent(*replies), await till.agent(*replies)(prompt="go"), ALWAYS)
    assert stands(done) == ("success", "end_turn")
    assert till.paid == [(1, "ada"), (2, "ada")]
    gate_of(await till.agent(*replies)(prompt="go"))


async def test_it_is_about_the_tool_where_it_stands_and_not_about_others(world: World) -> None:
    till = Till(world)

    def delete(amount: int) -> str:
        till.paid.append("deleted")
        return "deleted"

    def fresh() -> Any:
        inner: Agent[Any] = Agent("inner", script(calls(3), "inner done"), [till.tool()])
        model = script(calls(1), turn(use("delete", amount=2)), turn(use("inner", prompt="x")), "done")
        return Agent("clerk", model, [till.tool(), delete, inner], approvals={"delete": True}, store=world.cold())

    paused = await fresh()(prompt="go")
    other = await decide(fresh, paused, ALWAYS)
    assert gate_of(other).runnable_name == "delete"
    deeper = await decide(fresh, other, True)
    assert gate_of(deeper).path == "clerk.inner.refund"
    assert till.paid == [(1, "ada"), "deleted"]


@pytest.mark.parametrize("uses", [1, 2])
async def test_max_uses_bounds_the_later_calls_also_when_they_come_at_once(world: World, uses: int) -> None:
    till = Till(world)
    first = await granted(till, {**ALWAYS, "max_uses": uses})
    paused = await shopper(till)(prompt="2 3 4", parent_id=first.run_id)
    assert len(approvals(paused)) == 3 - uses
    assert len(till.paid) == 1 + uses
    (grant,) = await world.cold().grants(paused.run_id)
    assert not grant.holds(now())
    done = await shopper(till)(parent_id=paused.run_id, resume={event.id: False for event in paused.pending})
    assert len(approvals(await shopper(till)(prompt="5", parent_id=done.run_id))) == 1


async def test_max_uses_bounds_all_forks_of_a_conversation_together(world: World) -> None:
    till = Till(world)
    first = await granted(till, {**ALWAYS, "max_uses": 2})
    outs = await asyncio.gather(*(shopper(till)(prompt="7", parent_id=first.run_id).collect() for _ in range(6)))
    assert (
        sorted(stands(out) for out in outs) == [("cancelled", "approval_required")] * 4 + [("success", "end_turn")] * 2
    )
    assert len(till.paid) == 3


async def test_a_call_that_passed_is_tried_again_without_another_use(world: World) -> None:
    till = Till(world)
    paused = await till.tool()(amount=1)
    first = await decide(till.tool, paused, {**ALWAYS, "max_uses": 1})
    till.failures = 1
    failed = await till.tool()(amount=2, parent_id=first.run_id)
    assert stands(failed) == ("error", None)
    done = await till.tool()(parent_id=failed.run_id, resume={})
    assert done.output == "refunded 2 to ada"
    (grant,) = await world.cold().grants(done.run_id)
    assert len(grant.uses) == 1


async def test_it_ends_with_its_time(world: World) -> None:
    till = Till(world)
    first = await granted(till, {**ALWAYS, "expires_at": now() + 60_000})
    second = await shopper(till)(prompt="2", parent_id=first.run_id)
    with later(61):
        gate_of(await shopper(till)(prompt="3", parent_id=second.run_id))
    assert till.paid == [(1, "ada"), (2, "ada")]


async def test_it_can_be_revoked_and_what_passed_goes_on(world: World) -> None:
    till = Till(world)
    first = await granted(till)
    second = await shopper(till)(prompt="2", parent_id=first.run_id)
    (grant,) = await world.cold().grants(second.run_id)
    revoked = await world.cold().revoke(second.run_id, grant.id, by=Principal("grace"))
    assert revoked.revoked_at is not None
    assert (revoked.revoked_by or {})["sub"] == "grace"
    assert (await world.cold().revoke(first.run_id, grant.id)).revoked_at == revoked.revoked_at
    gate_of(await shopper(till)(prompt="3", parent_id=second.run_id))
    gate_of(await shopper(till)(prompt="3", parent_id=first.run_id))
    with pytest.raises(RunNotFound, match="no standing decision"):
        await world.cold().revoke(first.run_id, "0" * 32)
    with pytest.raises(RunNotFound):
        await world.cold().grants("0" * 32)


async def test_a_revocation_stops_a_run_that_is_at_work(world: World) -> None:
    """The run has read the grant already; the store's order decides."""
    till = Till(world)
    first = await granted(till)

    revoked = asyncio.Event()

    async def model(messages: Any) -> Any:
        if messages[-1].role == "tool":
            await revoked.wait()
        return turn(use("refund", f"r{len(messages)}", amount=len(messages)))

    agent: Agent[Any] = Agent("clerk", TestModel(handler=model), [till.tool()], store=world.cold())
    handle = agent(prompt="go", parent_id=first.run_id)
    async for event in handle:
        if event.type == "OUTPUT" and event.path == "clerk.refund" and event.status.code == "success":
            (grant,) = await world.cold().grants(first.run_id)
            await world.cold().revoke(first.run_id, grant.id)
            revoked.set()
    gate_of(await handle.collect())
    assert len(till.paid) == 2


async def test_a_denial_beats_a_grant(world: World) -> None:
    till = Till(world)
    replies: list[str | Message] = [calls(1, 2), calls(1), calls(2), "done"]
    paused = await till.agent(*replies)(prompt="go")
    one, two = approvals(paused)
    events, done = await listen(
        till.agent(*replies)(
            parent_id=paused.run_id,
            resume={
                one.approval_id: {"approved": False, "scope": "conversation", "reason": "never"},
                two.approval_id: ALWAYS,
            },
        )
    )
    assert gates(events) == []
    assert till.paid == [(2, "ada")]
    told = result_of(await world.cold().messages(done.run_id))
    assert ["Denied: never" in text.replace(", and not done", "") for text in told] == [True, False, True, True]


async def test_the_same_call_that_was_denied_is_denied_though_the_tool_is_granted(world: World) -> None:
    till = Till(world)
    replies: list[str | Message] = [calls(1, 2), calls(1), calls(3), "done"]
    paused = await till.agent(*replies)(prompt="go")
    one, two = approvals(paused)
    done = await till.agent(*replies)(parent_id=paused.run_id, resume={one.approval_id: False, two.approval_id: ALWAYS})
    assert stands(done) == ("success", "end_turn")
    assert till.paid == [(2, "ada"), (3, "ada")]


async def test_a_gate_can_forbid_standing_decisions_and_those_made_before_it_did(world: World) -> None:
    till = Till(world)
    first = await granted(till)
    till.gate = {"requires_approval": True, "approval_grantable": False}
    paused = await shopper(till)(prompt="2", parent_id=first.run_id)
    refused = await decide(lambda: shopper(till), paused, ALWAYS)
    assert stands(refused) == ("error", "resume_rejected")
    assert "approval_grantable" in (refused.status.message or "")
    assert stands(await decide(lambda: shopper(till), paused, True)) == ("success", "end_turn")


async def test_a_grant_counts_only_from_those_who_may_decide_today(world: World) -> None:
    till = Till(world, requires_approval=True, approval_audience=["role:till"])
    first = await granted(till, ALWAYS, by=Principal("ada", ["till"]))
    assert stands(await shopper(till)(prompt="2", parent_id=first.run_id)) == ("success", "end_turn")
    till.gate = {"requires_approval": True, "approval_audience": ["role:chief"]}
    gate_of(await shopper(till)(prompt="3", parent_id=first.run_id))


async def test_a_grant_of_an_erased_execution_counts_no_more(world: World) -> None:
    till = Till(world)
    first = await granted(till)

    async def model(messages: Any) -> Any:
        await world.cold().erase(first.run_id)
        return turn(use("refund", "r", amount=2))

    agent: Agent[Any] = Agent("clerk", TestModel(handler=model), [till.tool()], store=world.cold())
    gate_of(await agent(prompt="go", parent_id=first.run_id))
    assert till.paid == [(1, "ada")]


async def test_an_edit_is_about_the_one_call_and_a_grant_about_all(world: World) -> None:
    till = Till(world)
    first = await granted(till, {**ALWAYS, "override_input": {"amount": 100}})
    await shopper(till)(prompt="2", parent_id=first.run_id)
    assert till.paid == [(100, "ada"), (2, "ada")]
