"""The demo in a browser: what `timbal serve` needs in a folder, and what is said to the person at the terminal."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from tempfile import mkdtemp

from ..terminal import command
from .assistant import SCRIPTED, STORE, choose_model
from .screen import Screen
from .story import FolderError, announce_model

APP = "app.py"
TARGET = f"{APP}::agent"
#: Where it is served, if nothing else is there.
PORT = 4444


def lay_out(folder: Path | None, *, scripted: bool) -> tuple[Path, str]:
    """A folder with the assistant in it, as `timbal serve` takes it; gives also the model. Raises `FolderError`."""
    if folder is not None and not (folder / APP).is_file():
        raise FolderError(f"no demo of the page was left in {folder}: there is no {APP}")
    folder = folder or Path(mkdtemp(prefix="timbal-demo-"))
    model = SCRIPTED if scripted else choose_model(os.environ)
    (folder / APP).write_text(
        f'"""The assistant of `timbal demo`."""\n\n'
        f"from timbal.demo.assistant import assistant\n\n"
        f"agent = assistant({model!r})\n",
        encoding="utf-8",
    )
    return folder, model


def introduce(folder: Path, model: str, port: int) -> None:
    """Say where the page is, and what to try."""
    screen = Screen()
    announce_model(screen, model)
    screen.text("Open this in a browser:")
    screen.verbatim(f"http://127.0.0.1:{port}/")
    screen.space()
    screen.text("The assistant asks there, and you answer there, or in another terminal:")
    screen.verbatim(f"cd {folder}")
    screen.verbatim(command("pending", "--app", APP))
    screen.verbatim(f"{command('resume')} RUN_ID {APP}")
    screen.space()
    screen.text(
        f"Press Ctrl-C while a question waits: the run is rows in {STORE}, and nothing is lost. Then go on with:"
    )
    screen.verbatim(command("demo", "--resume", str(folder)))
    screen.space()
    screen.text("The same story without a browser, process by process:")
    screen.verbatim(command("demo", "--terminal"))


def free_port() -> int:
    """The usual port, or any that is free."""
    for port in (PORT, 0):
        with socket.socket() as one:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                one.bind(("127.0.0.1", port))
            except OSError:
                continue
            found: int = one.getsockname()[1]
            return found
    raise OSError("no port is free at 127.0.0.1")
