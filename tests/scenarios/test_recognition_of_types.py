"""S47: what a recorded operation gives has the same type and value the first time and on every re-execution."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal, NamedTuple
from uuid import UUID

import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from tests.scenarios.effects_tools import World, ask, go_on, tool
from timbal import Agent, Tool, step
from timbal.testing import TestModel
from timbal.types.message import Message


class Color(Enum):
    RED = "red"
    BLUE = "blue"


class Size(int, Enum):
    SMALL = 1
    BIG = 2


class Line(BaseModel):
    item: str
    price: Decimal
    color: Color | None = None


class Order(BaseModel):
    at: datetime
    lines: list[Line]
    notes: dict[str, Line] = {}


@dataclass
class Parcel:
    weight: float
    sent: date
    lines: list[Line]


class Point(NamedTuple):
    x: int
    y: int


class Row(TypedDict):
    name: str
    day: date


class Card(BaseModel):
    kind: Literal["card"] = "card"
    number: str


class Cash(BaseModel):
    kind: Literal["cash"] = "cash"
    amount: Decimal


NOON = datetime(2024, 2, 29, 12, 0, 0, 123456, tzinfo=UTC)
LINE = Line(item="tea", price=Decimal("1.10"), color=Color.BLUE)
ORDER = Order(at=NOON, lines=[LINE], notes={"gift": LINE})

#: The annotation of what an operation returns, and a value of it.
VALUES: dict[str, tuple[Any, Any]] = {
    "pydantic model": (Line, LINE),
    "model of models": (Order, ORDER),
    "list of models": (list[Line], [LINE, LINE]),
    "nested list of models": (list[list[Order]], [[ORDER], []]),
    "dict of models": (dict[str, Order], {"one": ORDER}),
    "model or None": (Line | None, LINE),
    "None for a model": (Line | None, None),
    "one of two models": (Annotated[Card | Cash, Field(discriminator="kind")], Cash(amount=Decimal("0.10"))),
    "datetime": (datetime, NOON),
    "naive datetime": (datetime, datetime(2024, 2, 29, 12)),  # noqa: DTZ001
    "date": (date, date(2024, 2, 29)),
    "timedelta": (timedelta, timedelta(days=1, microseconds=1)),
    "Decimal": (Decimal, Decimal("0.10")),
    "UUID": (UUID, UUID(int=7)),
    "path": (PurePosixPath, PurePosixPath("a/b")),
    "Enum": (Color, Color.RED),
    "Enum of ints": (Size, Size.BIG),
    "dataclass": (Parcel, Parcel(1.5, date(2024, 2, 29), [LINE])),
    "tuple": (tuple[int, str], (1, "a")),
    "tuple of any length": (tuple[datetime, ...], (NOON, NOON)),
    "named tuple": (Point, Point(1, 2)),
    "set": (set[int], {1, 2, 3}),
    "frozenset of enums": (frozenset[Color], frozenset(Color)),
    "typed dict": (Row, Row(name="a", day=date(2024, 2, 29))),
    "dict with int keys": (dict[int, str], {1: "a"}),
    "bytes": (bytes, b"text"),
    "float that is whole": (float, 1.0),
    "float with many digits": (float, 0.1 + 0.2),
    "big int": (int, 10**30),
    "str with half the planes": (str, "é\u2028😀\x00"),
    "plain dict": (dict[str, Any], {"a": [1, None, True, {"b": 1.5}]}),
}


def sync_step(annotation: Any, value: Any) -> Callable[[], Any]:
    def work() -> Any:
        return value

    work.__annotations__["return"] = annotation
    return step(work)


def async_step(annotation: Any, value: Any) -> Callable[[], Any]:
    async def work() -> Any:
        return value

    work.__annotations__["return"] = annotation
    return step(work)


def nested_call(annotation: Any, value: Any) -> Callable[[], Any]:
    def work() -> Any:
        return value

    work.__annotations__["return"] = annotation
    inner = tool(work)

    async def call() -> Any:
        return (await inner()).output

    return call


async def twice(world: World, make: Callable[[Any, Any], Callable[[], Any]], annotation: Any, value: Any) -> list[Any]:
    """What the handler gets from the operation, in the first execution and in the second."""
    got: list[Any] = []

    def fresh() -> Tool[..., Any]:
        work = make(annotation, value)

        async def handler() -> None:
            result = work()
            got.append(await result if asyncio.iscoroutine(result) else result)
            ask("go on?")

        return Tool(handler, store=world.cold())

    done = await go_on(fresh(), await fresh()(), {"go on?": True})
    assert done.status.code == "success", done.error
    return got


@pytest.mark.parametrize("make", [sync_step, async_step, nested_call], ids=lambda make: make.__name__)
@pytest.mark.parametrize("case", VALUES)
async def test_s47_a_typed_result_is_of_the_same_type_the_first_time_and_on_re_execution(
    world: World, case: str, make: Callable[[Any, Any], Callable[[], Any]]
) -> None:
    annotation, value = VALUES[case]
    first, second = await twice(world, make, annotation, value)
    assert (type(first), first) == (type(value), value)
    assert (type(second), second) == (type(value), value)
    if isinstance(value, list | tuple) and value:
        assert type(first[0]) is type(second[0]) is type(value[0])


#: What comes back where nothing is annotated: JSON, the first time too.
UNTYPED: dict[str, tuple[Any, Any]] = {
    "tuple": ((1, "a"), [1, "a"]),
    "datetime": (NOON, NOON.isoformat()),
    "model": (LINE, {"item": "tea", "price": "1.10", "color": "blue"}),
    "Enum": (Color.RED, "red"),
    "nested": ({"at": [NOON]}, {"at": [NOON.isoformat()]}),
}


async def test_s47_a_model_with_aliases_is_the_same_as_input_and_as_a_result_on_re_execution(world: World) -> None:
    class Trip(BaseModel):
        origin: str = Field(alias="from")
        stops: int = Field(0, serialization_alias="n")

    seen: list[list[Trip]] = []

    @step
    def plan(trip: Trip) -> Trip:
        return trip

    def book(trip: Trip) -> str:
        seen.append([trip, plan(trip)])
        return str(ask("ok"))

    def booking() -> Tool[..., Any]:
        return tool(book, store=world.cold())

    out = await booking()(trip={"from": "Rome", "stops": 2})
    done = await go_on(booking(), out, {"ok": "yes"})
    assert done.output == "yes"
    assert seen == [[Trip.model_validate({"from": "Rome", "stops": 2})] * 2] * 2


@pytest.mark.parametrize("make", [sync_step, async_step, nested_call], ids=lambda make: make.__name__)
@pytest.mark.parametrize("case", UNTYPED)
async def test_s47_an_untyped_result_is_json_the_first_time_and_on_re_execution(
    world: World, case: str, make: Callable[[Any, Any], Callable[[], Any]]
) -> None:
    value, expected = UNTYPED[case]
    first, second = await twice(world, make, Any, value)
    assert (type(first), first) == (type(second), second) == (type(expected), expected)


@pytest.mark.parametrize("value", [object(), {1, 2}, b"\xff", float("nan"), {1: 2}], ids=lambda v: type(v).__name__)
@pytest.mark.parametrize("make", [sync_step, async_step], ids=lambda make: make.__name__)
async def test_s47_a_result_that_has_no_json_form_is_a_type_error_that_names_the_step(
    world: World, value: Any, make: Callable[[Any, Any], Callable[[], Any]]
) -> None:
    async def handler() -> None:
        result = make(Any, value)()
        if asyncio.iscoroutine(result):
            await result

    out = await tool(handler, store=world.store)()
    assert out.error is not None
    assert out.error["type"] == "TypeError"
    assert "work" in out.error["message"]


async def test_s47_a_result_that_the_handler_changes_is_as_recorded_on_re_execution(world: World) -> None:
    got: list[list[str]] = []

    def fresh() -> Tool[..., Any]:
        @step
        def basket() -> list[Any]:
            return [["tea"]]

        def shop() -> list[Any]:
            result = basket()
            got.append(list(result[0]))
            result[0].append(ask("what else?"))
            return result

        return Tool(shop, store=world.cold())

    done = await go_on(fresh(), await fresh()(), {"what else?": "milk"})
    assert got == [["tea"], ["tea"]]
    assert done.output == [["tea", "milk"]]


@pytest.mark.parametrize("structured", [False, True], ids=["message", "output_model"])
async def test_s47_an_inner_agents_output_is_of_the_same_type_on_re_execution(world: World, structured: bool) -> None:
    got: list[Any] = []

    def fresh() -> Tool[..., Any]:
        reply = LINE.model_dump_json()
        inner: Agent[Any] = Agent("inner", TestModel([reply]), output_model=Line if structured else None)

        async def handler() -> None:
            got.append((await inner("go")).output)
            ask("go on?")

        return Tool(handler, store=world.cold())

    await go_on(fresh(), await fresh()(), {"go on?": True})
    expected = LINE if structured else Message("assistant", LINE.model_dump_json(), "end_turn")
    assert got == [expected, expected]


async def test_s47_a_failed_inner_call_is_told_alike_the_first_time_and_on_re_execution(world: World) -> None:
    told: list[Any] = []

    def fresh() -> Tool[..., Any]:
        def breaks() -> None:
            raise LookupError("nothing there")

        async def handler() -> None:
            out = await Tool(breaks)()
            assert out.error is not None
            try:
                out.raise_for_status()
            except Exception as error:
                told.append((out.status, out.error["type"], out.error["message"], type(error), str(error)))
            ask("go on?")

        return Tool(handler, store=world.cold())

    await go_on(fresh(), await fresh()(), {"go on?": True})
    assert told[0] == told[1]
    assert told[0][3:] == (LookupError, "nothing there")
