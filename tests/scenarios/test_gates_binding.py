"""S29: what a person saw is what runs, or it does not run."""

import asyncio
from copy import deepcopy
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator, BaseModel, Field, field_serializer

from tests.scenarios.conftest import World
from tests.scenarios.gate_tools import Till, decide, gate_of
from tests.scenarios.tools import listen, script, stands, tool_of, turn, use
from timbal import Agent, suspend
from timbal.testing import TestModel


class Line(BaseModel):
    item: str
    count: int


async def test_s29_a_default_that_is_a_callable_is_asked_once(world: World) -> None:
    amounts = iter([50, 1_000_000, 2_000_000])
    till = Till(world, requires_approval=True, default_params={"amount": lambda: next(amounts)})
    paused = await till.tool()()
    assert gate_of(paused).input["amount"] == 50
    assert (await decide(till.tool, paused, True)).output == "refunded 50 to ada"

    def fresh() -> Any:
        return till.agent(turn(use("refund")), "done")

    paused = await fresh()(prompt="go")
    shown = gate_of(paused).input["amount"]
    await decide(fresh, paused, True)
    assert till.paid == [(50, "ada"), (shown, "ada")]


async def test_s29_hooks_policies_and_all_the_others_get_copies(world: World) -> None:
    """They change the nested input as much as they like: what was shown is what runs."""
    ran: list[Any] = []

    def spoil(lines: list[Line], extra: dict[str, Any]) -> Any:
        lines[0].count = 1000
        lines.append(Line(item="gold", count=1))
        extra.setdefault("x", []).append("spoiled")
        extra.clear()
        return "spoiled"

    def policy(lines: list[Line], extra: dict[str, Any]) -> bool:
        return bool(spoil(lines, extra))

    def redactor(shown: dict[str, Any]) -> dict[str, Any]:
        seen = {**shown, "extra": dict(shown["extra"])}
        shown["lines"].clear()
        return {**seen, "lines": "hidden"}

    def ui(lines: Any, extra: dict[str, Any]) -> dict[str, Any]:
        extra.clear()
        return {"w": 1}

    def hook(input: Any) -> None:
        spoil(input["lines"], input["extra"])

    async def handler(lines: list[Line], extra: dict[str, Any]) -> str:
        ran.append(([line.model_dump() for line in lines], deepcopy(extra)))
        spoil(lines, extra)
        if len(ran) == 1:
            raise ConnectionError
        return "ok"

    def fresh() -> Any:
        return tool_of(
            handler,
            requires_approval=policy,
            approval_prompt=spoil,
            approval_description=spoil,
            approval_preview=spoil,
            approval_ui=ui,
            approval_redactor=redactor,
            pre_hook=hook,
            post_hook=hook,
            store=world.cold(),
        )

    given: dict[str, Any] = {"lines": [{"item": "tea", "count": 1}], "extra": {"x": ["a"]}}
    paused = await fresh()(**given)
    assert gate_of(paused).input == {"lines": "hidden", "extra": {"x": ["a"]}}
    assert stands(await decide(fresh, paused, True)) == ("error", None)
    assert stands(await fresh()(parent_id=paused.run_id, resume={})) == ("success", None)
    assert ran == [(given["lines"], {"x": ["a"]})] * 2


async def test_s29_what_the_caller_does_to_its_objects_afterwards_does_not_matter(world: World) -> None:
    till = Till(world, requires_approval=True)
    notes = ["a"]
    paused = await till.tool()(amount=1, notes=notes)
    notes.append("b")
    await decide(till.tool, paused, True)
    assert till.paid == [(1, "ada", ["a"])]


def build(version: str, ran: list[Any], world: World) -> Any:
    """The refund tool as it was, and as later code has it."""

    def as_it_was(amount: int, to: str = "ada") -> str:
        ran.append((amount, to))
        return "ok"

    def with_more(amount: int, to: str = "ada", account: str = "main") -> str:
        ran.append((amount, to, account))
        return "ok"

    def doubled(amount: Annotated[int, AfterValidator(lambda n: n if n > 1000 else n * 1001)], to: str = "ada") -> str:
        ran.append((amount, to))
        return "ok"

    def another_default(amount: int, to: str = "mallory") -> str:
        ran.append((amount, to))
        return "ok"

    def as_text(amount: str, to: str = "ada") -> str:
        ran.append((amount, to))
        return "ok"

    handlers = {f.__name__: f for f in (as_it_was, with_more, doubled, another_default, as_text)}
    tool = tool_of(handlers[version], name="refund", requires_approval=True)
    return Agent("clerk", script(turn(use("refund", amount=50)), "done"), [tool], store=world.cold())


@pytest.mark.parametrize(
    ("version", "changed", "shown"),
    [
        ("with_more", ["account"], {"amount": 50, "to": "ada", "account": "main"}),
        ("doubled", ["amount"], {"amount": 50050, "to": "ada"}),
    ],
)
async def test_s29_changed_code_that_would_run_something_else_asks_again_and_says_what_changed(
    world: World, version: str, changed: list[str], shown: Any
) -> None:
    ran: list[Any] = []
    paused = await build("as_it_was", ran, world)(prompt="go")
    again = await decide(lambda: build(version, ran, world), paused, True)
    assert ran == []
    event = gate_of(again)
    assert event.approval_id != gate_of(paused).approval_id
    assert event.input == shown
    about = event.metadata["approval"]
    assert about["reopened"]["approval_id"] == gate_of(paused).approval_id
    assert about["reopened"]["changed"] == changed
    assert about["digest"] != gate_of(paused).metadata["approval"]["digest"]
    late = await decide(lambda: build(version, ran, world), paused, True)
    assert stands(late) == ("cancelled", "approval_required")
    assert ran == []
    assert stands(await decide(lambda: build(version, ran, world), again, True)) == ("success", "end_turn")
    assert ran == [tuple(shown.values())]


async def test_s29_a_changed_default_does_not_matter_and_an_input_that_does_not_fit_loses_nothing(world: World) -> None:
    ran: list[Any] = []
    paused = await build("as_it_was", ran, world)(prompt="go")
    refused = await decide(lambda: build("as_text", ran, world), paused, True)
    assert stands(refused) == ("error", "replay_mismatch")
    done = await build("another_default", ran, world)(parent_id=paused.run_id, resume={})
    assert stands(done) == ("success", "end_turn")
    assert ran == [(50, "ada")]


async def test_s29_code_that_changes_while_a_failed_call_waits_asks_again(world: World) -> None:
    till = Till(world)
    till.failures = 1
    paused = await till.tool()(amount=50)
    assert stands(await decide(till.tool, paused, True)) == ("error", None)

    def changed(amount: int, to: str = "ada", notes: list[str] | None = None, force: bool = True) -> str:
        till.paid.append("forced")
        return "forced"

    def fresh() -> Any:
        return tool_of(changed, name="refund", requires_approval=True, store=world.cold())

    again = await fresh()(parent_id=paused.run_id, resume={})
    assert gate_of(again).metadata["approval"]["reopened"]["changed"] == ["force"]
    assert till.paid == []
    assert (await decide(fresh, again, True)).output == "forced"


@pytest.mark.parametrize("limit", [10, 10_000])
async def test_s29_a_call_that_needed_nothing_is_judged_anew_when_the_code_makes_another_of_it(
    world: World, limit: int
) -> None:
    ran: list[int] = []

    def policy(amount: int) -> bool:
        return amount > limit

    def as_it_was(amount: int) -> str:
        return str(suspend({"q": "sure?"}))

    def in_cents(amount: Annotated[int, AfterValidator(lambda n: n if n > 100 else n * 100)]) -> str:
        answer = suspend({"q": "sure?"})
        ran.append(amount)
        return str(answer)

    def fresh(handler: Any) -> Any:
        tool = tool_of(handler, name="refund", requires_approval=policy)
        return Agent("clerk", script(turn(use("refund", amount=5)), "done"), [tool], store=world.cold())

    asked = await fresh(as_it_was)(prompt="go")
    assert asked.status.reason == "input_required"
    out = await fresh(in_cents)(parent_id=asked.run_id, resume={asked.pending[0].id: "yes"})
    if limit == 10:
        assert gate_of(out).input == {"amount": 500}
        assert ran == []
        out = await decide(lambda: fresh(in_cents), out, True)
    assert stands(out) == ("success", "end_turn")
    assert ran == [500]


async def test_s29_an_input_that_is_another_one_each_time_it_is_validated_is_not_shown_at_all(world: World) -> None:
    def handler(amount: Annotated[int, AfterValidator(lambda n: n + 1)]) -> str:
        raise AssertionError("it ran")

    out = await tool_of(handler, requires_approval=True, store=world.cold())(amount=1)
    assert stands(out) == ("error", "invalid_input")
    assert "amount" in (out.status.message or "")


@pytest.mark.parametrize("policy", [True, lambda: False], ids=["asks", "needs nothing"])
@pytest.mark.parametrize("inside", [False, True], ids=["direct", "in an agent"])
async def test_an_input_whose_json_is_not_valid_input_is_refused_and_ends_nothing_else(
    world: World, policy: Any, inside: bool
) -> None:
    class Order(BaseModel):
        amount: int

        @field_serializer("amount")
        def in_words(self, amount: int) -> str:
            return "five"

    def pay(order: Order) -> str:
        raise AssertionError("it ran")

    tool = tool_of(pay, requires_approval=policy, store=world.cold())
    given: dict[str, Any] = {"order": {"amount": 5}}
    if not inside:
        out = await tool(**given)
        assert stands(out) == ("error", "invalid_input")
        assert "order.amount" in (out.status.message or "")
        return
    model = TestModel([turn(use("pay", **given)), "I can't."])
    out = await Agent("clerk", model, [tool], store=world.cold())(prompt="pay")
    assert stands(out) == ("success", "end_turn")


async def test_a_gated_model_with_aliases_runs_as_approved_and_as_edited_by_either_name(world: World) -> None:
    class Order(BaseModel):
        amount: int = Field(alias="howMuch")

    def pay(order: Order) -> str:
        return f"paid {order.amount}"

    def fresh() -> Any:
        return tool_of(pay, requires_approval=True, store=world.cold())

    for edit, paid in ((None, 5), ({"order": {"howMuch": 6}}, 6)):
        paused = await fresh()(order={"howMuch": 5})
        decision = True if edit is None else {"approved": True, "override_input": edit}
        assert (await decide(fresh, paused, decision)).output == f"paid {paid}"


async def test_s20_the_input_that_is_given_with_a_decision_must_be_the_stored_one(world: World) -> None:
    till = Till(world)
    paused = await till.tool()(amount=10)
    refused = await decide(till.tool, paused, True, amount=1_000_000)
    assert stands(refused) == ("error", "resume_rejected")
    assert stands(await decide(till.tool, paused, True, amount=10)) == ("success", None)
    assert till.paid == [(10, "ada")]


async def test_an_edit_is_what_runs_and_is_recorded_beside_what_was_proposed(world: World) -> None:
    till = Till(world, requires_approval=True, approval_redact_keys=["to"])
    paused = await till.tool()(amount=50, to="secret person")
    till.failures = 1
    failed = await decide(till.tool, paused, {"approved": True, "override_input": {"amount": 7}})
    assert stands(failed) == ("error", None)
    _, done = await listen(till.tool()(parent_id=paused.run_id, resume={}))
    assert till.paid == [(7, "secret person")]
    resolution = done.metadata["approval"]["resolution"]
    assert resolution["override_input"] == {"amount": 7}
    assert resolution["proposed_input"] == {"amount": 50, "to": "[redacted]", "notes": None}
    assert resolution["effective_input"] == {"amount": 7, "to": "[redacted]", "notes": None}
    assert done.input == resolution["effective_input"]


async def test_two_equal_parallel_calls_are_two_approvals_with_stable_ids(world: World) -> None:
    till = Till(world)

    async def handler() -> list[Any]:
        outs = await asyncio.gather(*(till.tool()(amount=5) for _ in range(2)))
        return [out.output if out.status.code == "success" else out.status.reason for out in outs]

    def fresh() -> Any:
        return tool_of(handler, store=world.cold())

    paused = await fresh()()
    ids = [event.id for event in paused.pending]
    assert len(set(ids)) == 2
    half = await fresh()(parent_id=paused.run_id, resume={ids[0]: True})
    assert [event.id for event in half.pending] == [ids[1]]
    assert till.paid == [(5, "ada")]
    done = await fresh()(parent_id=half.run_id, resume={ids[1]: False})
    assert sorted(done.output) == ["approval_denied", "refunded 5 to ada"]
    assert till.paid == [(5, "ada")]
