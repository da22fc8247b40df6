"""The bodies of requests: read within limits, parsed strictly, and taken apart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic_core import from_json
from starlette.requests import ClientDisconnect, Request

from ..types.json_value import json_value
from .problems import Problem, escape

if TYPE_CHECKING:
    from ..runnables.base import Runnable

#: What a body may hold besides the input.
CALL = ("parent_id", "resume", "labels")
#: What belongs to the call in Python, and is said otherwise here.
_ELSEWHERE = {"run_id": "send the header Idempotency-Key", "by": "who calls is known from the credentials"}
#: Labels that begin so are the server's own.
OWN_LABELS = "timbal."


class Start(NamedTuple):
    """What a run is started with."""

    input: dict[str, Any]
    parent_id: str | None
    resume: dict[str, Any] | None
    labels: dict[str, str]


async def read_json(request: Request, most: int) -> Any:
    """The body as JSON; raises `Problem`."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind and kind != "application/json" and not kind.endswith("+json"):
        raise Problem(415, f"the body is JSON, with Content-Type: application/json, not {kind}")
    body = await read_body(request, most)
    if not body.strip():
        raise Problem(400, "the body is empty; it is a JSON object")
    try:
        return json_value(from_json(body, allow_inf_nan=False), "the body")
    except (ValueError, TypeError, RecursionError) as error:
        raise Problem(400, f"the body is no JSON: {error}") from None


async def read_object(request: Request, most: int) -> dict[str, Any]:
    """The body as a JSON object; raises `Problem`."""
    body = await read_json(request, most)
    if not isinstance(body, dict):
        raise Problem(422, "the body is a JSON object", errors=[{"pointer": "", "message": "this is no object"}])
    return body


async def read_body(request: Request, most: int) -> bytes:
    """The body's bytes; raises `Problem` where they are too many."""
    length = request.headers.get("content-length", "0")
    too_large = Problem(413, f"the body has more than {most} bytes", headers={"Connection": "close"})
    if length.isdecimal() and int(length) > most:
        raise too_large
    body = bytearray()
    try:
        async for piece in request.stream():
            body += piece
            if len(body) > most:
                raise too_large
    except ClientDisconnect:
        raise Problem(400, "the connection was cut before the body had come") from None
    return bytes(body)


def take_apart(body: dict[str, Any]) -> Start:
    """Input and call; raises `Problem` with pointers to what is wrong."""
    errors = [
        {"pointer": f"/{name}", "message": f"not in the body: {why}"}
        for name, why in _ELSEWHERE.items()
        if name in body
    ]
    parent_id, resume, labels = (body.get(name) for name in CALL)
    if parent_id is not None and not isinstance(parent_id, str):
        errors.append({"pointer": "/parent_id", "message": "this is the id of a run, a string"})
    if resume is not None and not isinstance(resume, dict):
        errors.append({"pointer": "/resume", "message": "this is an object of answers by id"})
    errors += label_errors(labels)
    if errors:
        raise Problem(422, "; ".join(f"{e['pointer']}: {e['message']}" for e in errors), errors=errors)
    return Start({n: v for n, v in body.items() if n not in CALL}, parent_id, resume, labels or {})


def label_errors(labels: Any) -> list[dict[str, str]]:
    if labels is None:
        return []
    if not isinstance(labels, dict):
        return [{"pointer": "/labels", "message": "this is an object of strings"}]
    wrong = {name: why for name, value in labels.items() if (why := _label_error(name, value)) is not None}
    return [{"pointer": f"/labels/{escape(name)}", "message": why} for name, why in wrong.items()]


def _label_error(name: str, value: Any) -> str | None:
    if not isinstance(value, str):
        return "no string"
    if name.startswith(OWN_LABELS):
        return f"names that begin with {OWN_LABELS!r} are the server's"
    return "labels can't hold NUL characters" if "\0" in name + value else None


def input_errors(runnable: Runnable, given: Mapping[str, Any]) -> list[dict[str, str]]:
    """What is wrong with an input that was refused, with JSON pointers into the body."""
    from pydantic import ValidationError

    params = getattr(runnable, "_params", None)
    if params is None:
        return [{"pointer": "", "message": "give one of prompt and messages"}]
    try:
        params._model.model_validate(dict(given))
    except ValidationError as error:
        return [
            {"pointer": "".join(f"/{escape(part)}" for part in problem["loc"]), "message": problem["msg"]}
            for problem in error.errors(include_url=False, include_context=False, include_input=False)
        ]
    return []
