"""The person who answers: with `--answer`, at the prompt, or, where there is neither, by the first option."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..types.events import InteractionEvent
from .assistant import ENGINES
from .screen import Screen

YES, NO = frozenset({"yes", "y", "true"}), frozenset({"no", "n", "false"})


class AnswerError(ValueError):
    """Not an answer; the message says why."""


def read(kind: str, options: Sequence[str], text: str) -> Any:
    """What somebody means by `text`: yes or no, an option by its number, or their own words."""
    text = text.strip()
    if kind == "confirm":
        if text.lower() not in YES | NO:
            raise AnswerError(f"{text!r} is neither yes nor no")
        return text.lower() in YES
    if not text:
        raise AnswerError("an answer is empty")
    if not text.isdecimal():
        return text
    if 1 <= int(text) <= len(options):
        return options[int(text) - 1]
    raise AnswerError(f"there is no option {text}: they are 1 to {len(options)}")


def check(given: Sequence[str], kinds: Sequence[str]) -> None:
    """Raise `AnswerError` if these answers don't fit the kinds of the questions that are to come."""
    if len(given) > len(kinds):
        raise AnswerError(f"questions to come: {len(kinds)}, answers given: {len(given)}")
    for kind, text in zip(kinds, given, strict=False):
        read(kind, ENGINES, text)


class Person:
    """Answers with what was given beforehand; then at the terminal, if there is one."""

    def __init__(self, screen: Screen, given: Sequence[str], *, at_terminal: bool) -> None:
        self._screen = screen
        self._given = list(given)
        self._at_terminal = at_terminal

    def answer(self, event: InteractionEvent) -> Any:
        """Show the question and get its answer."""
        options: list[str] = event.payload.get("options") or []
        self._screen.space()
        self._screen.text(question(event), "bold yellow")
        if options:
            self._screen.text("   ".join(f"{number} {option}" for number, option in enumerate(options, 1)))
        if self._given:
            return self._say(read(event.kind, options, self._given.pop(0)), "from --answer")
        if not self._at_terminal:
            what = "the first option" if options else "yes"
            return self._say(options[0] if options else True, f"no terminal here, so {what} is taken")
        return self._ask(event.kind, options)

    def _ask(self, kind: str, options: Sequence[str]) -> Any:
        prompt = "Your answer, yes or no:" if kind == "confirm" else "Your answer, a number or your own words [1]:"
        while True:
            text = self._screen.ask(prompt)
            try:
                return read(kind, options, text or ("1" if options else ""))
            except AnswerError as problem:
                self._screen.text(f"Please again: {problem}.")

    def _say(self, answer: Any, why: str) -> Any:
        words = ("yes" if answer else "no") if isinstance(answer, bool) else answer
        self._screen.text(f"Answer: {words} ({why})")
        return answer


def question(event: InteractionEvent) -> str:
    """What is asked, in words."""
    return f"{event.payload['action']}?" if event.kind == "confirm" else str(event.payload["question"])
