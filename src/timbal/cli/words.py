"""Questions, values and times in words."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any, NamedTuple

from ..terminal import one_line, plain
from ..types.approval import CANCEL_TYPE
from ..types.events import ApprovalEvent, InteractionEvent
from ..types.message import Message
from ..types.value import Value

Ask = InteractionEvent | ApprovalEvent

#: What a payload calls the words of its question.
_HEADLINES = ("question", "action", "prompt", "message", "title", "text")


#: Before each line of somebody's text among lines of ours.
MARGIN = "│ "
#: Of a value that a person decides about, so many characters are shown.
LONGEST = 4000


class Words(NamedTuple):
    """A question as people read it: what is asked, and what else they are shown, as `(indent, line)`."""

    headline: str
    details: list[tuple[int, str]]
    problem: str | None = None


def words_of(event: Ask) -> Words:
    """What a person is asked, and what they should know for it."""
    if isinstance(event, ApprovalEvent):
        return _words_of_gate(event)
    payload = dict(event.payload)
    problem = payload.pop("error", None)
    if event.kind in ("ask_user", "ask_user_multi"):
        payload.pop("options", None)
    asked = headline(payload)
    details = [
        (1, f"{name}: {short(value, 400)}") for name, value in payload.items() if value is not None and value != asked
    ]
    if event.kind == "confirm" and asked and not asked.endswith("?"):
        asked = f"{asked}?"
    problem = None if problem is None else short(problem, 400)
    return Words(asked or f"{event.runnable_name} asks ({event.kind})", details, problem)


def _words_of_gate(event: ApprovalEvent) -> Words:
    """All that runs is shown, and each text as one: none looks as if it were something else."""
    details = []
    if (again := gate_of(event).get("reopened")) is not None:
        changed = f" ({', '.join(again['changed'])})" if again["changed"] else ""
        details.append((1, one_line(f"Asked again: {again['reason']}{changed}")))
    if event.description:
        details += [(1, f"{MARGIN}{line}") for line in plain(event.description).split("\n")]
    details += _listed("input", event.input) if event.input else [(1, "input: none")]
    if event.preview is not None:
        details += _listed("preview", event.preview)
    return Words(one_line(event.prompt or "") or f"Run {event.runnable_name}?", details)


def _listed(title: str, value: Any) -> list[tuple[int, str]]:
    if not isinstance(value, dict):
        return _value_lines(title, value, indent=1)
    return [(1, f"{title}:"), *(line for name, one in value.items() for line in _value_lines(name, one, indent=2))]


def _value_lines(name: str, value: Any, indent: int) -> list[tuple[int, str]]:
    """A value with its name: JSON on the same line, or the lines of a text, each with a mark before it."""
    if isinstance(value, str) and "\n" in value.strip("\n") and plain(value) == value:
        lines = _all_of(value).split("\n")
        return [(indent, f"{one_line(name)}:"), *((indent + 1, f"{MARGIN}{line}") for line in lines)]
    return [(indent, f"{one_line(name)}: {_all_of(exact_json(value))}")]


def exact_json(value: Any) -> str:
    """A value as JSON in which nothing is hidden: what a terminal would not show as it is, is escaped."""
    text = as_json(value)
    return text if plain(text) == text else "".join(c if plain(c) == c else json.dumps(c)[1:-1] for c in text)


def _all_of(text: str) -> str:
    """The text; of a very long one the beginning, and how much is left out."""
    if len(text) <= LONGEST:
        return text
    return f"{text[:LONGEST]}… and {len(text) - LONGEST} characters more, which `timbal pending --json` shows"


def gate_of(event: ApprovalEvent) -> dict[str, Any]:
    """What the runtime says of a gate: `digest`, `audience`, `grantable`, and `reopened` where it was asked before."""
    about: dict[str, Any] = event.metadata.get("approval") or {}
    return about


def ways_to_answer(event: Ask) -> list[list[str]]:
    """The options of `timbal resume` that answer it."""
    id = event.id[:12]
    if isinstance(event, ApprovalEvent):
        return [["--approve", id], ["--deny", id, "--reason", "WHY"]]
    return [["--answer", f"{id}=ANSWER"]]


def about(event: Ask) -> list[str]:
    """What there is to know of a question besides its words: its kind, who asks, until when, and whom."""
    told = [event.kind, event.runnable_path]
    if event.expires_at is not None:
        told.append(f"until {moment(event.expires_at)}")
    audience = gate_of(event).get("audience") if isinstance(event, ApprovalEvent) else event.audience
    if audience is not None:
        told.append(f"for {', '.join(audience)}")
    return told


def headline(payload: dict[str, Any]) -> str | None:
    """What a payload asks in words, if it does."""
    texts = (payload.get(name) for name in _HEADLINES)
    return next((text.strip() for text in texts if isinstance(text, str) and text.strip()), None)


def short(value: Any, length: int = 60) -> str:
    """A value in a few words: a text as it is, anything else as JSON, cut off after so many characters."""
    if isinstance(value, Message):
        value = value.collect_text()
    elif isinstance(value, Value):
        value = value.model_dump(mode="json")
    return cut(value if isinstance(value, str) else as_json(value), length)


def cut(text: str, length: int) -> str:
    """The text, cut off after so many characters."""
    return text if len(text) <= length else text[: length - 1] + "…"


def as_json(value: Any, indent: int | None = None) -> str:
    """A value as JSON, for people: what has no JSON form is shown by its name."""
    return json.dumps(value, ensure_ascii=False, indent=indent, default=_dump)


def _dump(value: Any) -> Any:
    dump = getattr(value, "model_dump", None)
    return dump(mode="json") if dump is not None else str(value)


def call_words(name: str, given: Any) -> str:
    """A call as one would write it, its arguments not in full length."""
    arguments = given if isinstance(given, dict) else {}
    return f"{name}({', '.join(f'{key}={cut(as_json(value), 200)}' for key, value in arguments.items())})"


def answer_words(value: Any) -> str:
    """An answer as a person would say it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict) and value.get("type") == CANCEL_TYPE:
        return "cancel"
    return short(value, 200)


def who(by: dict[str, Any] | None, channel: str | None = None) -> str:
    """Who answered, as far as it was recorded."""
    name = str(by["sub"]) if by and by.get("sub") else "somebody"
    return f"{name} ({channel})" if channel else name


def took(milliseconds: int) -> str:
    """A duration, in the two units that say enough."""
    if milliseconds < 1000:
        return f"{max(0, milliseconds)} ms"
    seconds = milliseconds / 1000
    if seconds < 60:
        return f"{seconds:.1f} s"
    for unit, size, below, smaller in (("min", 60, 3600, "s"), ("h", 3600, 86400, "min"), ("d", 86400, 1e12, "h")):
        if seconds < below:
            part = {"s": 1, "min": 60, "h": 3600}[smaller]
            whole, rest = int(seconds // size), int(seconds % size // part)
            return f"{whole} {unit} {rest} {smaller}" if rest else f"{whole} {unit}"
    return f"{seconds:.0f} s"


def ago(at: int, now: int) -> str:
    """How long ago something was."""
    return f"{took(now - at)} ago" if now - at >= 1000 else "just now"


def moment(at: int) -> str:
    """A time of the clock here."""
    return datetime.fromtimestamp(at / 1000, UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def tokens(usage: dict[str, int]) -> str:
    """How many tokens went in and out, over all models."""
    sums = [
        sum(n for what, n in usage.items() if what.endswith(f":{kind}")) for kind in ("input_tokens", "output_tokens")
    ]
    return f"{sums[0]} tokens in, {sums[1]} out" if any(sums) else ""
