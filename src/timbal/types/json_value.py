"""Python values to JSON values: what can't be JSON is refused here, by name, before it is kept anywhere."""

from __future__ import annotations

from math import isfinite
from typing import Any

#: How deep a value may nest. Well under what the JSON parser and every client take.
MAX_DEPTH = 128
#: The largest integer, in bits: more than any real amount, less than what a parser refuses to read.
MAX_INT_BITS = 1024


def json_value(value: Any, where: str = "value") -> Any:
    """`value` as JSON, in containers of its own: what happens to the given ones later does not matter.

    Pydantic models, dataclasses, dates, UUIDs, Decimals, enums and Paths are converted. Anything else (sets, bytes,
    NaN, keys that are no str, cycles) raises `TypeError` naming the place, as in `payload.options[2]`.
    """
    return _convert(value, where, 0)


def _convert(value: Any, where: str, depth: int) -> Any:
    kind = type(value)
    if kind is str:
        if value.isascii() or _is_unicode(value):
            return value
        raise TypeError(f"{where} holds half a surrogate pair, which is no text; clean the string first")
    if value is None or kind is bool:
        return value
    if kind is int:
        if value.bit_length() > MAX_INT_BITS:
            raise TypeError(
                f"{where} is an integer of {value.bit_length()} bits; JSON clients can't read it, pass a str"
            )
        return value
    if kind is float:
        if isfinite(value):
            return value
        raise TypeError(f"{where} is {value}, which JSON does not have; pass None or a str")
    if depth >= MAX_DEPTH:
        raise TypeError(f"{where} nests deeper than {MAX_DEPTH} levels, or holds itself")
    if kind is dict:
        return _convert_dict(value, where, depth)
    if kind is list or kind is tuple:
        return [_convert(v, f"{where}[{i}]", depth + 1) for i, v in enumerate(value)]
    return _convert(_simplify(value, where), where, depth + 1)


def _convert_dict(value: dict[Any, Any], where: str, depth: int) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, item in value.items():
        if type(key) is not str:
            raise TypeError(f"{where} has the key {key!r}, a {type(key).__name__}; JSON keys are strs")
        if not key.isascii() and not _is_unicode(key):
            raise TypeError(f"{where} has the key {key!r}, which holds half a surrogate pair")
        out[key] = _convert(item, f"{where}.{key}", depth + 1)
    return out


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _simplify(value: Any, where: str) -> Any:
    """One step towards JSON, for the types that have an obvious form in it."""
    from collections.abc import Mapping
    from dataclasses import fields, is_dataclass
    from datetime import date, datetime, time, timedelta
    from decimal import Decimal
    from enum import Enum
    from pathlib import PurePath
    from uuid import UUID

    if isinstance(value, Enum):
        return value.value
    if hasattr(value, "model_dump") and not isinstance(value, type):
        return _dump_model(value, where)
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: getattr(value, f.name) for f in fields(value)}
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, UUID | Decimal | PurePath):
        return str(value)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, list | tuple):
        return list(value)
    raise TypeError(
        f"{where} is a {type(value).__name__}, which has no JSON form; pass str, int, float, bool, None, list, dict, "
        "or a pydantic model, dataclass, date, UUID, Decimal, enum or Path"
    )


def _dump_model(value: Any, where: str) -> Any:
    """A pydantic model (or a value of ours) as it says itself, unless it holds what is refused elsewhere, too."""
    try:
        if _holds_bytes(value.model_dump()):
            raise TypeError(f"{where} is a {type(value).__name__} that holds bytes; encode them first, in base64 say")
        return value.model_dump(mode="json")
    except (ValueError, RecursionError) as error:
        raise TypeError(f"{where} is a {type(value).__name__} that has no JSON form: {error}") from None


def _holds_bytes(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_holds_bytes, value.values()))
    if isinstance(value, list | tuple | set | frozenset):
        return any(map(_holds_bytes, value))
    return isinstance(value, bytes | bytearray | memoryview)
