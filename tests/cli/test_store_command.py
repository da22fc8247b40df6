"""`timbal store`, as operators run it."""

import asyncio
import json
import sqlite3
from pathlib import Path

import pytest

from tests.cli.commands import piped
from timbal.stores import SqliteStore
from timbal.testing.conformance.facts import begin

URL = "sqlite:///runs.db"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a store in it: one run has finished, one waits."""
    store = SqliteStore(tmp_path / "runs.db")
    begin(store).end()
    begin(store).pause("q")
    asyncio.run(store.aclose())
    return tmp_path


def break_file(folder: Path, sql: str) -> None:
    db = sqlite3.connect(folder / "runs.db")
    with db:
        db.execute(sql)
    db.close()


def test_check_says_what_is_there(folder: Path) -> None:
    done = piped("store", "check", URL, folder=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert "schema version 2" in done.stdout
    assert "2 executions; runs: 1 paused, 1 success" in done.stdout
    assert "1 open questions, 0 settled ones" in done.stdout
    assert "nothing is wrong" in done.stdout


@pytest.mark.parametrize(
    ("sql", "problem"),
    [
        ("UPDATE facts SET body = '{' WHERE id = (SELECT max(id) FROM facts)", "run "),
        ("UPDATE facts SET body = '[]' WHERE id = (SELECT min(id) FROM facts)", "its opening is missing"),
        ("DELETE FROM executions WHERE id = 1", "belongs to no execution"),
        ("UPDATE executions SET holder = 'x' WHERE id = 1", "has half a lease"),
        ("UPDATE questions SET name = 'r'", "question r holds another one"),
    ],
)
def test_check_names_what_is_wrong(folder: Path, sql: str, problem: str) -> None:
    break_file(folder, sql)
    done = piped("store", "check", URL, "--json", folder=folder)
    assert done.returncode == 1
    assert any(problem in found for found in json.loads(done.stdout)["problems"])


def test_records_of_a_newer_version_are_no_damage(folder: Path) -> None:
    break_file(folder, "UPDATE facts SET body = '[[\"tomorrow\", 1]]' WHERE id = (SELECT max(id) FROM facts)")
    done = piped("store", "check", URL, folder=folder)
    assert done.returncode == 0, done.stdout
    assert "1 executions were written by a newer version" in done.stdout


def test_migrate_says_the_version(folder: Path) -> None:
    done = piped("store", "migrate", URL, folder=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert "schema version 2, the newest" in done.stdout


def test_prune_removes_what_has_finished_and_what_is_open_only_when_told(folder: Path) -> None:
    def prune(*options: str) -> dict[str, object]:
        done = piped("store", "prune", URL, *options, "--json", folder=folder)
        assert (done.returncode, done.stderr) == (0, "")
        found: dict[str, object] = json.loads(done.stdout)
        return found

    assert prune("--older-than", "1d") == {"finished": 0, "abandoned": 0, "dry_run": False}
    assert prune("--older-than", "0s", "--dry-run") == {"finished": 1, "abandoned": 0, "dry_run": True}
    assert prune("--older-than", "0s") == {"finished": 1, "abandoned": 0, "dry_run": False}
    assert prune("--older-than", "0s") == {"finished": 0, "abandoned": 0, "dry_run": False}
    assert prune("--older-than", "0s", "--abandoned-older-than", "0s")["abandoned"] == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["prune", URL], "--older-than says what is old"),
        (["prune", URL, "--older-than", "soon"], "such as 30d or 12h, not 'soon'"),
        (["check", "sqlite:///absent.db"], "there is no store sqlite:///absent.db"),
        (["check", "memory://"], "ends with its process"),
    ],
)
def test_bad_usage_is_refused(folder: Path, words: list[str], message: str) -> None:
    done = piped("store", *words, folder=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert not (folder / "absent.db").exists()
