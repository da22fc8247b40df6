"""Decisions about gates, in the words of whoever types or reads them: pure rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..core.edits import Change, changes
from ..core.redaction import REDACTED, holds_placeholder
from ..terminal import one_line
from ..types.approval import ApprovalResolution
from ..types.events import ApprovalEvent
from .fields import NO, YES, Field, Unfit, definitions_of, field_of, loose
from .words import cut, exact_json, gate_of, moment

APPROVE, DENY = YES | {"approve"}, NO | {"deny"}
ALWAYS, EDIT = "always", frozenset({"edit", "e"})


# -- what somebody types -----------------------------------------------------------------------------------------------


def decision_typed(event: ApprovalEvent, text: str) -> Any:
    """The decision that somebody means by `text`; raises `Unfit`.

    Yes; no, with a reason or without; `always`, with a number of later calls or without; or a decision as JSON.
    """
    word, _, rest = text.strip().partition(" ")
    word, rest = word.rstrip(",:;.").lower(), rest.strip()
    if word in DENY:
        return {"approved": False, "reason": rest} if rest else False
    if word == ALWAYS:
        return _standing(event, rest)
    if word in APPROVE and not rest:
        return True
    value = loose(text)
    if isinstance(value, dict):
        return value
    raise Unfit(f"{text.strip()!r} is neither yes nor no")


def _standing(event: ApprovalEvent, uses: str) -> dict[str, Any]:
    if not gate_of(event).get("grantable", True):
        raise Unfit("this gate takes decisions about one call only")
    if uses and not (uses.isascii() and uses.isdecimal() and int(uses) > 0):
        raise Unfit(f"{ALWAYS} is followed by how many later calls pass, or by nothing, not by {cut(uses, 40)!r}")
    return {"approved": True, "scope": "conversation", **({"max_uses": int(uses)} if uses else {})}


def with_edit(decision: Any, edit: dict[str, Any]) -> Any:
    """The approval of the edited input; a denial is about none."""
    fields = decision if isinstance(decision, dict) else {"approved": decision}
    return {**fields, "override_input": edit} if edit and fields.get("approved") is True else decision


# -- edits -------------------------------------------------------------------------------------------------------------


def editable(event: ApprovalEvent) -> Iterator[tuple[str, Field]]:
    """The arguments that can be changed, with what they take; what is shown of them is in `event.input`."""
    schema = event.input_schema or {}
    properties = schema.get("properties", {})
    for name in {**event.input, **properties}:
        field = field_of(properties.get(name, {}), definitions_of(schema))
        yield name, field._replace(shape="json") if field.shape == "form" else field


def edit_typed(event: ApprovalEvent, text: str) -> dict[str, Any]:
    """An edit as JSON, `{argument: value}`; raises `Unfit`."""
    edit = loose(text)
    if not isinstance(edit, dict):
        raise Unfit('an edit is a JSON object of arguments, like edit {"amount": 150}')
    return edit


def check_edit(event: ApprovalEvent, edit: dict[str, Any]) -> dict[str, Any]:
    """The part of an edit that changes something; raises `Unfit` where it can't be made."""
    from ..core.schema_check import check_against

    schema = event.input_schema or {}
    known = {**event.input, **schema.get("properties", {})}
    if unknown := [name for name in edit if name not in known]:
        raise Unfit(f"there is no argument {unknown[0]!r}; they are: {', '.join(known) or 'none'}")
    if holds_placeholder(edit):
        raise Unfit(f"{REDACTED!r} stands for a value that is not shown: leave the argument out to keep it")
    schema = {name: part for name, part in schema.items() if name not in ("required", "minProperties")}
    try:
        problems = check_against(schema, edit)
    except ValueError:  # the schema itself is none: then it can't be checked here
        problems = []
    if problems:
        raise Unfit("; ".join(f"{pointer[1:].replace('/', '.')}: {message}" for pointer, message in problems))
    return {change.name: edit[change.name] for change in changes(event.input, edit)}


def change_words(change: Change, length: int) -> str:
    """`amount: 300 → 150`; values are cut off after so many characters."""
    if holds_placeholder(change.before):
        return f"{change.name}: {cut(exact_json(change.before), length)} → another value"
    return f"{change.name}: {cut(exact_json(change.before), length)} → {cut(exact_json(change.after), length)}"


# -- what was decided --------------------------------------------------------------------------------------------------


def is_decision(value: Any) -> bool:
    """Whether an answer is a decision with more to it than yes or no."""
    fields = ApprovalResolution._fields
    return isinstance(value, dict) and type(value.get("approved")) is bool and all(name in fields for name in value)


def decision_words(value: Any, shown: Mapping[str, Any] | None = None) -> str:
    """A decision in a line. `shown`: the input that it was about, as anybody may see it."""
    fields = value if isinstance(value, dict) else {"approved": value}
    words = "approved" if fields.get("approved") is True else "denied"
    if fields.get("scope") == "conversation":
        words += " for this conversation"
        if "max_uses" in fields:
            words += f", {fields['max_uses']} more call{'s' if fields['max_uses'] != 1 else ''} at most"
    if "expires_at" in fields:
        words += f", until {moment(fields['expires_at'])}"
    made = changes(shown or {}, fields.get("override_input") or {})
    if shown is not None and made:
        words += f", with {'; '.join(change_words(change, 200) for change in made)}"
    elif made:
        words += f", with other values of {', '.join(change.name for change in made)}"
    said = [str(fields[name]) for name in ("reason", "comment") if fields.get(name)]
    return one_line(f"{words}: {cut(' / '.join(said), 400)}" if said else words)
