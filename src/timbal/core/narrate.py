"""Facts as the events that tell them."""

from __future__ import annotations

from typing import Any

from ..types.events import InteractionEvent
from .facts import Asked


def asked_event(fact: Asked) -> InteractionEvent:
    """The INTERACTION of a question: the same fields live, in `metadata` and in the inbox."""
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


def pause_output(fact: Asked) -> dict[str, Any]:
    """The output of a call that waits for this question (contract section 3, "Outputs")."""
    return {
        "interaction_id": fact.id,
        "suspension_id": fact.id,
        "status": "input_required",
        "kind": fact.name,
        "payload": fact.payload,
    }
