"""What the scenarios share: handlers of every kind, listeners, scripted turns of a model, other processes."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.stores.urls import store_at
from timbal import Tool
from timbal.stores.base import BaseStore
from timbal.testing import TestModel
from timbal.types.content import ToolResultContent, ToolUseContent
from timbal.types.events import Event, InteractionEvent, OutputEvent, validate_event
from timbal.types.message import Message

ROOT = Path(__file__).parents[2]

#: Every kind of handler that a plain function can be made into.
KINDS = ["sync", "inline", "async", "generator", "inline generator", "async generator"]


def tool(kind: str, body: Callable[[], str], store: BaseStore, name: str = "handler") -> Tool[..., Any]:
    """A tool whose handler, of this kind, gives what `body` gives."""

    def plain() -> str:
        return body()

    async def asynchronous() -> str:
        return body()

    def generator() -> Iterator[str]:
        yield body()

    async def asynchronous_generator() -> AsyncIterator[str]:
        yield body()

    handler: dict[str, Callable[..., Any]] = {
        "sync": plain,
        "inline": plain,
        "async": asynchronous,
        "generator": generator,
        "inline generator": generator,
        "async generator": asynchronous_generator,
    }
    return Tool(handler[kind], name=name, blocking=not kind.startswith("inline"), store=store)


def tool_of(handler: Callable[..., Any], **options: Any) -> Tool[..., Any]:
    """A tool of any handler: called with whatever a test likes to send."""
    return Tool(handler, **options)


async def listen(handle: Any) -> tuple[list[Event], OutputEvent]:
    """All events of a run, and its OUTPUT."""
    events = [event async for event in handle]
    return events, await handle.collect()


def asked(events: Sequence[Event]) -> list[InteractionEvent]:
    """The questions among events, in order."""
    return [event for event in events if isinstance(event, InteractionEvent)]


def told(events: Sequence[Event]) -> list[tuple[str, str]]:
    """Types and paths of events, in order."""
    return [(event.type, event.path) for event in events]


def ids(output: OutputEvent) -> list[str]:
    """The ids of what an output says is pending."""
    return [event.interaction_id for event in output.pending if isinstance(event, InteractionEvent)]


def by_call(output: OutputEvent) -> dict[str | None, str]:
    """The ids of what an output says is pending, by tool-call id: parallel calls ask in any order."""
    return {event.tool_call_id: event.interaction_id for event in output.pending if isinstance(event, InteractionEvent)}


def answers(output: OutputEvent, *values: Any) -> dict[str, Any]:
    """A resume that gives these values to what is pending, in order."""
    return dict(zip(ids(output), values, strict=True))


def stands(output: OutputEvent) -> tuple[str, str | None]:
    """Code and reason of an output."""
    return output.status.code, output.status.reason


def use(name: str, id: str = "", **arguments: Any) -> ToolUseContent:
    """A model's call of a tool."""
    return ToolUseContent(id=id or f"call_{name}", name=name, input=arguments)


def script(*replies: str | Message) -> TestModel:
    """A model that answers turn by turn."""
    return TestModel(replies)


def turn(*parts: Any) -> Message:
    """A model's reply."""
    return Message("assistant", list(parts))


def results(messages: Sequence[Message]) -> dict[str, Any]:
    """The tool results of a transcript by the id of their call."""
    return {
        part.id: part.content for message in messages for part in message.content if isinstance(part, ToolResultContent)
    }


def assert_valid(messages: Sequence[Message]) -> None:
    """A provider accepts it: each tool call has exactly one result, in the message after it, and ids are unique."""
    seen: set[str] = set()
    waiting: list[str] = []
    for message in messages:
        given = [part.id for part in message.content if isinstance(part, ToolResultContent)]
        assert sorted(given) == sorted(waiting), f"{message.role}: results {given} for calls {waiting}"
        waiting = [part.id for part in message.content if isinstance(part, ToolUseContent)]
        assert all(waiting), "a tool call without an id"
        assert not seen.intersection(waiting), "an id was used before"
        assert len(set(waiting)) == len(waiting), "an id was used twice"
        seen.update(waiting)
    assert not waiting, f"no results for {waiting}"


def output_text(output: OutputEvent) -> str:
    """The text that an agent answered with."""
    assert isinstance(output.output, Message)
    return output.output.collect_text()


# -- other processes ---------------------------------------------------------------------------------------------------


def in_another_process(program: str, url: str, **call: Any) -> tuple[list[Event], OutputEvent]:
    """Run a program of `programs/` with the store at `url` and this call; gives its events and OUTPUT."""
    command = [sys.executable, "-m", f"tests.scenarios.programs.{program}", url]
    done = subprocess.run(command, cwd=ROOT, input=json.dumps(call), capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    events = [validate_event(line) for line in done.stdout.splitlines()]
    output = events[-1]
    assert isinstance(output, OutputEvent)
    return events, output


def play(handler: Callable[..., Any], **options: Any) -> None:
    """What a program does: run the call that comes on stdin, and write its events."""
    url, call = sys.argv[1], json.load(sys.stdin)

    async def main() -> None:
        async with store_at(url) as store:
            runnable = tool_of(handler, store=store, **options)
            async for event in runnable(**call):
                print(event.model_dump_json())

    asyncio.run(main())
