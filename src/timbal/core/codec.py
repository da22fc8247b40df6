"""Facts as JSON, and back.

A record is a JSON array of facts; a fact is an array of its tag and its fields in order, without the trailing ones that
hold their default. So a field may be added at the end of a fact, with a default, and both older and newer readers cope.
A reader that meets a fact it doesn't know refuses the record and leaves it to a newer one. The format's version is the
store's schema version.

Half of a small record would be ids and times that differ little. So the id of a run or call that begins like the one
before it in the record is `[its other end]`, and a time is the milliseconds since the one before it in the record.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, NoReturn

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
_IDS = frozenset({"run_id", "parent_run_id", "call_id", "parent_call_id"})
_TIMES = frozenset({"at", "t0", "t1"})


class _Shape(NamedTuple):
    """How facts of one class are written: `ids` and `times` are the places of such fields."""

    tag: str
    #: Of each field; for those without one, a value that none can be.
    defaults: tuple[Any, ...]
    ids: tuple[int, ...]
    times: tuple[int, ...]


def _shape(tag: str, cls: type[Fact]) -> _Shape:
    names = cls._fields
    defaults = tuple(cls._field_defaults.get(name, _CLASSES) for name in names)
    ids = tuple(i for i, name in enumerate(names) if name in _IDS)
    return _Shape(tag, defaults, ids, tuple(i for i, name in enumerate(names) if name in _TIMES))


_SHAPES = {cls: _shape(tag, cls) for tag, cls in _CLASSES.items()}

#: How many characters an id may share with the one before it: all; of a uuid7, its millisecond and counter; its time to
#: some milliseconds; to a minute.
_SHARED = (32, 22, 11, 8)
#: What is less is the time since another one, and not a time in itself: in milliseconds, it would be in 1973.
_A_TIME = 100_000_000_000


def encode(facts: Iterable[Fact]) -> bytes:
    """Facts as one record."""
    record = []
    id, at = "", 0
    for fact in facts:
        tag, defaults, ids, times = _SHAPES[type(fact)]
        fields: list[Any] = [*fact]
        while fields and fields[-1] is defaults[len(fields) - 1]:
            fields.pop()
        n = len(fields)
        for i in ids:
            if i < n and (this := fields[i]) is not None:
                if len(this) == len(id) == 32:
                    for shared in _SHARED:
                        if this[:shared] == id[:shared]:
                            fields[i] = [this[shared:]]
                            break
                id = this
        for i in times:
            if i < n:
                this = fields[i]
                if this - at < _A_TIME:
                    fields[i] = this - at
                at = this
        record.append((tag, *fields))
    return fast_json.to_json(record)


def decode(record: bytes | str) -> list[Fact]:
    """The facts of one record; raises `UnknownRecord` for a fact of a newer version, `StoreError` for a torn one."""
    return decode_all((record,))


def decode_all(records: Iterable[bytes | str]) -> list[Fact]:
    """The facts of several records in their order; raises as `decode` does."""
    facts: list[Fact] = []
    try:
        for record in records:
            id, at = "", 0
            for tag, *fields in fast_json.from_json(record):
                cls = _CLASSES.get(tag) or _unknown(tag)
                n = len(fields)
                _, defaults, ids, times = _SHAPES[cls]
                for i in ids:
                    if i < n and (this := fields[i]) is not None:
                        if type(this) is list:
                            (end,) = this
                            this = fields[i] = id[: 32 - len(end)] + end
                        id = this
                for i in times:
                    if i < n:
                        this = fields[i]
                        if this < _A_TIME:
                            this = fields[i] = this + at
                        at = this
                facts.append(cls(*fields[: len(defaults)]))
    except (ValueError, TypeError) as error:
        raise StoreError(f"a stored record can't be read ({error}); the store is damaged or not ours") from error
    return facts


def _unknown(tag: Any) -> NoReturn:
    raise UnknownRecord(
        f"a record holds the fact {tag!r}, which this version does not know; it was written by a newer one"
    )
