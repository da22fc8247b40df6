"""`timbal demo`, run as its user runs it: as a process, at a terminal or without one."""

import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
from contextlib import AbstractContextManager
from pathlib import Path

import httpx
import pytest

from tests.cli.commands import CTRL_C, Terminal, environment, piped, terminal
from timbal.demo.assistant import choose_model
from timbal.stores.base import LEASE_SECONDS

WHICH, DROP = b"your own words [1]: ", b"yes or no: "

PROVISIONED = "provision_server: shop-db is up"
DROPPED = "drop_old_database: shop-old is gone"
STARTS = "set_up_database starts"


def demo(tmp_path: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run it where nobody can type, with its temporary folder in `tmp_path`."""
    return piped("demo", *arguments, folder=tmp_path, TMPDIR=str(tmp_path), **more)


def demo_at_terminal(tmp_path: Path, *arguments: str) -> AbstractContextManager[Terminal]:
    """Play it at a terminal."""
    return terminal("demo", "--terminal", *arguments, folder=tmp_path, TMPDIR=str(tmp_path))


def folder_of(tmp_path: Path) -> Path:
    (folder,) = tmp_path.glob("timbal-demo-*")
    return folder


def effects_of(folder: Path) -> list[tuple[int, str]]:
    lines = (folder / "effects.txt").read_text(encoding="utf-8").splitlines()
    return [(int(pid), what) for pid, what in (line.split(" ", 1) for line in lines)]


def assert_each_effect_once_over_three_processes(folder: Path, *expected: str) -> None:
    effects = effects_of(folder)
    assert Counter(what for _, what in effects) == {STARTS: 3} | dict.fromkeys(expected, 1)
    starts = [pid for pid, what in effects if what == STARTS]
    assert len(set(starts)) == 3
    assert not any(is_running(pid) for pid in starts)


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def too_wide(shown: str) -> list[str]:
    """The lines of more than 80 columns; a path or a command stands alone and is not broken."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    return [line for line in plain.splitlines() if len(line) > 80 and "timbal-demo-" not in line]


# -- without a terminal ------------------------------------------------------------------------------------------------


def test_without_a_terminal_it_takes_the_first_option_and_says_so(tmp_path: Path) -> None:
    done = demo(tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "scripted assistant, no model and no key" in done.stdout
    assert "Answer: postgres (no terminal here" in done.stdout
    assert "Answer: yes (no terminal here" in done.stdout
    assert "3 processes. The function started 3 times; each step ran once." in done.stdout
    assert str(folder_of(tmp_path)) in done.stdout
    assert "\x1b" not in done.stdout
    assert too_wide(done.stdout) == []
    created = "create_database: postgres on shop-db"
    assert_each_effect_once_over_three_processes(folder_of(tmp_path), PROVISIONED, created, DROPPED)


def test_answers_can_be_given_beforehand_in_order(tmp_path: Path) -> None:
    done = demo(tmp_path, "--answer", "my own", "--answer", "Y")
    assert (done.returncode, done.stderr) == (0, "")
    assert "my own://shop-db is up. The old database is gone." in done.stdout
    created = "create_database: my own on shop-db"
    assert_each_effect_once_over_three_processes(folder_of(tmp_path), PROVISIONED, created, DROPPED)


def test_a_no_ends_it_without_the_irreversible_thing(tmp_path: Path) -> None:
    done = demo(tmp_path, "--answer", "2", "--answer", "no")
    assert (done.returncode, done.stderr) == (0, "")
    assert "mysql://shop-db is up. The old database is untouched." in done.stdout
    created = "create_database: mysql on shop-db"
    assert_each_effect_once_over_three_processes(folder_of(tmp_path), PROVISIONED, created)


# -- at a terminal -----------------------------------------------------------------------------------------------------


def test_at_a_terminal_a_person_types_the_answers(tmp_path: Path) -> None:
    with demo_at_terminal(tmp_path) as person:
        person.type(b"4\n", at=WHICH)
        person.type(b"3\n", at=WHICH)
        person.type(b"\n", at=DROP)
        person.type(b"yes\n", at=DROP)
        assert person.leave() == 0
    shown = person.shown.decode()
    assert "there is no option 4: they are 1 to 3" in shown
    assert "'' is neither yes nor no" in shown
    assert "\x1b[" in shown
    assert too_wide(shown) == []
    created = "create_database: mariadb on shop-db"
    assert_each_effect_once_over_three_processes(folder_of(tmp_path), PROVISIONED, created, DROPPED)


def test_what_was_left_with_ctrl_c_goes_on_later(tmp_path: Path) -> None:
    with demo_at_terminal(tmp_path, "--answer", "1") as person:
        person.type(CTRL_C, at=DROP)
        assert person.leave() == 130
    folder = folder_of(tmp_path)
    assert f"demo --terminal --resume {folder}" in person.shown.decode()
    assert b"Traceback" not in person.shown
    with demo_at_terminal(tmp_path, "--resume", str(folder)) as person:
        person.type(b"y\n", at=DROP)
        assert person.leave() == 0
    created = "create_database: postgres on shop-db"
    assert_each_effect_once_over_three_processes(folder, PROVISIONED, created, DROPPED)


def test_a_demo_whose_process_was_killed_goes_on_at_once(tmp_path: Path) -> None:
    started = time.monotonic()
    os.mkfifo(tmp_path / "effects.txt")  # it stops where it writes there, until somebody reads
    command = [sys.executable, "-m", "timbal.demo.process", str(tmp_path), "scripted"]
    with subprocess.Popen(command, env=environment(), stdout=subprocess.DEVNULL) as process:
        with (tmp_path / "effects.txt").open(encoding="utf-8") as effects:
            assert effects.readline() == f"{process.pid} {STARTS}\n"
        process.kill()
    (tmp_path / "effects.txt").unlink()
    (tmp_path / "effects.txt").touch()
    done = demo(tmp_path, "--resume", str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    created = "create_database: postgres on shop-db"
    assert_each_effect_once_over_three_processes(tmp_path, PROVISIONED, created, DROPPED)
    assert time.monotonic() - started < LEASE_SECONDS  # nobody waited for the lease of the one that is gone


# -- a real model ------------------------------------------------------------------------------------------------------

MODELS = {
    "no key": ({}, "scripted"),
    "OpenAI's key": ({"OPENAI_API_KEY": "x"}, "openai/gpt-5-mini"),
    "Anthropic's key": ({"ANTHROPIC_API_KEY": "x"}, "anthropic/claude-haiku-4-5"),
    "both": ({"ANTHROPIC_API_KEY": "x", "OPENAI_API_KEY": "y"}, "openai/gpt-5-mini"),
    "an empty key": ({"OPENAI_API_KEY": " "}, "scripted"),
}


@pytest.mark.parametrize(("keys", "model"), MODELS.values(), ids=MODELS)
def test_the_model_is_a_real_one_where_its_key_is_set(keys: dict[str, str], model: str) -> None:
    assert choose_model(keys) == model


@pytest.mark.slow
def test_a_model_that_can_not_be_asked_is_told_with_the_way_to_do_without(tmp_path: Path) -> None:
    nobody = {"OPENAI_API_KEY": "x", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
    done = demo(tmp_path, **nobody)
    assert done.returncode == 1
    assert "a real model, openai/gpt-5-mini" in done.stdout
    assert "because OPENAI_API_KEY is set" in done.stdout
    assert "ModelError: openai/gpt-5-mini" in " ".join(done.stdout.split())
    assert "demo --scripted" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr
    folder = folder_of(tmp_path)
    again = demo(tmp_path, "--resume", str(folder), "--scripted")
    assert (again.returncode, again.stderr) == (0, "")
    created = "create_database: postgres on shop-db"
    assert_each_effect_once_over_three_processes(folder, PROVISIONED, created, DROPPED)


# -- usage -------------------------------------------------------------------------------------------------------------

BAD_USAGE = {
    "an unknown command": (["dmeo"], "No such command 'dmeo'."),
    "an unknown option": (["demo", "--anser", "1"], "No such option: --anser"),
    "an option that does not exist": (["demo", "--answer", "9"], "there is no option 9: they are 1 to 3"),
    "an empty answer": (["demo", "--answer", ""], "an answer is empty"),
    "an answer that is neither yes nor no": (["demo", "--answer", "1", "--answer", "2"], "'2' is neither yes nor no"),
    "too many answers": (["demo", *("--answer", "yes") * 3], "questions to come: 2, answers given: 3"),
    "a folder without a demo": (["demo", "--resume", "absent"], "no demo was left in absent"),
}


@pytest.mark.parametrize(("arguments", "message"), BAD_USAGE.values(), ids=BAD_USAGE)
def test_bad_usage_is_refused_with_a_short_message(arguments: list[str], message: str, tmp_path: Path) -> None:
    done = piped(*arguments, folder=tmp_path, TMPDIR=str(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert len(done.stderr.splitlines()) <= 5
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_no_store_is_refused(tmp_path: Path) -> None:
    (tmp_path / "runs.db").write_text("not a database, but long enough to be looked at as one" * 99, encoding="utf-8")
    (tmp_path / "effects.txt").touch()
    done = demo(tmp_path, "--resume", str(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    assert "runs.db" in done.stderr


def test_the_version_names_the_distribution(tmp_path: Path) -> None:
    from timbal import __version__

    done = piped("--version", folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, f"timbal-hitl {__version__}\n")


def test_at_a_terminal_the_demo_opens_with_the_page(tmp_path: Path) -> None:
    with terminal("demo", folder=tmp_path, TMPDIR=str(tmp_path)) as person:
        person.read(b"scripted assistant")
        person.read(b"--terminal")
        found = re.search(rb"http://127\.0\.0\.1:\d+", person.shown)
        assert found is not None
        # It is told just before it is served.
        calls = httpx.HTTPTransport(retries=9)
        with httpx.Client(base_url=found[0].decode(), transport=calls, timeout=60) as browser:
            assert "timbal-app" in browser.get("/").text
            started = browser.post("/run", json={"prompt": "Go."}).json()
        assert started["status"]["reason"] == "input_required"
        person.type(CTRL_C, at=b"\n")
        person.leave()
    done = piped("pending", "--app", "app.py", "--json", folder=folder_of(tmp_path))
    (item,) = json.loads(done.stdout)["items"]
    assert item["run_id"] == started["run_id"]


def test_the_page_of_the_demo_does_not_go_on_in_a_folder_without_one(tmp_path: Path) -> None:
    with terminal("demo", "--resume", "absent", folder=tmp_path) as person:
        person.read(b"no demo of the page was left in absent")
        assert person.leave() == 2
