"""What may be asked: it is the same on every surface, or refused at the `suspend()` line (S5)."""

import dataclasses
import enum
import json
from collections import OrderedDict, UserDict
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any
from uuid import UUID

import pydantic
import pytest

from tests.scenarios.conftest import World
from tests.scenarios.tools import KINDS, asked, ids, listen, stands, tool
from timbal import suspend
from timbal.types.events import InteractionEvent, validate_event

PAUSED = ("cancelled", "input_required")
DONE = ("success", None)


class Size(enum.Enum):
    SMALL = "s"


class Level(enum.IntEnum):
    HIGH = 3


class Money(pydantic.BaseModel):
    amount: Decimal
    on: date


class Shirt(pydantic.BaseModel):
    size: Size
    price: Money
    tags: set[str] = {"new"}


@dataclasses.dataclass
class Point:
    x: int
    label: Any = None


class Loose(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(arbitrary_types_allowed=True)
    part: Any


def nested(depth: int) -> Any:
    value: Any = "bottom"
    for level in range(depth):
        value = {"in": value} if level % 2 else [value]
    return value


SHIRT = Shirt(size=Size.SMALL, price=Money(amount=Decimal("9.90"), on=date(2030, 1, 2)))
SHIRT_JSON = {"size": "s", "price": {"amount": "9.90", "on": "2030-01-02"}, "tags": ["new"]}

#: name: (what the handler passes, what everybody sees)
ACCEPTED: dict[str, tuple[Any, Any]] = {
    "empty": ({}, {}),
    "nothing in it": ({"a": None}, {"a": None}),
    "booleans": ({"yes": True, "no": False}, {"yes": True, "no": False}),
    "numbers": ({"n": [0, -1, 2**53 + 1, 0.1, -0.0, 1e308]}, {"n": [0, -1, 2**53 + 1, 0.1, -0.0, 1e308]}),
    "a huge integer": ({"n": 2**1000}, {"n": 2**1000}),
    "any text": ({"t": "\0 \x7f \u2028 é 漢 👩‍👩‍👧 </script>"}, {"t": "\0 \x7f \u2028 é 漢 👩‍👩‍👧 </script>"}),
    "an empty key": ({"": 1, " ": 2}, {"": 1, " ": 2}),
    "a megabyte": ({"t": "x" * 1_000_000}, {"t": "x" * 1_000_000}),
    "ten thousand parts": ({"l": list(range(10_000))}, {"l": list(range(10_000))}),
    "nested a hundred deep": ({"d": nested(100)}, {"d": nested(100)}),
    "a tuple": ({"t": (1, (2,))}, {"t": [1, [2]]}),
    "the same part twice": ((part := {"x": [1]}) and {"a": part, "b": part}, {"a": {"x": [1]}, "b": {"x": [1]}}),
    "an ordered dict": ({"o": OrderedDict(b=1, a=2)}, {"o": {"b": 1, "a": 2}}),
    "a mapping": ({"m": MappingProxyType({"a": 1})}, {"m": {"a": 1}}),
    "a date and a time": (
        {"d": date(2030, 1, 2), "t": time(3, 4), "at": datetime(2030, 1, 2, 3, 4, tzinfo=UTC)},
        {"d": "2030-01-02", "t": "03:04:00", "at": "2030-01-02T03:04:00+00:00"},
    ),
    "a decimal": ({"d": Decimal("1.10")}, {"d": "1.10"}),
    "an id": ({"u": UUID(int=1)}, {"u": "00000000-0000-0000-0000-000000000001"}),
    "a path": ({"p": PurePosixPath("a/b")}, {"p": "a/b"}),
    "enums": ({"e": [Size.SMALL, Level.HIGH]}, {"e": ["s", 3]}),
    "a pydantic model": ({"shirt": SHIRT}, {"shirt": SHIRT_JSON}),
    "a model that holds NaN, which is null in its JSON": ({"m": Loose(part=float("nan"))}, {"m": {"part": None}}),
    "a dataclass": ({"p": Point(1, Point(2))}, {"p": {"x": 1, "label": {"x": 2, "label": None}}}),
    "models in a dataclass in a list": (
        {"l": [Point(1, SHIRT.price)]},
        {"l": [{"x": 1, "label": {"amount": "9.90", "on": "2030-01-02"}}]},
    ),
    "names that are ours": ({"path": 1, "type": "timbal.cancel"}, {"path": 1, "type": "timbal.cancel"}),
}


def circle() -> Any:
    value: dict[str, Any] = {}
    value["self"] = {"again": value}
    return {"c": value}


def circle_of_points() -> Any:
    point = Point(1)
    point.label = [point]
    return {"p": point}


def circle_of_models() -> Any:
    model = Loose(part=None)
    model.part = [model]
    return {"m": model}


#: name: (makes what the handler passes, what the message has to name)
REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "a set": (lambda: {"tags": {1}}, "tags"),
    "bytes": (lambda: {"data": {"raw": b"x"}}, "data.raw"),
    "an object": (lambda: {"thing": [object()]}, "thing[0]"),
    "a function": (lambda: {"f": len}, "f"),
    "a class": (lambda: {"c": Money}, "c"),
    "an iterator": (lambda: {"g": iter([1])}, "g"),
    "a complex number": (lambda: {"z": 1j}, "z"),
    "a user dict of a set": (lambda: {"u": UserDict(a={1})}, "u"),
    "NaN": (lambda: {"n": float("nan")}, "n"),
    "infinity": (lambda: {"n": [1.0, float("-inf")]}, "n[1]"),
    "an integer that no parser reads": (lambda: {"n": 10**5000}, "n"),
    "half a surrogate pair": (lambda: {"t": "\ud800"}, "t"),
    "half a surrogate pair in a key": (lambda: {"\udfff": 1}, "key"),
    "a dict that holds itself": (circle, "c.self"),
    "a dataclass that holds itself": (circle_of_points, "p"),
    "a model that holds itself": (circle_of_models, "m"),
    "a model that holds an object": (lambda: {"m": Loose(part=object())}, "m"),
    "a model that holds bytes": (lambda: {"m": Loose(part=b"\xff")}, "m"),
    "a dataclass that holds bytes": (lambda: {"p": Point(1, b"")}, "p.label"),
    "an enum of an object": (lambda: {"e": enum.Enum("E", {"A": object()}).A}, "e"),  # type: ignore[attr-defined]
    "tuples as keys": (lambda: {"m": {(1, 2): 3}}, "m"),
    "numbers as keys": (lambda: {1: 2}, "1"),
    "booleans as keys": (lambda: {"m": {True: 1}}, "True"),
    "None as a key": (lambda: {"m": {None: 1}}, "None"),
    "an enum as a key": (lambda: {"m": {Size.SMALL: 1}}, "SMALL"),
    "keys of several kinds": (lambda: {"a": 1, 2: 3}, "2"),
    "nested a hundred thousand deep": (lambda: {"d": nested(100_000)}, "d"),
    "None": (lambda: None, "dict"),
    "a list": (lambda: [{"a": 1}], "dict"),
    "text": (lambda: "Go on?", "dict"),
    "a number": (lambda: 1, "dict"),
    "pairs": (lambda: [("a", 1)], "dict"),
    "only a set": (lambda: {1}, "dict"),
}


def strict(text: str) -> Any:
    """JSON as a strict client reads it: no NaN, no infinity, no half of a surrogate pair."""

    def refuse(name: str) -> Any:
        raise AssertionError(f"{name} is no JSON")

    return json.loads(text.encode("utf-8"), parse_constant=refuse)


@pytest.mark.parametrize("name", ACCEPTED)
async def test_s5_a_payload_that_is_accepted_is_the_same_on_every_surface(world: World, name: str) -> None:
    given, expected = ACCEPTED[name]

    def body() -> str:
        return str(suspend(given))

    events, output = await listen(tool("sync", body, world.store)())
    (question,) = asked(events)
    cold = world.cold()
    (item,) = (await cold.pending()).items
    again = await tool("sync", body, cold)(parent_id=output.run_id, resume={})
    surfaces = {
        "the event": question.payload,
        "its JSON": strict(question.model_dump_json())["payload"],
        "the event read back": validate_event(question.model_dump_json()).model_dump()["payload"],
        "the output": output.output["payload"],
        "the JSON of the output": strict(output.model_dump_json())["output"]["payload"],
        "the list in the output": output.model_dump()["metadata"]["pending_interactions"][0]["payload"],
        "what is pending": output.pending[0].model_dump()["payload"],
        "the inbox": item.event.model_dump()["payload"],
        "the output of another run": again.output["payload"],
        "what is pending in another run": again.pending[0].model_dump()["payload"],
    }
    texts = {where: json.dumps(payload) for where, payload in surfaces.items()}
    assert {where for where, text in texts.items() if text != json.dumps(expected)} == set()
    output = await tool("sync", body, world.cold())(parent_id=output.run_id, resume={item.id: "ok"})
    assert (stands(output), output.output) == (DONE, "ok")


@pytest.mark.parametrize("name", REFUSED)
async def test_s5_a_payload_that_is_refused_is_a_type_error_at_the_suspend_line_that_names_the_place(
    world: World, name: str
) -> None:
    make, named = REFUSED[name]

    def body() -> str:
        payload = make()
        try:
            suspend(payload)
        except TypeError as error:
            return str(error)
        return "accepted"

    events, output = await listen(tool("inline", body, world.store)())
    assert (stands(output), asked(events), output.pending) == (DONE, [], [])
    assert named in output.output
    assert (await world.cold().pending()).items == []


@pytest.mark.parametrize("kind", KINDS)
async def test_s5_a_refused_payload_that_nobody_catches_ends_the_handler_with_its_error(
    world: World, kind: str
) -> None:
    events, output = await listen(tool(kind, lambda: str(suspend({"tags": {1}})), world.store)())
    assert (stands(output), asked(events)) == (("error", None), [])
    assert output.error is not None
    assert output.error["type"] == "TypeError"
    assert "tags" in output.error["message"]
    with pytest.raises(TypeError, match="tags"):
        output.raise_for_status()


@pytest.mark.parametrize("change", ["another value", "no JSON"])
@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_s5_a_payload_that_is_changed_after_the_call_was_asked_as_it_was(
    world: World, kind: str, change: str
) -> None:
    payload: dict[str, Any] = {"items": [1]}

    def body() -> str:
        payload["items"] = [1]
        try:
            return str(suspend(payload))
        finally:
            payload["items"].append(2 if change == "another value" else object())

    events, output = await listen(tool(kind, body, world.store)())
    assert [event.payload for event in asked(events)] == [{"items": [1]}]
    (item,) = (await world.cold().pending()).items
    assert (item.id, item.event.model_dump()["payload"]) == (ids(output)[0], {"items": [1]})


async def test_s5_a_listener_that_changes_an_event_changes_nothing_that_is_kept(world: World) -> None:
    def body() -> str:
        return str(suspend({"items": [1]}))

    async for event in (handle := tool("sync", body, world.store)()):
        if isinstance(event, InteractionEvent):
            event.payload["items"].append("changed")
    (item,) = (await world.cold().pending()).items
    assert item.event.model_dump()["payload"] == {"items": [1]}
    again = await tool("sync", body, world.cold())(parent_id=handle.run_id, resume={})
    assert again.output["payload"] == {"items": [1]}


#: What goes with a payload and is shown to the same people.
REFUSED_WORDS: dict[str, dict[str, Any]] = {
    "a schema with a set": {"response_schema": {"enum": {1}}},
    "a schema with NaN": {"response_schema": {"minimum": float("nan")}},
    "a schema with half a surrogate pair": {"response_schema": {"title": "\ud800"}},
    "a schema with a huge integer": {"response_schema": {"maximum": 10**5000}},
    "a schema that is no dict": {"response_schema": "string"},
    "a kind that is no text": {"kind": 1},
    "a kind with half a surrogate pair": {"kind": "\ud800"},
    "an audience that is one text": {"audience": "user:ada"},
    "an audience of objects": {"audience": [object()]},
    "a key that is no text": {"key": 1},
    "an expiry that is no time": {"expires_in": "soon"},
    "an expiry that is not a number": {"expires_in": float("nan")},
    "an expiry that nobody knows": {"on_expiry": "explode"},
}


@pytest.mark.parametrize("name", REFUSED_WORDS)
async def test_s5_what_is_said_about_a_question_is_refused_at_the_suspend_line_too(world: World, name: str) -> None:
    def body() -> str:
        try:
            suspend({"question": "Which?"}, **REFUSED_WORDS[name])
        except (TypeError, ValueError):
            return "refused"
        return "accepted"

    events, output = await listen(tool("sync", body, world.store)())
    assert (stands(output), output.output, asked(events)) == (DONE, "refused", [])
