"""What every route does before and after its own work: who asks, from where, and what they are told when it fails."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response

from ..errors import StoreError
from ..types.approval import Principal
from ..types.value import fields_of
from .access import Role, check_role
from .problems import Problem, internal
from .service import Service
from .settings import MOST, USUAL

log = logging.getLogger("timbal.server")


class Call(NamedTuple):
    """One request, let in: `by` is who sent it, where that has to be said."""

    request: Request
    service: Service
    by: Principal | None

    def number(self, name: str, otherwise: int, least: int, most: int) -> int:
        """A whole number out of the query; raises `Problem`."""
        text = self.request.query_params.get(name)
        if text is None:
            return otherwise
        if not (text.isascii() and text.isdecimal()) or not least <= int(text) <= most:
            message = f"this is a whole number from {least} to {most}"
            raise Problem(422, f"{name}: {message}", errors=[{"pointer": f"/{name}", "message": message}])
        return int(text)

    def page(self) -> dict[str, Any]:
        """`after` and `limit`."""
        return {"after": self.request.query_params.get("after"), "limit": self.number("limit", USUAL, 1, MOST)}

    def labels(self) -> dict[str, str]:
        """`label=NAME=VALUE`, any number of times; raises `Problem`."""
        pairs = [text.partition("=") for text in self.request.query_params.getlist("label")]
        if any(not equals for _, equals, _ in pairs):
            message = "this is NAME=VALUE"
            raise Problem(422, f"label: {message}", errors=[{"pointer": "/label", "message": message}])
        return {name: value for name, _, value in pairs}


Work = Callable[[Call], Awaitable[Response]]


def endpoint(
    service: Service, work: Work, *roles: Role, guarded: bool = True
) -> Callable[[Request], Awaitable[Response]]:
    """The route's function: `work`, for those who have one of these roles; not `guarded`, for anybody."""

    async def answer(request: Request) -> Response:
        since = time.perf_counter()
        response = await _answer(request, service, work, roles if guarded else None)
        milliseconds = round((time.perf_counter() - since) * 1000, 1)
        told = {"run_id": response.headers.get("x-run-id") or request.path_params.get("run_id")}
        log.info("%s %s %d %s ms", request.method, request.url.path, response.status_code, milliseconds, extra=told)
        return response

    return answer


async def _answer(request: Request, service: Service, work: Work, roles: tuple[Role, ...] | None) -> Response:
    try:
        service.access.check_place(request.url.scheme, request.headers)
        by = None
        if roles is not None:
            by = service.access.who(request.headers)
            check_role(by, roles)
        if not service.started:
            raise _not_started(service)
        return await work(Call(request, service, by))
    except Problem as problem:
        return problem.response()
    except StoreError as error:
        log.error("the store failed: %s", error)
        return Problem(503, "the store can't be used now; nothing was changed", headers={"Retry-After": "1"}).response()
    except Exception:
        log.exception("%s %s failed", request.method, request.url.path)
        return internal().response()


def _not_started(service: Service) -> Problem:
    if service.stopping:
        return Problem(503, "the server is stopping; ask again", headers={"Retry-After": "1"})
    return Problem(
        503,
        "these routes were not started: give their lifespan to the application that has them, "
        "as FastAPI(lifespan=timbal.server.lifespan(router)); an application mounted into another one needs that too",
    )


def json_response(content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A value of ours as JSON."""
    return Response(to_json(content, fallback=fields_of), status, dict(headers or {}), "application/json")
