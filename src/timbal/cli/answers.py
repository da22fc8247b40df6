"""What a text means as the answer to one question: the same at the prompt and with `--answer`."""

from __future__ import annotations

from typing import Any

from ..types.approval import Cancel, is_cancel
from ..types.events import ApprovalEvent
from .decisions import decision_typed
from .fields import Field, Unfit, check, choose, choose_some, field_of, loose, read
from .words import Ask


def field_for(event: Ask) -> Field | None:
    """What the question's schema asks for; `None` where it has none: then any text or JSON is an answer."""
    if isinstance(event, ApprovalEvent):
        return field_of({"type": "boolean"})
    schema = event.response_schema
    if not schema and event.kind == "confirm":
        schema = {"type": "boolean"}
    return field_of(schema) if schema else None


def options_of(event: Ask) -> list[Any]:
    """What can be chosen from."""
    if isinstance(event, ApprovalEvent):
        return []
    options = event.payload.get("options") if event.kind in ("ask_user", "ask_user_multi") else None
    if isinstance(options, list) and options:
        return options
    field = field_for(event)
    return list(field.options) if field is not None else []


def understand(event: Ask, text: str) -> Any:
    """The answer that somebody means by `text`; raises `Unfit`."""
    if isinstance(event, ApprovalEvent):
        return decision_typed(event, text)
    options = options_of(event)
    if event.kind == "ask_user":
        if not text.strip():
            raise Unfit("an answer is needed")
        return str(choose(text.strip(), options, own_words=True))
    if event.kind == "ask_user_multi" and options and text.strip():
        chosen = choose_some(text.strip(), options)
        if not chosen:
            raise Unfit("choose at least one")
        return chosen
    field = field_for(event)
    if field is not None:
        return read(field, text)
    if not text.strip():
        raise Unfit("an answer is needed")
    return loose(text.strip())


def understand_given(event: Ask, text: str) -> Any:
    """The same for `--answer`, where JSON is the rule: a JSON string is taken as it is, and a `Cancel` is one."""
    value = loose(text)
    if is_cancel(value):
        return Cancel(value.get("reason"))
    if not (isinstance(value, str) and text.lstrip().startswith('"')):
        return understand(event, text)
    field = field_for(event)
    if field is not None and (problems := check(field, value)):
        raise Unfit("; ".join(problems))
    return value
