"""`timbal run` at a terminal: what a person sees in tmux, at 80 and at 200 columns, with and without colours."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from getpass import getuser
from pathlib import Path

import pytest

from tests.cli.commands import Tmux, piped, terminal, tmux

pytestmark = pytest.mark.slow

ESCAPE = "\x1b["


@contextmanager
def typing(folder: Path, command: str, columns: int = 80, more: dict[str, str] | None = None) -> Iterator[Tmux]:
    """A command that is typed into a shell."""
    with tmux(folder, columns, **(more or {})) as session:
        session.type(command, at="$")
        yield session


def shown(screen: str) -> list[str]:
    """The lines of the screen, without the command and what is empty."""
    return [line.rstrip() for line in screen.splitlines() if line.strip() and not line.startswith("$")]


@pytest.mark.parametrize("columns", [80, 200])
def test_a_run_from_its_question_to_its_end_in_place(columns: int, folder: Path) -> None:
    with typing(folder, "timbal run shop.py::agent -p go", columns) as session:
        session.type("7", at=">")
        session.wait_for("Please again")
        session.type("my own", at=">")
        session.wait_for("Drop the old database")
        session.type("maybe", at=">")
        session.wait_for("neither")
        session.type("n", at=">")
        lines = shown(session.wait_for("run 0"))
    one = "These words are long enough that a terminal of eighty columns has to break the line in between somewhere."
    words = [one] if columns == 200 else [one[:78], one[79:]]
    lines.remove("this is printed by the tool")  # when it likes
    assert lines[: len(words)] == words
    assert lines[len(words) : len(words) + 8] == [
        '→ set_up_database(app="shop")',
        "? Which database should it be?",
        "  ask_user · assistant.set_up_database",
        "  1 postgres",
        "  2 mysql",
        "  A number, or your own words; /cancel ends the run",
        "  > 7",
        "  Please again: there is no option 7: they are 1 to 2.",
    ]
    assert any(re.fullmatch(r"✓ set_up_database \d+ ms  my own://shop-db beside the old one", line) for line in lines)
    assert any(line.startswith("Done: my own://shop-db beside the old one. These words") for line in lines)
    assert all(len(line) <= columns for line in lines)


@pytest.mark.parametrize(
    ("more", "coloured"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)],
    ids=["a terminal", "NO_COLOR", "TERM=dumb"],
)
def test_colours_are_where_they_are_wanted(more: dict[str, str], coloured: bool, folder: Path) -> None:
    with typing(folder, "timbal run shop.py::agent -p go", more=more) as session:
        session.wait_for("/cancel ends the run")
        screen = session.screen(colours=True)
    line = next(line for line in screen.splitlines() if "Which database" in line)
    assert bool(re.search(r"\x1b\[[0-9;]*33m", line)) is coloured


def test_a_form_is_filled_in_field_by_field_and_checked_at_once(folder: Path) -> None:
    with typing(folder, "timbal run shop.py::order") as session:
        session.type("Ada", at="customer (text):")
        for text, at in (
            ("X", "size (a number):"),
            ("2", "size (a number):"),
            ("11", "count (a whole number, 1 to 10):"),
            ("3", "count (a whole number, 1 to 10):"),
            ("", "gift (yes or no, Enter: no):"),
            ("", "note (text, optional):"),
            ("Main St", "street (text):"),
            ("1234", "code (five digits, text):"),
            ("12345", "code (five digits, text):"),
        ):
            session.type(text, at=at)
        screen = session.wait_for("run 0")
    assert "'X' is none of the options" in screen
    assert "11 is greater than the maximum of 10" in screen
    assert '"1234" does not match' in screen
    assert '"code": "12345"' in screen
    assert '"customer": "Ada"' in screen


def test_several_questions_are_asked_together_and_some_may_be_left(folder: Path) -> None:
    with typing(folder, "timbal run shop.py::agent -p three") as session:
        session.wait_for("question 1 of 3")
        session.type("/skip", at=">")
        session.wait_for("question 2 of 3")
        session.type("1, L", at=">")
        session.wait_for("question 3 of 3")
        session.type("y", at=">")
        screen = session.wait_for("you are asked again")
        (command,) = re.findall(r"^  (timbal resume [0-9a-f]{32}) --answer", screen, re.MULTILINE)
        session.type(f"clear; {command}", at="$")
        session.wait_for("Which name?\n  ask_user · assistant.ask_user\n")
        session.type("Ada", at=">")
        screen = session.wait_for("run 0")
    assert 'Done: Ada; ["S","L"]; true.' in " ".join(screen.split())


def test_a_conversation_goes_on_until_the_person_leaves(folder: Path) -> None:
    with typing(folder, "timbal run shop.py::agent") as session:
        session.type("hello", at=">")
        session.wait_for("That was message 1.")
        session.type("hello again", at=">")
        session.wait_for("That was message 2.")
        session.press("C-d")
        screen = session.wait_for("Go on with this conversation")
        assert "timbal run shop.py::agent --after" in screen
        session.type("clear; timbal runs", at="$")
        lines = shown(session.wait_for("STARTED"))
    assert [line.split()[1:3] for line in lines[1:3]] == [["success", "assistant"]] * 2


def test_lines_can_be_edited_and_a_paste_is_one_answer(folder: Path) -> None:
    with typing(folder, "timbal run shop.py::agent -p three") as session:
        session.wait_for("question 1 of 3")
        session.paste("Grace\nHopper")
        for key in ("Home", "Right", "BSpace"):
            session.press(key)
        session.type("J", at="Hopper")
        session.wait_for("question 2 of 3")
        session.type("all", at=">")
        session.wait_for("question 3 of 3")
        session.type("y", at=">")
        screen = session.wait_for("run 0")
    assert "Done: Jrace Hopper; " in " ".join(screen.split())


def test_a_person_can_cancel_instead_of_answering(folder: Path) -> None:
    with typing(folder, "timbal run shop.py::agent -p go; echo code $?") as session:
        session.type("/cancel we need none", at=">")
        screen = session.wait_for("code 1")
    assert "✗ assistant was cancelled  we need none" in screen


def test_what_was_left_at_a_question_goes_on_with_the_command_that_is_shown(folder: Path) -> None:
    with typing(folder, "timbal run shop.py::agent -p go; echo code $?") as session:
        session.type("1", at=">")
        session.wait_for("Drop the old database")
        session.press("C-c")
        screen = session.wait_for("code 130")
        (command,) = re.findall(r"^  (timbal resume [0-9a-f]{32})$", screen, re.MULTILINE)
        assert "Traceback" not in screen
        session.type(f"clear; {command}", at="$")
        session.wait_for("Drop the old database")
        session.type("y", at=">")
        session.wait_for("Done: postgres://shop-db.")


def test_an_answer_from_elsewhere_is_noticed_while_the_person_thinks(folder: Path) -> None:
    with typing(folder, "timbal run shop.py::agent -p go") as session:
        session.wait_for("/cancel ends the run")
        (asked,) = re.findall(r"timbal resume .*", piped("pending", folder=folder).stdout)
        words = asked.replace("ANSWER", "mysql").split()[1:]
        assert piped(*words, "--by", "grace", folder=folder).returncode == 0
        session.wait_for("grace (command line) answered 'mysql' at ")
        session.wait_for("Drop the old database")
        session.type("n", at=">")
        session.wait_for("Done: mysql://shop-db beside the old one.")


def test_a_run_is_shown_as_a_timeline(folder: Path) -> None:
    with typing(folder, "timbal run shop.py::agent -p go") as session:
        session.type("2", at=">")
        session.wait_for("Drop the old database")
        session.type("n", at=">")
        run = re.findall(r"^run ([0-9a-f]{32})", session.wait_for("run 0"), re.MULTILINE)[0]
        session.type(f"clear; timbal show {run}", at="$")
        lines = shown(session.wait_for("run success"))
    told = [re.sub(r"^ *[\d.]+ (ms|s|min \d+ s)  ", "", line) for line in lines[2:]]
    told = [re.sub(r"\d[\d.]* m?s|[0-9a-f]{32}", "N", line) for line in told]
    assert lines[0] == "assistant (Agent)  success"
    assert all(len(line) <= 80 for line in lines)
    assert lines[2].startswith("3 runs · of shop.py::agent")
    expected = [
        f'run N  by {getuser()} assistant(prompt="go")',
        "  ✓ llm N  These words",
        '  ✓ set_up_database(app="shop") N  mysql://shop-db',
        "    ✓ step rent_server N  shop-db",
        "    ? ask_user: Which database should it be?  (",
        "run paused",
        "run N goes on",
        f"    ! mysql  answered by {getuser()} (terminal) after N",
        "    ? confirm: Drop the old database of shop  (",
        "run paused",
        "run N goes on",
        f"    ! no  answered by {getuser()} (terminal) after N",
        "  ✓ llm N  Done: mysql://shop-db",
        "run success",
    ]
    assert [line[: len(start)] for line, start in zip(told[1:], expected, strict=True)] == expected


def test_ctrl_c_in_the_middle_of_work_leaves_a_run_that_goes_on(folder: Path) -> None:
    with terminal("run", "shop.py::long", "seconds=30", folder=folder) as person:
        person.type(b"\x03", at=b"it works")
        assert person.leave() == 130
    (run_id,) = re.findall(r"resume ([0-9a-f]{32})\x1b", person.shown.decode())
    assert b"Traceback" not in person.shown
    record = piped("show", run_id, folder=folder).stdout
    assert record.startswith("work_long (Tool)  cancelled / interrupted\n")


def test_what_was_typed_before_a_question_is_not_its_answer(folder: Path) -> None:
    with terminal("run", "shop.py::agent", "-p", "go", folder=folder) as person:
        person.type(b"y\n", at=b"somewhere.")
        person.read(b"> ")
        person.type(b"1\n", at=b"")
        person.read(b"Drop the old database")
        person.type(b"n\n", at=b"> ")
        assert person.leave() == 0
    assert b"postgres://shop-db beside" in person.shown
