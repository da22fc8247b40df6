"""S32: what a gate hides of its input is on no surface, whatever fails."""

import json
import logging
import traceback
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel

from tests.scenarios.conftest import World
from tests.scenarios.gate_tools import Till, decide, gate_of
from tests.scenarios.tools import listen, stands, tool_of, turn, use
from timbal import Agent
from timbal.errors import ResumeRejected, RunFailed
from timbal.ports import ModelRequest, Reply
from timbal.testing import TestModel
from timbal.types.content import TextContent
from timbal.types.events import Event
from timbal.types.message import Message

CARD = '4242-"4242"-ü\n'
PIN = 73110247316
SECRETS = ('4242-"4242"', r"4242-\"4242\"", "73110247316")


class Person(BaseModel):
    name: str
    Token: str


def boom(*args: Any, **given: Any) -> Any:
    raise ValueError(f"can't do {given} {args} with {CARD!r} and {PIN}")


def charge(amount: int, card: str, pin: int, who: Person) -> str:
    raise ValueError(f"bank refused {card} {card!r} {pin} {who.Token} for {amount}")


GIVEN: dict[str, Any] = {"amount": 5, "card": CARD, "pin": PIN, "who": {"name": "ada", "Token": CARD + "x"}}
KEYS = ["card", "pin", "token"]


def leaky(**more: Any) -> dict[str, Any]:
    """A gate whose every text carries the secrets."""
    return {
        "requires_approval": lambda card, pin: {
            "requires_approval": True,
            "metadata": {"card": card, "list": [pin, f"pin {pin}"]},
        },
        "approval_prompt": lambda amount, card, pin: f"Charge {amount} to {card} with {pin}?",
        "approval_description": lambda who: f"{who.name}: {who.Token}",
        "approval_preview": lambda card, pin: {"card": card, "deep": [{"pin": pin, card: "as a key"}]},
        "approval_ui": lambda shown: {"shown": shown},
        "approval_redact_keys": KEYS,
        **more,
    }


def check_clean(*things: Any) -> None:
    for thing in things:
        text = thing.model_dump_json() if hasattr(thing, "model_dump_json") else repr(thing)
        for secret in SECRETS:
            assert secret not in text, text


def agent(world: World, **gate: Any) -> Agent[Any]:
    calls = turn(use("charge", **GIVEN))

    def model(messages: Any) -> str | Message:
        turns = sum(message.role == "assistant" for message in messages)
        return calls if turns == 0 else "done"

    model_with_pieces = TestModel(handler=model, chunk_size=3)
    return Agent("clerk", model_with_pieces, [tool_of(charge, **gate)], store=world.cold())


GATES: dict[str, dict[str, Any]] = {
    "keys": leaky(),
    "a redactor": leaky(approval_redact_keys=None, approval_redactor=lambda shown: {"amount": shown["amount"]}),
    "both": leaky(approval_redactor=lambda shown: {**shown, "amount": "some"}),
    "a redactor that raises": leaky(approval_redact_keys=None, approval_redactor=boom),
    "a redactor that gives None": leaky(approval_redact_keys=None, approval_redactor=lambda shown: None),
    "a redactor that gives a set": leaky(approval_redact_keys=None, approval_redactor=lambda shown: {1}),
    "a redactor that gives objects": leaky(approval_redact_keys=None, approval_redactor=lambda shown: {"x": object()}),
    "a policy that raises": leaky(requires_approval=boom),
    "a prompt that raises": leaky(approval_prompt=boom),
    "a preview that raises": leaky(approval_preview=boom),
    "no need": leaky(requires_approval=False),
    "a policy that needs nothing": leaky(requires_approval=lambda: False),
}


@pytest.mark.parametrize("case", GATES)
@pytest.mark.parametrize("inside", [False, True], ids=["direct", "in an agent"])
async def test_s32_secrets_are_on_no_surface(
    world: World, case: str, inside: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)

    def fresh() -> Any:
        return agent(world, **GATES[case]) if inside else tool_of(charge, **GATES[case], store=world.cold())

    events: list[Event] = []
    heard, out = await listen(fresh()(prompt="go") if inside else fresh()(**GIVEN))
    events += heard
    if out.pending:
        check_clean(*(await world.cold().pending()).items)
        if case in ("keys", "both"):
            assert gate_of(out).input["who"] == {"name": "ada", "Token": "[redacted]"}
            assert "[redacted]" in (gate_of(out).prompt or "")
        id = gate_of(out).approval_id
        refused = await fresh()(parent_id=out.run_id, resume={id: {"approved": True, "override_input": {"x": CARD}}})
        check_clean(refused.metadata["pending_approvals"])
        edit = {"approved": True, "override_input": {"card": CARD + "1"}}
        heard, out = await listen(fresh()(parent_id=out.run_id, resume={id: edit}))
        events += heard
        lost = await fresh()(parent_id=out.run_id, resume={id: True})
        assert stands(lost) == ("cancelled", "approval_already_claimed")
        check_clean(lost)
        check_clean(await fresh()(parent_id=out.run_id, resume={id: edit}))
    again = await fresh()(parent_id=out.run_id, resume={})
    check_clean(*events, again, caplog.text)
    if case not in ("a policy that raises", "a prompt that raises", "a preview that raises"):
        assert any("bank refused [redacted]" in e.model_dump_json() for e in events)


class Streaming:
    """A model that streams its tool calls as pieces of JSON, as real ones do."""

    name = "test/streaming"

    async def complete(self, request: ModelRequest, emit: Callable[[dict[str, Any]], None]) -> Reply:
        if request.messages[-1].role == "tool":
            return Reply(turn(TextContent(text="done")), {})
        emit({"id": "c1", "type": "tool_use", "name": "charge", "input": {}})
        emit({"id": "c2", "type": "tool_use", "name": "weather", "input": {}})
        for i, piece in enumerate(json.dumps(GIVEN)[i : i + 9] for i in range(0, 500, 9)):
            emit({"id": "c1", "type": "tool_use_delta", "input_delta": piece})
            if i == 0:
                emit({"id": "c2", "type": "tool_use_delta", "input_delta": "{}"})
        return Reply(turn(use("charge", "c1", **GIVEN), use("weather", "c2")), {})


async def test_s32_the_pieces_of_a_tool_call_that_a_model_streams_are_held_back(world: World) -> None:
    def weather() -> str:
        return "rain"

    tools = [tool_of(charge, **leaky()), weather]
    events, paused = await listen(Agent("clerk", Streaming(), tools, store=world.cold())(prompt="go"))
    items = [event.item for event in events if event.type == "DELTA"]
    assert [(item["id"], item["type"]) for item in items] == [
        ("c1", "tool_use"),
        ("c2", "tool_use"),
        ("c2", "tool_use_delta"),
    ]
    check_clean(*events, *paused.pending)


async def test_s32_the_message_of_an_invalid_call_is_clean(world: World) -> None:
    def fresh() -> Any:
        return tool_of(charge, **leaky(), store=world.cold())

    for wrong in ({**GIVEN, "amount": "x"}, {**GIVEN, "more": 1}, {"card": CARD}, {**GIVEN, "card": {CARD}}):
        events, out = await listen(fresh()(**wrong))
        assert stands(out) == ("error", "invalid_input")
        check_clean(*events)


async def test_s32_an_outer_handler_that_passes_the_error_on_does_not_leak_it(world: World) -> None:
    async def outer() -> str:
        (await tool_of(charge, **leaky())(**GIVEN)).raise_for_status()
        return "never"

    def fresh() -> Any:
        return tool_of(outer, store=world.cold())

    events, paused = await listen(fresh()())
    more, failed = await listen(fresh()(parent_id=paused.run_id, resume={gate_of(paused).approval_id: True}))
    assert stands(failed) == ("error", None)
    check_clean(*events, *more, await fresh()(parent_id=failed.run_id, resume={}))


async def test_s32_a_traceback_that_is_cut_off_does_not_end_in_half_a_secret(world: World) -> None:
    secret = "s3cret-" * 3000

    def fail(key: str) -> str:
        raise ValueError(key)

    tool = tool_of(fail, requires_approval=False, approval_redact_keys=["key"], store=world.cold())
    assert "s3cret" not in (await tool(key=secret)).model_dump_json()


async def test_s32_a_default_that_is_secret_is_not_in_the_schema(world: World) -> None:
    def pay(amount: int, key: str = CARD) -> str:
        return "ok"

    paused = await tool_of(pay, requires_approval=True, approval_redact_keys=["key"], store=world.cold())(amount=1)
    check_clean(paused)
    assert gate_of(paused).input == {"amount": 1, "key": "[redacted]"}


async def test_s32_the_placeholder_that_was_shown_never_becomes_a_value(world: World) -> None:
    till = Till(world, requires_approval=True, approval_redact_keys=["to"])
    paused = await till.tool()(amount=50, to="grace")
    refused = await decide(till.tool, paused, {"approved": True, "override_input": {"to": "[redacted]", "amount": 1}})
    assert stands(refused) == ("error", "resume_rejected")
    done = await decide(till.tool, paused, {"approved": True, "override_input": {"amount": 1}})
    assert done.input["to"] == "[redacted]"
    assert till.paid == [(1, "grace")]


WRONG_EDITS: dict[str, Any] = {
    "of another type": {"approved": True, "override_input": {"pin": [PIN]}},
    "that is no dict": {"approved": True, "override_input": CARD},
    "with the hidden number": {"approved": True, "override_input": {"amount": f"{PIN}"}},
    "that is no decision": f"yes {PIN}",
}


@pytest.mark.parametrize("case", WRONG_EDITS)
@pytest.mark.parametrize("gate", ["keys", "a redactor"])
async def test_s32_a_decision_that_is_refused_does_not_say_what_is_hidden(world: World, case: str, gate: str) -> None:
    def fresh() -> Any:
        return tool_of(charge, **GATES[gate], store=world.cold())

    paused = await fresh()(**GIVEN)
    id = gate_of(paused).id
    refused = await fresh()(parent_id=paused.run_id, resume={id: WRONG_EDITS[case]})
    assert stands(refused) == ("error", "resume_rejected")
    check_clean(refused)
    with pytest.raises(ResumeRejected) as at_the_door:
        await world.cold().answer(paused.run_id, {id: WRONG_EDITS[case]})
    check_clean(at_the_door.value, at_the_door.value.receipts)


@pytest.mark.parametrize("gate", ["keys", "a redactor"])
async def test_s32_the_past_of_the_inbox_shows_an_edit_as_the_gate_does(world: World, gate: str) -> None:
    tool = tool_of(charge, **GATES[gate], store=world.cold())
    paused = await tool(**GIVEN)
    edit = {"approved": True, "override_input": {"card": CARD + "1"}}
    await world.cold().answer(paused.run_id, {gate_of(paused).id: edit})
    (item,) = (await world.cold().settled()).items
    assert item.value == {"approved": True, "override_input": {"card": "[redacted]"}}
    check_clean(item)


async def test_s32_what_raise_for_status_raises_is_as_clean_as_the_event(world: World) -> None:
    def fails_with(text: str) -> Any:
        def pay(card: str) -> str:
            raise ConnectionError(text.format(card=card)) from ValueError(card)

        return tool_of(pay, requires_approval=False, approval_redact_keys=["card"], store=world.cold())

    with pytest.raises(RunFailed, match="the bank refuses") as raised:
        (await fails_with("the bank refuses {card}")(card=CARD)).raise_for_status()
    check_clean("".join(traceback.format_exception(raised.value)))
    with pytest.raises(RunFailed, match="the bank is closed") as raised:
        (await fails_with("the bank is closed")(card=CARD)).raise_for_status()
    check_clean("".join(traceback.format_exception(raised.value)))


async def test_s32_code_that_hides_less_meanwhile_still_hides_what_was_hidden_when_it_was_asked(world: World) -> None:
    paused = await tool_of(charge, **GATES["both"], store=world.cold())(**GIVEN)
    bare = tool_of(charge, requires_approval=True, store=world.cold())
    events, failed = await listen(bare(parent_id=paused.run_id, resume={gate_of(paused).id: True}))
    assert stands(failed) == ("error", None)
    check_clean(*events, await bare(parent_id=paused.run_id, resume={}))


async def test_s32_the_store_keeps_the_real_input(world: World) -> None:
    till = Till(world, requires_approval=True, approval_redact_keys=["to"])
    paused = await till.tool()(amount=50, to="grace")
    assert "grace" in repr((await world.cold().get(paused.run_id)).facts)
