"""`timbal worker`, as operators run it."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.commands import SECONDS, TIMBAL, environment, piped

APP = """
import os, signal
from pathlib import Path
from timbal import Tool, step, suspend

def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)

@step
def note(what: str) -> None:
    with open("done.txt", "a") as file:
        file.write(what + "\\n")

def order() -> str:
    note("reserve")
    answer = suspend({"q": "pay?"})
    deaths = len(Path("deaths.txt").read_text()) if Path("deaths.txt").exists() else 0
    if deaths < int(os.environ["DEATHS"]):
        Path("deaths.txt").write_text("x" * (deaths + 1))
        die()
    note("pay")
    return f"paid: {answer}"

order = Tool(order)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "app.py").write_text(APP)
    return tmp_path


@contextmanager
def worker(folder: Path, *options: str, deaths: int = 0) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [TIMBAL, "worker", "app.py", *options],
        cwd=folder,
        env=environment(DEATHS=str(deaths)),
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=SECONDS)


def read_until(process: subprocess.Popen[str], text: str) -> str:
    """What the worker says, up to the line with this text."""
    assert process.stderr is not None
    said = ""
    for line in process.stderr:
        said += line
        if text in line:
            return said
    raise AssertionError(f"it ended without {text!r}:\n{said}")


def paused(folder: Path) -> tuple[str, str]:
    """A run that asks, and its question."""
    piped("run", "app.py", folder=folder, DEATHS="0")
    (item,) = json.loads(piped("pending", "--json", folder=folder).stdout)["items"]
    return item["run_id"], item["id"]


def answered_and_cut_off(folder: Path) -> str:
    """A run whose process is killed while it works with the answer."""
    run_id, id = paused(folder)
    out = piped("resume", run_id, "--answer", f"{id}=yes", folder=folder, DEATHS="1")
    assert out.returncode in (-signal.SIGKILL, 128 + signal.SIGKILL), out.stderr
    return run_id


def status(folder: Path, run_id: str) -> str:
    record = json.loads(piped("show", run_id, "--json", folder=folder).stdout)
    return str(record["runs"][-1]["status"])


@pytest.mark.slow
def test_s34_a_run_whose_process_was_killed_is_finished_by_a_worker_and_nothing_is_done_twice(folder: Path) -> None:
    run_id = answered_and_cut_off(folder)
    assert (folder / "done.txt").read_text().split() == ["reserve"]
    with worker(folder) as process:
        read_until(process, "is success")
        process.send_signal(signal.SIGTERM)
        assert process.wait(SECONDS) == 0
    assert status(folder, run_id) == "success"
    assert (folder / "done.txt").read_text().split() == ["reserve", "pay"]


@pytest.mark.slow
def test_a_run_that_kills_its_process_again_and_again_is_parked_and_taken_up_by_hand(folder: Path) -> None:
    run_id = answered_and_cut_off(folder)
    for _ in range(2):
        with worker(folder, "--attempts", "2", deaths=99) as process:
            assert process.wait(SECONDS) == -signal.SIGKILL
    with worker(folder, "--attempts", "2", deaths=99) as process:
        read_until(process, "is parked: its process died 2 times in a row")
        process.send_signal(signal.SIGINT)
        assert process.wait(SECONDS) == 0
    listed = json.loads(piped("runs", "--status", "parked", "--json", folder=folder).stdout)["items"]
    assert run_id in {info["execution_id"] for info in listed}
    out = piped("resume", run_id, folder=folder, DEATHS="0")
    assert out.returncode == 0, out.stderr
    assert (folder / "done.txt").read_text().split() == ["reserve", "pay"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--concurrency", "0"], "--concurrency is a whole number from 1 to 1000000, not '0'"),
        (["--store", "memory://"], "a store in memory ends with its process"),
    ],
)
def test_a_worker_that_can_not_work_says_why(folder: Path, options: list[str], says: str) -> None:
    out = piped("worker", "app.py", *options, folder=folder, DEATHS="0")
    assert (out.returncode, out.stdout) == (2, "")
    assert says in " ".join(out.stderr.split())
    assert os.linesep + "Traceback" not in out.stderr


def test_a_file_without_runnables_has_nothing_for_a_worker(tmp_path: Path) -> None:
    (tmp_path / "empty.py").write_text("x = 1\n")
    out = piped("worker", "empty.py", folder=tmp_path)
    assert out.returncode == 2
    assert "empty.py has no runnable" in out.stderr
