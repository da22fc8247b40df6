"""What calls give back, as records keep it and as a model reads it."""

from __future__ import annotations

from typing import Any

from ..types.content import CONTENT_TYPES, FileContent, TextContent, dump_content, load_content
from ..types.json_value import json_value
from ..types.message import Message, dump_message, load_message
from .ids import canonical_json

#: The form of an output that is the reply of one of the agent's own model calls: the record holds its segment only.
REPLY = "reply"

#: The form of the output of a call that a person, or a standing decision, denied.
DENIED = "denied"

_PLAIN = frozenset({str, int, bool, type(None)})


def dump_output(value: Any, where: str) -> tuple[Any, str | None]:
    """A returned value as JSON and the form to read it back by; `TypeError` when it has no JSON form."""
    kind = type(value)
    if kind in _PLAIN:
        return (value if kind is not str else json_value(value, where)), None
    if kind is Message:
        return dump_message(value), "message"
    if isinstance(value, CONTENT_TYPES):
        return [dump_content(value)], "parts"
    if kind is list and value and all(isinstance(part, CONTENT_TYPES) for part in value):
        return [dump_content(part) for part in value], "parts"
    return json_value(value, where), None


def load_output(output: Any, form: str | None) -> Any:
    """The inverse: the value itself for JSON, a Message, or a list of content."""
    if form is None or form == DENIED:
        return output
    return load_message(output) if form == "message" else [load_content(part) for part in output]


def result_of(output: Any, form: str | None) -> str | list[TextContent | FileContent]:
    """A recorded output as the content of a tool result: a str as it is, parts as parts, anything else as JSON."""
    if form is None:
        return output if isinstance(output, str) else canonical_json(output)
    if form == DENIED:
        reason = f": {output['reason']}" if output["reason"] else ""
        return f"Denied, and not done{reason}. The same call will be denied again."
    parts = load_output(output, form)
    parts = parts.content if isinstance(parts, Message) else parts
    kept: list[TextContent | FileContent] = [p for p in parts if isinstance(p, TextContent | FileContent)]
    return kept[0].text if len(kept) == 1 and isinstance(kept[0], TextContent) else kept
