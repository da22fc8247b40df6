"""What really happened, line by line in a file that outlives every process."""

import json
import os
from itertools import count
from pathlib import Path
from typing import Any

from timbal import idempotency_key

_numbers = count(1)


class Diary:
    """A file of JSON lines: each outlives its process, and effects are on the disk before the call returns."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def write(self, what: str, **more: Any) -> None:
        line = json.dumps({"what": what, "pid": os.getpid(), **more}) + "\n"
        file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(file, line.encode())
            if what == "effect":
                os.fsync(file)
        finally:
            os.close(file)

    def effect(self, name: str) -> str:
        """Do what can't be undone, for the step that calls it; gives the name of this attempt."""
        attempt = f"{os.getpid()}.{next(_numbers)}"
        self.write("effect", name=name, key=idempotency_key(), attempt=attempt)
        return attempt

    def lines(self) -> list[dict[str, Any]]:
        if not self._path.exists():
            return []
        return [json.loads(line) for line in self._path.read_text().splitlines()]
