"""What the scenarios about effects, recognition and answers share."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any
from uuid import uuid4

from tests.scenarios.conftest import World
from timbal import Tool, step, suspend
from timbal.types.content import TextContent, ToolUseContent
from timbal.types.events import InteractionEvent, OutputEvent
from timbal.types.message import Message

__all__ = [
    "Handler",
    "Log",
    "World",
    "answers",
    "ask",
    "asked",
    "async_step",
    "go_on",
    "sync_step",
    "tool",
    "tool_calls",
    "tool_results",
    "turns_so_far",
]

Log = list[str]
Handler = Callable[..., Any]


def ask(question: str) -> Any:
    """Stop and ask; the question can be found again by its text, see `asked`."""
    return suspend({"q": question})


def asked(out: OutputEvent) -> dict[str, str]:
    """`{question: id}` of what a run waits for; questions are told apart by their text."""
    ids = {item.payload["q"]: item.interaction_id for item in out.pending if isinstance(item, InteractionEvent)}
    assert len(ids) == len(out.pending), "two questions have the same text, or something else is pending"
    return ids


def answers(out: OutputEvent, by_question: Mapping[str, Any]) -> dict[str, Any]:
    """`{id: answer}` from `{question: answer}`."""
    ids = asked(out)
    return {ids[question]: answer for question, answer in by_question.items()}


async def go_on(runnable: Any, out: OutputEvent, by_question: Mapping[str, Any]) -> OutputEvent:
    """Answer these of the questions that `out` waits for, and run on."""
    result: OutputEvent = await runnable(parent_id=out.run_id, resume=answers(out, by_question)).collect()
    return result


def tool_calls(*calls: tuple[str, dict[str, Any]], ids: list[str] | None = None) -> Message:
    """A model's message that asks for these tools, with words and ids that are never the same."""
    ids = ids if ids is not None else [f"call_{uuid4().hex}" for _ in calls]
    parts = [ToolUseContent(one, name, arguments) for one, (name, arguments) in zip(ids, calls, strict=True)]
    return Message("assistant", [TextContent(f"Let me see ({uuid4().hex})."), *parts], "tool_use")


def tool(handler: Handler, **more: Any) -> Tool[..., Any]:
    """A `Tool` whose types don't matter."""
    made: Tool[..., Any] = Tool(handler, **more)
    return made


def turns_so_far(messages: Any) -> int:
    """How many replies of the model a conversation holds."""
    return sum(message.role == "assistant" for message in messages)


def tool_results(messages: Any) -> list[Any]:
    """The contents of all tool results in a conversation, in order."""
    return [part.content for message in messages if message.role == "tool" for part in message.content]


def sync_step(log: Log) -> Callable[[str], str]:
    @step
    def effect(what: str) -> str:
        log.append(what)
        return what

    return effect


def async_step(log: Log) -> Handler:
    @step
    async def effect(what: str) -> str:
        await asyncio.sleep(0)
        log.append(what)
        return what

    return effect
