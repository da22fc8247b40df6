"""Standing decisions: made about one call, they hold for later ones of that tool in the conversation.

A use is a fact in the execution where the decision was made, and so is a revocation: their order there decides, whoever
races whom.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..types.approval import Principal
from .facts import Gated, Settled, Used
from .gates import decision
from .ledger import Ledger


class Grant(NamedTuple):
    """A standing decision. `run_id`: the execution in which it was made; `uses`: later calls that it decided.

    `approved=False`: it denies. Times in Unix milliseconds.
    """

    id: str
    run_id: str
    path: str
    runnable: str
    approved: bool
    reason: str | None
    granted_at: int
    by: dict[str, Any] | None
    approver_id: str | None
    max_uses: int | None
    uses: list[Used]
    expires_at: int | None
    revoked_at: int | None
    revoked_by: dict[str, Any] | None

    def holds(self, now: int) -> bool:
        """Whether another call can be decided by it."""
        return (
            self.revoked_at is None
            and (self.expires_at is None or self.expires_at > now)
            and (self.max_uses is None or len(self.uses) < self.max_uses)
        )


class Standing(NamedTuple):
    """A standing decision with the facts that it was made by."""

    grant: Grant
    gate: Gated
    settled: Settled


def standing_in(ledger: Ledger) -> list[Standing]:
    """The standing decisions that were made in one execution."""
    made = []
    for gate, settled in ledger.gated_calls:
        if settled is not None and settled.state == "answered" and decision(settled).standing:
            made.append(Standing(_grant(ledger, gate, settled), gate, settled))
    return made


def _grant(ledger: Ledger, gate: Gated, settled: Settled) -> Grant:
    approved, fields = decision(settled)
    uses = ledger.gates.uses.get(gate.id, []) if ledger.gates is not None else []
    revoked = ledger.gates.revoked.get(gate.id) if ledger.gates is not None else None
    limit: int | None = fields.get("max_uses")
    return Grant(
        gate.id,
        ledger.root.run_id,
        gate.path,
        gate.runnable,
        approved,
        fields.get("reason"),
        settled.at,
        settled.by,
        fields.get("approver_id"),
        limit,
        uses[:limit],
        fields.get("expires_at"),
        revoked.at if revoked is not None else None,
        revoked.by if revoked is not None else None,
    )


def applying(
    known: Sequence[Standing], path: str, grantable: bool, audience: list[str] | None, now: int
) -> list[Standing]:
    """Those that may decide a call of this tool now: denials first."""
    found = [one for one in known if one.grant.path == path and one.grant.holds(now)]
    denials = [one for one in found if not one.grant.approved]
    if not grantable:
        return denials
    return denials + [one for one in found if one.grant.approved and _may_grant(one.grant.by, audience)]


def _may_grant(by: dict[str, Any] | None, audience: list[str] | None) -> bool:
    """Whether who granted it is one of those who may decide today."""
    return audience is None or (by is not None and Principal(by["sub"], by["roles"]).matches(audience))


def decides(ledger: Ledger, id: str, use: Used) -> bool:
    """Whether this use, which is recorded, is one that the standing decision allows."""
    return any(
        (used.execution_id, used.key) == (use.execution_id, use.key)
        for one in standing_in(ledger)
        if one.gate.id == id
        for used in one.grant.uses
    )
