"""How the demo looks: at most 80 columns, in colour where there is a terminal."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from typing import Any

from ..terminal import plain

WIDTH = 80
LABEL = 11


class Screen:
    """Standard output."""

    def __init__(self) -> None:
        from rich.console import Console

        self._console = Console(highlight=False, markup=False, emoji=False)
        self._console.width = self._width = min(WIDTH, self._console.width)

    def heading(self, text: str) -> None:
        """The beginning of a part."""
        from rich.rule import Rule
        from rich.text import Text

        self._console.print()
        self._console.print(Rule(Text(text, "bold"), align="left", style="cyan"))

    def space(self) -> None:
        """An empty line."""
        self._console.print()

    def text(self, text: str, style: str = "") -> None:
        """A paragraph."""
        for part in textwrap.wrap(plain(text), self._width - 2, break_on_hyphens=False):
            self._console.print(f"  {part}", style=style)

    def line(self, label: str, text: str, style: str = "") -> None:
        """A label, and beside it what there is to say."""
        from rich.text import Text

        for part in textwrap.wrap(plain(text), max(20, self._width - LABEL - 2), break_on_hyphens=False):
            self._console.print(Text.assemble("  ", (label.ljust(LABEL), "cyan"), (part, style)))
            label = ""

    def verbatim(self, text: str) -> None:
        """A path or a command: it is never broken, so that it can be copied."""
        self._console.print(f"  {text}", soft_wrap=True, style="bold")

    def source(self, function: Callable[..., Any]) -> None:
        """The source of a function."""
        from rich.syntax import Syntax

        code = textwrap.indent(inspect.getsource(function).rstrip(), "    ")
        self._console.print(Syntax("", "python", theme="ansi_dark").highlight(code), end="")

    def ask(self, prompt: str) -> str:
        """What the person types; raises `EOFError` when they leave."""
        return input(f"  {prompt} ")
