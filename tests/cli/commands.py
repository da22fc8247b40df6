"""The command `timbal`, run as its users run it: in a process, without a terminal, in a pseudo-terminal, in tmux."""

import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

TIMBAL = str(Path(sys.executable).with_name("timbal"))
#: Gives the command that follows a terminal of its own; what it is sent is typed there.
AT_A_TERMINAL = [
    *(sys.executable, "-c"),
    "import os, pty, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL);"  # a job in the background ignores it
    " sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))",
]
#: With a newline, since Python may notice a Ctrl-C that comes right after the prompt only when its read returns.
CTRL_C = b"\x03\n"
SECONDS = 60
_LEFT_OUT = ("NO_COLOR", "FORCE_COLOR", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "TIMBAL_STORE", "TIMBAL_RUNNABLE")


def environment(**more: str) -> dict[str, str]:
    """80 columns, with colours where there is a terminal, and nothing that changes what is run."""
    kept = {name: value for name, value in os.environ.items() if name not in _LEFT_OUT}
    return kept | {"COLUMNS": "80", "TERM": "xterm", "PYTHONUTF8": "1"} | more


def piped(*arguments: str, folder: Path, input: str | None = None, **more: str) -> subprocess.CompletedProcess[str]:
    """Run it where nobody can type."""
    return subprocess.run(
        [TIMBAL, *arguments],
        cwd=folder,
        env=environment(**more),
        input=input or "",
        capture_output=True,
        encoding="utf-8",
        timeout=SECONDS,
    )


class Terminal:
    """A person at a terminal, who reads and types."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._seen = 0
        self.shown = b""

    def read(self, text: bytes) -> None:
        """Wait until this is shown, after what was read before."""
        while text not in self.shown[self._seen :]:
            assert self._read(), f"it ended before {text!r} was shown:\n{self.shown.decode()}"
        self._seen = self.shown.index(text, self._seen) + len(text)

    def type(self, text: bytes, *, at: bytes) -> None:
        """Wait for the prompt, then type."""
        self.read(at)
        assert self._process.stdin is not None
        self._process.stdin.write(text)
        self._process.stdin.flush()

    def leave(self) -> int:
        """Read to the end; gives the exit code."""
        while self._read():
            pass
        return self._process.wait(SECONDS)

    def _read(self) -> bool:
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], SECONDS)
        assert ready, f"nothing more was shown after:\n{self.shown.decode()}"
        piece = os.read(self._process.stdout.fileno(), 65536)
        self.shown += piece
        return piece != b""


@contextmanager
def terminal(*arguments: str, folder: Path, **more: str) -> Iterator[Terminal]:
    """Run it at a pseudo-terminal."""
    pytest.importorskip("pty")
    command = [*AT_A_TERMINAL, TIMBAL, *arguments]
    with subprocess.Popen(
        command, cwd=folder, env=environment(**more), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        try:
            yield Terminal(process)
        finally:
            process.kill()


class Tmux:
    """A tmux session with a server of its own, and a shell in it."""

    def __init__(self, folder: Path, columns: int, **more: str) -> None:
        program = shutil.which("tmux")
        assert program is not None, "these tests need tmux: apt-get install tmux (`make test` does it as root)"
        self._tmux = [program, "-S", str(folder / "tmux"), "-f", "/dev/null"]
        path = f"{Path(TIMBAL).parent}:{os.environ['PATH']}"
        known = environment(PATH=path, PS1="$ ", **more)
        del known["COLUMNS"], known["TERM"]
        shell = ["env", *(f"{name}={value}" for name, value in more.items()), "sh"]
        self._run("new-session", "-d", "-x", str(columns), "-y", "45", *shell, env=known, cwd=folder)

    def type(self, text: str, *, at: str) -> None:
        """Wait until the last line of text starts with this prompt, then type a line."""
        self._wait(lambda: self._last_line().strip().startswith(at), f"the prompt {at!r}")
        self._run("send-keys", "-l", text)
        self._run("send-keys", "Enter")

    def press(self, key: str) -> None:
        """Press a key, such as `C-c`."""
        self._run("send-keys", key)

    def paste(self, text: str) -> None:
        """Paste, as from the clipboard."""
        self._run("set-buffer", text)
        self._run("paste-buffer", "-p")

    def wait_for(self, text: str) -> str:
        """Wait until this is on the screen; gives the screen."""
        self._wait(lambda: text in self.screen(), repr(text))
        return self.screen()

    def screen(self, *, colours: bool = False) -> str:
        """What is on the screen."""
        return self._run("capture-pane", "-p", *(["-e"] if colours else []))

    def close(self) -> None:
        self._run("kill-server")

    def _last_line(self) -> str:
        lines = [line for line in self.screen().splitlines() if line.strip()]
        return lines[-1] if lines else ""

    def _wait(self, done: Callable[[], bool], what: str) -> None:
        end = time.monotonic() + SECONDS
        while not done():
            assert time.monotonic() < end, f"{what} was not shown:\n{self.screen()}"
            select.select([], [], [], 0.05)

    def _run(self, *words: str, env: dict[str, str] | None = None, cwd: Path | None = None) -> str:
        done = subprocess.run([*self._tmux, *words], env=env, cwd=cwd, capture_output=True, encoding="utf-8")
        assert done.returncode == 0, done.stderr
        return done.stdout


@contextmanager
def tmux(folder: Path, columns: int, **more: str) -> Iterator[Tmux]:
    """A terminal of so many columns."""
    session = Tmux(folder, columns, **more)
    try:
        yield session
    finally:
        session.close()
