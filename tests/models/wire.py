"""What providers send, as bytes: the beginnings and ends of streams that a fake with manners would not send."""

import json
from typing import Any


def sse(*events: dict[str, Any], named: bool = False, done: bool = False) -> str:
    """Server-sent events; `named` as Anthropic and Responses have them, `done` with the end mark of chat completions."""
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
    message = {
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
FIRST_WORDS = {
    "openai/gpt-5": sse(chat({"role": "assistant", "content": "Once upon"})),
    "anthropic/claude-sonnet-4-5": sse(
        claude_begin(),
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Once upon"}},
        named=True,
    ),
    "google/gemini-2.5-pro": sse(gemini({"text": "Once upon"})),
}
