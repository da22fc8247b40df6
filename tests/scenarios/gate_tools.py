"""What the scenarios of gates share: a till that pays back, the agent that works it, and decisions about it."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import time_machine

from tests.scenarios.conftest import World
from tests.scenarios.tools import tool_of, turn, use
from timbal import Agent, Tool
from timbal.testing import TestModel
from timbal.types.content import ToolResultContent
from timbal.types.events import ApprovalEvent, Event, OutputEvent
from timbal.types.message import Message


class Till:
    """A refund behind a gate; `.paid` is what it did. Each `.tool()` is what a fresh process would have."""

    def __init__(self, world: World, **gate: Any) -> None:
        self.world = world
        self.gate = gate or {"requires_approval": True}
        self.paid: list[Any] = []
        self.failures = 0

    def refund(self, amount: int, to: str = "ada", notes: list[str] | None = None) -> str:
        """Pay back."""
        if self.failures:
            self.failures -= 1
            raise ConnectionError("the bank does not answer")
        self.paid.append((amount, to) if notes is None else (amount, to, notes))
        return f"refunded {amount} to {to}"

    def tool(self, **more: Any) -> Tool[..., Any]:
        return tool_of(self.refund, **{"store": self.world.cold(), **self.gate, **more})

    def agent(self, *replies: str | Message, handler: Any = None, **more: Any) -> Agent[Any]:
        model = TestModel(handler=handler) if handler is not None else TestModel(replies)
        options: dict[str, Any] = {"store": self.world.cold(), **more}
        return Agent("clerk", model, [tool_of(self.refund, **self.gate)], **options)


def later(seconds: float) -> Any:
    """While it lasts, it is so many seconds later."""
    return time_machine.travel(time.time() + seconds, tick=True)


def approvals(output: OutputEvent) -> list[ApprovalEvent]:
    """The approvals that an output waits for."""
    return [event for event in output.pending if isinstance(event, ApprovalEvent)]


def gate_of(output: OutputEvent) -> ApprovalEvent:
    """The one approval that an output waits for."""
    (event,) = approvals(output)
    assert output.status.reason == "approval_required"
    return event


async def decide(fresh: Callable[[], Any], paused: OutputEvent, decision: Any, **more: Any) -> OutputEvent:
    """Decide about the one thing that is pending, with fresh objects."""
    output: OutputEvent = await fresh()(parent_id=paused.run_id, resume={gate_of(paused).approval_id: decision}, **more)
    return output


def gates(events: Sequence[Event]) -> list[ApprovalEvent]:
    return [event for event in events if isinstance(event, ApprovalEvent)]


def calls(*amounts: int, **arguments: Any) -> Message:
    """A model's reply that asks for these refunds at once."""
    return turn(*(use("refund", f"call_{i}", amount=amount, **arguments) for i, amount in enumerate(amounts)))


def result_of(messages: Sequence[Message]) -> list[Any]:
    """What the model read of its tools, in order."""
    return [p.content for m in messages for p in m.content if isinstance(p, ToolResultContent)]
