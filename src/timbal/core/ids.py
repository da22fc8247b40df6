"""Names that are the same wherever they are computed."""

from __future__ import annotations

import hashlib
import json
from typing import Any

_canonical = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode


def canonical_json(value: Any) -> str:
    """JSON with sorted keys and no spaces: equal values give equal text."""
    return _canonical(value)


def digest(value: Any) -> str:
    """The first 32 hex digits of the sha256 of a JSON value's canonical form."""
    return hashlib.sha256(_canonical(value).encode()).hexdigest()[:32]


def interaction_id(path: str, payload: Any, tool_call_id: str | None, count: int) -> str:
    """The id of a question (contract section 4, "Id"); `count`: equal questions already stored in this execution."""
    return _question_id({"path": path, "payload": payload}, tool_call_id, count)


def approval_id(path: str, input: Any, tool_call_id: str | None, count: int) -> str:
    """The id of an approval, over the real input (contract section 5); `count` as for a question."""
    return _question_id({"path": path, "input": input}, tool_call_id, count)


def _question_id(name: dict[str, Any], tool_call_id: str | None, count: int) -> str:
    if tool_call_id is not None:
        name["tool_call_id"] = tool_call_id
    if count:
        name["count"] = count
    return digest(name)


# Call keys. The root is ""; a child is its parent's key, a slash and a segment. Segments hold no slash.

ROOT = ""


def child(key: str, segment: str) -> str:
    return f"{key}/{segment}"


def parent(key: str) -> str:
    return key.rpartition("/")[0]


def segment_of(key: str) -> str:
    return key.rpartition("/")[2]


def model_segment(turn: int) -> str:
    """The agent's `turn`-th model call."""
    return f"m{turn}"


def tool_segment(turn: int, index: int) -> str:
    """The `index`-th tool call of the reply to the agent's `turn`-th model call."""
    return f"t{turn}.{index}"


#: The segment of a call's gate.
GATE = "gate"


def spawned_segment(kind: str, name: str, what: str, count: int) -> str:
    """The `count`-th of the equal operations that a handler's tasks performed; `what` is a digest or the given key."""
    return f"~{digest([kind, name, what])[:16]}.{count}"
