"""What the tests of the command line run: the file is copied into an empty folder, and found there."""

import time
from collections.abc import Sequence
from typing import Any, Literal

from pydantic import BaseModel, Field

from timbal import Agent, Tool, step, suspend
from timbal.testing import TestModel
from timbal.tools import ask_user, ask_user_multi, confirm
from timbal.types.content import ToolResultContent
from timbal.types.message import Message

LONG = "These words are long enough that a terminal of eighty columns has to break the line in between somewhere."


def use(text: str, **calls: dict[str, Any]) -> Message:
    uses = [{"type": "tool_use", "id": f"use-{name}", "name": name, "input": given} for name, given in calls.items()]
    return Message("assistant", [{"type": "text", "text": text}, *uses])


@step
def rent_server(app: str) -> str:
    print("this is printed by the tool")
    return f"{app}-db"


def set_up_database(app: str) -> str:
    """Set up a database."""
    server = rent_server(app)
    engine = ask_user("Which database should it be?", ["postgres", "mysql"])
    if not confirm(f"Drop the old database of {app}"):
        return f"{engine}://{server} beside the old one"
    return f"{engine}://{server}"


def reply(messages: Sequence[Message]) -> Any:
    last = messages[-1]
    if last.role == "tool":
        results = [part.content for part in last.content if isinstance(part, ToolResultContent)]
        return f"Done: {'; '.join(map(str, results))}. {LONG}"
    if "three" in last.collect_text():
        return use(
            "I have three questions.",
            ask_user={"question": "Which name?"},
            ask_user_multi={"question": "Which sizes?", "options": ["S", "M", "L"]},
            confirm={"action": "Send it"},
        )
    if "hello" in last.collect_text():
        return f"Hello! That was message {sum(message.role == 'user' for message in messages)}."
    return use(LONG, set_up_database={"app": "shop"})


agent: Agent[Any] = Agent(
    "assistant",
    model=TestModel(handler=reply, chunk_size=5),
    tools=[set_up_database, ask_user, ask_user_multi, confirm],
)


class Address(BaseModel):
    street: str = Field(min_length=3)
    code: str = Field(pattern=r"^\d{5}$", description="five digits")


class Order(BaseModel):
    size: Literal["S", "M", "L"]
    count: int = Field(ge=1, le=10)
    gift: bool = False
    note: str | None = None
    address: Address


def take_order(customer: str, priority: int = 1) -> dict[str, Any]:
    """Take an order."""
    order = suspend({"message": "What shall we send?", "customer": customer}, kind="order", response_type=Order)
    return {"customer": customer, "priority": priority, **order.model_dump()}


order = Tool(take_order)
kept_elsewhere = Tool(take_order, name="kept_elsewhere", store="sqlite:///own.db")
forgotten = Tool(take_order, name="forgotten", store="memory://")


def ask_finance(amount: int) -> bool:
    """Ask somebody who may spend it."""
    return bool(suspend({"question": f"Spend {amount}?"}, kind="spend", response_type=bool, audience=["role:finance"]))


finance = Tool(ask_finance)


def work_long(seconds: float) -> str:
    """Take a while."""
    print("it works")
    time.sleep(seconds)
    return "worked"


long = Tool(work_long)


def fail(reason: str) -> str:
    """Fail."""
    raise ValueError(reason)


failing = Tool(fail)

EVIL = "\x1b[31mred\x1b[0m \x1b]0;owned\x07\x1b[2J\x1b[Hgone \u202eback\u202c [red]markup[/red]\rover\x9b1m\x00\x07"


def evil_reply(messages: Sequence[Message]) -> Any:
    if messages[-1].role == "tool":
        return EVIL
    return use(EVIL, speak_evil={"text": EVIL}, ask_user={"question": EVIL, "options": [EVIL, "two\nlines"]})


def speak_evil(text: str) -> str:
    """Give it back."""
    return text


evil: Agent[Any] = Agent("evil", model=TestModel(handler=evil_reply), tools=[speak_evil, ask_user])
