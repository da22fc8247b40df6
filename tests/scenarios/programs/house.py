"""What the answering scenarios run, made anew from a store and a log by whichever process needs it."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

from timbal import Agent, Tool, step, suspend
from timbal.testing import TestModel
from timbal.types.content import TextContent, ToolUseContent
from timbal.types.message import Message

Gate = Callable[[str], Awaitable[None]]


class Lines(Protocol):
    def append(self, line: str, /) -> None: ...


class FileLines:
    """A log that several processes write to."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def append(self, line: str, /) -> None:
        with self._path.open("a") as file:
            file.write(line + "\n")

    def all(self) -> list[str]:
        return self._path.read_text().splitlines() if self._path.exists() else []


async def no_gate(what: str) -> None:
    await asyncio.sleep(0)


def order(store: Any, log: Lines, gate: Gate = no_gate) -> Tool[..., Any]:
    """A tool with an effect before its question and one after it."""

    @step
    async def effect(what: str) -> str:
        log.append(what)
        return what

    async def order(amount: int = 10) -> str:
        await effect(f"reserve {amount}")
        answer = suspend({"q": "pay?"})
        await gate("pay")
        await effect(f"pay {amount}")
        log.append(f"handler went on with {answer}")
        return f"{amount}: {answer}"

    return Tool(order, store=store)


def four(store: Any, log: Lines, gate: Gate = no_gate) -> Agent[Any]:
    """An agent that asks four questions at once, through four calls of one tool."""

    async def inquire(about: str) -> str:
        answer = suspend({"q": about})
        await gate(about)
        log.append(f"inquired {about}")
        return f"{about}={answer}"

    def model(messages: Any) -> Any:
        replies = sum(message.role == "assistant" for message in messages)
        log.append(f"model {replies}")
        if replies == 0:
            uses = [ToolUseContent(f"call_{uuid4().hex}", "inquire", {"about": about}) for about in "abcd"]
            return Message("assistant", list(uses), "tool_use")
        return " ".join(part.content for message in messages if message.role == "tool" for part in message.content)

    return Agent("desk", TestModel(handler=model), [inquire], store=store)


def restless(log: Lines, name: str, calls: Callable[[str], list[tuple[str, dict[str, Any]]]]) -> TestModel:
    """A model that words everything differently each time, and asks for `calls(prompt)` in its first turn."""

    def model(messages: Any) -> Any:
        prompt = messages[0].collect_text()
        replies = sum(message.role == "assistant" for message in messages)
        log.append(f"{name} {prompt.split()[0]} {replies}")
        if replies == 0:
            uses = [ToolUseContent(f"call_{uuid4().hex}", tool, arguments) for tool, arguments in calls(prompt)]
            return Message("assistant", [TextContent(uuid4().hex), *uses], "tool_use")
        results = " ".join(part.content for message in messages if message.role == "tool" for part in message.content)
        return f"{uuid4().hex}: {results}"

    return TestModel(handler=model)


def worker(log: Lines) -> Agent[Any]:
    @step
    def effect(what: str) -> str:
        log.append(what)
        return what

    def carry_out(order: str) -> str:
        """Carry out an order, once a person agrees."""
        branch = order.split()[0]
        effect(f"before {branch}")
        answer = suspend({"q": branch})
        log.append(f"after {branch}")
        return f"{branch}={answer}"

    return Agent("worker", restless(log, "worker", lambda prompt: [("carry_out", {"order": prompt})]), [carry_out])


def middle(log: Lines, name: str) -> Agent[Any]:
    def calls(prompt: str) -> list[tuple[str, dict[str, Any]]]:
        return [("worker", {"prompt": f"{prompt.split()[0]} {uuid4().hex}"})]

    return Agent(name, restless(log, name, calls), [worker(log)])


def branches(store: Any, log: Lines, left: str = "team", right: str = "team") -> Agent[Any]:
    """An agent whose model calls two agents at once, each of which calls a worker, whose tool asks."""

    def calls(prompt: str) -> list[tuple[str, dict[str, Any]]]:
        return [(left, {"prompt": f"left {uuid4().hex}"}), (right, {"prompt": f"right {uuid4().hex}"})]

    return Agent(
        "root", restless(log, "root", calls), [middle(log, name) for name in sorted({left, right})], store=store
    )
