"""S27: what a policy says is asked once, before anything of the call runs; and what is no verdict stops the call."""

import asyncio
import functools
from typing import Any

import pytest
from pydantic import BaseModel

from tests.scenarios.conftest import World
from tests.scenarios.gate_tools import Till, approvals, calls, decide, gate_of, gates
from tests.scenarios.tools import listen, script, stands, tool_of, turn, use
from timbal import Agent, Tool, suspend
from timbal.testing import TestModel
from timbal.types.approval import ApprovalPolicyDecision
from timbal.types.events import OutputEvent, StartEvent


async def test_s27_a_policy_that_changes_its_mind_is_not_asked_again(world: World) -> None:
    said = [True, False, False]
    till = Till(world, requires_approval=lambda: said.pop(0))
    paused = await till.tool()(amount=50)
    assert stands(await decide(till.tool, paused, False)) == ("cancelled", "approval_denied")
    assert stands(await till.tool()(parent_id=paused.run_id, resume={})) == ("cancelled", "approval_denied")
    assert till.paid == []
    assert said == [False, False]


async def test_s27_a_policy_that_asked_for_nothing_is_not_asked_again_either(world: World) -> None:
    """A default that differs each time would be another input, of which the policy knows nothing."""
    said: list[int] = []
    defaults = iter(range(1, 100))
    ran: list[Any] = []

    def policy(amount: int) -> bool:
        said.append(amount)
        return amount > 1

    async def handler(amount: int) -> str:
        ran.append(amount)
        return str(suspend({"q": "sure?"}))

    def fresh() -> Any:
        gate = {"requires_approval": policy, "default_params": {"amount": lambda: next(defaults)}}
        return Agent("clerk", script(turn(use("handler")), "done"), [tool_of(handler, **gate)], store=world.cold())

    paused = await fresh()(prompt="go")
    assert paused.status.reason == "input_required"
    done = await fresh()(parent_id=paused.run_id, resume={paused.pending[0].id: "yes"})
    assert stands(done) == ("success", "end_turn")
    assert (said, ran) == ([1], [1, 1])


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
async def test_the_order_is_start_validation_policy_gate_hooks_handler(world: World, asynchronous: bool) -> None:
    log: list[str] = []

    def policy(amount: int, to: str) -> bool:
        log.append(f"policy {amount} {to}")
        return True

    async def policy_later(amount: int, to: str) -> bool:
        await asyncio.sleep(0)
        return policy(amount, to)

    def prompt(to: str) -> str:
        log.append("prompt")
        return f"Pay {to}?"

    def amount_to_pay() -> int:
        log.append("default")
        return 7

    def handler(amount: int, to: str = "ada") -> str:
        log.append("handler")
        return "ok"

    def fresh() -> Any:
        return tool_of(
            handler,
            requires_approval=policy_later if asynchronous else policy,
            approval_prompt=prompt,
            pre_hook=lambda: log.append("pre"),
            post_hook=lambda: log.append("post"),
            default_params={"amount": amount_to_pay},
            store=world.cold(),
        )

    invalid = await fresh()(amount="x")
    assert stands(invalid) == ("error", "invalid_input")
    assert log == []
    events, paused = await listen(fresh()())
    assert [type(event).__name__ for event in events] == ["StartEvent", "ApprovalEvent", "OutputEvent"]
    assert log == ["default", "policy 7 ada", "prompt"]
    assert gate_of(paused).prompt == "Pay ada?"
    assert paused.output == {
        "approval_id": gate_of(paused).approval_id,
        "status": "approval_required",
        "prompt": "Pay ada?",
    }
    log.clear()
    assert (await decide(fresh, paused, True)).output == "ok"
    assert log == ["pre", "handler", "post"]


class Wanted(BaseModel):
    requires_approval: bool = True


def boom() -> Any:
    raise RuntimeError("no policy today")


async def boom_later() -> Any:
    await asyncio.sleep(0)
    raise ValueError("no policy today")


def nothing() -> Any:
    return {}


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError


def unspeakable() -> Any:
    raise Unspeakable


def exits() -> Any:
    raise GeneratorExit


def cancelled() -> Any:
    raise asyncio.CancelledError


BROKEN: dict[str, dict[str, Any]] = {
    "a policy that raises": {"requires_approval": boom},
    "an async policy that raises": {"requires_approval": boom_later},
    "a policy that suspends": {"requires_approval": lambda: suspend({"q": 1})},
    "a policy that raises CancelledError": {"requires_approval": cancelled},
    "a policy that raises what can not be told": {"requires_approval": unspeakable},
    "a policy that raises GeneratorExit": {"requires_approval": exits},
    "a policy that gives None": {"requires_approval": lambda: None},
    "a policy that gives 0": {"requires_approval": lambda: 0},
    "a policy that gives ''": {"requires_approval": lambda: ""},
    "a policy that gives 1": {"requires_approval": lambda: 1},
    "a policy that gives an empty dict": {"requires_approval": nothing},
    "a policy that gives an unknown key": {"requires_approval": lambda: {"requires_approval": False, "x": 1}},
    "a policy that gives a dict of 0": {"requires_approval": lambda: {"requires_approval": 0}},
    "a policy that gives a model": {"requires_approval": Wanted},
    "a policy with a prompt of 7": {"requires_approval": lambda: {"requires_approval": True, "prompt": 7}},
    "a policy with metadata that is no JSON": {
        "requires_approval": lambda: ApprovalPolicyDecision(True, metadata={"x": {1}})
    },
    "a policy that calls a tool": {"requires_approval": lambda: Tool(boom)().collect()},
    "a prompt that raises": {"requires_approval": True, "approval_prompt": boom},
    "a prompt that gives 7": {"requires_approval": True, "approval_prompt": lambda: 7},
    "a description that raises": {"requires_approval": True, "approval_description": boom_later},
    "a ui that raises": {"requires_approval": True, "approval_ui": boom},
    "a ui that gives a list": {"requires_approval": True, "approval_ui": list},
    "a preview that raises": {"requires_approval": True, "approval_preview": boom},
    "a preview that is no JSON": {"requires_approval": True, "approval_preview": object},
}


@pytest.mark.parametrize("case", BROKEN)
async def test_a_gate_whose_callable_fails_lets_nothing_through_and_says_so(world: World, case: str) -> None:
    till = Till(world, **BROKEN[case])
    direct = await till.tool()(amount=50)
    assert stands(direct) == ("error", "approval_policy_error")
    assert direct.error is not None
    assert direct.error["type"] == "ApprovalPolicyError"
    events, inside = await listen(till.agent(calls(50), "done")(prompt="go"))
    assert stands(inside) == ("success", "end_turn")
    (output,) = [e for e in events if isinstance(e, OutputEvent) and e.path == "clerk.refund"]
    assert stands(output) == ("error", "approval_policy_error")
    assert stands(await till.agent("done", **BROKEN[case])(prompt="go")) == ("error", "approval_policy_error")
    assert gates(events) == []
    assert till.paid == []


async def test_after_a_policy_error_resume_asks_the_policy_again(world: World) -> None:
    said: list[Any] = [RuntimeError("down"), True]

    def policy() -> bool:
        now = said.pop(0)
        if isinstance(now, Exception):
            raise now
        return bool(now)

    till = Till(world, requires_approval=policy)
    failed = await till.tool()(amount=50)
    paused = await till.tool()(parent_id=failed.run_id, resume={})
    assert till.paid == []
    assert (await decide(till.tool, paused, True)).output == "refunded 50 to ada"


async def test_what_a_policy_decides_is_what_the_event_tells(world: World) -> None:
    decision = ApprovalPolicyDecision(True, "Pay {?}", "A refund", {"rule": "limit"})
    till = Till(
        world,
        requires_approval=lambda amount: decision if amount > 10 else {"requires_approval": False},
        approval_prompt="never",
        approval_kind="refund",
        approval_ui=lambda shown: {"widget": "money", "fields": sorted(shown)},
        approval_preview=lambda amount: {"balance": 100 - amount},
        approval_expires_in=3600,
        approval_audience=["role:till"],
    )
    assert (await till.tool()(amount=5)).output == "refunded 5 to ada"
    event = gate_of(await till.tool()(amount=50))
    assert (event.prompt, event.description, event.kind) == ("Pay {?}", "A refund", "refund")
    assert event.ui == {"widget": "money", "fields": ["amount", "notes", "to"]}
    assert event.preview == {"balance": 50}
    assert event.expires_at == event.t0 + 3_600_000
    assert event.input == {"amount": 50, "to": "ada", "notes": None}
    assert event.input_schema is not None
    assert event.input_schema["properties"]["amount"] == {"type": "integer"}
    assert event.metadata["rule"] == "limit"
    assert event.metadata["approval"]["audience"] == ["role:till"]
    (item,) = (await world.cold().pending(kind="refund")).items
    assert item.event == event


class Shape(BaseModel):
    widget: str = "money"


UIS: dict[str, Any] = {
    "a dict": {"widget": "money"},
    "a model": Shape(),
    "a function that gives a model": lambda: Shape(),
    "a function of one parameter": lambda to: {"widget": "money"},
    "a function of all": lambda **values: Shape(),
    "a function of the input": lambda shown: {"widget": "money" if shown["amount"] else ""},
}


@pytest.mark.parametrize("case", UIS)
async def test_a_ui_is_a_dict_a_model_or_a_function(world: World, case: str) -> None:
    till = Till(world, requires_approval=True, approval_ui=UIS[case])
    assert gate_of(await till.tool()(amount=1)).ui == {"widget": "money"}


# -- tools that others wrote -------------------------------------------------------------------------------------------


def github_delete(repo: str) -> str:
    return f"deleted {repo}"


def github_read(repo: str) -> str:
    return f"read {repo}"


def weather(city: str) -> str:
    return "rain"


def both(**more: Any) -> Any:
    model = script(turn(use("github_delete", repo="a"), use("github_read", repo="b"), use("weather", city="c")), "done")
    return Agent("hub", model, [github_delete, github_read, weather], **more)


async def test_an_agent_puts_gates_before_the_tools_of_others(world: World) -> None:
    paused = await both(approvals={"github_*": True}, store=world.cold())(prompt="go")
    assert [(e.runnable_name, e.input) for e in approvals(paused)] == [
        ("github_delete", {"repo": "a"}),
        ("github_read", {"repo": "b"}),
    ]


async def test_a_pattern_takes_a_policy_and_an_agent_does_not_change_the_tools_it_was_given(world: World) -> None:
    tool = Tool(github_delete)
    seen: list[Any] = []

    def policy(**input: Any) -> bool:
        seen.append(input)
        return input.get("repo") == "a"

    model = script(turn(use("github_delete", repo="a")), "done")
    agent: Agent[Any] = Agent("hub", model, [tool], approvals={"*": policy}, store=world.cold())
    assert gate_of(await agent(prompt="go")).input == {"repo": "a"}
    assert seen == [{"repo": "a"}]
    assert (await tool(repo="a")).output == "deleted a"
    free: Agent[Any] = Agent("hub", model, [tool], store=world.cold())
    assert stands(await free(prompt="go")) == ("success", "end_turn")


async def test_a_pattern_only_adds_to_the_gate_that_a_tool_has(world: World) -> None:
    gated = tool_of(github_delete, requires_approval=lambda repo: repo == "a", approval_prompt="Delete?")
    for repo, policy in (("a", lambda: False), ("b", True)):
        agent: Agent[Any] = Agent(
            "hub", script(turn(use("github_delete", repo=repo)), "done"), [gated], approvals={"*": policy}
        )
        assert gate_of(await agent(prompt="go")).prompt == "Delete?"


MISUSED: dict[str, tuple[dict[str, Any], type[Exception]]] = {
    "an approval that is 1": ({"requires_approval": 1}, TypeError),
    "an approval that is a text": ({"requires_approval": "yes"}, TypeError),
    "an unknown parameter": ({"requires_aproval": True}, TypeError),
    "a policy of what the handler does not take": ({"requires_approval": lambda amuont: True}, ValueError),
    "a policy by position": ({"requires_approval": eval("lambda amount, /: True")}, ValueError),
    "a prompt that is 7": ({"approval_prompt": 7}, TypeError),
    "keys that are a text": ({"approval_redact_keys": "card"}, TypeError),
    "keys that are no texts": ({"approval_redact_keys": [1]}, TypeError),
    "a redactor that is a list": ({"approval_redactor": []}, TypeError),
    "a redactor that is async": ({"approval_redactor": boom_later}, TypeError),
    "a preview that is a dict": ({"approval_preview": {}}, TypeError),
    "a ui that is a set": ({"approval_ui": {1}}, TypeError),
    "an audience that is a text": ({"approval_audience": "role:x"}, TypeError),
    "a time of 0": ({"approval_expires_in": 0}, ValueError),
    "a time that is a text": ({"approval_expires_in": "1h"}, TypeError),
    "an empty kind": ({"approval_kind": ""}, TypeError),
    "grantable that is 0": ({"approval_grantable": 0}, TypeError),
}


@pytest.mark.parametrize("case", MISUSED)
def test_a_gate_that_can_not_be_meant_so_is_refused_where_it_is_made(case: str) -> None:
    options, error = MISUSED[case]
    with pytest.raises(error):
        Tool(Till.refund, **{"requires_approval": True, **options})


def test_a_pattern_that_guards_nothing_is_refused() -> None:
    for wrong in ({"githb_*": True}, {"*": False}, {"*": "yes"}, {"*": lambda nobody: True}):
        with pytest.raises((ValueError, TypeError)):
            both(approvals=wrong)


async def test_a_policy_may_be_any_callable(world: World) -> None:
    class Limit:
        def __init__(self, limit: int) -> None:
            self.limit = limit

        def __call__(self, amount: int) -> bool:
            return amount > self.limit

    def over(limit: int, amount: int) -> bool:
        return amount > limit

    for policy in (Limit(10), Limit(10).__call__, functools.partial(over, 10)):
        till = Till(world, requires_approval=policy)
        assert stands(await till.tool()(amount=11)) == ("cancelled", "approval_required")
        assert stands(await till.tool()(amount=10)) == ("success", None)


async def test_an_agent_can_be_gated_itself_as_a_root_and_as_a_tool(world: World) -> None:
    def inner() -> Any:
        return Agent(
            "inner", script("inner done"), requires_approval=lambda prompt: "delete" in prompt, store=world.cold()
        )

    def outer() -> Any:
        model = script(turn(use("inner", prompt="delete it")), "outer done")
        return Agent("outer", model, [inner()], store=world.cold())

    assert stands(await inner()(prompt="hello")) == ("success", "end_turn")
    for fresh, path in ((inner, "inner"), (outer, "outer.inner")):
        events, paused = await listen(fresh()(prompt="delete it"))
        event = gate_of(paused)
        assert (event.path, event.runnable_type, event.input) == (path, "Agent", {"prompt": "delete it"})
        assert f"{path}.llm" not in {e.path for e in events if isinstance(e, StartEvent)}
        done = await decide(fresh, paused, True)
        assert stands(done) == ("success", "end_turn")


async def test_a_prompt_that_was_denied_edited_or_left_is_not_read_by_the_model_a_turn_later(world: World) -> None:
    read: list[list[str]] = []

    def model(messages: Any) -> str:
        read.append([m.collect_text() for m in messages if m.role == "user"])
        return "ok"

    def fresh() -> Any:
        return Agent("inner", TestModel(handler=model), requires_approval=True, store=world.cold())

    async def said(prompt: str, decision: Any, parent_id: str | None = None) -> str:
        paused = await fresh()(prompt=prompt, parent_id=parent_id)
        return (await decide(fresh, paused, decision)).run_id

    denied = await said("one", False)
    edited = await said("two", {"approved": True, "override_input": {"prompt": "TWO"}}, denied)
    await said("three", True, edited)
    assert read == [["TWO"], ["TWO", "three"]]
