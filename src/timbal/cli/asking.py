"""Questions at a terminal: each is shown by its kind, and asked until its answer fits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.edits import changes
from ..terminal import one_line
from ..types.approval import Cancel
from ..types.events import ApprovalEvent, InteractionEvent
from .answers import field_for, options_of, understand
from .decisions import ALWAYS, EDIT, change_words, check_edit, edit_typed, editable, with_edit
from .fields import Field, Unfit, check, numbered, parts_of, read
from .screen import Screen
from .words import LONGEST, Ask, about, answer_words, as_json, cut, gate_of, words_of

CANCEL, SKIP = "/cancel", "/skip"


class Skipped(Exception):
    """The person leaves this question open."""


class Cancelled(Exception):
    """The person ends the run instead of answering."""

    def __init__(self, reason: str | None) -> None:
        self.reason = reason
        super().__init__(reason)


class Asker:
    """Asks the person at the terminal."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._may_skip = False

    def ask(self, event: Ask, number: int, of: int) -> Any:
        """The answer to one question, or `Cancel`; raises `Skipped`, and `EOFError` when the person leaves."""
        self._may_skip = of > 1 or isinstance(event, ApprovalEvent)
        show_question(self._screen, event, f"question {number} of {of}" if of > 1 else "")
        try:
            return self._answer(event)
        except Cancelled as cancelled:
            return Cancel(cancelled.reason)

    def fill_in(self, field: Field, given: dict[str, Any]) -> dict[str, Any]:
        """A form for what `given` leaves out."""
        self._may_skip = False
        return self._form(field, given, indent=0)

    # -- by kind -----------------------------------------------------------------------------------------------------

    def _answer(self, event: Ask) -> Any:
        if isinstance(event, ApprovalEvent):
            return self._decide(event)
        field = field_for(event)
        ways = f"{CANCEL} ends the run" + (f", {SKIP} leaves this open" if self._may_skip else "")
        if field is not None and field.shape == "form":
            self._screen.text(f"Field by field; {ways}", "dim", indent=1)
            value = self._form(field, {}, indent=1)
            self._screen.text(f"Answer: {as_json(value)}", "green", indent=1)
            return value
        self._screen.text(f"{self._hint(event, field)}; {ways}", "dim", indent=1)
        while True:
            text = self._line("  > ")
            try:
                return understand(event, text)
            except Unfit as problem:
                self._again(str(problem))

    def _hint(self, event: InteractionEvent, field: Field | None) -> str:
        options = options_of(event)
        number = "A number" if options and numbered(options) else "One of them"
        if event.kind == "ask_user":
            return f"{number}, or your own words" if options else "Your own words"
        if event.kind == "ask_user_multi" and options:
            return (
                "Numbers, with commas between them" if numbered(options) else "Some of them, with commas between them"
            )
        return _hint_of(field) if field is not None else "JSON, or plain text"

    def _decide(self, event: ApprovalEvent) -> Any:
        """The decision about a gate. An edit is shown, and counts once it is approved."""
        edit: dict[str, Any] = {}
        self._screen.text(_hint_of_gate(event, edit), "dim", indent=1)
        while True:
            text = self._line("  > ")
            word, _, rest = text.strip().partition(" ")
            try:
                if word.lower() in EDIT:
                    edit = self._edit(event, edit, rest.strip())
                    self._screen.text(_hint_of_gate(event, edit), "dim", indent=1)
                    continue
                decision = understand(event, text)
            except Unfit as problem:
                self._again(str(problem))
                continue
            if decision is False and (reason := self._line("  Why? (text, optional): ").strip()):
                decision = {"approved": False, "reason": reason}
            return with_edit(decision, edit)

    def _edit(self, event: ApprovalEvent, before: dict[str, Any], typed: str) -> dict[str, Any]:
        """Other arguments, as JSON or field by field; raises `Unfit`."""
        edit = dict(before)
        if typed:
            edit.update(edit_typed(event, typed))
        else:
            for name, field in editable(event):
                now = edit.get(name, event.input.get(name))
                keep = f"Enter keeps {cut(as_json(now), 40)}"
                self._ask_field(edit, name, field, [keep], optional=True, indent=1)
        edit = check_edit(event, edit)
        for change in changes(event.input, edit):
            self._screen.text(one_line(change_words(change, LONGEST)), "green", indent=1)
        if not edit:
            self._screen.text("Nothing is changed.", indent=1)
        return edit

    def _form(self, field: Field, given: dict[str, Any], indent: int) -> dict[str, Any]:
        value = dict(given)
        wanted: Sequence[str] | None = None
        while True:
            for name, part, required in parts_of(field):
                if name not in given if wanted is None else name in wanted:
                    value.pop(name, None)
                    self._fill(value, name, part, required, indent)
            problems = check(field, value)
            if not problems:
                return value
            for problem in problems:
                self._again(problem)
            names = {problem.partition(":")[0].partition(".")[0] for problem in problems}
            wanted = [name for name in names if name in field.schema["properties"]] or list(field.schema["properties"])

    def _fill(self, value: dict[str, Any], name: str, part: Field, required: bool, indent: int) -> None:
        """Ask for one field of a form, until it fits."""
        if part.shape == "form":
            self._screen.text(f"{name}{f': {part.title}' if part.title else ''}", indent=indent)
            value[name] = self._form(part, {}, indent + 1)
            return
        notes = []
        if not required:
            default = part.schema.get("default")
            notes.append("optional" if default in (None, [], {}, "") else f"Enter: {answer_words(default)}")
        self._ask_field(value, name, part, notes, optional=not required, indent=indent)

    def _ask_field(
        self, value: dict[str, Any], name: str, part: Field, notes: list[str], *, optional: bool, indent: int
    ) -> None:
        """Ask for a value on one line, until it fits; where it is optional, Enter leaves it as it is."""
        if part.options:
            show_options(self._screen, part.options, indent + 1)
        hint = _hint_of(part)
        notes = [hint if hint.isupper() else hint[:1].lower() + hint[1:], *notes]
        margin = "  " * indent
        about = f" {part.title}," if part.title and part.title.lower() != name.lower() else ""
        while True:
            text = self._line(f"{margin}{name} ({about.strip()}{' ' if about else ''}{', '.join(notes)}): ")
            if not text.strip() and optional:
                return
            try:
                value[name] = read(part, text)
                return
            except Unfit as problem:
                self._again(str(problem), indent)

    # -- a line --------------------------------------------------------------------------------------------------------

    def _line(self, prompt: str) -> str:
        margin = prompt[: len(prompt) - len(prompt.lstrip())]
        text = self._screen.ask(f"{margin}{one_line(prompt)} ")
        words = text.strip().split(None, 1)
        if words and words[0] == CANCEL:
            raise Cancelled(words[1] if len(words) > 1 else None)
        if words == [SKIP] and self._may_skip:
            raise Skipped
        return text

    def _again(self, problem: str, indent: int = 1) -> None:
        self._screen.text(f"Please again: {problem}.", "red", indent=indent)


def show_question(screen: Screen, event: Ask, where: str = "") -> None:
    """What is asked, and what can be chosen."""
    words = words_of(event)
    screen.text()
    screen.text(f"? {words.headline}", "bold yellow")
    screen.text(" · ".join(part for part in (*about(event), where) if part), "dim", indent=1)
    for indent, text in words.details:
        screen.text(text, indent=indent)
    if words.problem is not None:
        screen.text(f"The answer before did not fit: {words.problem}", "red", indent=1)
    show_options(screen, options_of(event), indent=1)


def _hint_of_gate(event: ApprovalEvent, edit: dict[str, Any]) -> str:
    ways = ["Yes with these changes" if edit else "Yes", "no with a reason"]
    if gate_of(event).get("grantable", True):
        ways.append(f"{ALWAYS} in this conversation")
    if event.input:
        ways.append("edit")
    return f"{', '.join(ways[:-1])} or {ways[-1]}; {SKIP} leaves this open, {CANCEL} ends the run"


def show_options(screen: Screen, options: Sequence[Any], indent: int) -> None:
    """What can be chosen, with numbers where these can be typed."""
    width = len(str(len(options)))
    for number, option in enumerate(options, 1):
        mark = f"{number:>{width}}" if numbered(options) else "-"
        screen.text(f"{mark} {one_line(str(option))}", indent=indent)


def _hint_of(field: Field) -> str:
    hint = {
        "yes_no": "Yes or no",
        "choice": "A number" if numbered(field.options) else "One of them",
        "choices": "Numbers, with commas between them" if numbered(field.options) else "Some, with commas between them",
        "list": "Some, with commas between them",
        "number": "A whole number" if field.schema.get("type") == "integer" else "A number",
        "text": "Text",
        "form": "JSON",
        "json": "JSON",
    }[field.shape]
    low, high = field.schema.get("minimum"), field.schema.get("maximum")
    if low is not None and high is not None:
        hint += f", {low} to {high}"
    elif low is not None or high is not None:
        hint += f", {low} or more" if low is not None else f", {high} or less"
    form = field.schema.get("format") or (field.schema.get("pattern") if not field.title else None)
    if form:
        hint += f", {form}"
    return hint
