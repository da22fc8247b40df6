"""Facts as the events that tell them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..types.events import ApprovalEvent, InteractionEvent
from ..types.run_status import APPROVAL_REQUIRED, INPUT_REQUIRED, RunStatus
from .facts import AnyAsked, Gated
from .ledger import Question


def asked_event(fact: AnyAsked) -> InteractionEvent | ApprovalEvent:
    """The INTERACTION or APPROVAL of a question: the same fields live, in `metadata` and in the inbox."""
    if isinstance(fact, Gated):
        return _gated_event(fact)
    return InteractionEvent._of(
        {
            "type": "INTERACTION",
            "run_id": fact.run_id,
            "parent_run_id": fact.parent_run_id,
            "path": fact.path,
            "call_id": fact.call_id,
            "parent_call_id": fact.parent_call_id,
            "t0": fact.at,
            "interaction_id": fact.id,
            "kind": fact.name,
            "runnable_path": fact.path,
            "runnable_name": fact.runnable,
            "runnable_type": fact.runnable_type,
            "tool_call_id": fact.tool_call_id,
            "payload": fact.payload,
            "response_schema": fact.schema,
            "expires_at": fact.expires_at,
            "audience": fact.audience,
        }
    )


def _gated_event(fact: Gated) -> ApprovalEvent:
    about: dict[str, Any] = {"digest": fact.digest, "audience": fact.audience, "grantable": fact.grantable}
    if fact.reopened is not None:
        about["reopened"] = fact.reopened
    return ApprovalEvent._of(
        {
            "type": "APPROVAL",
            "run_id": fact.run_id,
            "parent_run_id": fact.parent_run_id,
            "path": fact.path,
            "call_id": fact.call_id,
            "parent_call_id": fact.parent_call_id,
            "t0": fact.at,
            "approval_id": fact.id,
            "runnable_path": fact.path,
            "runnable_name": fact.runnable,
            "runnable_type": fact.runnable_type,
            "tool_call_id": fact.tool_call_id,
            "input": fact.payload,
            "input_schema": fact.schema,
            "prompt": fact.prompt,
            "description": fact.description,
            "kind": fact.name,
            "ui": fact.ui,
            "preview": fact.preview,
            "expires_at": fact.expires_at,
            "metadata": {**(fact.metadata or {}), "approval": about},
        }
    )


def pending_metadata(waiting: Iterable[Question]) -> dict[str, Any]:
    """What an OUTPUT's metadata says of everything that waits for a person."""
    listed: dict[str, Any] = {}
    for question in waiting:
        name = "pending_approvals" if isinstance(question.asked, Gated) else "pending_interactions"
        listed.setdefault(name, []).append(asked_event(question.asked).__dict__)
    return listed


def pause_status(fact: AnyAsked) -> RunStatus:
    """The status of a call that waits for this question."""
    return APPROVAL_REQUIRED if isinstance(fact, Gated) else INPUT_REQUIRED


def pause_output(fact: AnyAsked) -> dict[str, Any]:
    """The output of a call that waits for this question (contract section 3, "Outputs")."""
    if isinstance(fact, Gated):
        return {"approval_id": fact.id, "status": "approval_required", "prompt": fact.prompt}
    return {
        "interaction_id": fact.id,
        "suspension_id": fact.id,
        "status": "input_required",
        "kind": fact.name,
        "payload": fact.payload,
    }
