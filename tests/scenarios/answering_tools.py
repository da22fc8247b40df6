"""Processes that answer, for the scenarios that need more than one."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.scenarios.programs.house import FileLines

ROOT = Path(__file__).parents[2]


class Answerer:
    """A process of `programs/answerer.py`, ready to be told what to resume."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self.expect("ready")

    def expect(self, line: str) -> None:
        assert self._process.stdout is not None
        assert self._process.stdout.readline().strip() == line

    def send(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def resume(self, parent_id: str, answers: dict[str, Any], times: int = 1, gate: bool = False) -> None:
        self.send(json.dumps({"parent_id": parent_id, "resume": answers, "times": times, "gate": gate}))

    def outputs(self) -> list[dict[str, Any]]:
        """The dumped outputs of its resumes, each with its `receipts`."""
        assert self._process.stdout is not None
        outputs: list[dict[str, Any]] = json.loads(self._process.stdout.readline())
        return outputs


@contextmanager
def answerers(count: int, url: str, log: FileLines, runnable: str) -> Iterator[list[Answerer]]:
    """So many processes, started side by side and gone at the end."""
    command = [sys.executable, "-m", "tests.scenarios.programs.answerer", url, str(log._path), runnable]
    pipe = subprocess.PIPE
    with ExitStack() as stack:
        started = [
            stack.enter_context(subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True))
            for _ in range(count)
        ]
        for process in started:
            stack.callback(process.kill)
        yield [Answerer(process) for process in started]
        for process in started:
            process.wait(30)
