"""What the tests serve: the file is copied into an empty folder, and what it leaves there tells what has run."""

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

from timbal import Agent, Tool, step, suspend
from timbal.state import get_run_context
from timbal.testing import TestModel
from timbal.tools import ask_user
from timbal.types.message import Message

HERE = Path(__file__).parent


@step
def note(line: str) -> str:
    with (HERE / "effects").open("a") as file:
        file.write(line + "\n")
    return line


async def until(name: str) -> None:
    """Wait until the test makes this file."""
    while not (HERE / name).exists():  # noqa: ASYNC110
        await asyncio.sleep(0.01)


async def _pay(amount: int) -> dict[str, Any]:
    """Pay, when somebody says so."""
    note(f"asked for {amount}")
    answer = suspend({"amount": amount}, kind="pay", response_type=bool)
    note(f"paid {amount}" if answer else f"kept {amount}")
    return {"paid": answer, "amount": amount}


async def _count(to: int, waits: bool = False) -> AsyncIterator[str]:
    """Count, and wait in the middle where that is asked for."""
    for n in range(to):
        if waits and n == to // 2:
            await until("go")
        yield f"{n} "


async def _wait(name: str) -> str:
    """Wait for a file."""
    note(f"waits for {name}")
    await until(name)
    note(f"has {name}")
    return str(os.getpid())


def _fail(secret: str) -> str:
    raise ValueError("it went wrong")


def _spend(amount: int) -> bool:
    return bool(suspend({"amount": amount}, kind="spend", response_type=bool, audience=["role:finance"]))


def _late(seconds: float) -> str:
    return str(suspend({"question": "still there?"}, kind="late", expires_in=seconds))


class Address(BaseModel):
    street: str = Field(min_length=3)
    code: str = Field(pattern=r"^\d{5}$")


class Order(BaseModel):
    count: int = Field(ge=1, le=10)
    address: Address


def _order(customer: str, priority: int = 1) -> dict[str, Any]:
    order = suspend({"customer": customer}, kind="order", response_type=Order)
    return {"customer": customer, "priority": priority, **order.model_dump()}


def _who(name: str = "") -> dict[str, Any]:
    return dict(get_run_context().labels)


async def _slow_policy(amount: int) -> bool:
    await until("go")
    return amount > 10


def _refund(amount: int, card: str) -> str:
    return f"refunded {amount}"


def reply(messages: Sequence[Message]) -> Any:
    last = messages[-1]
    if last.role == "tool":
        return "Done, as you said."
    use = {"type": "tool_use", "id": "u1", "name": "ask_user", "input": {"question": "Which?", "options": ["a", "b"]}}
    return Message("assistant", [{"type": "text", "text": "One moment."}, use])


assistant: Agent[Any] = Agent("assistant", model=TestModel(handler=reply, chunk_size=3), tools=[ask_user])
pay = Tool(_pay, name="pay")
count = Tool(_count, name="count")
wait = Tool(_wait, name="wait")
fail = Tool(_fail, name="fail")
spend = Tool(_spend, name="spend")
late = Tool(_late, name="late")
order = Tool(_order, name="order")
who = Tool(_who, name="who")
refund = Tool(
    _refund,
    name="refund",
    requires_approval=True,
    approval_audience=["role:finance"],
    approval_redact_keys=["card"],
)
think = Tool(_refund, name="think", requires_approval=_slow_policy, approval_redact_keys=["card"])
