"""What each API demands of a transcript, checked on the bodies that were sent: our own reading of their rules."""

from collections.abc import Callable
from typing import Any

from tests.fake_api import Asked


def assert_valid(asked: Asked) -> None:
    """Every tool use has exactly one result, directly after it; roles follow each other as they must; nothing is empty.

    The API is told by the path.
    """
    rules: dict[str, Callable[[Any], None]] = {
        "chat/completions": _chat,
        "responses": _responses,
        "messages": _claude,
        "streamGenerateContent": _gemini,
    }
    (check,) = [rule for ending, rule in rules.items() if asked.path.partition("?")[0].endswith(ending)]
    check(asked.body)


def _chat(body: Any) -> None:
    open_calls: list[str] = []
    for i, message in enumerate(body["messages"]):
        role, content = message["role"], message.get("content")
        if role == "tool":
            assert message["tool_call_id"] in open_calls, f"a result without its call: {message}"
            open_calls.remove(message["tool_call_id"])
        else:
            assert not open_calls, f"no result of {open_calls} before message {i}"
            assert (role == "system") <= (i == 0)
        calls = [call["id"] for call in message.get("tool_calls") or []]
        assert len(calls) == len(set(calls))
        open_calls = calls or open_calls
        assert _filled(content) or calls, f"message {i} is empty: {message}"
    assert not open_calls
    assert body["messages"][-1]["role"] in ("user", "tool")


def _responses(body: Any) -> None:
    open_calls: list[str] = []
    answered = False
    for i, item in enumerate(body["input"]):
        kind = item.get("type", "message")
        if kind == "function_call_output":
            assert item["call_id"] in open_calls, f"an output without its call: {item}"
            open_calls.remove(item["call_id"])
            assert item["output"]
            answered = True
            continue
        if kind == "function_call":
            assert not (open_calls and answered), f"no output of {open_calls} before item {i}"
            assert item["call_id"] not in open_calls
            open_calls.append(item["call_id"])
            answered = False
            continue
        assert not open_calls, f"no output of {open_calls} before item {i}"
        if kind == "reasoning":
            assert item["encrypted_content"] or item["summary"]
        else:
            assert _filled(item["content"]), f"item {i} is empty: {item}"
    assert not open_calls
    assert body["input"][-1].get("role") == "user" or body["input"][-1]["type"] == "function_call_output"


def _claude(body: Any) -> None:
    messages = body["messages"]
    assert [m["role"] for m in messages] == [("user", "assistant")[i % 2] for i in range(len(messages))]
    assert len(messages) % 2 == 1
    open_calls: list[str] = []
    for i, message in enumerate(messages):
        blocks = message["content"]
        if isinstance(blocks, str):
            blocks = [{"type": "text", "text": blocks}]
        assert blocks, f"message {i} is empty"
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        assert sorted(results) == sorted(open_calls), f"message {i} answers {results}, asked was {open_calls}"
        assert [b["type"] for b in blocks[: len(results)]] == ["tool_result"] * len(results), "results come first"
        assert all(_filled(b["content"]) for b in blocks if b["type"] == "tool_result")
        assert all(b["text"].strip() for b in blocks if b["type"] == "text"), f"blank text in message {i}"
        open_calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
        assert len(open_calls) == len(set(open_calls))
    assert not open_calls


def _gemini(body: Any) -> None:
    contents = body["contents"]
    assert contents[0]["role"] == "user"
    assert contents[-1]["role"] == "user"
    open_calls: list[tuple[str, str]] = []
    for i, content in enumerate(contents):
        parts = content["parts"]
        assert parts, f"content {i} is empty"
        assert all(part["text"].strip() for part in parts if "text" in part), f"blank text in content {i}"
        results = [p["functionResponse"] for p in parts if "functionResponse" in p]
        assert sorted((r.get("id", ""), r["name"]) for r in results) == sorted(open_calls), f"results of content {i}"
        assert not results or len(results) == len(parts), "results stand alone"
        calls = [p["functionCall"] for p in parts if "functionCall" in p]
        open_calls = [(call.get("id", ""), call["name"]) for call in calls]
        assert (content["role"] == "model") or not calls
        if i and content["role"] == "model":
            assert contents[i - 1]["role"] == "user"
    assert not open_calls


def _filled(content: Any) -> bool:
    if isinstance(content, str):
        return bool(content.strip())
    return bool(content) and all(part.get("text", "x").strip() for part in content)
