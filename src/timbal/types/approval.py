"""What people decide, and who they are."""

from __future__ import annotations

from typing import Any, Literal

from .value import Value, constant

CANCEL_TYPE = "timbal.cancel"


class Cancel(Value):
    """Given instead of an answer: the execution ends, `cancelled / cancelled`, with this reason as its message."""

    type: Literal["timbal.cancel"] = constant("timbal.cancel")
    reason: str | None = None


class Default(Value):
    """`suspend(..., on_expiry=Default(value))`: the answer when nobody has answered in time."""

    value: Any = None


class Principal(Value):
    """Who answers: `sub` names the person, `roles` what they may do. Audiences hold `user:<sub>` and `role:<role>`."""

    sub: str
    roles: list[str] = []  # noqa: RUF012  (a default, never changed)

    def matches(self, audience: list[str] | None) -> bool:
        """Whether an item with this `audience` may be answered by this person; no audience means anybody."""
        return audience is None or f"user:{self.sub}" in audience or any(f"role:{r}" in audience for r in self.roles)


class ApprovalPolicyDecision(Value):
    """What an approval policy says of one call."""

    requires_approval: bool
    prompt: str | None = None
    description: str | None = None
    metadata: dict[str, Any] | None = None


class ApprovalResolution(Value):
    """A person's decision about one gated call (contract section 5)."""

    approved: bool
    reason: str | None = None
    override_input: dict[str, Any] | None = None
    scope: Literal["once", "conversation"] = "once"
    max_uses: int | None = None
    expires_at: int | None = None
    approver_id: str | None = None
    comment: str | None = None
    decided_at: int | None = None
    metadata: dict[str, Any] | None = None


def is_cancel(value: Any) -> bool:
    """Whether an answer is the reserved one, as an object or in its JSON form."""
    return isinstance(value, Cancel) or (isinstance(value, dict) and value.get("type") == CANCEL_TYPE)
