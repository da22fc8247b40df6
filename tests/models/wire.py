"""What providers send, as bytes: the beginnings and ends of streams that a fake with manners would not send."""

import json
from typing import Any

from timbal import Model


def sse(*events: dict[str, Any], named: bool = False, done: bool = False) -> str:
    """Server-sent events: `named` as Anthropic and Responses have them, `done` with the end mark of chat."""
    lines = [(f"event: {e['type']}\n" if named else "") + f"data: {json.dumps(e)}\n\n" for e in events]
    return "".join(lines) + ("data: [DONE]\n\n" if done else "")


def chat(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    """One chunk of a chat completion."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-5", "choices": [choice]}


def gemini(*parts: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    """One chunk of Gemini's stream."""
    candidate: dict[str, Any] = {"index": 0, "content": {"role": "model", "parts": list(parts)}}
    if finish:
        candidate["finishReason"] = finish
    return {"candidates": [candidate], "modelVersion": "gemini", "responseId": "r1"}


def claude_begin() -> dict[str, Any]:
    message: dict[str, Any] = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 3, "output_tokens": 0},
    }
    return {"type": "message_start", "message": message}


def claude_block(index: int, block: dict[str, Any], *deltas: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"type": "content_block_start", "index": index, "content_block": block},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def claude_end(reason: str) -> list[dict[str, Any]]:
    delta = {"stop_reason": reason, "stop_sequence": None}
    return [{"type": "message_delta", "delta": delta, "usage": {"output_tokens": 5}}, {"type": "message_stop"}]


#: The first words of an answer by its API, and nothing after them.
_FIRST_WORDS = {
    "openai": sse(chat({"role": "assistant", "content": "Once upon"})),
    "anthropic": sse(
        claude_begin(),
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Once upon"}},
        named=True,
    ),
    "google": sse(gemini({"text": "Once upon"})),
}

_RESPONSES_FIRST_WORDS = sse(
    {
        "type": "response.created",
        "sequence_number": 0,
        "response": {
            "id": "resp_1",
            "object": "response",
            "created_at": 1,
            "model": "gpt-5",
            "status": "in_progress",
            "output": [],
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
        },
    },
    {
        "type": "response.output_item.added",
        "sequence_number": 1,
        "output_index": 0,
        "item": {"type": "message", "id": "m1", "role": "assistant", "status": "in_progress", "content": []},
    },
    {
        "type": "response.content_part.added",
        "sequence_number": 2,
        "item_id": "m1",
        "output_index": 0,
        "content_index": 0,
        "part": {"type": "output_text", "text": "", "annotations": []},
    },
    {
        "type": "response.output_text.delta",
        "sequence_number": 3,
        "item_id": "m1",
        "output_index": 0,
        "content_index": 0,
        "delta": "Once upon",
        "logprobs": [],
    },
    named=True,
)


def first_words(model: Model) -> str:
    """The beginning of an answer as this model's API streams it, without its end."""
    return _RESPONSES_FIRST_WORDS if model.api == "responses" else _FIRST_WORDS[model.name.partition("/")[0]]
