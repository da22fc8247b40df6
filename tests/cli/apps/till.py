"""What the tests of gates at the command line run: a clerk whose refunds are gated, beside a question."""

from collections.abc import Sequence
from typing import Any

from timbal import Agent, Tool
from timbal.testing import TestModel
from timbal.tools import confirm
from timbal.types.content import ToolResultContent
from timbal.types.message import Message

EVIL = "\x1b[31mred\x1b[0m \x1b]0;owned\x07\x1b[2J\x1b[Hgone \u202eback\u202c\rover\x9b1m\x00\n  amount: 1\n\x07"


def refund(customer: str, amount: int, note: str | None = None) -> str:
    """Pay a customer back."""
    return f"refunded {amount} EUR to {customer}" + (f" ({note})" if note else "")


gate: dict[str, Any] = {
    "requires_approval": lambda amount: amount > 100,
    "approval_prompt": lambda customer, amount: f"Refund {amount} EUR to {customer}?",
    "approval_description": "It is paid at once.",
    "approval_preview": lambda amount: {"left in the till": 500 - amount},
}
refunds = Tool(refund, **gate)


def charge(card: str, amount: int) -> str:
    """Charge a card."""
    return f"charged {amount} EUR"


charges = Tool(
    charge,
    requires_approval=True,
    approval_prompt=lambda card, amount: f"Charge {amount} EUR to {card}?",
    approval_redact_keys=["card"],
    approval_grantable=False,
    approval_audience=["role:finance"],
)


def use(*calls: tuple[str, dict[str, Any]]) -> Message:
    uses = [{"type": "tool_use", "id": f"u{i}", "name": name, "input": given} for i, (name, given) in enumerate(calls)]
    return Message("assistant", uses)


def reply(messages: Sequence[Message]) -> Any:
    last = messages[-1]
    if last.role == "tool":
        return f"Done: {'; '.join(str(part.content) for part in last.content if isinstance(part, ToolResultContent))}."
    said = last.collect_text()
    if said == "several":
        ada, bob = ({"customer": name, "amount": 300} for name in ("Ada", "Bob"))
        return use(("refund", ada), ("confirm", {"action": "Send a letter"}), ("refund", bob))
    return use(("refund", {"customer": "Grace", "amount": int(said)}))


clerk: Agent[Any] = Agent("clerk", model=TestModel(handler=reply), tools=[refunds, confirm])


def speak(customer: str, amount: int) -> str:
    """Say nothing of it."""
    return "spoken"


def speak_evil(messages: Sequence[Message]) -> Any:
    if messages[-1].role == "tool":
        return "Done."
    return use(("speak", {"customer": EVIL, "amount": 5}))


evil: Agent[Any] = Agent(
    "evil",
    model=TestModel(handler=speak_evil),
    tools=[
        Tool(
            speak,
            requires_approval=True,
            approval_prompt=lambda customer: f"Speak to {customer}?",
            approval_description=EVIL,
            approval_preview=lambda: {EVIL: EVIL},
        )
    ],
)
