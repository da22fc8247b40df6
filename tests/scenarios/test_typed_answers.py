"""Answers of a type: refused at the door where the schema can tell, asked again where it can't (S50)."""

import dataclasses
import enum
from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Any, Literal
from uuid import UUID

import pydantic
import pytest
from typing_extensions import TypedDict

from tests.scenarios.conftest import World
from tests.scenarios.tools import answers, asked, ids, listen, results, stands, tool_of, turn, use
from timbal import Agent, Tool, suspend
from timbal.errors import ResumeRejected
from timbal.stores.base import BaseStore
from timbal.testing import TestModel

PAUSED = ("cancelled", "input_required")
DONE = ("success", None)
REJECTED = ("error", "resume_rejected")


class Street(pydantic.BaseModel):
    name: str
    number: Annotated[int, pydantic.Field(ge=1)]


class Card(pydantic.BaseModel):
    kind: Literal["card"]
    digits: Annotated[str, pydantic.Field(pattern=r"^\d{4}$")]


class Transfer(pydantic.BaseModel):
    kind: Literal["transfer"]
    iban: str

    @pydantic.field_validator("iban")
    @classmethod
    def _is_german(cls, iban: str) -> str:
        if not iban.startswith("DE"):
            raise ValueError("only German accounts")
        return iban


class Order(pydantic.BaseModel):
    street: Street
    pay: Annotated[Card | Transfer, pydantic.Field(discriminator="kind")]
    on: date | None = None
    tags: list[str] = []


class Size(enum.Enum):
    SMALL = "s"


class Point(TypedDict):
    x: int


@dataclasses.dataclass
class Pair:
    left: int
    right: "Size"


STREET = {"name": "High Street", "number": 1}
CARD = {"kind": "card", "digits": "1234"}
TRANSFER = {"kind": "transfer", "iban": "DE1"}

#: name: (type, answer, what the handler gets)
FITS: dict[str, tuple[Any, Any, Any]] = {
    "a model": (Street, STREET, Street(name="High Street", number=1)),
    "nested models": (
        Order,
        {"street": STREET, "pay": TRANSFER, "on": "2030-01-02"},
        Order(street=Street(**STREET), pay=Transfer(**TRANSFER), on=date(2030, 1, 2)),  # type: ignore[arg-type]
    ),
    "a model from Python": (Street, Street(name="x", number=2), Street(name="x", number=2)),
    "a list of models": (list[Street], [STREET, STREET], [Street(name="High Street", number=1)] * 2),
    "a union": (int | str | None, "7", "7"),
    "another member of the union": (int | str | None, 7, 7),
    "None of the union": (int | str | None, None, None),
    "False": (bool, False, False),
    "zero": (int, 0, 0),
    "an empty list": (list[int], [], []),
    "an empty dict": (dict[str, int], {}, {}),
    "None": (type(None), None, None),
    "a literal": (Literal["a", "b"], "b", "b"),
    "an enum": (Size, "s", Size.SMALL),
    "an enum from Python": (Size, Size.SMALL, Size.SMALL),
    "a dataclass": (Pair, {"left": 1, "right": "s"}, Pair(1, Size.SMALL)),
    "a typed dict": (Point, {"x": 1}, {"x": 1}),
    "a tuple": (tuple[int, str], [1, "a"], (1, "a")),
    "a set": (set[int], [1, 2], {1, 2}),
    "a date and time": (datetime, "2030-01-02T03:04:05", datetime(2030, 1, 2, 3, 4, 5)),  # noqa: DTZ001
    "a decimal": (Decimal, "1.10", Decimal("1.10")),
    "a number as a decimal": (Decimal, 2, Decimal(2)),
    "an id": (UUID, str(UUID(int=5)), UUID(int=5)),
    "bytes": (bytes, "abc", b"abc"),
    "a float": (float, 3, 3.0),
    "text of a length": (Annotated[str, pydantic.Field(min_length=2)], "ab", "ab"),
    "anything": (Any, {"a": [None]}, {"a": [None]}),
}


@pytest.mark.parametrize("name", FITS)
async def test_s50_the_handler_gets_a_value_of_the_type_however_often_it_runs(world: World, name: str) -> None:
    response_type, answer, expected = FITS[name]
    seen: list[Any] = []

    def handler() -> str:
        seen.append(suspend({"question": "first"}, response_type=response_type))
        suspend({"question": "second"})
        return "done"

    def fresh() -> Tool[..., Any]:
        return tool_of(handler, store=world.cold())

    events, output = await listen(fresh()())
    schema = asked(events)[0].response_schema
    assert schema == pydantic.TypeAdapter(response_type).json_schema()
    output = await fresh()(parent_id=output.run_id, resume=answers(output, answer))
    assert (stands(output), len(output.pending)) == (PAUSED, 1)
    output = await fresh()(parent_id=output.run_id, resume=answers(output, None))
    assert stands(output) == DONE
    assert [(type(value), value) for value in seen] == [(type(expected), expected)] * 2


#: name: (type, answer, where it is wrong)
AT_THE_DOOR: dict[str, tuple[Any, Any, str]] = {
    "text for a number": (int, "seven", ""),
    "a boolean for a number": (int, True, ""),
    "a number for a boolean": (bool, 1, ""),
    "text for a boolean": (bool, "yes", ""),
    "None for text": (str, None, ""),
    "a part that is missing": (Street, {"name": "x"}, ""),
    "a part of another type": (Street, {"name": 1, "number": 1}, "/name"),
    "a part out of bounds": (Street, {"name": "x", "number": 0}, "/number"),
    "a part of a part": (Order, {"street": {"name": "x", "number": "y"}, "pay": CARD}, "/street/number"),
    "an item of a list": (list[int], [1, 2, "x"], "/2"),
    "no member of the union": (int | None, "x", ""),
    "no literal": (Literal["a", "b"], "c", ""),
    "no member of the enum": (Size, "m", ""),
    "text too short": (Annotated[str, pydantic.Field(min_length=2)], "a", ""),
    "another pattern": (Card, {"kind": "card", "digits": "12"}, "/digits"),
    "a tuple too long": (tuple[int, str], [1, "a", 2], ""),
    "a key with a slash": (dict[str, int], {"a/b~c": "x"}, "/a~1b~0c"),
}


@pytest.mark.parametrize("name", AT_THE_DOOR)
async def test_s50_an_answer_that_the_schema_rules_out_is_refused_at_the_door_and_told_where(
    world: World, name: str
) -> None:
    response_type, answer, pointer = AT_THE_DOOR[name]
    runs: list[int] = []

    def handler() -> Any:
        runs.append(1)
        return repr(suspend({"question": "Which?"}, response_type=response_type))

    def fresh() -> Tool[..., Any]:
        return tool_of(handler, store=world.cold())

    paused = await fresh()()
    refused = await fresh()(parent_id=paused.run_id, resume=answers(paused, answer))
    assert stands(refused) == REJECTED
    (receipt,) = refused.receipts
    assert (receipt["id"], receipt["state"]) == (ids(paused)[0], "invalid")
    assert receipt["errors"][0]["pointer"] == pointer
    assert receipt["errors"][0]["message"]
    with pytest.raises(ResumeRejected) as error:
        await world.cold().answer(paused.run_id, answers(paused, answer))
    assert error.value.receipts == refused.receipts
    assert len(runs) == 1
    assert [item.id for item in (await world.cold().pending()).items] == ids(paused)


#: name: (type, answer, words of the error)
BEHIND_THE_DOOR: dict[str, tuple[Any, Any, str]] = {
    "a validator": (Transfer, {"kind": "transfer", "iban": "FR1"}, "only German accounts"),
    "a validator of a part": (
        Order,
        {"street": STREET, "pay": {"kind": "transfer", "iban": "FR1"}},
        "only German accounts",
    ),
    "a date that does not exist": (date, "2030-02-31", "date"),
}


@pytest.mark.parametrize("name", BEHIND_THE_DOOR)
async def test_s50_an_answer_that_only_python_can_tell_is_wrong_is_asked_again_with_the_error(
    world: World, name: str
) -> None:
    response_type, answer, words = BEHIND_THE_DOOR[name]
    got: list[Any] = []

    def handler() -> str:
        got.append(suspend({"question": "Which?"}, kind="pick", response_type=response_type))
        return "done"

    def fresh() -> Tool[..., Any]:
        return tool_of(handler, store=world.cold())

    output = await fresh()()
    seen = ids(output)
    for _ in range(3):
        output = await fresh()(parent_id=output.run_id, resume=answers(output, answer))
        assert (stands(output), len(output.pending)) == (PAUSED, 1)
        again = output.pending[0].model_dump()
        assert (again["kind"], again["payload"]["question"]) == ("pick", "Which?")
        assert words in again["payload"]["error"]
        assert again["response_schema"] == pydantic.TypeAdapter(response_type).json_schema()
        seen += ids(output)
    assert len(set(seen)) == 4
    good = {Transfer: TRANSFER, Order: {"street": STREET, "pay": CARD}, date: "2030-02-28"}[response_type]
    output = await fresh()(parent_id=output.run_id, resume=answers(output, good))
    assert (stands(output), output.output) == (DONE, "done")
    assert got == [pydantic.TypeAdapter(response_type).validate_python(good, strict=False)]


async def test_s50_each_refused_answer_is_shown_its_own_error(world: World) -> None:
    def even(number: int) -> int:
        if number % 2:
            raise ValueError(f"{number} is odd")
        return number

    def handler() -> int:
        return suspend({"question": "Which?"}, response_type=Annotated[int, pydantic.AfterValidator(even)])  # type: ignore[no-any-return]

    def fresh() -> Tool[..., Any]:
        return tool_of(handler, store=world.cold())

    output = await fresh()()
    for number in (1, 3):
        output = await fresh()(parent_id=output.run_id, resume=answers(output, number))
        assert f"{number} is odd" in output.pending[0].model_dump()["payload"]["error"]
    output = await fresh()(parent_id=output.run_id, resume=answers(output, 4))
    assert (stands(output), output.output) == (DONE, 4)


async def test_s50_two_typed_questions_of_one_handler_are_asked_again_each_for_itself(world: World) -> None:
    def handler() -> list[str]:
        first = suspend({"question": "From?"}, response_type=Transfer)
        second = suspend({"question": "To?"}, response_type=Transfer)
        return [first.iban, second.iban]

    def fresh() -> Tool[..., Any]:
        return tool_of(handler, store=world.cold())

    output = await fresh()()
    shown = []
    for iban in ("FR1", "DE1", "FR2", "FR3", "DE2"):
        payload = output.pending[0].model_dump()["payload"]
        shown.append((payload["question"], "error" in payload))
        output = await fresh()(parent_id=output.run_id, resume=answers(output, {"kind": "transfer", "iban": iban}))
    assert shown == [("From?", False), ("From?", True), ("To?", False), ("To?", True), ("To?", True)]
    assert (stands(output), output.output) == (DONE, ["DE1", "DE2"])


async def test_s50_a_typed_question_of_an_agents_tool_is_asked_again_without_the_model(world: World) -> None:
    model = TestModel([turn(use("pay")), "paid"])

    def pay() -> str:
        return suspend({"question": "From?"}, response_type=Transfer).iban

    def agent(store: BaseStore) -> Agent[Any]:
        return Agent("assistant", model, [pay], store=store)

    output = await agent(world.store)("go")
    output = await agent(world.cold())(parent_id=output.run_id, resume=answers(output, TRANSFER | {"iban": "FR1"}))
    assert (stands(output), model.call_count) == (PAUSED, 1)
    assert output.pending[0].model_dump()["tool_call_id"] == "call_pay"
    output = await agent(world.cold())(parent_id=output.run_id, resume=answers(output, TRANSFER))
    assert (stands(output)[0], model.call_count) == ("success", 2)
    assert results(await world.store.messages(output.run_id)) == {"call_pay": "DE1"}


@pytest.mark.parametrize("answer", ["seven", None, {"a": 1}, False], ids=repr)
async def test_s50_a_schema_that_is_only_advice_refuses_nothing(world: World, answer: Any) -> None:
    def handler() -> Any:
        return suspend({"question": "How old?"}, response_schema={"type": "integer", "minimum": 0})

    output = await tool_of(handler, store=world.store)()
    runnable = tool_of(handler, store=world.cold())
    output = await runnable(parent_id=output.run_id, resume=answers(output, answer))
    assert (stands(output), output.output) == (DONE, answer)
