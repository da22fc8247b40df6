"""Facts as JSON, and back.

A record is a JSON array of facts; a fact is an array of its tag and its fields in order, without the trailing ones that
hold their default. So a field may be added at the end of a fact, with a default, and both older and newer readers cope.
A reader that meets a fact it doesn't know refuses the record and leaves it to a newer one. The format's version is the
store's schema version.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn

from ..errors import StoreError, UnknownRecord
from . import fast_json
from .facts import (
    Asked,
    Called,
    Ended,
    Fact,
    Gated,
    Noted,
    Opened,
    Passed,
    Reopened,
    Resumed,
    Returned,
    Revoked,
    Settled,
    Used,
)

_CLASSES: dict[str, type[Fact]] = {
    "opened": Opened,
    "resumed": Resumed,
    "called": Called,
    "returned": Returned,
    "reopened": Reopened,
    "noted": Noted,
    "asked": Asked,
    "gated": Gated,
    "passed": Passed,
    "used": Used,
    "revoked": Revoked,
    "settled": Settled,
    "ended": Ended,
}
#: By class: its tag, and the default of each field (for fields without one, a value that none can be).
_SHAPES: dict[type[Fact], tuple[str, tuple[Any, ...]]] = {
    cls: (tag, tuple(cls._field_defaults.get(name, _CLASSES) for name in cls._fields)) for tag, cls in _CLASSES.items()
}


def encode(facts: Iterable[Fact]) -> bytes:
    """Facts as one record."""
    record = []
    for fact in facts:
        tag, defaults = _SHAPES[type(fact)]
        n = len(fact)
        while n and fact[n - 1] is defaults[n - 1]:
            n -= 1
        record.append((tag, *fact[:n]))
    return fast_json.to_json(record)


def decode(record: bytes | str) -> list[Fact]:
    """The facts of one record; raises `UnknownRecord` for a fact of a newer version, `StoreError` for a torn one."""
    return decode_all((record,))


def decode_all(records: Iterable[bytes | str]) -> list[Fact]:
    """The facts of several records in their order; raises as `decode` does."""
    facts: list[Fact] = []
    try:
        for record in records:
            for tag, *fields in fast_json.from_json(record):
                cls = _CLASSES.get(tag) or _unknown(tag)
                facts.append(cls(*fields[: len(cls._fields)]))
    except (ValueError, TypeError) as error:
        raise StoreError(f"a stored record can't be read ({error}); the store is damaged or not ours") from error
    return facts


def _unknown(tag: Any) -> NoReturn:
    raise UnknownRecord(
        f"a record holds the fact {tag!r}, which this version does not know; it was written by a newer one"
    )
