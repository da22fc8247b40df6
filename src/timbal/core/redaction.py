"""What nobody but the handler may see of a gated input, kept out of everything that is shown."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any

#: What stands in the place of a value that is not shown.
REDACTED = "[redacted]"
#: What stands for it meanwhile: the placeholder itself may hold a secret's letters.
_MARK = "\0"
#: Shorter texts are looked for as whole words only: they are parts of too many others.
_SHORT = 4


def hide_keys(value: Any, keys: Collection[str]) -> Any:
    """A JSON value with what stands under these keys, at any depth and in any case, replaced."""
    hidden = frozenset(key.casefold() for key in keys)
    return _hide(value, hidden)


def _hide(value: Any, keys: frozenset[str]) -> Any:
    if isinstance(value, dict):
        return {k: REDACTED if k.casefold() in keys else _hide(v, keys) for k, v in value.items()}
    if isinstance(value, list):
        return [_hide(item, keys) for item in value]
    return value


def hide_all(value: dict[str, Any]) -> dict[str, Any]:
    """The names alone: what is shown where nobody can tell what may be."""
    return dict.fromkeys(map(str, value), REDACTED)


def holds_placeholder(value: Any) -> bool:
    """Whether the placeholder itself is in it: somebody sends back what was shown instead of a value."""
    return any(leaf == REDACTED for leaf in _leaves(value))


def secrets(real: Any, shown: Any) -> list[Any]:
    """The texts and numbers of `real` that `shown` does not have in the same place."""
    if type(real) is type(shown) and real == shown:
        return []
    if isinstance(real, dict) and isinstance(shown, dict):
        return [one for key, value in real.items() for one in secrets(value, shown.get(key))]
    if isinstance(real, list) and isinstance(shown, list) and len(real) == len(shown):
        return [one for a, b in zip(real, shown, strict=True) for one in secrets(a, b)]
    return [leaf for leaf in _leaves(real) if leaf not in (None, "") and not isinstance(leaf, bool)]


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for item in value.values():
            yield from _leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item)
    else:
        yield value


def scrub(value: Any, hidden: Sequence[Any]) -> Any:
    """A JSON value without these secrets, neither by themselves nor inside texts (as they are, or escaped)."""
    return _Scrubber(hidden).scrub(value) if hidden else value


class _Scrubber:
    def __init__(self, hidden: Sequence[Any]) -> None:
        self._numbers = [one for one in hidden if not isinstance(one, str)]
        texts: set[str] = set()
        for one in map(str, hidden):
            texts |= {one, repr(one)[1:-1], json.dumps(one)[1:-1], json.dumps(one, ensure_ascii=False)[1:-1]}
        # The longest first: one secret may be a part of another.
        self._long = sorted((text for text in texts if len(text) >= _SHORT), key=len, reverse=True)
        short = sorted((re.escape(text) for text in texts if len(text) < _SHORT), key=len, reverse=True)
        self._short = re.compile(rf"(?<!\w)(?:{'|'.join(short)})(?!\w)") if short else None

    def scrub(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, dict):
            return {self._text(k): self.scrub(v) for k, v in value.items()}
        if isinstance(value, list):
            return [self.scrub(item) for item in value]
        if value is None or isinstance(value, bool):
            return value
        return REDACTED if value in self._numbers else value

    def _text(self, text: str) -> str:
        for secret in self._long:
            text = text.replace(secret, _MARK)
        if self._short is not None:
            text = self._short.sub(_MARK, text)
        return text.replace(_MARK, REDACTED)
