"""`timbal pending`, `timbal runs` and `timbal show`, printed into a pipe."""

import json
import re
import shlex
from pathlib import Path

import pytest

from tests.cli.commands import piped


def lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]


@pytest.mark.parametrize("command", ["pending", "runs"])
def test_where_nothing_was_kept_yet_that_is_said_and_nothing_is_made(command: str, folder: Path) -> None:
    done = piped(command, folder=folder)
    assert (done.returncode, done.stdout) == (0, "No runs were kept in sqlite:///.timbal/runs.db yet.\n")
    assert json.loads(piped(command, "--json", folder=folder).stdout) == {"items": [], "next": None}
    assert not (folder / ".timbal").exists()


@pytest.mark.slow
def test_what_waits_is_listed_with_the_command_that_answers_it(folder: Path) -> None:
    piped("run", "shop.py::agent", "three", "--label", "tenant=a", folder=folder)
    piped("run", "shop.py::finance", "amount=3", "--label", "tenant=b", folder=folder)
    done = piped("pending", folder=folder)
    assert done.returncode == 0
    assert lines(done.stdout)[0] == "? Which name?"
    assert "  options: S | M | L" in done.stdout
    assert "\x1b" not in done.stdout
    (asked,) = [line for line in lines(done.stdout) if "for role:finance" in line]
    assert asked.startswith("  spend · ask_finance · for role:finance · asked ")
    assert asked.endswith("tenant=b")
    command = shlex.split(lines(done.stdout)[-1])
    assert piped(*command[1:-1], command[-1].replace("ANSWER", "no"), "--role", "finance", folder=folder).stdout == (
        "false\n"
    )
    kinds = [item["kind"] for item in json.loads(piped("pending", "--json", folder=folder).stdout)["items"]]
    assert kinds == ["ask_user", "ask_user_multi", "confirm"]
    for words, count in ((("--kind", "confirm"), 1), (("--runnable", "ask_finance"), 0), (("--label", "tenant=a"), 3)):
        assert len(json.loads(piped("pending", "--json", *words, folder=folder).stdout)["items"]) == count


@pytest.mark.slow
def test_runs_are_listed_in_pages_newest_first(folder: Path) -> None:
    first = piped("run", "shop.py::agent", "hello", folder=folder)
    piped("run", "shop.py::failing", "reason=so", folder=folder)
    piped("run", "shop.py::agent", "go", "--label", "tenant=a", folder=folder)
    head, *rows = lines(piped("runs", folder=folder).stdout)
    assert head.split() == ["RUN", "STATUS", "RUNNABLE", "TOOK", "STARTED", "LABELS"]
    assert [row.split()[1:3] for row in rows] == [["paused", "assistant"], ["error", "fail"], ["success", "assistant"]]
    assert rows[0].endswith("tenant=a")
    page = piped("runs", "--limit", "1", "--runnable", "assistant", folder=folder)
    more = shlex.split(lines(page.stderr)[-1])[1:]
    assert [row.split()[1] for row in lines(piped(*more, folder=folder).stdout)[1:]] == ["success"]
    only = json.loads(piped("runs", "--status", "success", "--json", folder=folder).stdout)["items"]
    assert [info["run_id"] for info in only] == re.findall(r"[0-9a-f]{32}", first.stderr)
    several = piped("show", only[0]["run_id"][:4], folder=folder)
    assert several.returncode == 2
    assert "several runs begin with" in several.stderr


@pytest.mark.slow
def test_a_timeline_as_json_has_calls_waits_and_who_answered(folder: Path) -> None:
    piped("run", "shop.py::order", "customer=Ada", folder=folder)
    (item,) = json.loads(piped("pending", "--json", folder=folder).stdout)["items"]
    order = {"size": "M", "count": 2, "address": {"street": "Main St", "code": "12345"}}
    piped("resume", item["run_id"], f"--answer={item['id']}={json.dumps(order)}", "--by", "grace", folder=folder)
    told = json.loads(piped("show", item["run_id"], "--json", folder=folder).stdout)
    assert [entry["what"] for entry in told["timeline"]] == [
        "started",
        "question",
        "ended",
        "resumed",
        "settled",
        "ended",
    ]
    settled = told["timeline"][4]
    assert (settled["by"]["sub"], settled["value"], settled["id"]) == ("grace", order, item["id"])
    assert settled["waited"] == settled["at"] - told["timeline"][1]["at"]
    assert [info["status"] for info in told["runs"]] == ["paused", "success"]


@pytest.mark.slow
def test_a_runnables_own_store_is_found_by_naming_the_runnable(folder: Path) -> None:
    piped("run", "shop.py::kept_elsewhere", "customer=Ada", folder=folder)
    app = ("--app", "shop.py::kept_elsewhere")
    assert "kept_elsewhere" in piped("runs", *app, folder=folder).stdout
    done = piped("pending", *app, folder=folder)
    words = shlex.split(lines(done.stdout)[-1])[1:-2]
    assert piped(*words, folder=folder).returncode == 0
