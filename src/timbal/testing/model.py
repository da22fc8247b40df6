"""A model that follows a script."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from ..ports import ModelRequest, Reply
from ..types.content import TextContent, ThinkingContent, ToolUseContent
from ..types.message import Message

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
