"""A JSON value against a JSON Schema, at the answer door."""

from __future__ import annotations

from typing import Any


def check_against(schema: dict[str, Any], value: Any, *, formats: bool = False) -> list[tuple[str, str]]:
    """Where the value breaks the schema: `[(JSON pointer, message), ...]`. Nothing is fetched.

    With `formats`, such as "date", are checked, too.
    """
    import jsonschema_rs

    validator = jsonschema_rs.validator_for(schema, retriever=_refuse, validate_formats=formats or None)
    return [("".join(map(_step, e.instance_path)), e.message) for e in validator.iter_errors(value)]


def _step(part: str | int) -> str:
    """One step of a JSON pointer (RFC 6901)."""
    return "/" + str(part).replace("~", "~0").replace("/", "~1")


def _refuse(uri: str) -> Any:
    raise ValueError(f"the schema refers to {uri}, and nothing is fetched")
