"""`plan()`: what a resume does to a ledger, as a table."""

from typing import Any, NamedTuple

import pytest

from timbal.core.answers import Accept, Claimed, Plan, Refuse, plan
from timbal.core.facts import Asked, Opened, Settled
from timbal.core.ledger import Ledger
from timbal.core.schema_check import check_against
from timbal.types.approval import Cancel, Principal

NOW = 1_000
ADA, BOB = Principal("ada", ["boss"]), Principal("bob", ["clerk"])
AUDIENCE = {"audience": ["role:boss", "user:eve"]}
INT = {"schema": {"type": "integer"}, "enforced": True}
ADVICE = {"schema": {"type": "integer"}}
DEEP = {
    "schema": {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "integer"}}}},
    "enforced": True,
}


def question(name: str, **more: Any) -> Asked:
    return Asked(f"/{name}", name, "run", "tool", "call", "suspend", "tool", {"q": name}, 1, **more)


def ledger_of(asked: dict[str, dict[str, Any]], settled: dict[str, tuple[str, Any]]) -> Ledger:
    facts: list[Any] = [Opened("run", "call", "tool", "Tool", {}, 1)]
    facts += [question(name, **more) for name, more in asked.items()]
    facts += [Settled(name, state, 5, value, "winner", ADA.model_dump()) for name, (state, value) in settled.items()]
    return Ledger.of(facts)


class Case(NamedTuple):
    """Questions, those that are settled, a resume, and the states of its receipts (or what is accepted)."""

    asked: dict[str, dict[str, Any]]
    settled: dict[str, tuple[str, Any]]
    resume: dict[Any, Any]
    by: Principal | None = None


ONE: dict[str, dict[str, Any]] = {"a": {}}
TWO: dict[str, dict[str, Any]] = {"a": {}, "b": {}}
NONE: dict[str, tuple[str, Any]] = {}
YES: dict[str, tuple[str, Any]] = {"a": ("answered", "yes")}

ACCEPTED: dict[str, tuple[Case, Accept]] = {
    "nothing": (Case(ONE, NONE, {}), Accept({}, [], False, None)),
    "one of one": (Case(ONE, NONE, {"a": "yes"}), Accept({"a": "yes"}, [], False, None)),
    "one of two": (Case(TWO, NONE, {"b": 1}), Accept({"b": 1}, [], False, None)),
    "both": (Case(TWO, NONE, {"b": 1, "a": 2}), Accept({"b": 1, "a": 2}, [], False, None)),
    "falsy answers": (Case(TWO, NONE, {"a": None, "b": False}), Accept({"a": None, "b": False}, [], False, None)),
    "a tuple as a list": (Case(ONE, NONE, {"a": (1, 2)}), Accept({"a": [1, 2]}, [], False, None)),
    "the same as before": (Case(ONE, YES, {"a": "yes"}), Accept({}, ["a"], False, None)),
    "the same and a new one": (Case(TWO, YES, {"a": "yes", "b": 1}), Accept({"b": 1}, ["a"], False, None)),
    "None again": (Case(ONE, {"a": ("answered", None)}, {"a": None}), Accept({}, ["a"], False, None)),
    "the same object with other order of keys": (
        Case(ONE, {"a": ("answered", {"x": 1, "y": [2]})}, {"a": {"y": [2], "x": 1}}),
        Accept({}, ["a"], False, None),
    ),
    "what fits the type": (Case({"a": INT}, NONE, {"a": 7}), Accept({"a": 7}, [], False, None)),
    "what breaks an advice": (Case({"a": ADVICE}, NONE, {"a": "x"}), Accept({"a": "x"}, [], False, None)),
    "a cancel": (Case(TWO, NONE, {"a": Cancel("stop")}), Accept({}, [], True, "stop")),
    "a cancel without a reason": (Case(TWO, NONE, {"a": Cancel()}), Accept({}, [], True, None)),
    "a cancel as JSON": (
        Case(TWO, NONE, {"a": {"type": "timbal.cancel", "reason": "stop"}}),
        Accept({}, [], True, "stop"),
    ),
    "a cancel of a typed question": (Case({"a": INT}, NONE, {"a": Cancel()}), Accept({}, [], True, None)),
    "a cancel and an answer": (Case(TWO, NONE, {"a": 1, "b": Cancel("stop")}), Accept({"a": 1}, [], True, "stop")),
    "a cancel again": (Case(ONE, {"a": ("cancelled", "stop")}, {"a": Cancel()}), Accept({}, ["a"], False, None)),
    "by a role of the audience": (Case({"a": AUDIENCE}, NONE, {"a": 1}, ADA), Accept({"a": 1}, [], False, None)),
    "by a user of the audience": (
        Case({"a": AUDIENCE}, NONE, {"a": 1}, Principal("eve")),
        Accept({"a": 1}, [], False, None),
    ),
    "just in time": (Case({"a": {"expires_at": NOW + 1}}, NONE, {"a": 1}), Accept({"a": 1}, [], False, None)),
}

REFUSED: dict[str, tuple[Case, dict[Any, str]]] = {
    "an unknown id": (Case(ONE, NONE, {"x": 1}), {"x": "unknown"}),
    "an unknown id beside a valid answer": (Case(ONE, NONE, {"a": 1, "x": 1}), {"x": "unknown"}),
    "an unknown id beside one that lost": (
        Case(ONE, YES, {"a": "no", "x": 1}),
        {"a": "already_settled", "x": "unknown"},
    ),
    "an unknown id beside the same answer": (
        Case(ONE, YES, {"a": "yes", "x": 1}),
        {"a": "already_settled", "x": "unknown"},
    ),
    "an id that is no text": (Case(ONE, NONE, {1: 1}), {1: "unknown"}),
    "an id that is None": (Case(ONE, NONE, {None: 1}), {None: "unknown"}),
    "a wrong type": (Case({"a": INT}, NONE, {"a": "x"}), {"a": "invalid"}),
    "a wrong type beside a valid answer": (Case({"a": INT, "b": {}}, NONE, {"b": 1, "a": "x"}), {"a": "invalid"}),
    "a wrong type beside a cancel": (Case({"a": INT, "b": {}}, NONE, {"b": Cancel(), "a": "x"}), {"a": "invalid"}),
    "no JSON": (Case(ONE, NONE, {"a": {1, 2}}), {"a": "invalid"}),
    "NaN": (Case(ONE, NONE, {"a": float("nan")}), {"a": "invalid"}),
    "two wrong ones": (Case({"a": INT, "b": INT}, NONE, {"a": "x", "b": None}), {"a": "invalid", "b": "invalid"}),
    "nobody for an audience": (Case({"a": AUDIENCE}, NONE, {"a": 1}), {"a": "forbidden"}),
    "somebody else for an audience": (Case({"a": AUDIENCE}, NONE, {"a": 1}, BOB), {"a": "forbidden"}),
    "a cancel by somebody else": (Case({"a": AUDIENCE}, NONE, {"a": Cancel()}, BOB), {"a": "forbidden"}),
    "somebody else asking for a settled one": (Case({"a": AUDIENCE}, YES, {"a": "yes"}, BOB), {"a": "forbidden"}),
    "too late": (Case({"a": {"expires_at": NOW}}, NONE, {"a": 1}), {"a": "expired"}),
    "after it has expired": (Case(ONE, {"a": ("expired", None)}, {"a": 1}), {"a": "expired"}),
    "the default after it has expired": (Case(ONE, {"a": ("expired", 1)}, {"a": 1}), {"a": "expired"}),
    "after it was superseded": (Case(ONE, {"a": ("superseded", None)}, {"a": 1}), {"a": "superseded"}),
    "after it was cancelled": (Case(ONE, {"a": ("cancelled", "stop")}, {"a": 1}), {"a": "cancelled"}),
    "a cancel after it was superseded": (Case(ONE, {"a": ("superseded", None)}, {"a": Cancel()}), {"a": "superseded"}),
}

CLAIMED: dict[str, tuple[Case, dict[Any, bool]]] = {
    "another value": (Case(ONE, YES, {"a": "no"}), {"a": False}),
    "another value beside a new one": (Case(TWO, YES, {"b": 1, "a": "no"}), {"a": False}),
    "another value beside the same one": (
        Case(TWO, {**YES, "b": ("answered", 1)}, {"b": 1, "a": "no"}),
        {"b": True, "a": False},
    ),
    "True for 1": (Case(ONE, {"a": ("answered", 1)}, {"a": True}), {"a": False}),
    "0 for False": (Case(ONE, {"a": ("answered", False)}, {"a": 0}), {"a": False}),
    "None for an empty text": (Case(ONE, {"a": ("answered", "")}, {"a": None}), {"a": False}),
    "True for 1 deep inside": (Case(ONE, {"a": ("answered", [{"x": 1}])}, {"a": [{"x": True}]}), {"a": False}),
    "a longer list": (Case(ONE, {"a": ("answered", [1])}, {"a": [1, 2]}), {"a": False}),
    "one key more": (Case(ONE, {"a": ("answered", {})}, {"a": {"x": None}}), {"a": False}),
    "a cancel of an answered one": (Case(ONE, YES, {"a": Cancel()}), {"a": False}),
}


def planned(case: Case) -> Plan:
    return plan(ledger_of(case.asked, case.settled), case.resume, case.by, NOW, check_against)


@pytest.mark.parametrize("name", ACCEPTED)
def test_what_is_accepted(name: str) -> None:
    case, expected = ACCEPTED[name]
    result = planned(case)
    assert result == expected
    assert repr(result) == repr(expected), "True is not 1 here"


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_as_a_whole(name: str) -> None:
    case, states = REFUSED[name]
    result = planned(case)
    assert isinstance(result, Refuse)
    assert {receipt["id"]: receipt["state"] for receipt in result.receipts} == states
    assert all(str(name) in result.message for name, state in states.items() if state != "already_settled")


@pytest.mark.parametrize("name", CLAIMED)
def test_what_comes_too_late_with_another_value(name: str) -> None:
    case, same = CLAIMED[name]
    result = planned(case)
    assert isinstance(result, Claimed)
    assert {receipt["id"]: receipt["same_value"] for receipt in result.receipts} == same
    for receipt in result.receipts:
        assert (receipt["state"], receipt["run_id"], receipt["at"]) == ("already_settled", "winner", 5)
        assert receipt["by"] == ADA.model_dump()
        assert receipt["value"] == case.settled[receipt["id"]][1]


@pytest.mark.parametrize("name", [*ACCEPTED, *REFUSED, *CLAIMED])
def test_planning_changes_nothing(name: str) -> None:
    case = (ACCEPTED.get(name) or REFUSED.get(name) or CLAIMED[name])[0]
    ledger = ledger_of(case.asked, case.settled)
    plan(ledger, case.resume, case.by, NOW, check_against)
    assert vars(ledger) == vars(ledger_of(case.asked, case.settled))
    assert planned(case) == planned(case) or "nan" in repr(case.resume)


POINTERS: dict[str, tuple[dict[str, Any], Any, list[str]]] = {
    "the answer itself": (INT, "x", [""]),
    "an item": (DEEP, {"a": [1, "x", 2]}, ["/a/1"]),
    "two items": (DEEP, {"a": ["x", 1, "y"]}, ["/a/0", "/a/2"]),
    "a key with a slash": (
        {"schema": {"type": "object", "additionalProperties": {"type": "integer"}}, "enforced": True},
        {"b/c": "x"},
        ["/b~1c"],
    ),
    "a key with a tilde": (
        {"schema": {"type": "object", "additionalProperties": {"type": "integer"}}, "enforced": True},
        {"b~c": "x"},
        ["/b~0c"],
    ),
}


@pytest.mark.parametrize("name", POINTERS)
def test_a_receipt_of_a_wrong_answer_says_where_by_json_pointer(name: str) -> None:
    more, value, pointers = POINTERS[name]
    result = planned(Case({"a": more}, NONE, {"a": value}))
    assert isinstance(result, Refuse)
    (receipt,) = result.receipts
    assert [error["pointer"] for error in receipt["errors"]] == pointers
    assert all(error["message"] for error in receipt["errors"])
