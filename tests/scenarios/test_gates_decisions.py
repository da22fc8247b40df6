"""S26 and S30: only a literal yes approves, and a decision that can't be meant so is refused before it is kept."""

import asyncio
import time
from enum import Enum
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator, BaseModel

from tests.scenarios.conftest import World
from tests.scenarios.gate_tools import Till, approvals, calls, decide, gate_of, later
from tests.scenarios.tools import stands, tool_of
from timbal.types.approval import ApprovalPolicyDecision, ApprovalResolution, Default, Principal


class Yes(Enum):
    YES = True


class Truthy:
    """An object that says yes to everything."""

    approved = True

    def __bool__(self) -> bool:
        return True

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


class Form(BaseModel):
    approved: bool = True


class Sly(dict[str, Any]):
    """A dict that says something else each time it is asked."""

    def get(self, key: str, default: Any = None) -> Any:
        return True

    def __getitem__(self, key: str) -> Any:
        return "yes"


FAR = 4102444800000
#: Each is refused, and the gate stays open.
ODD: dict[str, Any] = {
    "yes": "yes",
    "one": 1,
    "zero": 0,
    "one point zero": 1.0,
    "none": None,
    "an empty dict": {},
    "an empty list": [],
    "an empty text": "",
    "ok": {"ok": 1},
    "approved yes": {"approved": "yes"},
    "approved one": {"approved": 1},
    "approved None": {"approved": None},
    "approved a list": {"approved": [True]},
    "approved a dict": {"approved": {"approved": True}},
    "true as text": "true",
    "True as text": "True",
    "a list of True": [True],
    "approve in another case": {"Approved": True},
    "approved with a space": {"approved ": True},
    "an extra key": {"approved": True, "sudo": True},
    "its own id": {"approved": True, "approval_id": "x"},
    "an answer's form": {"answer": True},
    "a policy's form": {"requires_approval": False},
    "a policy decision": ApprovalPolicyDecision(requires_approval=False),
    "a principal": Principal("ada"),
    "a default": Default(True),
    "an enum of True": Yes.YES,
    "approved an enum": {"approved": Yes.YES},
    "a truthy object": Truthy(),
    "approved a truthy object": {"approved": Truthy()},
    "a model": Form(),
    "a sly dict": Sly(approved="no"),
    "a resolution of yes": ApprovalResolution(approved="yes"),  # type: ignore[arg-type]
    "a resolution of None": ApprovalResolution(approved=None),  # type: ignore[arg-type]
    "an integer that can not be written": 10**5000,
    "approved that integer": {"approved": 10**5000},
    "a thousand keys": {f"k{i}": True for i in range(1000)},
    "bytes": b"true",
    "NaN": float("nan"),
    "True under a number": {1: True},
    "a reason that is no text": {"approved": True, "reason": 7},
    "a reason that is half a pair": {"approved": True, "reason": "\ud800"},
    "an unknown scope": {"approved": True, "scope": "forever"},
    "a scope of True": {"approved": True, "scope": True},
    "no uses": {"approved": True, "scope": "conversation", "max_uses": 0},
    "minus uses": {"approved": True, "scope": "conversation", "max_uses": -1},
    "uses of True": {"approved": True, "scope": "conversation", "max_uses": True},
    "uses as text": {"approved": True, "scope": "conversation", "max_uses": "1"},
    "an expiry as text": {"approved": True, "expires_at": "2030-01-01"},
    "an expiry of True": {"approved": True, "expires_at": True},
    "an expiry with a fraction": {"approved": True, "expires_at": float(FAR) + 0.5},
    "an approver that is a list": {"approved": True, "approver_id": ["ada"]},
    "metadata that is a text": {"approved": True, "metadata": "m"},
    "metadata that is no JSON": {"approved": True, "metadata": {"x": {1, 2}}},
    "an edit that is a list": {"approved": True, "override_input": [["amount", 1]]},
    "an edit that is True": {"approved": True, "override_input": True},
    "an edit of an unknown argument": {"approved": True, "override_input": {"amuont": 1}},
    "an edit beside a known one": {"approved": True, "override_input": {"amount": 1, "by": "me"}},
    "an edit of a reserved name": {"approved": True, "override_input": {"resume": {}}},
    "an edit of the wrong type": {"approved": True, "override_input": {"amount": "7"}},
    "an edit to None": {"approved": True, "override_input": {"amount": None}},
    "an edit to True": {"approved": True, "override_input": {"amount": True}},
    "an edit with a fraction": {"approved": True, "override_input": {"amount": 7.5}},
    "a deep edit of the wrong type": {"approved": True, "override_input": {"notes": ["a", 1]}},
}

#: Each approves, and this is what runs.
GOOD: dict[str, tuple[Any, Any]] = {
    "True": (True, (50, "ada")),
    "a dict": ({"approved": True}, (50, "ada")),
    "a resolution": (ApprovalResolution(approved=True), (50, "ada")),
    "all fields": (
        ApprovalResolution(
            approved=True,
            reason="fine",
            override_input={"amount": 7},
            scope="conversation",
            max_uses=3,
            expires_at=FAR,
            approver_id="ada",
            comment="c",
            decided_at=1,
            metadata={"ticket": 1},
        ),
        (7, "ada"),
    ),
    "fields that say nothing": ({"approved": True, "reason": None, "scope": "once", "override_input": {}}, (50, "ada")),
    "an edit": ({"approved": True, "override_input": {"to": "grace ✓", "amount": 1}}, (1, "grace ✓")),
    "an edit of what was left out": ({"approved": True, "override_input": {"notes": ["x"]}}, (50, "ada", ["x"])),
    "an edit to a whole float": ({"approved": True, "override_input": {"amount": 7.0}}, (7, "ada")),
}


@pytest.mark.parametrize("case", ODD)
async def test_s26_anything_but_a_literal_yes_is_refused_and_the_gate_stays_open(world: World, case: str) -> None:
    till = Till(world)
    paused = await till.tool()(amount=50)
    refused = await decide(till.tool, paused, ODD[case])
    assert stands(refused) == ("error", "resume_rejected")
    assert [receipt["state"] for receipt in refused.receipts] == ["invalid"]
    assert refused.receipts[0]["errors"][0]["message"]
    assert [item.id for item in (await world.cold().pending()).items] == [gate_of(paused).approval_id]
    assert approvals(refused) == approvals(paused)
    assert till.paid == []
    assert stands(await decide(till.tool, paused, True)) == ("success", None)
    assert till.paid == [(50, "ada")]


@pytest.mark.parametrize("case", GOOD)
async def test_s26_a_literal_yes_approves_once(world: World, case: str) -> None:
    decision, ran = GOOD[case]
    till = Till(world)
    paused = await till.tool()(amount=50)
    done = await decide(till.tool, paused, decision)
    assert stands(done) == ("success", None)
    assert till.paid == [ran]
    again = await decide(till.tool, paused, decision)
    assert again.output == done.output
    assert [receipt["state"] for receipt in again.receipts] == ["already_settled"]
    assert till.paid == [ran]


async def test_s26_one_odd_decision_refuses_those_beside_it(world: World) -> None:
    till = Till(world)
    paused = await till.agent(calls(1, 2), "done")(prompt="go")
    one, two = approvals(paused)
    refused = await till.agent(calls(1, 2), "done")(
        parent_id=paused.run_id, resume={one.approval_id: True, two.approval_id: "yes"}
    )
    assert stands(refused) == ("error", "resume_rejected")
    assert approvals(refused) == [one, two]
    assert till.paid == []


@pytest.mark.parametrize("edit", [{"amount": "x"}, {"amuont": 1}, {"notes": {"a": 1}}])
async def test_s30_an_edit_that_does_not_fit_is_refused_with_the_place_and_is_ignored_on_a_denial(
    world: World, edit: dict[str, Any]
) -> None:
    till = Till(world)
    paused = await till.tool()(amount=50)
    refused = await decide(till.tool, paused, {"approved": True, "override_input": edit})
    assert stands(refused) == ("error", "resume_rejected")
    assert refused.receipts[0]["errors"][0]["pointer"].startswith(f"/override_input/{next(iter(edit))}")
    denied = await decide(till.tool, paused, {"approved": False, "override_input": edit})
    assert stands(denied) == ("cancelled", "approval_denied")
    assert "override_input" not in denied.metadata["approval"]["resolution"]
    assert till.paid == []


async def test_s30_an_edit_that_only_python_can_refuse_opens_the_gate_again_and_says_why(world: World) -> None:
    def even(n: int) -> int:
        if n % 2:
            raise ValueError("an odd amount")
        return n

    paid: list[int] = []

    def refund(amount: Annotated[int, AfterValidator(even)]) -> str:
        paid.append(amount)
        return "paid"

    def fresh() -> Any:
        return tool_of(refund, requires_approval=True, store=world.cold())

    paused = await fresh()(amount=50)
    again = await decide(fresh, paused, {"approved": True, "override_input": {"amount": 7}})
    assert gate_of(again).approval_id != gate_of(paused).approval_id
    reopened = gate_of(again).metadata["approval"]["reopened"]
    assert reopened["approval_id"] == gate_of(paused).approval_id
    assert reopened["changed"] == ["amount"]
    assert "an odd amount" in reopened["reason"]
    assert gate_of(again).input == {"amount": 50}
    assert (await decide(fresh, again, {"approved": True, "override_input": {"amount": 8}})).output == "paid"
    assert paid == [8]


async def test_s26_a_decision_that_is_over_is_ignored_and_the_others_count(world: World) -> None:
    till = Till(world)
    paused = await till.agent(calls(1, 2), "done")(prompt="go")
    one, two = approvals(paused)
    late = {"approved": True, "expires_at": 1}
    still = await till.agent(calls(1, 2), "done")(
        parent_id=paused.run_id, resume={one.approval_id: late, two.approval_id: True}
    )
    assert [r["state"] for r in still.receipts] == ["expired", "accepted"]
    assert approvals(still) == [one]
    assert till.paid == [(2, "ada")]
    alone = await till.agent(calls(1, 2), "done")(parent_id=still.run_id, resume={one.approval_id: late})
    assert stands(alone) == ("cancelled", "approval_required")
    assert (await world.cold().answer(still.run_id, {one.approval_id: late}))[0]["state"] == "expired"
    done = await till.agent(calls(1, 2), "done")(parent_id=still.run_id, resume={one.approval_id: True})
    assert stands(done) == ("success", "end_turn")
    assert till.paid == [(2, "ada"), (1, "ada")]


async def test_a_decision_is_over_when_it_is_used_too_late(world: World) -> None:
    """It was settled in time and nobody went on with it: the time that it was given for has passed."""
    till = Till(world)
    paused = await till.tool()(amount=50)
    soon = time.time_ns() // 1_000_000 + 60_000
    decision = {"approved": True, "expires_at": soon}
    assert (await world.cold().answer(paused.run_id, {gate_of(paused).approval_id: decision}))[0]["state"] == "accepted"
    with later(61):
        again = await till.tool()(parent_id=paused.run_id, resume={})
    assert gate_of(again).metadata["approval"]["reopened"]["approval_id"] == gate_of(paused).approval_id
    assert till.paid == []


async def test_two_decisions_race_and_the_second_learns_to_what_it_lost(world: World) -> None:
    till = Till(world)
    paused = await till.tool()(amount=50)
    outs = await asyncio.gather(*(decide(till.tool, paused, i % 2 == 0, by=Principal(f"p{i}")) for i in range(10)))
    states = {stands(out) for out in outs}
    assert ("cancelled", "approval_already_claimed") in states
    assert len(states) == 2
    won = ("success", None) in states
    assert till.paid == ([(50, "ada")] if won else [])
    lost = next(out for out in outs if out.status.reason == "approval_already_claimed")
    (receipt,) = lost.receipts
    assert (receipt["state"], receipt["same_value"], receipt["value"]) == ("already_settled", False, won)
