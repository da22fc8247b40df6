"""Checks `model_params` against what a provider's API knows."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, get_type_hints

from ..errors import ModelError


def checked(kind: type, settings: dict[str, Any]) -> Any:
    """The settings as the library takes them; raises `ModelError` naming the one that is unknown or does not fit."""
    hints = _hints(kind)
    if unknown := sorted(settings.keys() - hints.keys()):
        raise ModelError(f"unknown model_params {', '.join(unknown)}. Known are: {', '.join(sorted(hints))}")
    for key, value in settings.items():
        try:
            _adapter(kind, key).validate_python(value)
        except ValueError as error:
            raise ModelError(f"model_params[{key!r}] can't be {value!r}: {_first_problem(error)}") from None
    return {**settings, "max_retries": 0}  # the SDK's own; ours are in `models.retries`


@lru_cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


@lru_cache
def _adapter(kind: type, key: str) -> Any:
    from pydantic import ConfigDict, TypeAdapter

    return TypeAdapter(_hints(kind)[key], config=ConfigDict(arbitrary_types_allowed=True))


def _first_problem(error: Any) -> str:
    return str(error.errors()[0]["msg"])
