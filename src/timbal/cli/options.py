"""Options as they are typed, checked."""

from __future__ import annotations

from collections.abc import Sequence

from .errors import CliError

#: More than anybody means, less than what is a slip of the finger.
MOST = 1_000_000


def number(option: str, text: str, least: int = 1, most: int = MOST) -> int:
    """A whole number within these; raises `CliError`."""
    if not (text.isascii() and text.isdecimal()) or not least <= int(text) <= most:
        raise CliError(f"{option} is a whole number from {least} to {most}, not {text!r}")
    return int(text)


def one_of(option: str, text: str, words: Sequence[str]) -> str:
    """One of these words; raises `CliError`."""
    if text not in words:
        raise CliError(f"{option} is one of {', '.join(words)}, not {text!r}")
    return text
