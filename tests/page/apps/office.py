"""What the tests of the chat serve: an assistant that does what it is told, and tools of each kind."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field

from timbal import Agent, Tool, suspend
from timbal.state import get_run_context
from timbal.testing import TestModel
from timbal.tools import ask_user, confirm
from timbal.types.content import ToolResultContent
from timbal.types.message import Message

HERE = Path()
HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(2)> \u202eevil\u202c zero\u200bwidth [go](javascript:alert(3))"
)
PLAN = """## The plan

1. Ask **which** database
2. Set it up with `setup()`

> It takes *a minute*. See [the manual](https://example.com/manual).
"""


async def until(name: str) -> None:
    """Wait until the test makes this file."""
    while not HERE.joinpath(name).exists():  # noqa: ASYNC110
        await asyncio.sleep(0.01)


async def look_up(topic: str) -> dict[str, Any]:
    """Look a topic up."""
    for page in (1, 2, 3):
        get_run_context().emit(f"page {page} of 3")
    if topic == "slow":
        await until("go")
    return {"topic": topic, "pages": 3}


def print_label(to: str) -> str:
    """Print a label."""
    raise ValueError("the printer has no paper")


def pay(amount: int, to: str) -> str:
    """Pay somebody."""
    return f"paid {amount} to {to}"


def use(name: str, **input: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": "", "name": name, "input": input}


def research(messages: Sequence[Message]) -> Any:
    if messages[-1].role == "tool":
        return "The market grows."
    return Message(
        "assistant",
        [use("look_up", topic="market"), use("ask_user", question="Which region?", options=["Europe", "Asia"])],
    )


def reply(messages: Sequence[Message]) -> Any:
    if messages[-1].role == "tool":
        said = " ".join(str(part.content) for part in messages[-1].content if isinstance(part, ToolResultContent))
        return f"Done: {said}"
    words = messages[-1].collect_text()
    thinking = {"type": "thinking", "thinking": f"They said: {words}"}
    text = {"type": "text", "text": PLAN}
    match words.split()[0]:
        case "Plan":
            return Message(
                "assistant",
                [thinking, text, use("ask_user", question="Which database?", options=["postgres", "mysql"])],
            )
        case "Everything":
            both = [use("confirm", action="Send the letters"), use("pay", amount=30, to="Ada")]
            return Message(
                "assistant",
                [
                    use("look_up", topic="prices"),
                    use("print_label", to="Bob"),
                    *both,
                    use("researcher", prompt="the market"),
                ],
            )
        case "Pay":
            return Message("assistant", [use("pay", amount=30, to="Ada")])
        case "Wait":
            return Message("assistant", [{"type": "text", "text": "This takes a while."}, use("look_up", topic="slow")])
        case "Hostile":
            return HOSTILE
        case "Fail":
            raise RuntimeError("the model is not there")
        case "Long":
            return "\n\n".join(f"Paragraph {n} of a long answer." for n in range(400))
        case "Many":
            return Message("assistant", [use("look_up", topic=f"topic {n}") for n in range(300)])
        case _:
            return f"You said: {words}"


class Address(BaseModel):
    street: str = Field(min_length=3, description="With the number")
    city: str


def ship(product: str, count: int, address: Address, speed: Literal["normal", "fast"] = "normal") -> str:
    """Ship a product to an address."""
    if count > 99:
        raise ValueError("we do not have so many")
    gift = suspend({"question": "Is it a gift?"}, response_type=bool)
    return f"{count} {product} go to {address.city}{' as a gift' if gift else ''}"


def greet() -> str:
    """Greet whoever is there."""
    return f"Hello, {ask_user('Who are you?')}"


async def tell(words: int) -> AsyncIterator[Any]:
    """Tell a story."""
    for n in range(words):
        yield f"word{n} "


researcher: Agent[Any] = Agent(
    "researcher", TestModel(handler=research, chunk_size=4), [look_up, ask_user], description="Looks into things."
)
assistant: Agent[Any] = Agent(
    "assistant",
    TestModel(handler=reply, chunk_size=7),
    [
        ask_user,
        confirm,
        look_up,
        print_label,
        researcher,
        Tool(pay, requires_approval=True, approval_prompt="Pay this?"),
    ],
    description="Helps in the office: asks, looks things up, pays.",
    examples=["Plan a database", "Everything at once", "Pay Ada", "Never shown"],
)
ship_it = Tool(ship, name="ship")
greet_them = Tool(greet, name="greet")
tell_it = Tool(tell, name="tell")
