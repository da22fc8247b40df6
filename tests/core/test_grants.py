"""Standing decisions: the order of the records decides which uses count."""

from typing import Any

import pytest

from timbal.core.facts import Fact, Gated, Opened, Revoked, Settled, Used
from timbal.core.grants import applying, decides, standing_in
from timbal.core.ledger import Ledger

OPENED = Opened("run", "call", "clerk", "Agent", {}, 0)
GATE = Gated("/t0.0/gate", "a", "run", "clerk.refund", "c", "approval", "refund", {"amount": 1}, 1)


def use(n: int, key: str = "/t0.0") -> Used:
    return Used("a", f"execution {n}", key, n)


def ledger(decision: Any, *facts: Fact) -> Ledger:
    return Ledger.of([OPENED, GATE, Settled("a", "answered", 2, decision), *facts])


def granted(**more: Any) -> dict[str, Any]:
    return {"approved": True, "scope": "conversation", **more}


@pytest.mark.parametrize("decision", [True, False, {"approved": True, "reason": "fine"}])
def test_a_decision_about_one_call_does_not_stand(decision: Any) -> None:
    assert standing_in(ledger(decision)) == []


def test_the_first_uses_count_and_the_same_call_uses_it_once() -> None:
    found = ledger(granted(max_uses=2), use(1), use(1), use(2), use(1, "/t1.0"), use(3))
    (one,) = standing_in(found)
    assert one.grant.uses == [use(1), use(2)]
    assert not one.grant.holds(5)
    assert decides(found, "a", use(1)._replace(at=99))
    assert decides(found, "a", use(2))
    assert not decides(found, "a", use(1, "/t1.0"))
    assert not decides(found, "a", use(3))
    assert not decides(found, "b", use(1))


def test_no_use_counts_after_a_revocation_and_those_before_do() -> None:
    found = ledger(granted(), use(1), Revoked("a", 7), use(2), Revoked("a", 9))
    (one,) = standing_in(found)
    assert (one.grant.uses, one.grant.revoked_at) == ([use(1)], 7)
    assert not one.grant.holds(0)
    assert decides(found, "a", use(1))
    assert not decides(found, "a", use(2))


def test_denials_come_first_and_grants_only_where_the_gate_takes_them() -> None:
    other = Gated("/t0.1/gate", "b", "run", "clerk.refund", "c", "approval", "refund", {"amount": 2}, 1)
    denied = Settled("b", "answered", 2, {"approved": False, "scope": "conversation"})
    known = standing_in(ledger(granted(expires_at=10), other, denied))
    assert [one.gate.id for one in applying(known, "clerk.refund", True, None, 9)] == ["b", "a"]
    assert [one.gate.id for one in applying(known, "clerk.refund", False, None, 9)] == ["b"]
    assert [one.gate.id for one in applying(known, "clerk.refund", True, ["role:x"], 9)] == ["b"]
    assert [one.gate.id for one in applying(known, "clerk.refund", True, None, 10)] == ["b"]
    assert applying(known, "clerk.pay", True, None, 9) == []
