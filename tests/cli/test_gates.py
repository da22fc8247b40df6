"""Gates at the command line: shown, decided, listed, told and revoked, in real processes and at terminals."""

import json
import re
from getpass import getuser
from pathlib import Path
from typing import Any

import pytest

from tests.cli.commands import piped, terminal, tmux

pytestmark = pytest.mark.slow


def waiting(folder: Path) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = json.loads(piped("pending", "--json", folder=folder).stdout)["items"]
    return items


def told(run_id: str, folder: Path) -> str:
    done = piped("show", run_id, folder=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def newest(folder: Path) -> str:
    run_id: str = json.loads(piped("runs", "--limit", "1", "--json", folder=folder).stdout)["items"][0]["run_id"]
    return run_id


def test_without_a_terminal_a_gate_is_shown_and_left_with_the_commands_that_decide_it(folder: Path) -> None:
    done = piped("run", "till.py::clerk", "-p", "250", folder=folder)
    assert (done.returncode, done.stdout) == (0, "")
    shown = [
        "? Refund 250 EUR to Grace?",
        "  approval · clerk.refund",
        "  │ It is paid at once.",
        "  input:",
        '    customer: "Grace"',
        "    amount: 250",
        "    note: null",
        "  preview:",
        "    left in the till: 250",
    ]
    assert "\n".join(shown) in done.stderr
    commands = re.findall(r"^  \S*timbal (resume [0-9a-f]{32} --(?:approve|deny) .*)$", done.stderr, re.MULTILINE)
    assert [command.split()[2] for command in commands] == ["--approve", "--deny"]
    assert all(f"timbal {command}\n" in piped("pending", folder=folder).stdout for command in commands)
    approved = piped(*commands[0].split(), "--by", "ada", folder=folder)
    assert (approved.returncode, approved.stdout) == (0, "Done: refunded 250 EUR to Grace.\n")
    lines = told(commands[0].split()[1], folder)
    assert "? approval: Refund 250 EUR to Grace?  (" in lines
    assert "! approved  by ada (command line) after " in lines
    again = piped(*commands[1].split(), folder=folder)
    assert again.returncode == 1
    assert "Somebody was faster. ada answered 'yes' at " in again.stderr


def test_a_denial_that_was_given_is_what_was_wanted(folder: Path) -> None:
    piped("run", "till.py::refunds", "customer=Ada", "amount=300", folder=folder)
    (item,) = waiting(folder)
    done = piped("resume", item["run_id"], "--deny", item["id"][:8], "--reason", "no receipt", folder=folder)
    assert done.returncode == 0
    assert "✗ refund was denied  no receipt" in done.stderr
    lines = told(item["run_id"], folder)
    assert f"! denied: no receipt  by {getuser()} (command line) after " in lines
    assert "run cancelled / approval_denied  no receipt" in lines


ODD: dict[str, tuple[int, str]] = {
    "1": (1, "'1' is neither yes nor no"),
    "null": (1, "'null' is neither yes nor no"),
    '"yes"': (1, 'is not of type "boolean"'),
    "{}": (1, "approved: only True, False"),
    '{"approved": 1}': (1, "approved: only True, False"),
    '{"approved": true, "also": 1}': (1, "also: a decision has no such field"),
    '{"approved": true, "override_input": {"amount": "9"}}': (1, "override_input.amount: "),
    '{"approved": true, "override_input": {"card": "[redacted]"}}': (1, "leave it out to keep it"),
    '{"approved": true, "scope": "conversation"}': (1, "takes decisions about one call only"),
    '{"approved": true, "expires_at": 5}': (1, "decides nothing: its expires_at is in the past"),
}


def test_odd_decisions_are_refused_and_the_gate_stays_open(folder: Path) -> None:
    piped("run", "till.py::charges", "card=4242-4242", "amount=7", folder=folder)
    (item,) = waiting(folder)
    for text, (code, problem) in ODD.items():
        done = piped("resume", item["run_id"], "--role", "finance", f"--answer={item['id']}={text}", folder=folder)
        assert (done.returncode, done.stdout) == (code, ""), text
        assert problem in done.stderr
    forbidden = piped("resume", item["run_id"], "--approve", item["id"], folder=folder)
    assert forbidden.returncode == 1
    assert "is not yours to give (its audience is role:finance)" in forbidden.stderr
    assert [one["id"] for one in waiting(folder)] == [item["id"]]


def test_a_redacted_value_is_shown_nowhere_and_can_be_changed(folder: Path) -> None:
    done = piped("run", "till.py::charges", "card=4242-4242", "amount=7", folder=folder)
    assert "? Charge 7 EUR to [redacted]?" in done.stderr
    (item,) = waiting(folder)
    decision = json.dumps({"approved": True, "override_input": {"card": "5151-5151", "amount": 8}})
    words = ["--answer", f"{item['id']}={decision}", "--role", "finance"]
    given = piped("resume", item["run_id"], *words, folder=folder)
    assert (given.returncode, given.stdout) == (0, "charged 8 EUR\n")
    lines = told(item["run_id"], folder)
    assert '! approved, with card: "[redacted]" → another value; amount: 7 → 8  by ' in lines
    as_json = piped("show", item["run_id"], "--json", folder=folder).stdout
    assert not re.search("4242|5151", done.stderr + given.stderr + lines + as_json)
    (decided,) = [entry for entry in json.loads(as_json)["timeline"] if entry["what"] == "decided"]
    assert decided["changes"][1] == {"name": "amount", "before": 7, "after": 8}


def test_gates_and_questions_of_a_turn_are_given_in_one_command(folder: Path) -> None:
    done = piped("run", "till.py::clerk", "-p", "several", folder=folder)
    assert "Several can be given in one command." in done.stderr
    items = {item["event"].get("prompt") or item["kind"]: item for item in waiting(folder)}
    ada, bob = items["Refund 300 EUR to Ada?"], items["Refund 300 EUR to Bob?"]
    run_id, question = ada["run_id"], items["confirm"]["id"]
    wrong = {
        ("--approve", question): (1, "is a question and no approval: --approve does not answer it"),
        ("--approve", ada["id"], "--deny", ada["id"]): (2, "its answer is given twice"),
        ("--approve", ada["id"], "--reason", "x"): (2, "--reason says why something is denied or cancelled"),
        ("--deny", "dead"): (1, "'dead' was never asked in this run"),
    }
    for words, (code, message) in wrong.items():
        refused = piped("resume", run_id, *words, folder=folder)
        assert (refused.returncode, refused.stdout) == (code, "")
        assert message in refused.stderr
    words = ("--approve", ada["id"], "--deny", bob["id"], "--reason", "twice", "--answer", f"{question}=yes")
    done = piped("resume", run_id, *words, folder=folder)
    assert done.returncode == 0
    assert done.stdout.startswith("Done: refunded 300 EUR to Ada; true; Denied, and not done: twice.")
    assert re.search(r"✗ refund denied \d+ ms  twice", done.stderr)
    assert '✗ refund(customer="Bob", amount=300, note=null) denied  twice · by decision ' in told(run_id, folder)


def test_a_standing_decision_lets_calls_pass_until_it_is_revoked(folder: Path) -> None:
    piped("run", "till.py::clerk", "-p", "250", folder=folder)
    (item,) = waiting(folder)
    assert "No decision stands" in piped("grants", item["run_id"], folder=folder).stdout
    piped("resume", item["run_id"], "--answer", f"{item['id']}=always 5", "--by", "ada", folder=folder)
    passes = piped("run", "till.py::clerk", "-p", "400", "--after", newest(folder), folder=folder)
    assert passes.stdout == "Done: refunded 400 EUR to Grace.\n"
    assert f"· refund passed by the standing decision {item['id'][:12]}\n" in passes.stderr
    run_id = newest(folder)
    assert f"✓ passed by the standing decision {item['id'][:12]}  made in run {item['run_id']}" in told(run_id, folder)
    listed = piped("grants", run_id, folder=folder).stdout
    assert "clerk.refund is approved in this conversation\n  by ada " in listed
    assert "used 1 of 5 times" in listed
    (command,) = re.findall(r"^  \S*timbal (grants .*)$", listed, re.MULTILINE)
    refused = piped("grants", run_id, "--revoke", "dead", folder=folder)
    assert refused.returncode == 1
    assert f"no standing decision begins with 'dead'. There are: {item['id'][:12]} (clerk.refund)." in refused.stderr
    revoked = piped(*command.split(), "--by", "eve", folder=folder)
    assert revoked.returncode == 0
    assert "It was revoked by eve " in revoked.stdout
    (grant,) = json.loads(piped("grants", run_id, "--json", folder=folder).stdout)["items"]
    assert (grant["id"], grant["holds"], grant["revoked_by"]["sub"]) == (item["id"], False, "eve")
    assert f"! the standing decision {item['id'][:12]} about refund is revoked  by eve" in told(item["run_id"], folder)
    piped("run", "till.py::clerk", "-p", "500", "--after", run_id, folder=folder)
    assert [one["event"]["input"]["amount"] for one in waiting(folder)] == [500]


def test_hostile_words_of_a_gate_control_nothing(folder: Path) -> None:
    done = piped("run", "till.py::evil", "-p", "x", folder=folder)
    (item,) = waiting(folder)
    listed = piped("pending", folder=folder).stdout
    words = ["--deny", item["id"], "--reason", "\x1b[2Jno\u202e", "--by", "\x1b]0;me\x07eve"]
    denied = piped("resume", item["run_id"], *words, folder=folder)
    shown = done.stderr + listed + denied.stderr + told(item["run_id"], folder)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", shown)
    assert r'customer: "\u001b[31mred' in shown
    assert "\n  amount: 1\n" not in shown


@pytest.mark.parametrize("columns", [80, 200])
def test_a_person_edits_denies_and_leaves_open(columns: int, folder: Path) -> None:
    with tmux(folder, columns) as session:
        session.type("timbal run till.py::clerk -p several; echo code $?", at="$")
        session.wait_for("question 1 of 3")
        session.type("maybe", at=">")
        session.wait_for("'maybe' is neither yes nor no")
        session.type("edit", at=">")
        session.type("Ada Lovelace", at='customer (text, Enter keeps "Ada"):')
        session.type("x", at="amount (a whole number, Enter keeps 300):")
        session.wait_for("'x' is no number")
        session.type("150", at="amount (a whole number, Enter keeps 300):")
        session.type("", at="note (text, Enter keeps null):")
        session.wait_for("Yes with these changes")
        screen = session.screen()
        assert '  customer: "Ada" → "Ada Lovelace"\n  amount: 300 → 150\n' in screen
        session.type("y", at=">")
        session.wait_for("question 2 of 3")
        session.type('edit {"amuont": 1}', at=">")
        session.wait_for("there is no argument 'amuont'")
        session.type("n", at=">")
        session.type("no receipt", at="Why? (text, optional):")
        session.wait_for("question 3 of 3")
        session.type("/skip", at=">")
        screen = session.wait_for("code 0")
        assert "It waits for an answer" in screen
        assert all(len(line) <= columns for line in screen.splitlines() if "timbal" not in line)
        session.type("clear; timbal resume $(timbal runs --limit 1 --json | grep -o '0[0-9a-f]*' | head -1)", at="$")
        session.wait_for("Send a letter?")
        session.type("y", at=">")
        screen = session.wait_for("run 0")
    assert "refunded 150 EUR to Ada Lovelace; true; Denied, and not done: no receipt." in " ".join(screen.split())
    lines = told(newest(folder), folder)
    edited = '! approved, with customer: "Ada" → "Ada Lovelace"; amount: 300 → 150'
    assert f"{edited}  by {getuser()} (terminal) after " in lines
    assert f"! denied: no receipt  by {getuser()} (terminal) after " in lines


def test_a_person_grants_a_conversation_and_is_not_asked_again(folder: Path) -> None:
    with terminal("run", "till.py::clerk", folder=folder) as person:
        person.type(b"250\n", at=b"> ")
        person.read(b"always in this conversation")
        person.type(b"always\n", at=b"> ")
        person.read(b"refunded 250 EUR")
        person.read(b"Done: ")
        person.type(b"400\n", at=b"> ")
        person.read(b"passed by the standing decision")
        person.read(b"Done: refunded 400 EUR")
        person.type(b"\n", at=b"> ")
        assert person.leave() == 0


def test_a_gate_alone_can_be_left_open_or_end_the_run(folder: Path) -> None:
    with terminal("run", "till.py::charges", "card=4242-4242", "amount=7", folder=folder, COLUMNS="200") as person:
        person.read(b"/skip leaves this open, /cancel ends the run")
        assert b"always" not in person.shown
        person.type(b"/skip\n", at=b"> ")
        assert person.leave() == 0
    (item,) = waiting(folder)
    with terminal("resume", item["run_id"], "--role", "finance", folder=folder) as person:
        person.type(b"/cancel not today\n", at=b"> ")
        assert person.leave() == 1
    assert b"charge was cancelled" in person.shown
    assert "! approval cancelled  " in told(item["run_id"], folder)


def test_a_decision_from_elsewhere_is_noticed_and_its_edit_stays_hidden(folder: Path) -> None:
    with terminal("run", "till.py::charges", "card=4242-4242", "amount=7", folder=folder) as person:
        person.read(b"ends")
        (item,) = waiting(folder)
        decision = json.dumps({"approved": True, "override_input": {"card": "5151-5151"}})
        words = ["--answer", f"{item['id']}={decision}", "--role", "finance", "--by", "grace"]
        assert piped("resume", item["run_id"], *words, folder=folder).returncode == 0
        person.read(b"grace (command line) approved, with other values of card at ")
        assert person.leave() == 0
    assert b"5151" not in person.shown
