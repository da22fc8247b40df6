"""S52, S49 and S24 for gates: who may decide, until when, and what a new message does."""

from typing import Any

import pytest

from tests.scenarios.conftest import World
from tests.scenarios.gate_tools import Till, approvals, calls, decide, gate_of, later, result_of
from tests.scenarios.tools import assert_valid, stands
from timbal.errors import ResumeRejected
from timbal.testing import ScriptedHuman
from timbal.types.approval import ApprovalResolution, Cancel, Principal

AUDIENCE = ["role:finance", "user:ada"]


@pytest.mark.parametrize("by", [None, Principal("mallory"), Principal("finance"), Principal("x", ["user:ada", "ada"])])
@pytest.mark.parametrize("decision", [True, False, Cancel()], ids=["yes", "no", "cancel"])
async def test_s52_somebody_elses_decision_is_forbidden_and_changes_nothing(
    world: World, by: Principal | None, decision: Any
) -> None:
    till = Till(world, requires_approval=True, approval_audience=AUDIENCE)
    paused = await till.tool()(amount=50)
    refused = await decide(till.tool, paused, decision, by=by)
    assert stands(refused) == ("error", "resume_rejected")
    assert [receipt["state"] for receipt in refused.receipts] == ["forbidden"]
    with pytest.raises(ResumeRejected):
        await world.cold().answer(paused.run_id, {gate_of(paused).approval_id: decision}, by=by)
    assert len((await world.cold().pending()).items) == 1
    assert till.paid == []


@pytest.mark.parametrize("by", [Principal("ada"), Principal("grace", ["other", "finance"])])
async def test_s52_who_decided_is_recorded_whatever_the_decision_says(world: World, by: Principal) -> None:
    till = Till(world, requires_approval=True, approval_audience=AUDIENCE)
    paused = await till.tool()(amount=50)
    done = await decide(till.tool, paused, ApprovalResolution(True, approver_id="somebody else"), by=by)
    resolution = done.metadata["approval"]["resolution"]
    assert resolution["by"] == {"sub": by.sub, "roles": by.roles}
    assert resolution["approver_id"] == "somebody else"
    assert till.paid == [(50, "ada")]


async def test_s49_a_gate_that_nobody_opens_in_time_is_denied(world: World) -> None:
    till = Till(world, requires_approval=True, approval_expires_in=60)
    paused = await till.tool()(amount=50)
    agent = await till.agent(calls(50), calls(50), "done")(prompt="go")
    with later(61):
        late = await decide(till.tool, paused, True)
        assert [receipt["state"] for receipt in late.receipts] == ["expired"]
        denied = await till.tool()(parent_id=paused.run_id, resume={})
        assert stands(denied) == ("cancelled", "approval_denied")
        done = await till.agent(calls(50), calls(50), "done")(parent_id=agent.run_id, resume={})
    assert stands(done) == ("success", "end_turn")
    assert denied.output["reason"] == "nobody decided in time"
    assert len(result_of(await world.cold().messages(done.run_id))) == 2
    assert till.paid == []


async def test_s24_a_new_message_is_refused_while_a_gate_is_open_unless_the_agent_says_otherwise(world: World) -> None:
    till = Till(world)
    paused = await till.agent(calls(1, 2), "done")(prompt="go")
    refused = await till.agent(calls(1, 2), "done")(prompt="never mind", parent_id=paused.run_id)
    assert stands(refused) == ("error", "resume_rejected")
    assert all(event.approval_id in (refused.status.message or "") for event in approvals(paused))
    moved = await till.agent(calls(1, 2), "fine", on_new_message="supersede")(
        prompt="never mind", parent_id=paused.run_id
    )
    assert stands(moved) == ("success", "end_turn")
    assert_valid(await world.cold().messages(moved.run_id))
    late = await till.agent(calls(1, 2), "done")(parent_id=paused.run_id, resume={approvals(paused)[0].id: True})
    assert [receipt["state"] for receipt in late.receipts] == ["superseded"]
    assert till.paid == []


async def test_a_scripted_human_answers_approvals_by_kind_and_text(world: World) -> None:
    till = Till(world, requires_approval=True, approval_prompt=lambda amount: f"Refund {amount}?")
    human = ScriptedHuman(
        {
            "approval(Refund 1?)": True,
            "approval(ada)": lambda event: ApprovalResolution(False, f"not {event.input['amount']}"),
        }
    )
    out = await human.run(till.agent(calls(1, 2), "done"), prompt="go")
    assert stands(out) == ("success", "end_turn")
    assert till.paid == [(1, "ada")]
    assert [event.kind for event in human.asked] == ["approval", "approval"]
    assert "not 2" in result_of(await world.cold().messages(out.run_id))[1]
