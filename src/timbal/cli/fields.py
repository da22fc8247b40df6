"""From a JSON Schema to what a person types, and back: pure rules."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

Shape = Literal["yes_no", "choice", "choices", "list", "form", "text", "number", "json"]

YES, NO = frozenset({"yes", "y", "true"}), frozenset({"no", "n", "false"})


class Unfit(ValueError):
    """What was typed is no answer; the message says why."""


class Field(NamedTuple):
    """Something to be filled in: a schema with its references followed, the definitions that it may refer to."""

    shape: Shape
    schema: dict[str, Any]
    definitions: dict[str, Any]
    options: Sequence[Any] = ()
    nullable: bool = False

    @property
    def title(self) -> str:
        """What the schema says of it, in a line."""
        said = self.schema.get("description") or self.schema.get("title") or ""
        return str(said)


def field_of(schema: dict[str, Any], definitions: dict[str, Any] | None = None) -> Field:
    """How a person is asked for a value of this schema."""
    definitions = definitions if definitions is not None else definitions_of(schema)
    schema, nullable = _followed(schema, definitions)
    return Field(*_shape(schema, definitions), nullable=nullable)


def parts_of(field: Field) -> list[tuple[str, Field, bool]]:
    """The fields of a form: `(name, field, required)`."""
    required = field.schema.get("required", ())
    properties = field.schema.get("properties", {})
    return [(name, field_of(part, field.definitions), name in required) for name, part in properties.items()]


def definitions_of(schema: dict[str, Any]) -> dict[str, Any]:
    """What the references in a schema may refer to."""
    return {name: schema[name] for name in ("$defs", "definitions") if isinstance(schema.get(name), dict)}


def _followed(schema: dict[str, Any], definitions: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """The schema with references followed and `null` taken out, and whether `null` was in it."""
    nullable = False
    for _ in range(32):  # references can go in circles
        reference = schema.get("$ref")
        if isinstance(reference, str):
            target: Any = definitions
            for part in reference.removeprefix("#/").split("/"):
                target = target.get(part) if isinstance(target, dict) else None
            if not isinstance(target, dict):
                break
            schema = {**target, **{k: v for k, v in schema.items() if k != "$ref"}}
            continue
        every = schema.get("allOf")
        if isinstance(every, list) and len(every) == 1 and isinstance(every[0], dict):
            schema = {**every[0], **{k: v for k, v in schema.items() if k != "allOf"}}
            continue
        for name in ("anyOf", "oneOf"):
            some = schema.get(name)
            others = [one for one in some if one != {"type": "null"}] if isinstance(some, list) else []
            if some and len(others) == 1 and isinstance(others[0], dict):
                nullable = nullable or len(others) < len(some)
                schema = {**others[0], **{k: v for k, v in schema.items() if k != name}}
                break
        else:
            break
    if isinstance(kinds := schema.get("type"), list) and "null" in kinds and len(kinds) == 2:
        nullable, schema = True, {**schema, "type": next(kind for kind in kinds if kind != "null")}
    return schema, nullable


def _shape(schema: dict[str, Any], definitions: dict[str, Any]) -> tuple[Shape, dict[str, Any], dict[str, Any], Any]:
    kind, options = schema.get("type"), schema.get("enum")
    shape: Shape = "json"
    found: Sequence[Any] = ()
    if isinstance(options, list) and options and all(isinstance(o, str | int | float | bool) for o in options):
        shape, found = "choice", options
    elif kind == "boolean":
        shape = "yes_no"
    elif kind == "string":
        shape = "text"
    elif kind in ("integer", "number"):
        shape = "number"
    elif kind == "object" and schema.get("properties"):
        shape = "form"
    elif kind == "array" and isinstance(schema.get("items"), dict):
        items = field_of(schema["items"], definitions)
        if items.shape == "choice":
            shape, found = "choices", items.options
        elif items.shape in ("text", "number"):
            shape = "list"
    return shape, schema, definitions, found


# -- what was typed ----------------------------------------------------------------------------------------------------


def read(field: Field, text: str) -> Any:
    """The value that somebody means by `text`; raises `Unfit`. Forms are read field by field, or as JSON."""
    text = text.strip()
    if not text and field.nullable:
        return None
    if not text and field.shape != "text":
        raise Unfit("an answer is needed")
    match field.shape:
        case "yes_no":
            value: Any = yes_or_no(text)
        case "choice":
            value = choose(text, field.options)
        case "choices":
            value = choose_some(text, field.options)
        case "number":
            value = _number(text)
        case "list":
            value = _list(field, text)
        case "text":
            value = text
        case _:
            value = _json(text)
    problems = check(field, value)
    if problems:
        raise Unfit("; ".join(problems))
    return value


def check(field: Field, value: Any) -> list[str]:
    """What is wrong with the value, in words."""
    if value is None and field.nullable:
        return []
    from ..core.schema_check import check_against

    try:
        found = check_against({**field.schema, **field.definitions}, value, formats=True)
    except ValueError:  # the schema itself is none: then it can't be checked here
        return []
    return [f"{pointer[1:].replace('/', '.')}: {message}" if pointer else message for pointer, message in found]


def yes_or_no(text: str) -> bool:
    """Yes or no; raises `Unfit`."""
    word = text.strip().lower()
    if word not in YES | NO:
        raise Unfit(f"{text!r} is neither yes nor no")
    return word in YES


def choose(text: str, options: Sequence[Any], *, own_words: bool = False) -> Any:
    """An option by its words or its number, or, where that may be, somebody's own words; raises `Unfit`."""
    for option in options:
        if text == str(option) or text == json.dumps(option):
            return option
    for option in options:
        if text.lower() == str(option).lower():
            return option
    if numbered(options) and text.isdecimal():
        if 1 <= int(text) <= len(options):
            return options[int(text) - 1]
        raise Unfit(f"there is no option {text}: they are 1 to {len(options)}")
    if own_words:
        return text
    raise Unfit(f"{text!r} is none of the options")


def choose_some(text: str, options: Sequence[Any]) -> list[Any]:
    """Options by their words or numbers, separated by commas (numbers by spaces, too); raises `Unfit`."""
    if text.startswith("["):
        chosen = _json(text)
        if not isinstance(chosen, list):
            raise Unfit("a list of options is needed")
        return [choose(str(one), options) for one in chosen]
    if text.lower() == "all":
        return list(options)
    words = text.split() if numbered(options) and text.replace(" ", "").isdecimal() else text.split(",")
    chosen = [choose(word.strip(), options) for word in words if word.strip()]
    return [option for number, option in enumerate(chosen) if option not in chosen[:number]]


def numbered(options: Sequence[Any]) -> bool:
    """Whether there are options that can be told by their numbers: not where they are numbers themselves."""
    return bool(options) and not any(str(option).strip().isdecimal() for option in options)


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        raise Unfit(f"{text!r} is no number") from None


def _list(field: Field, text: str) -> Any:
    if text.startswith("["):
        return _json(text)
    item = field_of(field.schema["items"], field.definitions)
    return [read(item, part) for part in text.split(",") if part.strip()]


def _json(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_no_constant)
    except ValueError as problem:
        raise Unfit(f"this is no JSON ({problem})") from None


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not in JSON")


def loose(text: str) -> Any:
    """JSON where it is some, else the text itself."""
    try:
        return _json(text)
    except Unfit:
        return text
