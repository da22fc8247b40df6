"""The terminal, or what stands for it: the agent's words go to stdout, everything else to stderr."""

from __future__ import annotations

import asyncio
import io
import os
import sys
import threading
from collections.abc import Sequence
from contextlib import redirect_stdout, suppress
from functools import cache
from typing import TYPE_CHECKING

from ..terminal import one_line, plain
from .flow import Flow

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

#: Paragraphs are not set wider than this, however wide the terminal is.
MEASURE = 100
ASCII = {"→": "->", "✓": "+", "✗": "x", "·": "-", "…": "...", "│": "|"}


class Screen:
    """What a command shows. Text is cleaned here, and nowhere else: see `timbal.terminal`."""

    def __init__(self) -> None:
        from rich.console import Console

        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="replace")  # what a terminal can't show must not end the run
        self.stdout = sys.stdout
        self.out = Console(file=sys.stdout, highlight=False, markup=False, emoji=False)
        self.err = Console(file=sys.stderr, highlight=False, markup=False, emoji=False)
        self._open: Flow | None = None

    @property
    def interactive(self) -> bool:
        """Whether a person is there who reads and types."""
        return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()

    # -- the agent's words, as they come -----------------------------------------------------------------------------

    def say(self, text: str) -> None:
        """A piece of what the agent says, to stdout."""
        self._flow(self.out, "").write(plain(text))

    def think(self, text: str) -> None:
        """A piece of what the agent thinks: shown, dimly, to a person only."""
        if self.err.is_terminal:
            self._flow(self.err, "dim").write(plain(text))

    def _flow(self, console: Console, style: str) -> Flow:
        if self._open is None or (self._open.console, self._open.style) != (console, style):
            self.end()
            self._open = Flow(console, style)
        return self._open

    def end(self) -> None:
        """End the words that are under way: what follows is on a line of its own."""
        if self._open is not None:
            self._open.end()
            self._open = None

    # -- everything else ---------------------------------------------------------------------------------------------

    def line(self, mark: str, text: str, aside: str = "", style: str = "", indent: int = 0) -> None:
        """One line with a mark before it, cut off where the terminal ends."""
        from rich.text import Text

        self.end()
        margin = "  " * indent
        words = Text.assemble(margin, (f"{self._known(mark)} ", style or "cyan"), one_line(text))
        if aside:
            words.append(f"  {one_line(aside)}", "dim")
        self._print_cut(self.err, words)

    def text(self, text: str = "", style: str = "", indent: int = 0) -> None:
        """A paragraph, to stderr."""
        self.end()
        self._paragraph(self.err, text, style, indent)

    def verbatim(self, text: str, style: str = "bold") -> None:
        """A command or a path: never broken, so that it can be copied."""
        self.end()
        from rich.text import Text

        self._print(Text(f"  {plain(text)}", style))

    def error(self, message: str, hint: str = "", details: str = "") -> None:
        """Why a command can't be done."""
        self.end()
        if details:
            self._lines(details)
        self._paragraph(self.err, f"timbal: {message}{'' if message[-1:] in '.?!' else '.'} {hint}".rstrip(), "red", 0)

    def trace(self, text: str) -> None:
        """Lines of a traceback."""
        self.end()
        self._lines(text)

    def listing(self, text: str = "", style: str = "", indent: int = 0) -> None:
        """A paragraph of what was asked for, to stdout."""
        self._paragraph(self.out, text, style, indent)

    def entry(self, at: str, margin: str, text: str, aside: str, style: str) -> None:
        """One line of a timeline, to stdout; a terminal's is cut off where it ends."""
        from rich.text import Text

        words = Text.assemble((f"{at}  ", "dim"), margin, (self._known(one_line(text)), style))
        if aside:
            words.append(f"  {self._known(one_line(aside))}", "dim")
        self._print_cut(self.out, words)

    def copyable(self, text: str) -> None:
        """A command of a listing: never broken, so that it can be copied."""
        from rich.text import Text

        self.out.print(Text(f"  {plain(text)}"), soft_wrap=True)

    def rows(self, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Lines in columns, to stdout; a terminal's are cut off where it ends."""
        from rich.cells import cell_len
        from rich.text import Text

        table = [list(heads), *([one_line(cell) for cell in row] for row in rows)]
        widths = [max(cell_len(row[i]) for row in table) for i in range(len(heads))]
        for number, row in enumerate(table):
            cells = [cell + " " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True)]
            words = Text(self._known("  ".join(cells)).rstrip(), "" if number else "dim")
            self._print_cut(self.out, words)

    def raw(self, line: str) -> None:
        """A line for programs, to stdout."""
        self.stdout.write(line + "\n")
        self.stdout.flush()

    # -- what a person types -----------------------------------------------------------------------------------------

    def ask(self, prompt: str) -> str:
        """A line that the person types; raises `EOFError` when they leave."""
        self.end()
        if not self.stdout.isatty():
            with redirect_stdout(sys.stderr):
                return input(self._known(prompt))
        _edit_lines()
        return input(self._known(prompt))

    def forget_typed(self) -> None:
        """Drop what was typed before it was asked for: it can't have been meant as the answer."""
        try:
            import termios

            termios.tcflush(sys.stdin, termios.TCIFLUSH)
        except (ImportError, OSError, ValueError):
            return

    # -- inside ------------------------------------------------------------------------------------------------------

    @property
    def _unicode(self) -> bool:
        return "utf" in self.err.encoding.lower()

    def _known(self, text: str) -> str:
        """The text with marks that the terminal's encoding has."""
        return text if self._unicode else "".join(ASCII.get(mark, mark) for mark in text)

    def _paragraph(self, console: Console, text: str, style: str, indent: int) -> None:
        from rich.padding import Padding
        from rich.text import Text

        words = Text(self._known(plain(text)), style)
        if not console.is_terminal or not text:
            for part in words.split("\n", allow_blank=True):
                console.print(Text("  " * indent) + part, soft_wrap=True)
            return
        width = min(MEASURE, console.width)
        console.print(Padding(words, (0, 0, 0, 2 * indent), expand=False), width=width)

    def _print_cut(self, console: Console, words: Text) -> None:
        if console.is_terminal:
            words.truncate(console.width, overflow="ellipsis" if self._unicode else "crop")
        console.print(words, soft_wrap=True)

    def _lines(self, text: str) -> None:
        from rich.text import Text

        for line in plain(text).splitlines():
            self._print(Text(line))

    def _print(self, words: Text) -> None:
        self.err.print(words, soft_wrap=True)


@cache
def _edit_lines() -> None:
    """Let `input()` have arrow keys and history, and take what is pasted as one line, with its line breaks in it."""
    with suppress(ImportError):
        import readline

        if os.environ.get("TERM") != "dumb":
            readline.parse_and_bind("set enable-bracketed-paste on")


def forget_stdout() -> None:
    """Write no more to a pipe that nobody reads: not at the end of the process, either."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class Beside(io.TextIOBase):
    """Where the prints of the user's code go while a run is shown: to stderr, on lines of their own."""

    def __init__(self, screen: Screen, loop: asyncio.AbstractEventLoop) -> None:
        self._screen, self._loop = screen, loop
        self._thread = threading.get_ident()

    def write(self, text: str) -> int:
        if threading.get_ident() == self._thread or not self._loop.is_running():
            self._show(text)
        else:  # after the events that came before it
            self._loop.call_soon_threadsafe(self._show, text)
        return len(text)

    def _show(self, text: str) -> None:
        self._screen.end()
        sys.stderr.write(text)

    def flush(self) -> None:
        sys.stderr.flush()

    def fileno(self) -> int:
        return sys.stderr.fileno()

    def isatty(self) -> bool:
        return sys.stderr.isatty()

    def writable(self) -> bool:
        return True

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return sys.stderr.encoding
