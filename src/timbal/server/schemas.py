"""What the routes take and give, as the JSON Schemas of OpenAPI 3.1."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

from pydantic import TypeAdapter
from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError

from ..core.timeline import Entry, What
from ..types.events import ApprovalEvent, DeltaEvent, InteractionEvent, OutputEvent, StartEvent
from ..types.message import Message
from .problems import KINDS, MEDIA_TYPE

if TYPE_CHECKING:
    from ..runnables.base import Runnable

Schema = dict[str, Any]

_ID: Schema = {"type": "string", "description": "32 lower-case hex digits"}
_TIME: Schema = {"type": "integer", "description": "Unix milliseconds"}
_LABELS: Schema = {"type": "object", "additionalProperties": {"type": "string"}}


def _or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def _object(properties: Mapping[str, Schema], optional: tuple[str, ...] = ()) -> Schema:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": [name for name in properties if name not in optional],
        "additionalProperties": False,
    }


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


#: What a stream tells of a run: its events, and under names of their own how it ends.
EVENT = {"anyOf": [_ref("Event"), _ref("StreamEnd"), _ref("Problem")]}
#: What the inbox tells as it changes: `snapshot`, `opened` and `settled`.
NEWS = {"anyOf": [_ref("Snapshot"), _ref("PendingItem"), _ref("SettledItem"), _ref("Problem")]}
_EVENTS = (StartEvent, DeltaEvent, ApprovalEvent, InteractionEvent, OutputEvent)


@cache
def components() -> dict[str, Schema]:
    """What all servers have in common, by name."""
    found: dict[str, Schema] = {}
    for event in _EVENTS:
        found[event.__name__] = hoist(TypeAdapter(event).json_schema(), "Timbal", found)
    found["Event"] = {
        "oneOf": [_ref(event.__name__) for event in _EVENTS],
        "discriminator": {
            "propertyName": "type",
            "mapping": {e._defaults["type"]: f"#/components/schemas/{e.__name__}" for e in _EVENTS},
        },
    }
    problem_types = [f"urn:timbal:problem:{name}" for name, _ in KINDS.values()]
    receipt: Schema = {
        "type": "object",
        "properties": {
            "id": {},
            "state": {
                "enum": [
                    "accepted",
                    "already_settled",
                    "unknown",
                    "invalid",
                    "expired",
                    "superseded",
                    "cancelled",
                    "forbidden",
                ]
            },
            "run_id": _or_null(_ID),
            "same_value": _or_null({"type": "boolean"}),
            "value": {},
            "by": {},
            "at": _or_null(_TIME),
        },
        "required": ["id", "state", "run_id", "same_value", "value", "by", "at"],
    }
    error = _object({"pointer": {"type": "string", "description": "RFC 6901"}, "message": {"type": "string"}})
    run = {
        "run_id": _ID,
        "execution_id": _ID,
        "parent_run_id": _or_null(_ID),
        "runnable": {"type": "string"},
        "runnable_type": {"type": "string"},
        "labels": _LABELS,
        "status": {"enum": ["running", "paused", "parked", "continued", "success", "error", "cancelled", "erased"]},
        "reason": _or_null({"type": "string"}),
        "t0": _TIME,
        "t1": _or_null(_TIME),
    }
    item = {
        "id": {"type": "string"},
        "run_id": {"type": "string", "description": "the run to resume"},
        "kind": {"type": "string"},
        "runnable": {"type": "string"},
        "labels": _LABELS,
        "asked_at": _TIME,
        "expires_at": _or_null(_TIME),
        "event": {"oneOf": [_ref("InteractionEvent"), _ref("ApprovalEvent")]},
    }
    settled = {
        "id": {"type": "string"},
        "state": {"type": "string"},
        "value": {},
        "by": {},
        "at": _TIME,
        "channel": _or_null({"type": "string"}),
        "next_run_id": _or_null(_ID),
    }
    found["Problem"] = _object(
        {
            "type": {"enum": problem_types},
            "title": {"type": "string"},
            "status": {"type": "integer"},
            "detail": {"type": "string"},
            "receipts": {"type": "array", "items": _ref("Receipt")},
            "errors": {"type": "array", "items": error},
        },
        optional=("receipts", "errors"),
    )
    found["Receipt"] = receipt
    found["Run"] = _object(run)
    found["PendingItem"] = _object(item)
    found["Settled"] = _object(settled)
    found["SettledItem"] = _object({**{name: item[name] for name in ("run_id", "kind", "runnable")}, **settled})
    found["Snapshot"] = _object(
        {
            "items": {"type": "array", "items": _ref("PendingItem")},
            "complete": {"type": "boolean", "description": "whether this was the last part of it"},
        }
    )
    found["TimelineEntry"] = _object(_timeline_entry())
    found["RunRecord"] = _object(
        {
            **run,
            "input": {"type": "object", "description": "without what a gate hides"},
            "parent_id": _or_null({**_ID, "description": "the turn before this one in its conversation"}),
            "next_run_id": _or_null(_ID),
            "runs": {"type": "array", "items": _ref("Run")},
            "told": {"type": "array", "items": _ID, "description": "the runs among them whose events are kept"},
            "outcome": _or_null(_object({"code": {}, "reason": {}, "message": {}})),
            "output": {},
            "error": _or_null(_object({"type": {}, "message": {}, "traceback": {"type": "null"}})),
            "usage": {"type": "object", "additionalProperties": {"type": "integer"}},
            "pending": {"type": "array", "items": _ref("PendingItem")},
            "settled": {"type": "array", "items": _ref("Settled")},
            "timeline": {"type": "array", "items": _ref("TimelineEntry")},
        }
    )
    found["ItemRecord"] = _object(
        {
            **item,
            "state": {"type": "string"},
            "settled": _or_null(_ref("Settled")),
            "runs": {"type": "array", "items": _ref("Run")},
        }
    )
    found["StreamEnd"] = _object({"run_id": _ID, "first": _or_null({"type": "integer"})}, optional=("first",))
    found["Runs"] = _page("Run")
    found["PendingItems"] = _page("PendingItem")
    found["Answered"] = _object({"receipts": {"type": "array", "items": _ref("Receipt")}, "next_run_id": _or_null(_ID)})
    found["Events"] = _object(
        {
            "items": {"type": "array", "items": _object({"seq": {"type": "integer"}, "event": _ref("Event")})},
            "next": {"type": "integer", "description": "pass it as `after` for what follows"},
            "end": _or_null(
                _object(
                    {
                        "type": {"enum": ["end", "continued", "expired"]},
                        "run_id": _ID,
                        "first": _or_null({"type": "integer"}),
                    },
                    optional=("first",),
                )
            ),
        }
    )
    return found


def _timeline_entry() -> dict[str, Schema]:
    """One thing that happened in an execution: the fields of `core.timeline.Entry`."""
    text, count = _or_null({"type": "string"}), _or_null({"type": "integer"})
    known = {
        "at": _TIME,
        "what": {"enum": list(get_args(What))},
        "depth": {"type": "integer", "description": "how deep in calls it lies"},
        "name": {"type": "string"},
        "took": {**count, "description": "how long a call lasted, waits included"},
        "waited": {**count, "description": "how long a question was open"},
    }
    names = ("kind", "status", "error", "channel", "run_id", "id", "prompt", "call_id", "parent_call_id")
    texts = dict.fromkeys(names, text)
    return {name: known.get(name) or texts.get(name) or {} for name in Entry._fields}


def _page(name: str) -> Schema:
    return _object({"items": {"type": "array", "items": _ref(name)}, "next": _or_null({"type": "string"})})


def hoist(schema: Schema, prefix: str, into: dict[str, Schema]) -> Schema:
    """The schema with its `$defs` moved into the components, under names of their own."""
    definitions = schema.pop("$defs", {})
    for name, definition in definitions.items():
        into.setdefault(f"{prefix}{name}", _moved(definition, prefix))
    moved: Schema = _moved(schema, prefix)
    return moved


def _moved(schema: Any, prefix: str) -> Any:
    if isinstance(schema, list):
        return [_moved(part, prefix) for part in schema]
    if not isinstance(schema, dict):
        return schema
    moved = {name: _moved(part, prefix) for name, part in schema.items()}
    reference = moved.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/$defs/"):
        moved["$ref"] = f"#/components/schemas/{prefix}{reference.removeprefix('#/$defs/')}"
    return moved


# -- of one runnable ---------------------------------------------------------------------------------------------------


def params_schema(runnable: Runnable) -> Schema:
    """JSON Schema of a runnable's input."""
    if runnable.kind != "Agent":
        schema: Schema = dict(runnable.input_schema)
        return schema
    message = TypeAdapter(Message).json_schema()
    definitions = message.pop("$defs", {})
    prompt: Schema = {"anyOf": [{"type": "string"}, {"type": "array"}, {"$ref": "#/$defs/Message"}]}
    if examples := getattr(runnable, "examples", ()):
        prompt["examples"] = list(examples)
    return {
        "type": "object",
        "properties": {"prompt": prompt, "messages": {"type": "array", "minItems": 1}},
        "additionalProperties": False,
        "$defs": {**definitions, "Message": message},
    }


def return_schema(runnable: Runnable) -> Schema:
    """JSON Schema of what a runnable gives, as `output`; `{}` where nothing is known of it."""
    try:
        return dict(TypeAdapter(_annotation(runnable)).json_schema(mode="serialization"))
    except (PydanticSchemaGenerationError, PydanticUserError, NameError):
        return {}


def _annotation(runnable: Any) -> Any:
    if runnable.kind == "Agent":
        return runnable.output_model or Message
    handler = inspect.unwrap(runnable.handler)
    if inspect.isgeneratorfunction(handler) or inspect.isasyncgenfunction(handler):
        return Any
    target = handler if inspect.isroutine(handler) or inspect.isclass(handler) else type(handler).__call__
    return get_type_hints(target, include_extras=True).get("return", Any)


def call_schema(runnable: Runnable) -> Schema:
    """JSON Schema of the body that starts a run of it: its input, and what belongs to the call."""
    schema = params_schema(runnable)
    call = {
        "parent_id": _or_null({"type": "string", "description": "the run to go on with, or the turn before this one"}),
        "resume": _or_null({"type": "object", "description": "answers by id; then the input may be left out"}),
        "labels": _or_null(_LABELS),
    }
    first = {**schema, "properties": {**schema.get("properties", {}), **call}}
    again = {**schema, "properties": first["properties"], "required": ["parent_id", "resume"]}
    definitions = first.pop("$defs", {})
    again.pop("$defs", None)
    return {"anyOf": [first, again], "$defs": definitions}


# -- answers -----------------------------------------------------------------------------------------------------------


def answers(*problems: int, **successes: Any) -> dict[int | str, Any]:
    """The `responses` of a route; `s200=("Run", ...)` names a component."""
    found: dict[int | str, Any] = {}
    for status, content in successes.items():
        found[int(status[1:])] = content
    for problem in sorted({401, 403, 421, 500, 503, *problems}):
        found[problem] = {"description": KINDS[problem][1], "content": {MEDIA_TYPE: {"schema": _ref("Problem")}}}
    return found


def gives(name: str, text: str) -> Schema:
    return {"description": text, "content": {"application/json": {"schema": _ref(name)}}}


def streams(text: str, data: Schema) -> Schema:
    """Server-sent events: the schema is that of one of them."""
    fields = {
        "id": {"type": "string"},
        "event": {"type": "string"},
        "data": {"type": "string", "contentMediaType": "application/json", "contentSchema": data},
    }
    schema = {"type": "object", "properties": fields, "required": ["data"]}
    return {"description": text, "content": {"text/event-stream": {"schema": schema}}}


def query(**parameters: Schema) -> list[Schema]:
    """Parameters of the query, each with its schema."""
    return [{"name": name, "in": "query", "required": False, "schema": schema} for name, schema in parameters.items()]


def header(name: str, text: str) -> Schema:
    return {"name": name, "in": "header", "required": False, "schema": {"type": "string"}, "description": text}


def body(schema: Schema, *, required: bool = True) -> Schema:
    return {"required": required, "content": {"application/json": {"schema": schema}}}


def complete(document: dict[str, Any]) -> dict[str, Any]:
    """An OpenAPI document with the components that it refers to, and with no `$defs` left in it."""
    into = document.setdefault("components", {}).setdefault("schemas", {})
    into.update(components())
    for path, operations in document.get("paths", {}).items():
        for part in _contents(operations):
            prefix = "".join(word.title() for word in path.split("/") if word.isidentifier()) or "Root"
            part["schema"] = hoist(dict(part["schema"]), prefix, into)
    return document


def _contents(value: Any) -> Iterator[dict[str, Any]]:
    """All media types in it that have a schema."""
    if isinstance(value, dict):
        for name, part in value.items():
            if name == "content" and isinstance(part, dict):
                yield from (media for media in part.values() if "schema" in media)
            else:
                yield from _contents(part)
