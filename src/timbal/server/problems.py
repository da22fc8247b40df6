"""What can go wrong with a request, as `application/problem+json` (RFC 9457)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic_core import to_json
from starlette.responses import Response

from ..types.events import OutputEvent
from ..types.value import fields_of

MEDIA_TYPE = "application/problem+json"

#: By status: the name in `type`, and the title.
KINDS = {
    400: ("bad-request", "The request can't be read"),
    401: ("no-credentials", "Credentials are needed"),
    403: ("forbidden", "That is not allowed"),
    404: ("not-found", "There is no such thing"),
    405: ("wrong-method", "That can't be done with this address"),
    406: ("not-acceptable", "That form is not available"),
    409: ("claimed", "Somebody else was faster, with another answer"),
    410: ("gone", "It can't be answered any more"),
    413: ("too-large", "The request is too large"),
    415: ("not-json", "The request is not JSON"),
    421: ("wrong-host", "This server does not answer for that host"),
    422: ("rejected", "The request does not fit"),
    500: ("internal", "The server has made a mistake"),
    503: ("unavailable", "The server can't do that now"),
}


class Problem(Exception):
    """A request comes to nothing, and this is what its sender is told."""

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        receipts: Sequence[Mapping[str, Any]] | None = None,
        errors: Sequence[Mapping[str, str]] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.status, self.detail = status, detail
        self.receipts, self.errors, self.headers = receipts, errors, headers
        super().__init__(detail)

    def content(self) -> dict[str, Any]:
        """Its JSON."""
        name, title = KINDS[self.status]
        told: dict[str, Any] = {
            "type": f"urn:timbal:problem:{name}",
            "title": title,
            "status": self.status,
            "detail": self.detail,
        }
        if self.receipts is not None:
            told["receipts"] = [dict(one) for one in self.receipts]
        if self.errors is not None:
            told["errors"] = [dict(one) for one in self.errors]
        return told

    def response(self) -> Response:
        content = to_json(self.content(), fallback=fields_of)
        return Response(content, self.status, dict(self.headers or {}), MEDIA_TYPE)


def internal() -> Problem:
    """A mistake of ours: the log says more, the sender gets nothing of it."""
    return Problem(500, "this is a mistake of the server, not of the request; its log says more")


#: The states of receipts that refuse a resume, the gravest first, and what they mean for the request.
_REFUSALS = {"forbidden": 403, "unknown": 404, "expired": 410, "superseded": 410, "cancelled": 410, "invalid": 422}


def refusal(output: OutputEvent) -> Problem:
    """The problem of a call that came to no run (contract section 8): its output says why."""
    status, receipts = output.status, output.receipts
    detail = status.message or (output.error or {}).get("message") or "it was refused"
    if status.reason in ("interaction_already_claimed", "approval_already_claimed"):
        return Problem(409, detail, receipts=receipts)
    if status.reason == "invalid_input":
        return Problem(422, detail, errors=[])
    if status.reason != "resume_rejected":
        return internal()
    return rejected(detail, receipts)


def rejected(detail: str, receipts: Sequence[Mapping[str, Any]]) -> Problem:
    """Answers that were refused, or lost against others."""
    states = {receipt["state"] for receipt in receipts}
    code = next((code for state, code in _REFUSALS.items() if state in states), 422)
    if "already_settled" in states and code == 422 and "invalid" not in states:
        code = 409
    return Problem(code, detail, receipts=receipts, errors=answer_errors(receipts))


def answer_errors(receipts: Sequence[Mapping[str, Any]], where: str | None = None) -> list[dict[str, str]] | None:
    """What is wrong with answers, with JSON pointers into the body."""
    found = [
        {"pointer": (where or f"/resume/{escape(receipt['id'])}") + error["pointer"], "message": error["message"]}
        for receipt in receipts
        for error in receipt.get("errors", ())
    ]
    return found or None


def escape(part: object) -> str:
    """One part of a JSON pointer (RFC 6901)."""
    return str(part).replace("~", "~0").replace("/", "~1")
