"""Facts as versioned JSON, and back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic_core import from_json, to_json

from ..errors import StoreError, UnknownRecord
from .facts import Asked, Called, Ended, Fact, Noted, Opened, Reopened, Resumed, Returned, Settled

#: The version of the record format. Adding facts or fields doesn't change it: an older reader refuses facts that it
#: doesn't know, and ignores fields.
VERSION = 1

_TAGS: dict[type[Fact], str] = {
    Opened: "opened",
    Resumed: "resumed",
    Called: "called",
    Returned: "returned",
    Reopened: "reopened",
    Noted: "noted",
    Asked: "asked",
    Settled: "settled",
    Ended: "ended",
}
_CLASSES = {tag: cls for cls, tag in _TAGS.items()}


def encode(facts: Iterable[Fact]) -> bytes:
    """Facts as one record: a JSON array of objects, without the fields that hold their default."""
    return to_json([_dump(fact) for fact in facts])


def decode(record: bytes | str) -> list[Fact]:
    """The facts of one record; raises `UnknownRecord` for a fact of a newer version, `StoreError` for a torn one."""
    try:
        return [_load(item) for item in from_json(record)]
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise StoreError(f"a stored record can't be read ({error}); the store is damaged or not ours") from error


def _dump(fact: Fact) -> dict[str, Any]:
    defaults = fact._field_defaults
    fields: dict[str, Any] = {"fact": _TAGS[type(fact)]}
    for name, value in zip(fact._fields, fact, strict=True):
        if name not in defaults or value is not defaults[name]:
            fields[name] = value
    return fields


def _load(fields: dict[str, Any]) -> Fact:
    cls = _CLASSES.get(fields["fact"])
    if cls is None:
        raise UnknownRecord(
            f"a record holds the fact {fields['fact']!r}, which this version does not know; it was written by a newer one"
        )
    return cls(**{name: fields[name] for name in cls._fields if name in fields})
