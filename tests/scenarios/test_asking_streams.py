"""What a handler streamed before it asked is not streamed again (S10)."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from tests.scenarios.conftest import World
from tests.scenarios.tools import answers, asked, listen, output_text, results, stands, told, tool_of, turn, use
from timbal import Agent, Tool, suspend
from timbal.state import get_run_context
from timbal.stores.base import BaseStore
from timbal.testing import TestModel
from timbal.types.events import DeltaEvent, Event

PAUSED = ("cancelled", "input_required")
DONE = ("success", None)


def streamed(events: list[Event]) -> list[Any]:
    """What came in pieces."""
    items = [event.item for event in events if isinstance(event, DeltaEvent)]
    return [item["text_delta"] if item["type"] == "text_delta" else item["data"] for item in items]


def letter() -> Iterator[str]:
    yield "Dear "
    yield suspend({"question": "Who?"})
    yield ", "
    yield "yours "
    yield suspend({"question": "Signed?"})
    yield "."


async def asynchronous_letter() -> AsyncIterator[str]:
    for piece in letter():
        yield piece


def emitted_letter() -> str:
    pieces = []
    for piece in letter():
        get_run_context().emit(piece)
        pieces.append(piece)
    return "".join(pieces)


async def asynchronous_emitted_letter() -> str:
    return emitted_letter()


LETTERS: dict[str, dict[str, Any]] = {
    "generator": {"handler": letter},
    "inline generator": {"handler": letter, "blocking": False},
    "async generator": {"handler": asynchronous_letter},
    "emitting": {"handler": emitted_letter},
    "async emitting": {"handler": asynchronous_emitted_letter},
}


@pytest.mark.parametrize("kind", LETTERS)
async def test_s10_what_was_streamed_before_a_question_is_not_streamed_again(world: World, kind: str) -> None:
    def fresh() -> Tool[..., Any]:
        return Tool(**LETTERS[kind], name="letter", store=world.cold())

    events, output = await listen(fresh()())
    assert (stands(output), streamed(events)) == (PAUSED, ["Dear "])
    events, output = await listen(fresh()(parent_id=output.run_id, resume=answers(output, "Ada")))
    assert (stands(output), streamed(events)) == (PAUSED, ["Ada", ", ", "yours "])
    events, output = await listen(fresh()(parent_id=output.run_id, resume=answers(output, "Bob")))
    assert (stands(output), streamed(events)) == (DONE, ["Bob", "."])
    assert output.output == "Dear Ada, yours Bob."


@pytest.mark.parametrize("kind", LETTERS)
async def test_s10_a_tool_of_an_agent_does_not_stream_again_what_it_streamed(world: World, kind: str) -> None:
    def agent(store: BaseStore) -> Agent[Any]:
        model = TestModel([turn(use("letter")), "sent"])
        return Agent("assistant", model, [Tool(**LETTERS[kind], name="letter")], store=store)

    heard, output = await listen(agent(world.store)("go"))
    for answer in ("Ada", "Bob"):
        events, output = await listen(agent(world.cold())(parent_id=output.run_id, resume=answers(output, answer)))
        heard += events
    assert output_text(output) == "sent"
    assert streamed(heard) == ["Dear ", "Ada", ", ", "yours ", "Bob", "."]
    assert results(await world.store.messages(output.run_id)) == {"call_letter": "Dear Ada, yours Bob."}


@pytest.mark.parametrize("kind", ["generator", "async generator"])
async def test_s10_a_resume_that_answers_nothing_streams_nothing(world: World, kind: str) -> None:
    def fresh() -> Tool[..., Any]:
        return Tool(**LETTERS[kind], name="letter", store=world.cold())

    output = await fresh()()
    events, output = await listen(fresh()(parent_id=output.run_id, resume={}))
    assert (stands(output), streamed(events), asked(events)) == (PAUSED, [], [])


async def test_s10_what_was_streamed_after_a_caught_pause_is_not_streamed_again_either(world: World) -> None:
    def handler() -> Iterator[str]:
        yield "one "
        answer = "swallowed "
        with contextlib.suppress(BaseException):
            answer = suspend({"question": "Who?"})
        yield answer
        yield "three"

    def fresh() -> Tool[..., Any]:
        return tool_of(handler, store=world.cold())

    _, output = await listen(fresh()())
    assert stands(output) == PAUSED
    events, output = await listen(fresh()(parent_id=output.run_id, resume=answers(output, "two ")))
    assert (stands(output), output.output) == (DONE, "one two three")
    assert "one " not in streamed(events)


async def test_s10_pieces_that_are_no_text_are_not_streamed_again_either(world: World) -> None:
    def handler() -> Iterator[Any]:
        yield {"n": 1}
        yield suspend({"question": "Which?"})
        yield None

    def fresh() -> Tool[..., Any]:
        return tool_of(handler, store=world.cold())

    events, output = await listen(fresh()())
    assert streamed(events) == [{"n": 1}]
    events, output = await listen(fresh()(parent_id=output.run_id, resume=answers(output, [2])))
    assert (streamed(events), stands(output), output.output) == ([[2], None], DONE, [{"n": 1}, [2], None])


async def test_s10_what_was_streamed_before_an_interruption_is_not_streamed_again(world: World) -> None:
    go_on = asyncio.Event()

    async def handler() -> AsyncIterator[str]:
        yield "one "
        await go_on.wait()
        yield "two"

    def fresh() -> Tool[..., Any]:
        return tool_of(handler, store=world.cold())

    handle = fresh()()
    async for event in handle:
        if event.type == "DELTA":
            break
    await handle.aclose()
    output = await handle
    assert stands(output) == ("cancelled", "interrupted")
    go_on.set()
    events, output = await listen(fresh()(parent_id=output.run_id, resume={}))
    assert (stands(output), output.output, streamed(events)) == (DONE, "one two", ["two"])


async def test_s10_what_was_streamed_before_a_failure_is_not_streamed_again(world: World) -> None:
    broken = [True]

    def handler() -> Iterator[str]:
        yield "one "
        if broken:
            raise OSError("the network is down")
        yield "two"

    def fresh() -> Tool[..., Any]:
        return tool_of(handler, store=world.cold())

    events, output = await listen(fresh()())
    assert (streamed(events), stands(output)) == (["one "], ("error", None))
    broken.clear()
    events, output = await listen(fresh()(parent_id=output.run_id, resume={}))
    assert (stands(output), output.output, streamed(events)) == (DONE, "one two", ["two"])


async def test_s10_the_events_of_a_streaming_tool_that_asks_come_in_order(world: World) -> None:
    events, _ = await listen(tool_of(letter, store=world.store)())
    assert told(events) == [("START", "letter"), ("DELTA", "letter"), ("INTERACTION", "letter"), ("OUTPUT", "letter")]
    (delta,) = [event for event in events if isinstance(event, DeltaEvent)]
    assert delta.item == {"id": delta.call_id, "type": "text_delta", "text_delta": "Dear "}
