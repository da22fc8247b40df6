"""Words that come in pieces, set as lines."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.console import Console

#: Wide characters may be parted anywhere, other words at spaces only.
_WIDE = "\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef"
_PIECES = re.compile(rf"\n|[^\S\n]+|[{_WIDE}]|[^\s{_WIDE}]+")


class Flow:
    """Words as they come; at a terminal, lines are broken between words."""

    def __init__(self, console: Console, style: str) -> None:
        self.console, self.style = console, style
        self._width = console.width if console.is_terminal else None
        self._column = 0
        self._space = self._held = ""
        self._file: TextIO = console.file  # type: ignore[assignment]

    def write(self, text: str) -> None:
        if self._width is None:
            self._column = 0 if text.endswith("\n") else 1
            self._put(text)
        else:
            pieces = _PIECES.findall(self._held + text)
            # The last word may go on in the next piece.
            self._held = pieces.pop() if pieces and not pieces[-1].isspace() else ""
            for piece in pieces:
                self._place(piece, self._width)
        self._file.flush()

    def end(self) -> None:
        if self._held and self._width is not None:
            self._place(self._held, self._width)
            self._held = ""
        if self._column:
            self._put("\n")
        self._file.flush()

    def _place(self, piece: str, width: int) -> None:
        from rich.cells import cell_len

        if piece == "\n":
            self._put("\n")
            self._column, self._space = 0, ""
        elif piece.isspace():
            self._space += piece
        else:
            needed = cell_len(piece)
            if self._column and self._column + len(self._space) + needed > width:
                self._put("\n")
                self._column, self._space = 0, ""
            self._put(self._space + piece)
            self._column += len(self._space) + needed
            self._space = ""

    def _put(self, text: str) -> None:
        if self.style and text.strip():
            with self.console.capture() as captured:
                self.console.print(text, style=self.style, end="", soft_wrap=True)
            text = captured.get()
        self._file.write(text)
