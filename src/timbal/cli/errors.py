"""What ends a command with a short message."""

from __future__ import annotations

#: Exit codes: done, or waiting for an answer; the run failed, or an answer was refused; bad usage; left with Ctrl-C.
DONE, FAILED, USAGE, LEFT = 0, 1, 2, 130


class CliError(Exception):
    """The command can't be done; `details` are lines to show as they are, `hint` says what to do."""

    def __init__(self, message: str, *, hint: str = "", details: str = "", code: int = USAGE) -> None:
        self.hint, self.details, self.code = hint, details, code
        super().__init__(message)
