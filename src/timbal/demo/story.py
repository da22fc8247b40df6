"""The demo from beginning to end: processes work on a run, and between them a person answers."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from tempfile import mkdtemp

from ..errors import StoreError
from ..terminal import command
from .assistant import (
    EFFECTS,
    MODELS,
    QUESTIONS,
    REQUEST,
    SCRIPTED,
    STARTS,
    STORE,
    choose_model,
    set_up_database,
)
from .person import Person, check
from .screen import Screen
from .traces import Standing, effects, standing


class FolderError(ValueError):
    """The folder to go on in holds no demo."""


def play(answers: Sequence[str], folder: Path | None, *, scripted: bool = False) -> int:
    """Play the demo in a new temporary folder, or go on in that of an earlier one; gives the exit code.

    Raises `AnswerError` and `FolderError`, before anything is done.
    """
    found = _look(folder) if folder is not None else None
    model = SCRIPTED if scripted else found.model if found is not None else choose_model(os.environ)
    check(answers, _to_come(found))
    screen = Screen()
    person = Person(screen, answers, at_terminal=sys.stdin is not None and sys.stdin.isatty())
    folder = folder or Path(mkdtemp(prefix="timbal-demo-"))
    try:
        _introduce(screen, model, found)
        return _go_on(screen, person, folder, model, found)
    except (KeyboardInterrupt, EOFError):
        _leave(screen, folder)
        return 130


def _look(folder: Path) -> Standing | None:
    """How the demo in this folder stands."""
    if not (folder / STORE).is_file():
        raise FolderError(f"no demo was left in {folder}: there is no {STORE}")
    try:
        return asyncio.run(standing(folder))
    except StoreError as problem:
        raise FolderError(str(problem)) from problem


def _to_come(found: Standing | None) -> Sequence[str]:
    """The kinds of the questions that will still be asked."""
    if found is not None and found.question is not None:
        return QUESTIONS[QUESTIONS.index(found.question.kind) :]
    return () if found is not None and found.status == "success" else QUESTIONS


def announce_model(screen: Screen, model: str) -> None:
    """Say who plays the model."""
    if model == SCRIPTED:
        screen.heading("timbal demo: scripted assistant, no model and no key")
        return
    screen.heading(f"timbal demo: a real model, {model}")
    key = next(key for key, name in MODELS.items() if name == model)
    screen.text(f"It is used because {key} is set. Without one: timbal demo --scripted")
    screen.space()


def _introduce(screen: Screen, model: str, found: Standing | None) -> None:
    announce_model(screen, model)
    if found is not None:
        screen.text("Going on with what an earlier demo left:")
        _show(screen, found)
        return
    screen.line("you", REQUEST, "bold")
    screen.space()
    screen.text("The assistant has one tool, an ordinary function:")
    screen.space()
    screen.source(set_up_database)
    screen.space()
    screen.text(
        "Each question ends the process. The next process starts the function again at its first line; "
        "what was recorded, steps and answers, is not done again."
    )


def _go_on(screen: Screen, person: Person, folder: Path, model: str, found: Standing | None) -> int:
    """Let process after process work until the run is over."""
    while found is None or found.status in ("running", "paused", "error"):
        code = _work(screen, folder, model, _request(person, found))
        if code != 0:
            _fail(screen, folder, model, code)
            return 1
        found = asyncio.run(standing(folder))
        if found is not None:
            _show(screen, found)
    _prove(screen, folder)
    return 0


def _request(person: Person, found: Standing | None) -> list[str]:
    """What the next process is to do: begin, or go on with a run. One that was killed goes on without an answer."""
    if found is None:
        return []
    answer = {found.question.interaction_id: person.answer(found.question)} if found.question is not None else {}
    return [found.run_id, json.dumps(answer)]


def _fail(screen: Screen, folder: Path, model: str, code: int) -> None:
    screen.space()
    screen.text(f"It failed, with exit code {code}. What it left is in:", "red")
    screen.verbatim(str(folder))
    screen.text("Once the cause is gone, go on with:")
    screen.verbatim(command("demo", "--terminal", "--resume", str(folder)))
    if model != SCRIPTED:
        screen.text("Without a model and without a key, the same demo with a script in the model's place:")
        screen.verbatim(command("demo", "--terminal", "--scripted"))


def _work(screen: Screen, folder: Path, model: str, request: list[str]) -> int:
    """Let a process work until it exits. Ctrl-C does not reach it: it comes to a pause soon enough."""
    command = [sys.executable, "-m", "timbal.demo.process", str(folder), model, *request]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        code = process.wait()
    except KeyboardInterrupt:
        process.wait()
        raise
    if code == 0:
        screen.line("exit", f"process {process.pid} is gone; what is left of the run is in {STORE}:")
    return code


def _show(screen: Screen, found: Standing) -> None:
    screen.line("", f"run ...{found.run_id[-6:]}".ljust(26) + found.status, "dim")
    for what, outcome in found.ledger if found.question is not None else ():
        screen.line("", what.ljust(26) + outcome, "dim")


def _prove(screen: Screen, folder: Path) -> None:
    """Show what was really done, and count it."""
    lines = effects(folder)
    screen.heading(f"{EFFECTS}, written by the processes as they worked")
    for pid, what in lines:
        screen.line(pid, what, "" if what == STARTS else "green")
    counts = Counter(what for _, what in lines)
    starts = counts.pop(STARTS, 0)
    again = [what for what, count in counts.items() if count > 1]
    steps = f"these steps ran again, cut off before their record: {', '.join(again)}" if again else "each step ran once"
    screen.space()
    screen.text(f"{len({pid for pid, _ in lines})} processes. The function started {starts} times; {steps}.", "bold")
    screen.text("The files are in:")
    screen.verbatim(str(folder))


def _leave(screen: Screen, folder: Path) -> None:
    screen.space()
    screen.space()
    screen.text("You left. The run waits in its file. Go on with:")
    screen.verbatim(command("demo", "--terminal", "--resume", str(folder)))
