"""A resume mapping against a ledger: what is to be settled, or why it is refused. Nothing is changed here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

from ..types.approval import Principal, is_cancel
from ..types.json_value import json_value
from .facts import Gated, Settled
from .gates import SchemaCheck, decision_of, is_late, public_decision, public_problems
from .ledger import Ledger, Question

ReceiptState = Literal[
    "accepted", "already_settled", "unknown", "invalid", "expired", "superseded", "cancelled", "forbidden"
]

#: What a refused id means, for the message that says it.
_WHY = {
    "unknown": "was never asked in this execution",
    "invalid": "has an answer that is not what was asked for",
    "expired": "has expired",
    "superseded": "was superseded by a new message",
    "cancelled": "was cancelled",
    "forbidden": "may not be answered by this person",
}


class Accept(NamedTuple):
    """New answers to commit, `{id: value}`; `same` ids had been answered with the same value before."""

    new: dict[str, Any]
    same: list[str]
    cancel: bool
    cancel_reason: str | None


class Refuse(NamedTuple):
    """The resume is refused as a whole."""

    message: str
    receipts: list[dict[str, Any]]


class Claimed(NamedTuple):
    """Somebody else was faster, with another answer; `reason` is that of the status."""

    receipts: list[dict[str, Any]]
    reason: str


Plan: TypeAlias = Accept | Refuse | Claimed


def plan(ledger: Ledger, resume: Mapping[Any, Any], by: Principal | None, now: int, check: SchemaCheck) -> Plan:
    """Decide what a resume does at the time `now` (contract section 6, "Check")."""
    judged: list[dict[str, Any]] = []
    new: dict[str, Any] = {}
    same: list[str] = []
    cancel, reason = False, None
    for id, given in resume.items():
        question = ledger.questions.get(id) if isinstance(id, str) else None
        one = _judge(question, id, given, by, now, check)
        judged.append(one)
        if one["state"] == "accepted":
            if is_cancel(given):
                cancel, reason = True, given.get("reason") if isinstance(given, dict) else given.reason
            else:
                new[id] = one["value"]
        elif one["state"] in ("already_settled", "cancelled") and one["same_value"]:
            same.append(id)
    refused = [r for r in judged if r["state"] in _WHY and r["id"] not in same and "ignored" not in r]
    if refused:
        what = "; ".join(f"{r['id']} {_WHY[r['state']]}" + _details(r) for r in refused)
        return Refuse(f"refused, nothing has changed: {what}", _without_accepted(judged))
    lost = [r["id"] for r in judged if r["state"] == "already_settled" and not r["same_value"]]
    if lost:
        gated = isinstance(ledger.questions[lost[0]].asked, Gated)
        return Claimed(
            _without_accepted(judged), "approval_already_claimed" if gated else "interaction_already_claimed"
        )
    return Accept(new, same, cancel, reason)


def receipt(question: Question, state: str, same_value: bool | None) -> dict[str, Any]:
    """What became of one id, from its settlement."""
    settled, asked = question.settled, question.asked
    value = settled.value if settled else None
    return {
        "id": asked.id,
        "state": state,
        "run_id": settled.run_id if settled else None,
        "same_value": same_value,
        "value": public_decision(asked, value) if isinstance(asked, Gated) else value,
        "by": settled.by if settled else None,
        "at": settled.at if settled else None,
    }


def receipts(ledger: Ledger, resume: Mapping[str, Any], done: Mapping[str, Settled]) -> list[dict[str, Any]]:
    """What became of each id of an accepted resume; `done`: what was settled by it.

    An answer beside a `Cancel` is not accepted: the execution is over, and its question is cancelled with the others.
    """
    told = []
    for id, given in resume.items():
        fact = done.get(id)
        if fact is None:
            question = ledger.questions[id]
            told.append(_ignored(id) if question.settled is None else receipt(question, "already_settled", True))
            continue
        question = Question(ledger.questions[id].asked, fact)
        lost = fact.state == "cancelled" and not is_cancel(given)
        told.append(receipt(question, "cancelled" if lost else "accepted", not lost))
    return told


def _judge(
    question: Question | None, id: Any, given: Any, by: Principal | None, now: int, check: SchemaCheck
) -> dict[str, Any]:
    if question is None:
        return _blank(id, "unknown")
    if question.asked.audience is not None and (by is None or not by.matches(question.asked.audience)):
        return {**_blank(id, "forbidden"), "why": f"its audience is {', '.join(question.asked.audience)}"}
    settled, asked = question.settled, question.asked
    if settled is None and asked.expires_at is not None and asked.expires_at <= now:
        return _blank(id, "expired")
    cancelling = is_cancel(given)
    value: Any = None
    if not cancelling:
        value, problems = _value_of(given, question, check)
        if problems:
            return {**_blank(id, "invalid"), "errors": [{"pointer": p, "message": m} for p, m in problems]}
    if settled is None:
        if isinstance(value, dict) and isinstance(asked, Gated) and is_late(value, now):
            return _ignored(id)
        return {**_blank(id, "accepted"), "value": value}
    if settled.state == "answered":
        return receipt(question, "already_settled", not cancelling and _equal(value, settled.value))
    return receipt(question, settled.state, cancelling and settled.state == "cancelled")


def _value_of(given: Any, question: Question, check: SchemaCheck) -> tuple[Any, list[tuple[str, str]]]:
    """An answer as it is kept, and what is wrong with it."""
    asked = question.asked
    try:
        if isinstance(asked, Gated):
            value, problems = decision_of(given, asked, check)
            return value, public_problems(asked, value, problems)
        value = json_value(given, "answer")
    except TypeError as error:
        return None, [("", str(error))]
    if question.settled is not None or not asked.enforced or asked.schema is None:
        return value, []
    return value, check(asked.schema, value)


def _ignored(id: Any) -> dict[str, Any]:
    """A decision that was over before it came: its gate stays open, and the rest of the resume counts (section 5)."""
    return {**_blank(id, "expired"), "ignored": True, "why": "its expires_at is in the past; the gate is still open"}


def _equal(one: Any, other: Any) -> bool:
    """Equal as JSON: `True` is not `1`, but `1.0` is, since clients can't tell them apart."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_equal(v, other[k]) for k, v in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(_equal(a, b) for a, b in zip(one, other, strict=True))
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def _blank(id: Any, state: str) -> dict[str, Any]:
    return {"id": id, "state": state, "run_id": None, "same_value": None, "value": None, "by": None, "at": None}


def _without_accepted(receipts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The receipts of a resume of which nothing was kept: a legal answer in it has none, it is still pending."""
    return [r for r in receipts if r["state"] != "accepted"]


def _details(one: dict[str, Any]) -> str:
    if "errors" in one:
        return " (" + "; ".join(f"{e['pointer'] or 'the answer'}: {e['message']}" for e in one["errors"]) + ")"
    return f" ({one['why']})" if "why" in one else ""
