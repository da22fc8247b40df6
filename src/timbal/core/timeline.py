"""What happened in an execution, from its facts: pure rules."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, assert_never, get_args

from ..types.message import load_message
from ..types.run_status import PAUSED
from .edits import changes
from .facts import (
    AnyAsked,
    Asked,
    Called,
    Ended,
    Fact,
    Gated,
    Noted,
    Opened,
    Passed,
    Reopened,
    Resumed,
    Returned,
    Revoked,
    Settled,
    Used,
)
from .gates import public_decision, secrets_in
from .ids import ROOT, child, model_segment, parent, segment_of, tool_segment
from .ledger import Ledger
from .outputs import REPLY
from .redaction import scrub

What = Literal[
    "started", "resumed", "settled", "decided", "revoked", "call", "note", "question", "gate", "passed", "ended"
]
#: A call's place in its caller: a letter (model, note, tool) and its turn, or its position; then which of several.
_SEGMENT = re.compile(r"([a-z]?)(\d+)(?:\.(\d+))?")
#: What comes first of two things at the same time.
_ORDER: tuple[What, ...] = get_args(What)


class Entry(NamedTuple):
    """One thing that happened. Times in Unix milliseconds; `depth` is how deep in calls it lies.

    `by` and `channel` tell who answered or cancelled; `waited` how long the question was open; `took` how long a call
    lasted, waits included. Of a gate, `given` is the input as anybody may see it, `prompt` what was asked, and
    `reopened` why it was asked again; `changes` are what a decision's edit made of that input. `grant` points to the
    standing decision that let a call pass. `call_id` and `parent_call_id` are those of the call's events.
    """

    at: int
    what: What
    depth: int
    name: str
    kind: str | None = None
    status: str | None = None
    took: int | None = None
    waited: int | None = None
    given: Any = None
    value: Any = None
    error: str | None = None
    usage: dict[str, int] | None = None
    by: dict[str, Any] | None = None
    channel: str | None = None
    run_id: str | None = None
    id: str | None = None
    prompt: str | None = None
    reopened: dict[str, Any] | None = None
    changes: list[dict[str, Any]] | None = None
    grant: dict[str, Any] | None = None
    call_id: str | None = None
    parent_call_id: str | None = None


#: How the inputs of runnables are shown, by name.
Shows = Mapping[str, Callable[[dict[str, Any]], dict[str, Any]]]


def timeline(facts: Sequence[Fact], shows: Shows = MappingProxyType({})) -> list[Entry]:
    """Everything in order of time; a call stands where it first began.

    `shows`: of runnables that hide some of their input; without it, inputs are hidden from when a gate has recorded it.
    """
    known = _Known(facts, shows)
    entries = []
    for fact in facts:
        call_id, caller = known.call_of(fact)
        for entry in _entries(fact, known):
            entries.append((entry._replace(call_id=call_id, parent_call_id=caller), _place(known.key_of(fact))))
    entries.sort(key=lambda pair: (pair[0].at, _ORDER.index(pair[0].what), pair[1]))
    return [entry for entry, _ in entries]


class _Known:
    """What one fact says of another."""

    def __init__(self, facts: Sequence[Fact], shows: Shows) -> None:
        hidden = secrets_in(Ledger.of(facts))
        self.inputs = {**scrub(_inputs(facts, shows), hidden), **_shown_inputs(facts)}
        self.asked = {fact.id: fact for fact in facts if isinstance(fact, Asked | Gated)}
        self.returned = {fact.key: fact.t1 for fact in facts if isinstance(fact, Returned)}
        self.ends = {fact.run_id: fact for fact in facts if isinstance(fact, Ended)}
        self.names = {fact.key: fact.name for fact in facts if isinstance(fact, Called | Returned)}
        calls = [fact for fact in facts if isinstance(fact, Opened | Called | Returned)]
        self.call_ids = {ROOT if isinstance(fact, Opened) else fact.key: fact.call_id for fact in calls}
        self.began: dict[str, Called] = {}
        for fact in facts:
            if isinstance(fact, Called):
                self.began.setdefault(fact.key, fact)

    def key_of(self, fact: Fact) -> str:
        """The key of what a fact is about."""
        about = self.asked[fact.id] if isinstance(fact, Settled | Revoked) else fact
        return getattr(about, "key", ROOT)

    def call_of(self, fact: Fact) -> tuple[str | None, str | None]:
        """The ids of the call that a fact is about, and of its caller."""
        match fact:
            case Called() | Returned():
                return fact.call_id, self.call_ids.get(parent(fact.key))
            case Asked() | Gated():
                return fact.call_id, fact.parent_call_id
            case Opened():
                return fact.call_id, None
            case _:
                return None, None

    def replied_at(self, note: str) -> int:
        """When the model gave the reply that a note is about."""
        turn = int(segment_of(note).removeprefix("n"))
        return self.returned.get(child(parent(note), model_segment(turn)), 0)


def _entries(fact: Fact, known: _Known) -> Iterable[Entry]:
    match fact:
        case Opened():
            given = known.inputs[ROOT]
            yield Entry(fact.at, "started", 0, fact.name, fact.kind, given=given, by=fact.by, run_id=fact.run_id)
        case Resumed():
            yield Entry(fact.at, "resumed", 0, "", run_id=fact.run_id)
        case Returned():
            yield _call(fact, known)
        case Called() if fact.key != ROOT and fact.key not in known.returned and known.began[fact.key] is fact:
            given = known.inputs.get(fact.key)
            yield Entry(fact.at, "call", _depth(fact.key), fact.name, fact.kind, "open", given=given)
        case Gated():
            yield Entry(
                fact.at,
                "gate",
                _depth(fact.key),
                fact.runnable,
                fact.name,
                given=fact.payload,
                id=fact.id,
                prompt=fact.prompt,
                reopened=fact.reopened,
            )
        case Asked():
            yield Entry(fact.at, "question", _depth(fact.key), fact.runnable, fact.name, given=fact.payload, id=fact.id)
        case Settled():
            yield _settlement(fact, known.asked[fact.id])
        case Passed() if fact.grant is not None:
            yield Entry(fact.at, "passed", _depth(fact.key) + 1, known.names.get(fact.key, ""), grant=fact.grant)
        case Revoked():
            gate = known.asked[fact.id]
            yield Entry(fact.at, "revoked", _depth(gate.key), gate.runnable, gate.name, by=fact.by, id=fact.id)
        case Noted():
            yield Entry(known.replied_at(fact.key), "note", _depth(fact.key), "", value=fact.text)
        case Ended() if known.ends[fact.run_id] is fact:
            yield _end(fact)
        case Called() | Reopened() | Passed() | Used() | Ended():
            pass
        case _:
            assert_never(fact)


def _settlement(fact: Settled, question: AnyAsked) -> Entry:
    entry = Entry(
        fact.at,
        "settled",
        _depth(question.key),
        question.runnable,
        question.name,
        fact.state,
        waited=fact.at - question.at,
        value=fact.value,
        by=fact.by,
        channel=fact.channel,
        run_id=fact.run_id,
        id=fact.id,
    )
    if not isinstance(question, Gated):
        return entry
    value = public_decision(question, fact.value)
    edit = value.get("override_input") if isinstance(value, dict) else None
    made = [change._asdict() for change in changes(question.payload, edit)] if edit else None
    return entry._replace(what="decided", given=question.payload, value=value, changes=made)


def _call(fact: Returned, known: _Known) -> Entry:
    output = fact.output
    if fact.kind == "model":
        output = load_message(fact.output).collect_text() if fact.output is not None else None
    elif fact.form == REPLY:
        output = None  # it is the last words of its own model, which are in the line before
    status = "error" if fact.error is not None else fact.reason if fact.kind != "model" and fact.reason else "success"
    error = None if fact.error is None else f"{fact.error['type']}: {fact.error['message']}"
    began = known.began[fact.key].at if fact.key in known.began else fact.t0
    usage = fact.usage if fact.kind == "model" else None
    given, took = known.inputs.get(fact.key), fact.t1 - began
    depth = _depth(fact.key)
    above = known.names.get(parent(fact.key))
    name = f"{above}.{fact.name}" if fact.kind == "model" and above is not None else fact.name
    return Entry(began, "call", depth, name, fact.kind, status, took, None, given, output, error, usage)


def _end(fact: Ended) -> Entry:
    status = "paused" if fact.reason in PAUSED else fact.code
    if fact.code != "success" and fact.reason and status != "paused":
        status += f" / {fact.reason}"
    error = None if fact.error is None else f"{fact.error['type']}: {fact.error['message']}"
    value = None if fact.form == REPLY else fact.output
    error = error or fact.message
    who: dict[str, Any] = {"by": fact.by, "channel": fact.channel}
    return Entry(fact.at, "ended", 0, "", None, status, value=value, error=error, run_id=fact.run_id, **who)


def _inputs(facts: Sequence[Fact], shows: Shows) -> dict[str, dict[str, Any]]:
    """The input of the run and the arguments of tool calls, by key: those are in the replies that asked for them."""
    found: dict[str, dict[str, Any]] = {}
    for fact in facts:
        if isinstance(fact, Opened):
            found[ROOT] = shows.get(fact.name, dict)(fact.input)
        elif isinstance(fact, Returned) and fact.kind == "model" and fact.output is not None:
            turn = int(segment_of(fact.key).removeprefix("m"))
            uses = [part for part in fact.output["content"] if part["type"] == "tool_use"]
            for index, use in enumerate(uses):
                shown = shows.get(use["name"], dict)(use["input"])
                found[child(parent(fact.key), tool_segment(turn, index))] = shown
    return found


def _shown_inputs(facts: Sequence[Fact]) -> dict[str, dict[str, Any]]:
    """The inputs of gated calls, by key, as anybody may see them."""
    found = {}
    for fact in facts:
        if isinstance(fact, Gated):
            found[parent(fact.key)] = fact.payload
        elif isinstance(fact, Passed) and fact.input is not None:
            found.setdefault(fact.key, fact.input if fact.shown is None else fact.shown)
    return found


def _place(key: str) -> list[tuple[int, str, int]]:
    """Where a call stands among others of the same time: by its turn, model before tools, or by its position."""
    places = []
    for segment in key.split("/")[1:]:
        found = _SEGMENT.fullmatch(segment)
        places.append((int(found[2]), found[1], int(found[3] or 0)) if found else (sys.maxsize, segment, 0))
    return places


def _depth(key: str) -> int:
    return key.count("/")
