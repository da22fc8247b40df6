"""Questions of every kind, as the test words them."""

import asyncio
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, Field

from timbal import Agent, Tool, suspend
from timbal.testing import TestModel
from timbal.tools import ask_user
from timbal.types.message import Message


def _ask(
    payload: dict[str, Any],
    kind: str = "suspend",
    response_schema: dict[str, Any] | None = None,
    expires_in: float | None = None,
    audience: list[str] | None = None,
) -> Any:
    """Ask what the caller says."""
    return suspend(payload, kind=kind, response_schema=response_schema, expires_in=expires_in, audience=audience)


class Address(BaseModel):
    street: str = Field(min_length=3)
    city: str


def _refund(customer: str, amount: int, address: Address, card: str = "4242 4242") -> str:
    """Pay a customer back."""
    return f"refunded {amount} EUR to {customer} in {address.city}"


class Order(BaseModel):
    count: int = Field(ge=1, le=10)
    note: str


def _order() -> Any:
    """Ask for an order, which is checked at the door."""
    return suspend({"question": "What do you order?"}, kind="order", response_type=Order).model_dump()


async def _many(count: int) -> list[Any]:
    """Ask many things at once."""

    async def one(n: int) -> Any:
        return suspend({"question": f"Question {n}?", "options": ["yes", "no"]}, kind="ask_user", key=str(n))

    return await asyncio.gather(*(one(n) for n in range(count)))


def _say(messages: Any) -> Any:
    if messages[-1].role == "tool":
        return "Thank you."
    use = {"type": "tool_use", "id": "call-1", "name": "ask_user", "input": {"question": "Which colour?"}}
    return Message("assistant", [use])


ask = Tool(_ask, name="ask")
order = Tool(_order, name="order")
many = Tool(_many, name="many")
refund = Tool(
    _refund,
    name="refund",
    requires_approval=True,
    approval_prompt=lambda customer, amount: f"Refund {amount} EUR to {customer}?",
    approval_description="Refunds can't be taken back.",
    approval_preview=lambda amount: {"left in the till": 500 - amount},
    approval_ui={"shop": "Main Street"},
    approval_redact_keys=["card"],
)
once = Tool(_refund, name="once", requires_approval=True, approval_grantable=False)
assistant: Agent[Any] = Agent("assistant", TestModel(handler=_say), tools=[ask_user])


def _even(number: int) -> int:
    if number % 2:
        raise ValueError("an even number, please")
    return number


def _pair() -> Any:
    """Ask for a number that only this process can judge."""
    return suspend({"question": "How many?"}, response_type=Annotated[int, AfterValidator(_even)])


pair = Tool(_pair, name="pair")
