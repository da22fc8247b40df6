"""What somebody types or gives as a decision about a gate, and how decisions are told."""

from typing import Any

import pytest

from timbal.cli.answers import understand
from timbal.cli.decisions import check_edit, decision_words, edit_typed, editable, is_decision, with_edit
from timbal.cli.fields import Unfit
from timbal.cli.words import LONGEST, words_of
from timbal.core.edits import changes
from timbal.types.events import ApprovalEvent

SCHEMA = {
    "type": "object",
    "properties": {"to": {"type": "string"}, "amount": {"type": "integer", "maximum": 500}, "card": {"type": "string"}},
    "required": ["to", "amount", "card"],
    "additionalProperties": False,
}
INPUT = {"to": "Ada", "amount": 300, "card": "[redacted]"}


def gate(*, grantable: bool = True, **more: Any) -> ApprovalEvent:
    fields = {"input": INPUT, "input_schema": SCHEMA, "prompt": None, "description": None, "preview": None, **more}
    return ApprovalEvent(
        run_id="1" * 32,
        parent_run_id=None,
        path="a.b",
        call_id="2" * 32,
        parent_call_id=None,
        t0=0,
        approval_id="3" * 32,
        runnable_path="a.b",
        runnable_name="b",
        runnable_type="Tool",
        tool_call_id=None,
        kind="approval",
        ui=None,
        expires_at=None,
        metadata={"approval": {"grantable": grantable, "audience": None, "digest": ""}},
        **fields,
    )


STANDING = {"approved": True, "scope": "conversation"}
UNDERSTOOD: dict[str, tuple[str, Any]] = {
    "yes": ("Yes", True),
    "a y": (" y ", True),
    "approve": ("approve", True),
    "no": ("no", False),
    "deny": ("deny", False),
    "no with a reason": ("no: too much", {"approved": False, "reason": "too much"}),
    "deny with a reason": ("deny no receipt", {"approved": False, "reason": "no receipt"}),
    "always": ("always", STANDING),
    "always, so many times": ("Always 3", {**STANDING, "max_uses": 3}),
    "a decision as JSON": ('{"approved": false, "reason": "no"}', {"approved": False, "reason": "no"}),
}


@pytest.mark.parametrize(("text", "decision"), UNDERSTOOD.values(), ids=UNDERSTOOD)
def test_a_decision_is_understood(text: str, decision: Any) -> None:
    understood = understand(gate(), text)
    assert (understood, type(understood)) == (decision, type(decision))


ODD = [
    "",
    "maybe",
    "yes, but less",
    "1",
    "0",
    "null",
    "[true]",
    '"yes"',
    "on",
    "ok",
    "always 0",
    "always -1",
    "always x",
]


@pytest.mark.parametrize("text", ODD)
def test_what_is_no_decision_is_told(text: str) -> None:
    with pytest.raises(Unfit):
        understand(gate(), text)


def test_always_is_refused_where_the_gate_takes_no_standing_decision() -> None:
    with pytest.raises(Unfit, match="one call only"):
        understand(gate(grantable=False), "always")


def test_an_edit_goes_with_an_approval_and_with_no_denial() -> None:
    assert with_edit(True, {"amount": 1}) == {"approved": True, "override_input": {"amount": 1}}
    assert with_edit(STANDING, {"amount": 1}) == {**STANDING, "override_input": {"amount": 1}}
    assert with_edit(False, {"amount": 1}) is False
    assert with_edit(True, {}) is True


def test_an_edit_is_what_differs_and_a_hidden_value_that_is_given_always_does() -> None:
    edit = check_edit(gate(), {"to": "Ada", "amount": 150, "card": "4242"})
    assert edit == {"amount": 150, "card": "4242"}
    assert [tuple(change) for change in changes(INPUT, edit)] == [
        ("amount", 300, 150),
        ("card", "[redacted]", "[redacted]"),
    ]
    assert [name for name, _ in editable(gate())] == ["to", "amount", "card"]


UNFIT: dict[str, tuple[str, str]] = {
    "no JSON": ("amount=1", "an edit is a JSON object"),
    "no object": ("[1]", "an edit is a JSON object"),
    "another argument": ('{"amuont": 1}', "there is no argument 'amuont'; they are: to, amount, card"),
    "another type": ('{"amount": "1"}', "amount: "),
    "too much": ('{"amount": 501}', "amount: 501 is greater than the maximum of 500"),
    "the placeholder": ('{"card": "[redacted]"}', "leave the argument out"),
}


@pytest.mark.parametrize(("text", "problem"), UNFIT.values(), ids=UNFIT)
def test_an_edit_that_can_not_be_made_is_told(text: str, problem: str) -> None:
    with pytest.raises(Unfit) as caught:
        check_edit(gate(), edit_typed(gate(), text))
    assert problem in str(caught.value)


TOLD: dict[str, tuple[Any, str]] = {
    "yes": (True, "approved"),
    "no": (False, "denied"),
    "why": ({"approved": False, "reason": "no receipt"}, "denied: no receipt"),
    "an edit": (
        {"approved": True, "override_input": {"amount": 150}, "comment": "half"},
        "approved, with amount: 300 → 150: half",
    ),
    "a hidden edit": (
        {"approved": True, "override_input": {"card": "[redacted]"}},
        'approved, with card: "[redacted]" → another value',
    ),
    "always": ({**STANDING, "max_uses": 1}, "approved for this conversation, 1 more call at most"),
}


@pytest.mark.parametrize(("decision", "words"), TOLD.values(), ids=TOLD)
def test_a_decision_is_told(decision: Any, words: str) -> None:
    assert decision_words(decision, INPUT) == words


def test_an_answer_is_taken_for_a_decision_only_if_it_is_one() -> None:
    assert is_decision({"approved": True, "reason": "x"})
    assert not is_decision({"approved": "yes"})
    assert not is_decision({"approved": True, "size": "L"})
    assert not is_decision(True)


def test_a_text_among_the_arguments_can_not_pass_for_another_argument() -> None:
    shown = words_of(gate(input={"to": "Ada\n  amount: 1", "amount": 300}, prompt="Pay?\n  input:\n    amount: 1"))
    assert shown.headline == "Pay? input: amount: 1"
    assert shown.details == [(1, "input:"), (2, "to:"), (3, "│ Ada"), (3, "│   amount: 1"), (2, "amount: 300")]


def test_what_a_terminal_would_not_show_is_shown_escaped() -> None:
    shown = words_of(gate(input={"to": "A\u200bda\u202e\x1b[2J\nx"}))
    assert shown.details == [(1, "input:"), (2, 'to: "A\\u200bda\\u202e\\u001b[2J\\nx"')]


def test_of_a_huge_value_the_beginning_is_shown_and_how_much_is_left_out() -> None:
    (_, line) = words_of(gate(input={"to": "x" * (LONGEST + 9)})).details[1]
    assert "x… and 11 characters more" in line


def test_a_gate_that_was_asked_before_says_what_changed() -> None:
    event = gate()
    about = {**event.metadata["approval"], "reopened": {"reason": "the code was changed", "changed": ["amount"]}}
    again = ApprovalEvent(**{**event.__dict__, "metadata": {"approval": about}})
    assert words_of(again).details[0] == (1, "Asked again: the code was changed (amount)")
