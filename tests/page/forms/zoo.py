"""Types of every kind that pydantic knows, and how a person fills in the form of each."""

from __future__ import annotations

import datetime as dt
import enum
import uuid
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import AnyUrl, BaseModel, ConfigDict, Field, Json, RootModel, SecretStr, TypeAdapter
from typing_extensions import TypeAliasType, TypedDict

#: A button to press, or a field and what goes into it; `Line 1 > Amount` is the field Amount in the group Line 1.
Step = str | tuple[str, str | bool]
BIG = 12345678901234567890123
BERLIN = dt.timezone(dt.timedelta(hours=1))


@dataclass
class Wrong:
    """Something to fill in that does not fit, beside which field that is said, and how."""

    steps: list[Step]
    field: str
    message: str


@dataclass
class Case:
    """A type, how to fill it in, what comes of that, and what does not fit."""

    type: Any
    steps: list[Step]
    value: Any
    wrong: list[Wrong] = field(default_factory=list)


class Size(enum.Enum):
    SMALL = "small"
    LARGE = "large"


class Floor(enum.IntEnum):
    GROUND = 0
    FIRST = 1
    SECOND = 2
    THIRD = 3
    FOURTH = 4
    ROOF = 99


class Address(BaseModel):
    """Where it goes."""

    street: str
    zip_code: str = Field(pattern=r"^\d{5}$", description="Five digits.", examples=["10115"])


class Order(BaseModel):
    customer: str
    ship_to: Address
    bill_to: Address | None = None


class Line(BaseModel):
    product: str
    count: int = Field(default=1, ge=1)


class Basket(BaseModel):
    lines: list[Line] = Field(min_length=1)


class Tree(BaseModel):
    name: str
    parts: list[Tree] = []


class Chain(BaseModel):
    name: str
    next: Chain | None = None


class Point(NamedTuple):
    x: int
    y: int = 0


class Card(BaseModel):
    kind: Literal["card"] = "card"
    number: str = Field(min_length=4)


class Transfer(BaseModel):
    kind: Literal["transfer"] = "transfer"
    iban: str


class Cash(BaseModel):
    kind: Literal["cash", "coins"]


Payment = Annotated[Card | Transfer | Cash, Field(discriminator="kind")]


class Purchase(BaseModel):
    payment: Payment
    tip: float | None = None


class Cat(BaseModel):
    meows: bool


class Dog(BaseModel):
    barks: int


class Sheet(BaseModel):
    rows: list[list[int | Cat | Payment]]


Nest = TypeAliasType("Nest", "int | list[Nest] | dict[str, Nest]")


class Options(BaseModel):
    model_config = ConfigDict(extra="forbid")

    note: str = "nothing"
    loud: bool = False
    times: int = 3
    old: str | None = Field(default=None, deprecated=True)


class Late(BaseModel):
    tags: list[str] = Field(default_factory=lambda: ["a"])
    place: Address = Field(default_factory=lambda: Address(street="Here", zip_code="00000"))


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")

    name: str


class Names(RootModel[list[str]]):
    """Some names."""


class Film(TypedDict, total=False):
    title: str
    year: int


@dataclass
class Box:
    width: float
    height: float = 1.5


class Everything(BaseModel):
    """A bit of all, for looking at it."""

    name: str = Field(description="As it stands in the passport.", examples=["Ada Lovelace"])
    amount: Decimal = Field(ge=0)
    size: Size
    floor: Floor | None = None
    due: dt.datetime
    password: SecretStr
    notify: bool = True
    urgent: bool
    notes: str = Field(default="", max_length=1000, description="Anything that matters.")
    toppings: set[Literal["cheese", "ham", "olives"]]
    ship_to: Address
    lines: list[Line] = Field(min_length=1)
    labels: dict[str, str]
    payment: Payment
    bill_to: Address | None = None


def short(pattern: str | None = None) -> Any:
    return Annotated[str, Field(min_length=2, max_length=5, pattern=pattern)]


ANSWER = "Answer"
ZOO: dict[str, Case] = {
    "text": Case(str, [(ANSWER, "hello")], "hello", [Wrong([], ANSWER, "Must be filled in")]),
    "text with limits": Case(
        short(r"^[a-z]+$"),
        [(ANSWER, "abc")],
        "abc",
        [
            Wrong([(ANSWER, "a")], ANSWER, "Must have at least 2 characters"),
            Wrong([(ANSWER, "abcdef")], ANSWER, "Must have at most 5 characters"),
            Wrong([(ANSWER, "ABC")], ANSWER, "Must match the pattern ^[a-z]+$"),
        ],
    ),
    "long text": Case(Annotated[str, Field(max_length=1000)], [(ANSWER, "a\nb")], "a\nb"),
    "optional text": Case(str | None, [], None),
    "whole number": Case(
        Annotated[int, Field(ge=3, le=9)],
        [(ANSWER, "7")],
        7,
        [
            Wrong([(ANSWER, "2")], ANSWER, "Must be at least 3"),
            Wrong([(ANSWER, "10")], ANSWER, "Must be at most 9"),
            Wrong([(ANSWER, "4.5")], ANSWER, "Must be a whole number"),
            Wrong([(ANSWER, "four")], ANSWER, "Must be a whole number"),
        ],
    ),
    "big whole number": Case(int, [(ANSWER, str(BIG))], BIG),
    "number": Case(
        Annotated[float, Field(gt=0, lt=10, multiple_of=0.1)],
        [(ANSWER, "1.3")],
        1.3,
        [
            Wrong([(ANSWER, "0")], ANSWER, "Must be more than 0"),
            Wrong([(ANSWER, "10")], ANSWER, "Must be less than 10"),
            Wrong([(ANSWER, "1.25")], ANSWER, "Must be a multiple of 0.1"),
        ],
    ),
    "decimal": Case(
        Annotated[Decimal, Field(ge=1)],
        [(ANSWER, "100000000000000000.10")],
        Decimal("100000000000000000.10"),
        [
            Wrong([(ANSWER, "0.5")], ANSWER, "Must be at least 1"),
            Wrong([(ANSWER, "much")], ANSWER, "Must be a number"),
        ],
    ),
    "optional decimal": Case(Decimal | None, [(ANSWER, "0.10")], Decimal("0.10")),
    "yes or no": Case(bool, [(ANSWER, "No")], False, [Wrong([], ANSWER, "Must be chosen")]),
    "optional yes or no": Case(bool | None, [(ANSWER, "Yes")], True),
    "few to choose from": Case(Size, [("Size", "large")], Size.LARGE, [Wrong([], "Size", "Must be chosen")]),
    "many to choose from": Case(Floor, [("Floor", "99")], Floor.ROOF, [Wrong([], "Floor", "Must be chosen")]),
    "mixed literals": Case(Literal[1, "one", True, None], [(ANSWER, "one")], "one"),
    "one literal": Case(Literal["yes"], [], "yes"),
    "optional literal": Case(Literal["yes"] | None, [(ANSWER, "yes")], "yes"),
    "null": Case(None, [], None),
    "date": Case(dt.date, [(ANSWER, "2026-02-28")], dt.date(2026, 2, 28), [Wrong([], ANSWER, "Must be filled in")]),
    "date and time": Case(dt.datetime, [(ANSWER, "2026-02-28T10:30")], dt.datetime(2026, 2, 28, 10, 30, tzinfo=BERLIN)),
    "date and time without a zone": Case(
        dt.datetime,
        [(ANSWER, "2026-02-28T10:30"), ("Time zone of Answer", "No time zone")],
        dt.datetime(2026, 2, 28, 10, 30),  # noqa: DTZ001
    ),
    "time": Case(dt.time, [(ANSWER, "10:30")], dt.time(10, 30)),
    "duration": Case(dt.timedelta, [(ANSWER, "PT90M")], dt.timedelta(minutes=90)),
    "uuid": Case(
        uuid.UUID,
        [(ANSWER, "123e4567-e89b-12d3-a456-426614174000")],
        uuid.UUID("123e4567-e89b-12d3-a456-426614174000"),
        [Wrong([(ANSWER, "123")], ANSWER, "Must be a UUID, like 123e4567-e89b-12d3-a456-426614174000")],
    ),
    "web address": Case(
        AnyUrl,
        [(ANSWER, "https://example.com/a")],
        AnyUrl("https://example.com/a"),
        [Wrong([(ANSWER, "example")], ANSWER, "Must be a web address, like https://example.com")],
    ),
    "e-mail address": Case(
        Annotated[str, Field(json_schema_extra={"format": "email"})],
        [(ANSWER, "a@example.com")],
        "a@example.com",
        [Wrong([(ANSWER, "a@")], ANSWER, "Must be an e-mail address, like name@example.com")],
    ),
    "password": Case(SecretStr, [(ANSWER, "secret")], SecretStr("secret")),
    "model in model": Case(
        Order,
        [("Customer", "Ada"), ("Ship to > Street", "Main"), ("Ship to > Zip Code", "10115")],
        Order(customer="Ada", ship_to=Address(street="Main", zip_code="10115")),
        [
            Wrong([("Customer", "Ada"), ("Ship to > Street", "Main")], "Ship to > Zip Code", "Must be filled in"),
            Wrong(
                [("Customer", "A"), ("Street", "M"), ("Zip Code", "1")],
                "Ship to > Zip Code",
                r"Must match the pattern ^\d{5}$",
            ),
        ],
    ),
    "optional model": Case(
        Order,
        [
            ("Customer", "Ada"),
            ("Ship to > Street", "Main"),
            ("Ship to > Zip Code", "10115"),
            "Add Bill to",
            ("Bill to > Street", "Side"),
            ("Bill to > Zip Code", "10117"),
        ],
        Order(
            customer="Ada",
            ship_to=Address(street="Main", zip_code="10115"),
            bill_to=Address(street="Side", zip_code="10117"),
        ),
    ),
    "model that contains itself": Case(
        Tree,
        [("Name", "a"), "Add to Parts", ("Tree 1 > Name", "b")],
        Tree(name="a", parts=[Tree(name="b")]),
        [Wrong([("Name", "a"), "Add to Parts"], "Tree 1 > Name", "Must be filled in")],
    ),
    "chain of a model": Case(
        Chain, [("Name", "a"), "Add Next", ("Next > Name", "b")], Chain(name="a", next=Chain(name="b"))
    ),
    "list": Case(
        Annotated[list[str], Field(min_length=2, max_length=3)],
        [("Answer 1", "a"), ("Answer 2", "b"), "Add to Answer", ("Answer 3", "c")],
        ["a", "b", "c"],
        [
            Wrong(["Remove Answer 2", ("Answer 1", "a")], "Answer", "Must have at least 2 entries"),
            Wrong([("Answer 1", "a")], "Answer 2", "Must be filled in"),
        ],
    ),
    "list of models": Case(
        Basket,
        [("Lines > Line 1 > Product", "Tea"), "Add to Lines", ("Line 2 > Product", "Milk"), ("Line 2 > Count", "2")],
        Basket(lines=[Line(product="Tea"), Line(product="Milk", count=2)]),
        [
            Wrong(
                [("Line 1 > Product", "Tea"), "Add to Lines", ("Line 2 > Product", "Milk"), ("Line 2 > Count", "0")],
                "Line 2 > Count",
                "Must be at least 1",
            ),
            Wrong(["Remove Line 1"], "Lines", "Must have at least 1 entry"),
        ],
    ),
    "list that may be missing": Case(list[int] | None, [], None),
    "set of options": Case(set[Literal["a", "b", "c"]], [("Answer > a", True), ("Answer > c", True)], {"a", "c"}),
    "set": Case(
        set[int],
        ["Add to Answer", ("Answer 1", "1"), "Add to Answer", ("Answer 2", "2")],
        {1, 2},
        [
            Wrong(
                ["Add to Answer", ("Answer 1", "1"), "Add to Answer", ("Answer 2", "1")],
                "Answer",
                "Must not have the same entry twice",
            )
        ],
    ),
    "tuple": Case(tuple[int, str], [("Answer 1", "1"), ("Answer 2", "b")], (1, "b")),
    "named tuple": Case(Point, [("X", "3")], Point(3, 0)),
    "dict": Case(
        dict[str, int],
        ["Add to Answer", ("Answer entry 1 > Key", "a"), ("Answer entry 1 > Value", "1")],
        {"a": 1},
        [
            Wrong(
                [
                    *("Add to Answer", ("Answer entry 1 > Key", "a"), ("Answer entry 1 > Value", "1")),
                    *("Add to Answer", ("Answer entry 2 > Value", "2"), ("Answer entry 2 > Key", "a")),
                ],
                "Answer entry 1 > Key",
                "Is there twice",
            ),
            Wrong(
                ["Add to Answer", ("Answer entry 1 > Key", "a"), ("Answer entry 1 > Value", "x")],
                "Answer entry 1 > Value",
                "Must be a whole number",
            ),
        ],
    ),
    "dict by options": Case(
        dict[Size, int],
        ["Add to Answer", ("Answer entry 1 > Key", "small"), ("Answer entry 1 > Value", "1")],
        {Size.SMALL: 1},
    ),
    "dict by a pattern": Case(
        dict[Annotated[str, Field(pattern="^x-")], str],
        ["Add to Answer", ("Answer entry 1 > Key", "x-a"), ("Answer entry 1 > Value", "b")],
        {"x-a": "b"},
        [
            Wrong(
                ["Add to Answer", ("Answer entry 1 > Key", "a"), ("Answer entry 1 > Value", "b")],
                "Answer entry 1 > Key",
                "Must match the pattern ^x-",
            )
        ],
    ),
    "union by a tag": Case(
        Purchase,
        [("Payment > Kind of Payment", "Card"), ("Payment > Number", "4242"), ("Tip", "1.5")],
        Purchase(payment=Card(number="4242"), tip=1.5),
        [
            Wrong([], "Payment > Kind of Payment", "Must be chosen"),
            Wrong([("Kind of Payment", "Card"), ("Number", "1")], "Number", "Must have at least 4 characters"),
        ],
    ),
    "union with a tag of several values": Case(
        Purchase,
        [("Kind of Payment", "Cash"), ("Payment > Kind", "coins")],
        Purchase(payment=Cash(kind="coins")),
    ),
    "union of models": Case(
        Cat | Dog,
        [("Kind of Answer", "Dog"), ("Barks", "3")],
        Dog(barks=3),
        [Wrong([("Kind of Answer", "Dog"), ("Barks", "x")], "Barks", "Must be a whole number")],
    ),
    "union of scalars": Case(
        int | str, [("Kind of Answer", "Text"), (ANSWER, "12")], "12", [Wrong([], "Kind of Answer", "Must be chosen")]
    ),
    "optional union": Case(int | Cat | None, [], None),
    "nested lists of unions": Case(
        Sheet,
        [
            *(
                "Add to Rows",
                "Add to Rows 1",
                ("Rows 1 1 > Kind of Rows 1 1", "Whole number"),
                ("Rows 1 1 > Rows 1 1", "5"),
            ),
            *("Add to Rows 1", ("Rows 1 2 > Kind of Rows 1 2", "Cat"), ("Rows 1 2 > Meows", "Yes")),
        ],
        Sheet(rows=[[5, Cat(meows=True)]]),
        [
            Wrong(
                ["Add to Rows", "Add to Rows 1", ("Rows 1 1 > Kind of Rows 1 1", "Whole number")],
                "Rows 1 1 > Rows 1 1",
                "Must be filled in",
            )
        ],
    ),
    "union that contains itself": Case(
        Nest,
        [
            *(("Kind of Answer", "List: Whole number / List / Details"), "Add to Answer"),
            *(("Kind of Answer 1", "Whole number"), ("Answer 1 > Answer 1", "5")),
        ],
        [5],
    ),
    "defaults": Case(Options, [], Options()),
    "changed defaults": Case(
        Options,
        [("Note", ""), ("Loud", True), ("Times", "4")],
        Options(note="", loud=True, times=4),
    ),
    "defaults that only the server knows": Case(Late, [], Late()),
    "model with more": Case(Open, [("Name", "a")], Open(name="a")),
    "named list": Case(Names, ["Add to Names", ("Names 1", "a")], Names(["a"])),
    "typed dict": Case(Film, [("Title", "Metropolis")], {"title": "Metropolis"}),
    "dataclass": Case(Box, [("Width", "2")], Box(2.0)),
    "anything": Case(
        Any,
        [(ANSWER, '{"a": [1, null]}')],
        {"a": [1, None]},
        [
            Wrong(
                [(ANSWER, "{a}")],
                ANSWER,
                'Must be JSON: "text" in double quotes, a number, true, false, null, [...] or {...}',
            )
        ],
    ),
    "list of anything": Case(list[Any], ["Add to Answer", ("Answer 1", "1")], [1]),
    "dict of anything": Case(
        dict[str, Any], ["Add to Answer", ("Answer entry 1 > Key", "a"), ("Answer entry 1 > Value", "[]")], {"a": []}
    ),
    "JSON in text": Case(Json[list[int]], [(ANSWER, "[1, 2]")], [1, 2]),
}


def schema_of(type: Any) -> dict[str, Any]:
    return TypeAdapter(type).json_schema()
