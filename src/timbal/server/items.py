"""Questions as the inbox shows them, whatever kind they are of."""

from __future__ import annotations

from typing import Any

from ..core.facts import Gated
from ..core.gates import public_decision
from ..core.ledger import Ledger, Question
from ..core.narrate import asked_event
from ..stores.listings import PendingItem, SettledItem
from .service import shown_labels


def pending_json(item: PendingItem) -> dict[str, Any]:
    """An open item: `event` is what the run emitted."""
    return {**item._asdict(), "labels": shown_labels(item.labels)}


def pending_of(ledger: Ledger, question: Question) -> dict[str, Any]:
    """The same, out of the ledger of its execution."""
    asked, opened = question.asked, ledger.root
    return {
        "id": asked.id,
        "run_id": opened.run_id,
        "kind": asked.name,
        "runnable": opened.name,
        "labels": shown_labels(opened.labels or {}),
        "asked_at": asked.at,
        "expires_at": asked.expires_at,
        "event": asked_event(asked),
    }


def settled_of(question: Question) -> dict[str, Any] | None:
    """What became of a question, `None` while it is open."""
    asked, settled = question.asked, question.settled
    if settled is None:
        return None
    return {
        "id": settled.id,
        "state": settled.state,
        "value": public_decision(asked, settled.value) if isinstance(asked, Gated) else settled.value,
        "by": settled.by,
        "at": settled.at,
        "channel": settled.channel,
        "next_run_id": settled.run_id,
    }


def settled_news(item: SettledItem) -> dict[str, Any]:
    """What listeners are told of an item that was settled."""
    return {
        "id": item.id,
        "run_id": item.run_id,
        "kind": item.kind,
        "runnable": item.runnable,
        "state": item.state,
        "by": item.by,
        "at": item.settled_at,
        "next_run_id": item.settled_by_run_id,
    }


def audience_of(event: Any) -> list[str] | None:
    """Who may answer: INTERACTIONs say so themselves, APPROVALs in their metadata."""
    if event.type == "APPROVAL":
        audience: list[str] | None = event.metadata["approval"]["audience"]
        return audience
    return event.audience  # type: ignore[no-any-return]
