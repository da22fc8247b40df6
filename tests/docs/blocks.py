"""Finds the fenced code blocks of a Markdown page."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from textwrap import dedent

FENCE = re.compile(r"\s*(?P<marks>`{3,}|~{3,})(?P<info>[^`]*)")


class PageError(AssertionError):
    """A page is not true; the message starts with file and line."""

    def __init__(self, page: str, line: int, problem: str) -> None:
        super().__init__(f"{page}:{line}: {problem}")


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block; `line` is that of its first line of text, counted from 1.

    The fence `bash no-run="needs a key"` gives the language "bash" and the marks {"no-run": "needs a key"}.
    """

    page: str
    line: int
    language: str
    marks: dict[str, str]
    text: str

    def error(self, problem: str, *, line: int | None = None) -> PageError:
        return PageError(self.page, line or self.line, problem)


def find_blocks(page: str, markdown: str) -> Iterator[Block]:
    """Yield the blocks in order. `PageError` for a fence that is never closed."""
    lines = iter(enumerate(markdown.splitlines(), start=1))
    for number, line in lines:
        opening = FENCE.fullmatch(line)
        if opening is None:
            continue
        text = []
        for _, inner in lines:
            if _closes(inner, opening["marks"]):
                break
            text.append(inner)
        else:
            raise PageError(page, number, "this code block is never closed")
        language, marks = _read_info(opening["info"])
        yield Block(page, number + 1, language, marks, dedent("\n".join(text)) + "\n")


def _closes(line: str, marks: str) -> bool:
    found = line.strip()
    return found.startswith(marks) and not found.strip(marks[0])


def _read_info(info: str) -> tuple[str, dict[str, str]]:
    language, *words = shlex.split(info) or [""]
    pairs = (word.partition("=") for word in words)
    return language, {name: value for name, _, value in pairs}
