"""`timbal run` and `timbal resume` without a terminal: what is printed where, and the exit code."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.cli.commands import TIMBAL, piped
from timbal.types.events import InteractionEvent, OutputEvent, validate_event

RUN_ID = re.compile(r"\b[0-9a-f]{32}\b")


def command_in(text: str) -> list[str]:
    """The command that is shown, as a shell would read it, without the program."""
    line = next(line for line in text.splitlines() if line.startswith("  ") and " resume " in line)
    program, *words = shlex.split(line)
    assert program in ("timbal", TIMBAL)
    return words


def test_the_agents_words_go_to_stdout_and_everything_else_to_stderr(folder: Path) -> None:
    done = piped("run", "shop.py::agent", "--prompt", "set up", folder=folder)
    assert done.returncode == 0
    assert done.stdout == (
        "These words are long enough that a terminal of eighty columns has to break the line in between somewhere.\n"
    )
    for shown in (
        '→ set_up_database(app="shop")',
        "this is printed by the tool",
        "? Which database should it be?",
        "1 postgres",
        "It waits for an answer.",
    ):
        assert shown in done.stderr
    assert "\x1b" not in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_a_question_that_is_left_is_answered_by_the_command_that_is_shown(folder: Path) -> None:
    done = piped("run", "shop.py::agent", "set up", folder=folder)
    for answer in ("ANSWER=postgres", "ANSWER=yes"):
        words = [word.replace("=ANSWER", answer.removeprefix("ANSWER")) for word in command_in(done.stderr)]
        done = piped(*words, folder=folder)
        assert done.returncode == 0
    assert done.stdout.startswith("Done: postgres://shop-db. ")
    assert "✓ set_up_database" in done.stderr
    assert "this is printed by the tool" not in done.stderr


@pytest.mark.slow
def test_every_way_to_answer_wrongly_has_its_words_and_its_exit_code(folder: Path) -> None:
    first = piped("run", "shop.py::agent", "set up", folder=folder)
    _, run_id, _, answer = command_in(first.stderr)
    id = answer.partition("=")[0]
    wrong = {
        f"{id}": (2, "is not of the form ID=JSON"),
        "dead=1": (1, f"'dead' was never asked in this run. Its questions: {id} (ask_user)."),
        f"{id}=": (1, "does not fit: an answer is needed"),
        f"{id}=7": (1, "does not fit: there is no option 7: they are 1 to 2"),
    }
    for given, (code, message) in wrong.items():
        done = piped("resume", run_id, "--answer", given, folder=folder)
        assert (done.returncode, done.stdout) == (code, "")
        assert message in done.stderr
    assert piped("resume", run_id[:20], "--answer", f"{id}=1", "--by", "ada", folder=folder).returncode == 0
    late = piped("resume", run_id, "--answer", f"{id}=mysql", folder=folder)
    assert late.returncode == 1
    assert "Somebody was faster. ada answered 'postgres' at " in late.stderr
    same = piped("resume", run_id, "--answer", f"{id}=postgres", folder=folder)
    assert same.returncode == 0
    assert "ada answered 'postgres'" in same.stderr
    confirm = command_in(same.stderr)[-1].partition("=")[0]
    cancelled = piped("resume", run_id, "--cancel", confirm, folder=folder)
    assert cancelled.returncode == 0
    assert "assistant was cancelled" in cancelled.stderr
    too_late = piped("resume", run_id, "--answer", f"{confirm}=yes", folder=folder)
    assert too_late.returncode == 1
    assert f"The answer to {confirm} comes too late: the run was cancelled." in too_late.stderr


@pytest.mark.slow
def test_json_prints_events_and_a_program_can_go_on_from_them(folder: Path) -> None:
    done = piped("run", "shop.py::agent", "three", "--json", "--label", "tenant=a", folder=folder)
    events = [validate_event(line) for line in done.stdout.splitlines()]
    assert (done.returncode, events[0].type, events[-1].type) == (0, "START", "OUTPUT")
    asked = [event for event in events if isinstance(event, InteractionEvent)]
    answers: dict[str, Any] = {"ask_user": "Ada", "ask_user_multi": ["S", "L"], "confirm": False}
    words = [f"--answer={event.interaction_id}={json.dumps(answers[event.kind])}" for event in asked]
    done = piped("resume", events[0].run_id, *words, "--json", folder=folder)
    output = validate_event(done.stdout.splitlines()[-1])
    assert isinstance(output, OutputEvent)
    assert (done.returncode, output.status.code, done.stderr) == (0, "success", "")
    assert [receipt["state"] for receipt in output.receipts] == ["accepted"] * 3


@pytest.mark.slow
def test_a_tool_takes_its_input_by_name_or_as_json(folder: Path) -> None:
    by_name = piped("run", "shop.py::order", "customer=5", "priority=2", folder=folder)
    assert "customer: 5" in by_name.stderr
    as_json = piped("run", "shop.py::order", "--input", "-", input='{"customer": "Ada"}', folder=folder)
    _, run_id, *_, answer = command_in(as_json.stderr)
    order = {"size": "M", "count": 2, "address": {"street": "Main St", "code": "12345"}}
    wrong = {**order, "count": 11}
    refused = piped("resume", run_id, "--answer", answer.replace("ANSWER", json.dumps(wrong)), folder=folder)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "count: 11 is greater than the maximum of 10" in refused.stderr
    done = piped("resume", run_id, "--answer", answer.replace("ANSWER", json.dumps(order)), folder=folder)
    assert done.returncode == 0
    assert json.loads(done.stdout) == {"customer": "Ada", "priority": 1, "gift": False, "note": None, **order}


def test_input_that_does_not_fit_is_bad_usage(folder: Path) -> None:
    done = piped("run", "shop.py::order", "costumer=Ada", folder=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert "unknown argument 'costumer'" in done.stderr
    assert "resume" not in done.stderr


def test_a_run_that_fails_shows_the_users_lines_and_none_of_ours(folder: Path) -> None:
    done = piped("run", "shop.py::failing", "reason=so", folder=folder)
    assert (done.returncode, done.stdout) == (1, "")
    assert "raise ValueError(reason)" in done.stderr
    assert "✗ fail failed: ValueError: so" in done.stderr
    assert "/timbal/" not in done.stderr
    assert command_in(done.stderr)[0] == "resume"


@pytest.mark.slow
def test_an_audience_is_heeded(folder: Path) -> None:
    done = piped("run", "shop.py::finance", "amount=5", folder=folder)
    assert "for role:finance" in done.stderr
    words = [word.replace("ANSWER", "yes") for word in command_in(done.stderr)]
    refused = piped(*words, folder=folder)
    assert refused.returncode == 1
    assert "is not yours to give (its audience is role:finance)" in refused.stderr
    done = piped(*words, "--role", "finance", folder=folder)
    assert (done.returncode, done.stdout) == (0, "true\n")


@pytest.mark.slow
def test_the_runnables_own_store_is_used_unless_another_is_named(folder: Path) -> None:
    done = piped("run", "shop.py::kept_elsewhere", "customer=Ada", folder=folder)
    words = command_in(done.stderr)
    assert words[2] == "shop.py::kept_elsewhere"
    assert (folder / "own.db").exists()
    assert not (folder / ".timbal").exists()
    assert piped(*words[:3], folder=folder).returncode == 0
    named = piped("run", "shop.py::kept_elsewhere", "customer=Ada", "--store", "sqlite:///its own.db", folder=folder)
    assert command_in(named.stderr)[2:4] == ["--store", "sqlite:///its own.db"]
    assert (folder / "its own.db").exists()
    assert piped(*command_in(named.stderr)[:4], folder=folder).returncode == 0


def test_a_store_in_memory_is_said_to_keep_nothing(folder: Path) -> None:
    done = piped("run", "shop.py::forgotten", "customer=Ada", folder=folder)
    assert "can't be answered any more" in done.stderr
    assert "--answer" not in done.stderr


@pytest.mark.slow
def test_where_the_runnable_is_comes_from_the_record_the_command_or_the_environment(folder: Path) -> None:
    (folder / "inner").mkdir()
    (folder / "shop.py").rename(folder / "inner" / "shop.py")
    store = f"sqlite:///{folder}/runs.db"
    done = piped("run", "inner/shop.py::finance", "amount=1", "--store", store, folder=folder)
    run_id = command_in(done.stderr)[1]
    assert piped("resume", run_id, "--store", store, folder=folder).returncode == 0
    elsewhere = piped("resume", run_id, "--store", store, folder=folder / "inner")
    assert elsewhere.returncode == 2
    assert "it was started with inner/shop.py::finance, which is not in this folder" in elsewhere.stderr
    assert piped("resume", run_id, "shop.py::finance", "--store", store, folder=folder / "inner").returncode == 0
    by_environment = piped(
        "resume", run_id, folder=folder / "inner", TIMBAL_RUNNABLE="shop.py::finance", TIMBAL_STORE=store
    )
    assert by_environment.returncode == 0
    other = piped("resume", run_id, "inner/shop.py::order", "--store", store, folder=folder)
    assert other.returncode == 2
    assert "is one of Tool 'ask_finance', and inner/shop.py::order is Tool 'take_order'" in other.stderr


@pytest.mark.slow
def test_a_conversation_goes_on_after_an_earlier_run(folder: Path) -> None:
    first = piped("run", "shop.py::agent", "--prompt", "-", input="hello", folder=folder)
    assert first.stdout == "Hello! That was message 1.\n"
    (run_id,) = RUN_ID.findall(first.stderr)
    second = piped("run", "shop.py::agent", "-p", "hello again", "--after", run_id[:16], folder=folder)
    assert second.stdout == "Hello! That was message 2.\n"


def test_what_the_model_and_tools_say_controls_nothing(folder: Path) -> None:
    done = piped("run", "shop.py::evil", "hi", folder=folder)
    assert done.returncode == 0
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", done.stdout + done.stderr)
    assert "[red]markup[/red]" in done.stdout


BAD_USAGE = {
    "a missing file": (["run", "absent.py::a"], "there is no file absent.py"),
    "a missing name": (["run", "shop.py::absent"], "The runnables there: agent, order, kept_elsewhere"),
    "no prompt": (["run", "shop.py::agent"], "what is assistant to do? Give --prompt TEXT"),
    "a prompt for a tool": (["run", "shop.py::order", "-p", "hi"], "take_order is a tool and takes no --prompt"),
    "input that is no object": (["run", "shop.py::order", "--input", "5"], "--input is no JSON object"),
    "a parameter without a name": (["run", "shop.py::order", "Ada"], "'Ada' is not of the form NAME=VALUE"),
    "a store of no kind": (["run", "shop.py::order", "--store", "runs.db"], "a store URL is"),
    "a store in no folder": (["run", "shop.py::order", "--store", "sqlite:///no/runs.db"], "does not exist"),
    "a file that is no store": (["run", "shop.py::order", "--store", "sqlite:///shop.py"], "no SQLite file"),
    "no such run": (["resume", "1" * 32], "nothing was kept in this folder yet"),
    "no such run in a store": (["resume", "1" * 32, "shop.py::order"], f"there is no run {'1' * 32} in this store"),
    "no run id": (["show", "x"], "nothing was kept in this folder yet"),
    "a store that is missing": (["runs", "--store", "sqlite:///absent.db"], "there is no store sqlite:///absent.db"),
    "a status that is none": (["runs", "--status", "done"], "--status is one of running, paused"),
    "a limit that is none": (["runs", "--limit", "0"], "--limit is a whole number from 1"),
    "a label without a value": (["pending", "--label", "a"], "--label 'a' is not of the form NAME=VALUE"),
    "an unknown option": (["pending", "--absent"], "No such option: --absent"),
}


@pytest.mark.parametrize(("arguments", "message"), BAD_USAGE.values(), ids=BAD_USAGE)
def test_bad_usage_is_told_in_a_few_lines(arguments: list[str], message: str, folder: Path) -> None:
    done = piped(*arguments, folder=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert len(done.stderr.splitlines()) <= 5
    assert "Traceback" not in done.stderr


def test_an_error_in_the_users_file_is_shown_as_theirs(folder: Path) -> None:
    (folder / "broken.py").write_text("import shop\n\nshop.order.absent\n", encoding="utf-8")
    done = piped("run", "broken.py::a", folder=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert "shop.order.absent" in done.stderr
    assert "AttributeError" in done.stderr
    assert "timbal: broken.py can't be imported" in done.stderr
    assert "/src/timbal/" not in done.stderr
