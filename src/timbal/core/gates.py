"""The rules of approval gates: what a policy may say, what a decision is, and what it comes to (contract section 5)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

from ..types.approval import ApprovalPolicyDecision, ApprovalResolution
from ..types.json_value import json_value
from .facts import Gated, Passed, Settled
from .ids import GATE, child, digest
from .ledger import Ledger
from .redaction import REDACTED, hide_all, hide_keys, holds_placeholder, scrub, secrets

#: `[(JSON pointer, message), ...]`
Problems: TypeAlias = list[tuple[str, str]]
SchemaCheck: TypeAlias = Callable[[dict[str, Any], Any], Problems]

#: Among `Gated.redacts`: a callable of the tool's redacts, and any value may be one that it hides.
ANY_KEY = "*"

_ONLY = "only True, False, or a decision with approved=True or False, decides"


# -- what a policy says ------------------------------------------------------------------------------------------------


class Verdict(NamedTuple):
    """What a policy says of one call."""

    required: bool
    prompt: str | None = None
    description: str | None = None
    metadata: dict[str, Any] | None = None


def verdict_of(said: Any) -> Verdict:
    """The verdict in what a policy gave; raises `TypeError` for anything that is none."""
    if type(said) is bool:
        return Verdict(said)
    if isinstance(said, dict):
        said = ApprovalPolicyDecision(**said)
    if not isinstance(said, ApprovalPolicyDecision) or type(said.requires_approval) is not bool:
        raise TypeError(
            "a policy gives True, False, or an ApprovalPolicyDecision (or a dict of its fields), "
            f"with a bool as requires_approval, not {type(said).__name__}"
        )
    for name in ("prompt", "description"):
        text_or_none(getattr(said, name), f"a policy's {name}")
    metadata = json_value(said.metadata, "a policy's metadata")
    if metadata is not None and not isinstance(metadata, dict):
        raise TypeError("a policy's metadata is a dict")
    return Verdict(said.requires_approval, said.prompt, said.description, metadata)


def text_or_none(value: Any, what: str) -> str | None:
    """The value, if it is a text or None; raises `TypeError`."""
    if value is not None and not isinstance(value, str):
        raise TypeError(f"{what} is a str or None, not {type(value).__name__}")
    text: str | None = json_value(value, what)
    return text


def call_digest(name: str, arguments: dict[str, Any]) -> str:
    """What makes two calls the same one asked twice: the tool, and the arguments that it was called with."""
    return digest([name, arguments])


def gate_digest(path: str, input: dict[str, Any], preview: Any = None) -> str:
    """What a decision is bound to: which call runs, with what, and what a person was told would happen."""
    return digest({"path": path, "input": input, "preview": preview})


def gated_schema(schema: dict[str, Any], real: dict[str, Any], shown: dict[str, Any]) -> dict[str, Any]:
    """The schema of an input as anybody may see it: a default may be what is hidden."""
    open_to_all = {
        name: part if real.get(name) == shown.get(name) else {k: v for k, v in part.items() if k not in _VALUES}
        for name, part in schema.get("properties", {}).items()
    }
    return {**schema, "properties": open_to_all}


_VALUES = frozenset({"default", "examples", "const"})


# -- what a person decides ---------------------------------------------------------------------------------------------


def decision_of(given: Any, gate: Gated, check: SchemaCheck) -> tuple[dict[str, Any] | bool | None, Problems]:
    """A decision as it is kept, `True` and `False` for the plain ones, and what is wrong with it.

    Raises `TypeError` for what is no JSON.
    """
    if type(given) is bool:
        return given, []
    if isinstance(given, ApprovalResolution):
        given = given.model_dump()
    if not isinstance(given, Mapping):
        return None, [("", f"{_ONLY}, not {_brief(given)}")]
    given = {name: given[name] for name in given}
    if unknown := [name for name in given if name not in ApprovalResolution._fields]:
        names = ", ".join(ApprovalResolution._fields)
        return None, [
            (f"/{name}" if isinstance(name, str) else "", f"a decision has no such field; its fields are {names}")
            for name in unknown
        ]
    if type(given.get("approved")) is not bool:
        return None, [("/approved", f"{_ONLY}, not {_brief(given.get('approved'))}")]
    given = {n: v for n, v in given.items() if v is not None and not (n == "scope" and type(v) is str and v == "once")}
    fields: dict[str, Any] = json_value(given, "the decision")
    problems = _misfits(fields, gate)
    if fields["approved"] and not problems:
        problems = _edit_problems(fields.get("override_input"), gate, check)
    if not fields["approved"] or not fields.get("override_input", True):
        fields.pop("override_input", None)
    return (fields if len(fields) > 1 else bool(fields["approved"])), problems


def is_late(fields: dict[str, Any], now: int) -> bool:
    """Whether a decision is over: then it is ignored, and the gate stays open."""
    return "expires_at" in fields and bool(fields["expires_at"] <= now)


_KINDS: dict[str, type] = {
    "approved": bool,
    "reason": str,
    "override_input": dict,
    "scope": str,
    "max_uses": int,
    "expires_at": int,
    "approver_id": str,
    "comment": str,
    "decided_at": int,
    "metadata": dict,
}


def _misfits(fields: dict[str, Any], gate: Gated) -> Problems:
    problems = [
        (f"/{name}", f"{name} is {_KINDS[name].__name__}, not {_brief(value)}")
        for name, value in fields.items()
        if type(value) is not _KINDS[name]
    ]
    if problems:
        return problems
    if fields.get("scope", "conversation") != "conversation":
        return [("/scope", "scope is 'once' or 'conversation'")]
    if "scope" in fields and fields["approved"] and not gate.grantable:
        return [("/scope", "this gate takes decisions about one call only (approval_grantable=False)")]
    if fields.get("max_uses", 1) < 1:
        return [("/max_uses", "max_uses is at least 1")]
    return []


def _edit_problems(edit: dict[str, Any] | None, gate: Gated, check: SchemaCheck) -> Problems:
    if not edit:
        return []
    unknown = [name for name in edit if name not in gate.proposed]
    if unknown:
        names = ", ".join(gate.proposed) or "none"
        return [(f"/override_input/{name}", f"there is no argument {name!r}; they are: {names}") for name in unknown]
    if holds_placeholder(edit):
        return [("/override_input", f"{REDACTED!r} stands for a value that is not shown: leave it out to keep it")]
    schema = {k: v for k, v in (gate.schema or {}).items() if k not in ("required", "minProperties")}
    try:
        return [(f"/override_input{pointer}", message) for pointer, message in check(schema, edit)]
    except ValueError as error:
        return [("/override_input", f"the schema of the input can't check it: {error}")]


def _brief(value: Any) -> str:
    kind = type(value)
    if value is None or kind in (bool, float) or (kind is str and len(value) <= 40):
        return repr(value)
    return repr(value) if kind is int and value.bit_length() < 128 else f"a {kind.__name__}"


class Decision(NamedTuple):
    """A settled decision, read."""

    approved: bool
    fields: dict[str, Any]

    @property
    def edit(self) -> dict[str, Any]:
        return self.fields.get("override_input") or {}

    @property
    def standing(self) -> bool:
        return self.fields.get("scope") == "conversation"


def decision(settled: Settled) -> Decision:
    """What a settlement decides; anything but an answer (nobody decided in time, say) is a denial."""
    value = settled.value
    if settled.state != "answered":
        return Decision(False, {"reason": "nobody decided in time"} if settled.state == "expired" else {})
    return Decision(value, {}) if isinstance(value, bool) else Decision(value["approved"] is True, value)


# -- what it comes to --------------------------------------------------------------------------------------------------


def denied_before(ledger: Ledger, runnable: str, call: str, input: dict[str, Any]) -> tuple[Gated, Settled] | None:
    """The decision by which the same call was denied in this execution."""
    for gate, settled in ledger.gated_calls:
        if settled is None or gate.runnable != runnable or (gate.call != call and gate.proposed != input):
            continue
        if settled.state in ("answered", "expired") and not decision(settled).approved:
            return gate, settled
    return None


def changed_names(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """The arguments in which two inputs differ."""
    missing = object()
    return [n for n in {**before, **after} if before.get(n, missing) != after.get(n, missing)]


def denial_output(approval_id: str, reason: str | None) -> dict[str, Any]:
    """The output of a denied call (contract section 3, "Outputs")."""
    return {"approval_id": approval_id, "status": "approval_denied", "reason": reason}


# -- what may be shown -------------------------------------------------------------------------------------------------


def public_decision(gate: Gated, value: Any) -> Any:
    """A decision as anybody may see it: its edit is redacted as the input is."""
    if not isinstance(value, dict) or "override_input" not in value:
        return value
    return {**value, "override_input": public_edit(gate, value["override_input"])}


def public_edit(gate: Gated, edit: dict[str, Any]) -> dict[str, Any]:
    keys = gate.redacts or ()
    if ANY_KEY in keys:
        return hide_all(edit)
    hidden: dict[str, Any] = hide_keys(edit, keys)
    return hidden


def public_problems(gate: Gated, value: Any, problems: Problems) -> Problems:
    """What is wrong with a decision, without what the gate hides of the input, and would hide of the edit."""
    if not gate.redacts or not problems:
        return problems
    edit = value.get("override_input") if isinstance(value, dict) else None
    shown = public_edit(gate, edit) if isinstance(edit, dict) else None
    hidden = secrets(gate.proposed, gate.payload) + secrets(edit, shown)
    return [(pointer, scrub(message, hidden)) for pointer, message in problems]


def secrets_in(ledger: Ledger) -> list[Any]:
    """What the gates of this execution keep from everybody."""
    hidden: list[Any] = []
    for gate, settled in ledger.gated_calls:
        hidden += secrets(gate.proposed, gate.payload)
        if settled is not None and settled.state == "answered":
            edit = decision(settled).edit
            hidden += secrets(edit, public_edit(gate, edit))
    if ledger.gates is not None:
        for passed in ledger.gates.passed.values():
            if passed.input is not None and passed.shown is not None:
                hidden += secrets(passed.input, passed.shown)
    return hidden


def resolution(gate: Gated, settled: Settled) -> dict[str, Any]:
    """Who decided what about which call, and when: the audit of one decision."""
    made = decision(settled)
    shown = public_decision(gate, dict(made.fields))
    by = settled.by
    return {
        **{name: None for name in ApprovalResolution._fields if name != "override_input"},
        "scope": "once",
        **shown,
        "approved": made.approved,
        "approval_id": gate.id,
        "state": settled.state,
        "approver_id": shown.get("approver_id") or (by or {}).get("sub"),
        "decided_at": shown.get("decided_at", settled.at),
        "settled_at": settled.at,
        "by": by,
        "channel": settled.channel,
        "run_id": settled.run_id,
        "digest": gate.digest,
    }


def audit_of(ledger: Ledger, key: str) -> dict[str, Any] | None:
    """`metadata.approval` of the call at `key`, where a person has decided about it."""
    question, passed = ledger.question_at(child(key, GATE)), ledger.passed(key)
    if question is None or question.settled is None or not isinstance(question.asked, Gated):
        return None
    ran = passed and (passed.shown or passed.input or question.asked.payload)
    return audit(question.asked, question.settled, passed, question.asked.payload, ran)


def audit(
    gate: Gated, settled: Settled, passed: Passed | None, proposed: dict[str, Any], ran: dict[str, Any] | None
) -> dict[str, Any]:
    """`metadata.approval` of a call: the decision, what it was about, and what ran (both as anybody may see them)."""
    grant = {"grant": passed.grant} if passed is not None and passed.grant is not None else {}
    inputs = {"proposed_input": proposed, "effective_input": ran}
    return {"approval_id": gate.id, **grant, "resolution": {**resolution(gate, settled), **inputs}}
