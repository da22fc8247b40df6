"""Exceptions as data, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..core.gates import secrets_in
from ..core.redaction import scrub, secrets
from ..types.json_value import json_value

if TYPE_CHECKING:
    from .frame import Frame

#: How much of a traceback is kept, in characters: its end says the most.
TRACEBACK_CHARACTERS = 8000


def describe(error: BaseException, *, with_class: bool = False, hidden: Sequence[Any] = ()) -> dict[str, Any]:
    """`{type, message, traceback}`; with the place of its class and its arguments where it is to be raised again.

    `hidden` are secrets: none is told, not even where the traceback is cut off.
    """
    import traceback

    kind = type(error)
    try:
        message = str(error)
    except Exception:
        message = "(its message can't be told: __str__ raised)"
    message, trace = scrub([clean(message), clean("".join(traceback.format_exception(error)))], hidden)
    told: dict[str, Any] = {"type": kind.__name__, "message": message, "traceback": trace[-TRACEBACK_CHARACTERS:]}
    if with_class:
        told["class"] = f"{kind.__module__}:{kind.__qualname__}"
        told["args"] = [_plain(argument) for argument in error.args]
        told["state"] = {name: _plain(value) for name, value in vars(error).items() if name != "__notes__"}
    return told


def tells(error: BaseException, hidden: Sequence[Any]) -> bool:
    """Whether one of these secrets is in what a log would say of the exception."""
    if not hidden:
        return False
    import traceback

    text = clean("".join(traceback.format_exception(error)))
    return bool(scrub(text, hidden) != text)


def _plain(value: Any) -> Any:
    try:
        return json_value(value)
    except TypeError:
        return clean(repr(value))


def public(error: dict[str, Any]) -> dict[str, Any]:
    """The part of a described error that events carry."""
    return {name: error.get(name) for name in ("type", "message", "traceback")}


def without_secrets(frame: Frame, told: Any) -> Any:
    """JSON about a call without what gates of this execution hide."""
    return scrub(told, hidden_from(frame))


def hidden_from(frame: Frame) -> list[Any]:
    """What the gate of this call, and others of its execution, hide."""
    hidden = secrets_in(frame.run.ledger)
    if frame.effective is not None:
        hidden += secrets(frame.effective, frame.input)
    return hidden


def clean(text: str) -> str:
    """Text without halves of surrogate pairs, so that it can be sent."""
    return text.encode("utf-8", "replace").decode()


def revive(told: dict[str, Any]) -> Exception | None:
    """The exception of a described one, where its class can be imported. It is put together without its `__init__`."""
    from importlib import import_module

    module, _, name = told.get("class", "").partition(":")
    try:
        found: Any = import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
        if not (isinstance(found, type) and issubclass(found, Exception)):
            return None
        args = tuple(told.get("args", ()))
        error = found.__new__(found, *args)
        error.args = args
        vars(error).update(told.get("state", {}))
    except Exception:
        return None
    return error
