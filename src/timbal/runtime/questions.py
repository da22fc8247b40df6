"""A `suspend()` in a handler: its answer from the ledger, or a question that is opened."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from ..core.facts import Asked
from ..core.ids import child, digest, interaction_id
from ..core.recall import Held
from ..errors import InteractionExpired
from ..state import Ask, Pause, Scope
from ..types.approval import Default
from ..types.json_value import json_value
from .schema import codec_of

if TYPE_CHECKING:
    from .frame import Frame

#: The longest that a question may wait.
MOST_SECONDS = 100 * 365 * 24 * 3600


class Unsure(NamedTuple):
    """A `suspend()` in a task that can't be told yet; `what` is its key or the digest of its payload."""

    ask: Ask
    what: str
    payload: dict[str, Any]


def suspend(frame: Frame, ask: Ask) -> Any:
    """Ask, and give the answer; raises the signal where there is none yet."""
    scope = frame.enter()
    payload = payload_of(ask)
    if scope is frame:
        place = frame.place(scope, "suspend", ask.kind, str)
    else:
        place = frame.place(scope, "suspend", ask.kind, lambda: ask.key or digest(payload))
    if isinstance(place, Held):
        # A suspend() can't wait. It would pause anyway, so it pauses, and is opened once the others are claimed.
        unsure = Unsure(ask, ask.key or digest(payload), payload)
        frame.unsure = [*frame.unsure, unsure]
        raise frame.latch(scope, Pause())
    key = child(frame.key, place.segment)
    question = frame.run.ledger.question_at(key)
    if question is None:
        raise open_question(frame, scope, key, ask, payload)
    asked = question.asked
    assert isinstance(asked, Asked)
    if question.settled is None:
        frame.asked = [*frame.asked, asked]
        raise frame.latch(scope, Pause())
    return _answered(frame, scope, key, ask, asked, question.settled)


def _answered(frame: Frame, scope: Scope, key: str, ask: Ask, asked: Asked, settled: Any) -> Any:
    if settled.state == "expired" and asked.on_expiry == "raise":
        raise InteractionExpired(f"nobody answered the question {asked.id} of {asked.path} in time")
    if settled.state not in ("answered", "expired") or (asked.on_expiry == "cancel" and settled.state == "expired"):
        raise frame.latch(scope, Pause())
    if ask.response_type is None:
        return settled.value
    from pydantic import ValidationError

    try:
        return codec_of(ask.response_type).load(settled.value)
    except ValidationError as error:
        problem = "; ".join(f"{'.'.join(map(str, e['loc'])) or 'answer'}: {e['msg']}" for e in error.errors())
        raise open_question(frame, scope, key, ask, {**asked.payload, "error": problem}, asked.round + 1) from None


def open_question(frame: Frame, scope: Scope, key: str, ask: Ask, payload: dict[str, Any], round: int = 0) -> Pause:
    """Open a question. It becomes durable, then public, when the call pauses."""
    run, call = frame.run, frame
    while call.kind == "step" and call.parent is not None:
        call = call.parent
    schema = ask.response_schema
    if ask.response_type is not None and schema is None:
        schema = codec_of(ask.response_type).json_schema
    at = run.clock()
    with run.lock:
        fact = _question(frame, call, key, ask, payload, schema, at, round)
        run.open_question(frame, fact)
        frame.asked = [*frame.asked, fact]
    return frame.latch(scope, Pause())


def _question(
    frame: Frame,
    call: Frame,
    key: str,
    ask: Ask,
    payload: dict[str, Any],
    schema: dict[str, Any] | None,
    at: int,
    round: int,
) -> Asked:
    run = frame.run
    count = run.ledger.count_equal(call.path, payload, call.tool_call_id)
    return Asked(
        key,
        interaction_id(call.path, payload, call.tool_call_id, count),
        run.id,
        call.path,
        call.call_id,
        ask.kind,
        call.name,
        payload,
        at,
        run.parent_id,
        call.parent_call_id,
        call.kind,
        call.tool_call_id,
        schema,
        ask.response_type is not None,
        None if ask.expires_in is None else at + milliseconds(ask.expires_in, "expires_in"),
        {"default": json_value(ask.on_expiry.value, "on_expiry")}
        if isinstance(ask.on_expiry, Default)
        else ask.on_expiry,
        None if ask.audience is None else list(ask.audience),
        count,
        round,
    )


def payload_of(ask: Ask) -> dict[str, Any]:
    payload: Any = ask.payload
    kind: Any = ask.kind
    if not isinstance(payload, dict):
        with suppress(TypeError):
            payload = json_value(payload, "payload")
    if not isinstance(payload, dict):
        raise TypeError(
            f"suspend() takes a dict as its payload, not {type(ask.payload).__name__}: it is what a front end renders"
        )
    if not isinstance(kind, str) or not kind:
        raise TypeError("suspend(kind=) is a name, such as 'ask_user'")
    if not kind.isascii():
        json_value(kind, "kind")
    if ask.response_schema is not None and (ask.response_type is not None or not isinstance(ask.response_schema, dict)):
        raise TypeError(
            "suspend() takes a response_schema (a dict, advice for the client) or a response_type (enforced)"
        )
    if ask.response_schema is not None:
        json_value(ask.response_schema, "response_schema")
    check_audience(ask.audience, "suspend(audience=)")
    if ask.expires_in is not None:
        milliseconds(ask.expires_in, "suspend(expires_in=)")
    if ask.key is not None and not isinstance(ask.key, str):
        raise TypeError(f"suspend(key=) is a str, not {type(ask.key).__name__}")
    if ask.on_expiry not in ("cancel", "raise") and not isinstance(ask.on_expiry, Default):
        raise TypeError("suspend(on_expiry=) is 'cancel', 'raise' or Default(value)")
    result: dict[str, Any] = json_value(payload, "payload")
    return result


def check_audience(audience: Any, what: str) -> list[str] | None:
    """Who may answer, as a list; raises `TypeError`."""
    if audience is None:
        return None
    if not isinstance(audience, list | tuple) or not all(isinstance(one, str) for one in audience):
        raise TypeError(f"{what} is a list such as ['user:ada', 'role:finance'], not {audience!r}")
    checked: list[str] = json_value(audience, "audience")
    return checked


def milliseconds(expires_in: Any, what: str) -> int:
    """A number of seconds or a timedelta in milliseconds; raises `TypeError`, or `ValueError` out of range."""
    seconds = expires_in.total_seconds() if isinstance(expires_in, timedelta) else expires_in
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise TypeError(f"{what} is a number of seconds or a timedelta, not {seconds!r}")
    if not 0 < seconds < MOST_SECONDS:
        raise ValueError(f"{what} is more than 0 seconds and less than a century, not {seconds!r}")
    return int(seconds * 1000)
