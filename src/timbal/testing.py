"""What tests of an agent need: a model that follows a script, and a person that does."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .ports import ModelRequest, Reply
from .runnables.base import Runnable, run_to_end
from .types.content import TextContent, ThinkingContent, ToolUseContent
from .types.events import ApprovalEvent, InteractionEvent, OutputEvent
from .types.message import Message

Script = Callable[[Sequence[Message]], Any]


class TestModel:
    """A model without a network. It keeps no state: the same script works in a fresh process.

    `responses[i]` answers the i-th assistant turn of a conversation (the last one repeats), or `handler(messages)`
    answers; each a str or a `Message`. With `chunk_size` text streams in pieces of so many characters.
    """

    __test__ = False

    def __init__(
        self,
        responses: Sequence[str | Message] | None = None,
        handler: Script | None = None,
        chunk_size: int | None = None,
    ) -> None:
        if (responses is None) == (handler is None):
            raise ValueError("TestModel takes responses or a handler, one of the two")
        if responses is not None and not responses:
            raise ValueError("TestModel: responses is empty; give at least one, the last one repeats")
        if chunk_size is not None and chunk_size < 1:
            raise ValueError(f"TestModel: chunk_size is at least 1, not {chunk_size!r}")
        self._responses = list(responses) if responses is not None else []
        self._handler = handler
        self._chunk_size = chunk_size
        self.name = "test/test-model"
        self.call_count = 0

    async def complete(self, request: ModelRequest, emit: Callable[[dict[str, Any]], None]) -> Reply:
        """The scripted reply to these messages."""
        self.call_count += 1
        if self._handler is not None:
            reply = self._handler(request.messages)
            if inspect.isawaitable(reply):
                reply = await reply
        else:
            turn = sum(message.role == "assistant" for message in request.messages)
            reply = self._responses[min(turn, len(self._responses) - 1)]
        message = _assistant(reply)
        if self._chunk_size is not None:
            for part in message.content:
                _stream(part, self._chunk_size, emit)
        return Reply(message, {})


def _assistant(reply: Any) -> Message:
    if isinstance(reply, str):
        return Message._of({"role": "assistant", "content": [TextContent.of(reply)], "stop_reason": "end_turn"})
    if not isinstance(reply, Message):
        raise TypeError(f"a TestModel answers with a str or a Message, not {type(reply).__name__}")
    return reply


def _stream(part: Any, size: int, emit: Callable[[dict[str, Any]], None]) -> None:
    if isinstance(part, TextContent):
        text = part.text
        for i in range(0, len(text), size):
            emit({"type": "text_delta", "text_delta": text[i : i + size]})
    elif isinstance(part, ThinkingContent):
        text = part.thinking
        for i in range(0, len(text), size):
            emit({"type": "thinking_delta", "thinking_delta": text[i : i + size]})
    elif isinstance(part, ToolUseContent):
        emit({"id": part.id, "type": "tool_use", "name": part.name, "input": part.input})


class Unexpected(AssertionError):
    """The run asked for something that the script does not know; `.items` are the questions."""

    def __init__(self, items: Sequence[InteractionEvent | ApprovalEvent], known: Sequence[str]) -> None:
        self.items = list(items)
        asked = "; ".join(f"kind {e.kind!r} with {_words(e)!r}" for e in items)
        super().__init__(f"nobody expected these asks: {asked}. The script knows: {', '.join(known) or 'none'}")


class ScriptedHuman:
    """A person who answers by a script until the run is done.

    Keys are a kind (`"confirm"`), or a kind and a piece of the text that is shown (`"ask_user(database)"`), which is
    looked for first. Values are the answer, or a callable that gets the event and gives the answer (sync or async).
    """

    def __init__(self, answers: Mapping[str, Any], max_rounds: int = 100) -> None:
        self._answers = dict(answers)
        self._max_rounds = max_rounds
        #: Every item that was answered, in order.
        self.asked: list[InteractionEvent | ApprovalEvent] = []

    async def run(self, runnable: Runnable, **params: Any) -> OutputEvent:
        """Run it and answer until it ends; raises `Unexpected` when it asks what the script does not know."""
        output = await runnable._call(dict(params))
        by, store = params.get("by"), runnable
        for _ in range(self._max_rounds):
            if not output.pending:
                return output
            answers = await self.answers(output.pending)
            output = await store._call({"parent_id": output.run_id, "resume": answers, "by": by})
        raise AssertionError(f"the run still asks after {self._max_rounds} rounds: {_words(output.pending[0])!r}")

    def run_sync(self, runnable: Runnable, **params: Any) -> OutputEvent:
        """The same, for tests that are not async."""
        return run_to_end(self.run(runnable, **params))

    async def answers(self, items: Sequence[InteractionEvent | ApprovalEvent]) -> dict[str, Any]:
        """`{id: answer}` for these items; raises `Unexpected`."""
        strange = [event for event in items if self._key(event) is None]
        if strange:
            raise Unexpected(strange, list(self._answers))
        given: dict[str, Any] = {}
        for event in items:
            answer = self._answers[self._key(event) or ""]
            if callable(answer):
                answer = answer(event)
                if inspect.isawaitable(answer):
                    answer = await answer
            given[_id(event)] = answer
            self.asked.append(event)
        return given

    def _key(self, event: InteractionEvent | ApprovalEvent) -> str | None:
        words = _words(event)
        for key in self._answers:
            kind, bracket, text = key.partition("(")
            if bracket and kind == event.kind and text.removesuffix(")") in words:
                return key
        return event.kind if event.kind in self._answers else None


def _id(event: InteractionEvent | ApprovalEvent) -> str:
    return event.interaction_id if isinstance(event, InteractionEvent) else event.approval_id


def _words(event: InteractionEvent | ApprovalEvent) -> str:
    shown = event.payload if isinstance(event, InteractionEvent) else {"prompt": event.prompt, **event.input}
    return " ".join(str(value) for value in shown.values())
