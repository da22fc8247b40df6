"""Answers reach the handler as they are, and what can't be one changes nothing (S6, S23)."""

import enum
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from types import MappingProxyType
from typing import Any

import pydantic
import pytest

from tests.scenarios.conftest import World
from tests.scenarios.tools import answers, asked, ids, listen, output_text, results, stands, tool_of, turn, use
from timbal import Agent, Tool, suspend
from timbal.stores.base import BaseStore
from timbal.testing import TestModel
from timbal.tools import ask_user, ask_user_multi, confirm

PAUSED = ("cancelled", "input_required")
DONE = ("success", None)
REJECTED = ("error", "resume_rejected")

FALSY: list[Any] = [False, 0, 0.0, -0.0, "", [], {}, None]
LEGAL: list[Any] = [
    *FALSY,
    True,
    1,
    1.0,
    "false",
    "null",
    " ",
    [None],
    [[], {}],
    {"": None},
    {"type": "other"},
    2**1000,
    -1e-300,
    "\0 é 漢 👩‍👩‍👧",
    "x" * 1_000_000,
]


def exactly(value: Any) -> tuple[type, str]:
    """A value with the types of everything in it: `True` is not `1`, and `0.0` is neither `0` nor `-0.0`."""
    return type(value), repr(value)


@pytest.mark.parametrize("answer", LEGAL, ids=lambda value: repr(value)[:20])
async def test_s6_an_answer_reaches_the_handler_as_it_is_however_often_it_runs_again(world: World, answer: Any) -> None:
    seen: list[Any] = []

    def handler() -> str:
        seen.append(suspend({"question": "first"}))
        seen.append(suspend({"question": "second"}))
        return "done"

    def fresh() -> Tool[..., Any]:
        return tool_of(handler, store=world.cold())

    output = await fresh()()
    output = await fresh()(parent_id=output.run_id, resume=answers(output, answer))
    assert (stands(output), len(output.pending)) == (PAUSED, 1)
    output = await fresh()(parent_id=output.run_id, resume=answers(output, answer))
    assert (stands(output), output.output) == (DONE, "done")
    assert [exactly(value) for value in seen] == [exactly(answer)] * 3
    assert exactly(output.receipts[0]["value"]) == exactly(answer)


@pytest.mark.parametrize("answer", FALSY, ids=repr)
@pytest.mark.parametrize("kind", ["sync", "async", "generator"])
async def test_s6_a_falsy_answer_is_what_the_tool_gives(world: World, kind: str, answer: Any) -> None:
    def sync() -> Any:
        return suspend({"question": "Which?"})

    async def asynchronous() -> Any:
        return suspend({"question": "Which?"})

    def generator() -> Any:
        yield [suspend({"question": "Which?"})]

    def fresh() -> Tool[..., Any]:
        handler: Any = {"sync": sync, "async": asynchronous, "generator": generator}[kind]
        return tool_of(handler, store=world.cold())

    output = await fresh()()
    output = await fresh()(parent_id=output.run_id, resume=answers(output, answer))
    assert stands(output) == DONE
    assert exactly(output.output) == exactly([[answer]] if kind == "generator" else answer)


@pytest.mark.parametrize("answer", FALSY, ids=repr)
async def test_s6_a_falsy_answer_that_the_store_was_given_is_an_answer(world: World, answer: Any) -> None:
    def handler() -> Any:
        return suspend({"question": "Which?"})

    output = await tool_of(handler, store=world.store)()
    (receipt,) = await world.cold().answer(output.run_id, answers(output, answer))
    assert (receipt["state"], exactly(receipt["value"])) == ("accepted", exactly(answer))
    runnable = tool_of(handler, store=world.cold())
    output = await runnable(parent_id=output.run_id, resume={})
    assert (stands(output), exactly(output.output)) == (DONE, exactly(answer))


@pytest.mark.parametrize(
    ("answer", "read"),
    [(False, "false"), (0, "0"), ("", ""), ([], "[]"), ({}, "{}"), (None, "null")],
    ids=lambda value: repr(value),
)
async def test_s6_a_falsy_answer_that_a_tool_gives_back_is_a_result_that_the_model_reads(
    world: World, answer: Any, read: str
) -> None:
    def pick() -> Any:
        return suspend({"question": "Which?"})

    def agent(store: BaseStore) -> Agent[Any]:
        return Agent("assistant", TestModel([turn(use("pick")), "ok"]), [pick], store=store)

    output = await agent(world.store)("go")
    output = await agent(world.cold())(parent_id=output.run_id, resume=answers(output, answer))
    assert output_text(output) == "ok"
    assert results(await world.cold().messages(output.run_id)) == {"call_pick": read}


#: name: (tool, arguments, payload, schema, answer)
READY_MADE: dict[str, tuple[Any, dict[str, Any], dict[str, Any], dict[str, Any], Any]] = {
    "ask_user": (ask_user, {"question": "Q"}, {"question": "Q", "options": None}, {"type": "string"}, ""),
    "ask_user, and an answer outside the options": (
        ask_user,
        {"question": "Q", "options": ["a"]},
        {"question": "Q", "options": ["a"]},
        {"type": "string"},
        "b",
    ),
    "ask_user_multi": (
        ask_user_multi,
        {"question": "Q", "options": ["a", "b"]},
        {"question": "Q", "options": ["a", "b"]},
        {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "minItems": 1},
        ["b"],
    ),
    "confirm": (confirm, {"action": "A"}, {"action": "A"}, {"type": "boolean"}, True),
    "confirm, and no": (confirm, {"action": "A"}, {"action": "A"}, {"type": "boolean"}, False),
}


@pytest.mark.parametrize("name", READY_MADE)
async def test_s6_the_ready_made_tools_ask_as_promised_and_give_the_answer(world: World, name: str) -> None:
    asking, arguments, payload, schema, answer = READY_MADE[name]

    def fresh() -> Tool[..., Any]:
        return tool_of(asking, store=world.cold())

    events, output = await listen(fresh()(**arguments))
    (question,) = asked(events)
    assert question.kind == asking.__name__
    assert (question.payload, question.response_schema) == (payload, schema)
    output = await fresh()(parent_id=output.run_id, resume=answers(output, answer))
    assert (stands(output), exactly(output.output)) == (DONE, exactly(answer))


class Size(enum.Enum):
    SMALL = "s"


class Money(pydantic.BaseModel):
    amount: Decimal


@pytest.mark.parametrize(
    ("answer", "arrives"),
    [
        ((1, 2), [1, 2]),
        (date(2030, 1, 2), "2030-01-02"),
        (Decimal("1.10"), "1.10"),
        (Size.SMALL, "s"),
        (Money(amount=Decimal(3)), {"amount": "3"}),
        (MappingProxyType({"a": 1}), {"a": 1}),
    ],
    ids=["a tuple", "a date", "a decimal", "an enum", "a model", "a mapping"],
)
async def test_s6_from_python_an_answer_may_be_what_a_payload_may_hold(world: World, answer: Any, arrives: Any) -> None:
    def handler() -> Any:
        return suspend({"question": "Which?"})

    output = await tool_of(handler, store=world.store)()
    runnable = tool_of(handler, store=world.cold())
    output = await runnable(parent_id=output.run_id, resume=answers(output, answer))
    assert (stands(output), exactly(output.output)) == (DONE, exactly(arrives))


NO_ANSWERS: dict[str, Callable[[], Any]] = {
    "a set": lambda: {1},
    "bytes": lambda: b"x",
    "an object": object,
    "NaN": lambda: float("nan"),
    "infinity in a list": lambda: [float("inf")],
    "half a surrogate pair": lambda: "\ud800",
    "numbers as keys": lambda: {1: 2},
    "an integer that no parser reads": lambda: 10**5000,
    "a model that holds an object": lambda: pydantic.create_model("M", part=(Any, None))(part=object()),
}


@pytest.mark.parametrize("name", NO_ANSWERS)
async def test_s6_what_can_not_be_an_answer_is_refused_and_changes_nothing(world: World, name: str) -> None:
    runs: list[str] = []

    def handler() -> Any:
        runs.append("run")
        return suspend({"question": "Which?"})

    def fresh() -> Tool[..., Any]:
        return tool_of(handler, store=world.cold())

    output = await fresh()()
    refused = await fresh()(parent_id=output.run_id, resume=answers(output, NO_ANSWERS[name]()))
    assert stands(refused) == REJECTED
    (receipt,) = refused.receipts
    assert (receipt["id"], receipt["state"], len(receipt["errors"])) == (ids(output)[0], "invalid", 1)
    assert len(runs) == 1
    assert [item.id for item in (await world.cold().pending()).items] == ids(output)
    output = await fresh()(parent_id=output.run_id, resume=answers(output, "fine"))
    assert (stands(output), output.output) == (DONE, "fine")
