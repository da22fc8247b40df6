"""All routes of a service, each with what OpenAPI is told of it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import APIRouter
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ..runnables.base import Runnable
from . import inbox_routes, run_routes, schemas
from .access import Role
from .endpoints import Call, Work, endpoint, json_response
from .service import Service
from .settings import LONGEST_WAIT, MOST, USUAL


class PlainRoute(APIRoute):
    """A route that FastAPI describes, and whose function takes the request and gives the response itself."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler: Callable[[Request], Coroutine[Any, Any, Response]] = self.endpoint
        return handler

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Without what FastAPI does for functions with dependencies: these have none, and answer all that is raised."""
        if scope["method"] not in (self.methods or ()):
            await super().handle(scope, receive, send)
            return
        response = await self.endpoint(Request(scope, receive, send))
        await response(scope, receive, send)


class Router(APIRouter):
    """The routes of one service, to be included; give `lifespan(router)` to the application."""

    def __init__(self, service: Service) -> None:
        super().__init__(route_class=PlainRoute)
        self.service = service


class Routes:
    """Puts the routes of a service into its router, each with what it says of itself."""

    def __init__(self, api: Router) -> None:
        self._api = api
        self._service = api.service

    def add_all(self) -> None:
        service = self._service
        for runnable in service.runnables.values():
            if service.default is runnable:
                self._of_runnable(runnable, "")
            self._of_runnable(runnable, f"/{runnable.name}")
        self._of_runs()
        self._of_inbox()
        self._add(
            "GET",
            "/readyz",
            run_routes.ready,
            "Whether the store can be reached",
            schemas.answers(s200={"description": "It can"}),
            open=True,
        )
        self._api.add_api_route(
            "/healthcheck",
            _alive,
            methods=["GET"],
            status_code=204,
            summary="Whether it is there",
            response_class=Response,
        )

    def _of_runnable(self, runnable: Runnable, at: str) -> None:
        body = {
            "requestBody": schemas.body(schemas.call_schema(runnable)),
            "parameters": [schemas.header("Idempotency-Key", "the same start again follows the first one")],
        }
        refused = (400, 404, 409, 410, 413, 415, 422)
        told = schemas.streams(
            "`id: <seq>`, `data: <event>`; then `event: end`, `continued` or `expired`", schemas.EVENT
        )
        output = schemas.gives("OutputEvent", "The root OUTPUT")
        name = runnable.name
        self._add(
            "POST",
            f"{at}/stream",
            run_routes.stream(runnable),
            f"Run {name}, and read its events",
            schemas.answers(*refused, s200=told),
            body,
            ("run",),
        )
        self._add(
            "POST",
            f"{at}/run",
            run_routes.run(runnable),
            f"Run {name} to its end or its pause",
            schemas.answers(*refused, s200=output),
            body,
            ("run",),
        )
        schema = schemas.answers(
            s200={"description": "JSON Schema", "content": {"application/json": {"schema": {"type": "object"}}}}
        )
        everybody: tuple[Role, ...] = ("run", "answer")
        self._add(
            "GET",
            f"{at}/params_model_schema",
            _fixed(schemas.params_schema(runnable)),
            f"JSON Schema of the input of {name}",
            schema,
            roles=everybody,
        )
        self._add(
            "GET",
            f"{at}/return_model_schema",
            _fixed(schemas.return_schema(runnable)),
            f"JSON Schema of the output of {name}",
            schema,
            roles=everybody,
        )

    def _of_runs(self) -> None:
        roles: tuple[Role, ...] = ("run", "answer")
        paging: dict[str, Any] = {
            "after": {"type": "string"},
            "limit": {"type": "integer", "minimum": 1, "maximum": MOST, "default": USUAL},
        }
        label = {"type": "array", "items": {"type": "string", "description": "NAME=VALUE"}}
        text = {"type": "string"}
        filters = schemas.query(status=text, runnable=text, label=label, **paging)
        self._add(
            "GET",
            "/runs",
            run_routes.listing,
            "List runs, newest first",
            schemas.answers(422, s200=schemas.gives("Runs", "A page")),
            {"parameters": filters},
            roles,
        )
        self._add(
            "GET",
            "/runs/{run_id}",
            run_routes.record,
            "A run, and what it came to",
            schemas.answers(404, s200=schemas.gives("RunRecord", "Its record")),
            _path("run_id"),
            roles,
        )
        pages = schemas.query(
            after={"type": "integer", "minimum": 0},
            limit={"type": "integer", "minimum": 1, "maximum": MOST},
            wait_ms={"type": "integer", "minimum": 0, "maximum": LONGEST_WAIT},
        )
        events = {
            "parameters": [
                *_path("run_id")["parameters"],
                *pages,
                schemas.header("Last-Event-ID", "go on after this event"),
            ]
        }
        told = schemas.streams("As they were told, and as they are", schemas.EVENT)
        told["content"]["application/json"] = {"schema": {"$ref": "#/components/schemas/Events"}}
        self._add(
            "GET",
            "/runs/{run_id}/events",
            run_routes.events,
            "The events of a run, live or later",
            schemas.answers(404, 422, s200=told),
            events,
            roles,
        )
        reason = schemas.body(
            {"type": "object", "properties": {"reason": text}, "additionalProperties": False}, required=False
        )
        self._add(
            "POST",
            "/cancel/{run_id}",
            run_routes.cancel,
            "End a run for good",
            schemas.answers(400, 404, 413, 415, 422, s204={"description": "It is asked to stop, or cancelled"}),
            {**_path("run_id"), "requestBody": reason},
            ("run",),
            204,
        )

    def _of_inbox(self) -> None:
        roles: tuple[Role, ...] = ("run", "answer")
        text = {"type": "string"}
        label = {"type": "array", "items": {"type": "string", "description": "NAME=VALUE"}}
        which = schemas.query(runnable=text, kind=text, label=label)
        paging = schemas.query(after=text, limit={"type": "integer", "minimum": 1, "maximum": MOST, "default": USUAL})
        self._add(
            "GET",
            "/pending",
            inbox_routes.listing,
            "What waits for a person, oldest first",
            schemas.answers(422, s200=schemas.gives("PendingItems", "A page")),
            {"parameters": [*which, *paging]},
            roles,
        )
        told = schemas.streams("`event: snapshot` until it is complete, then `opened` and `settled`", schemas.NEWS)
        self._add(
            "GET",
            "/pending/stream",
            inbox_routes.live,
            "The inbox as it changes",
            schemas.answers(422, s200=told),
            {"parameters": which},
            roles,
        )
        one = _path("run_id", "id")
        again = schemas.header("Idempotency-Key", "the same answer again gets the same response")
        self._add(
            "GET",
            "/pending/{run_id}/{id}",
            inbox_routes.item,
            "One item with its record",
            schemas.answers(404, s200=schemas.gives("ItemRecord", "The item")),
            one,
            roles,
        )
        value = schemas.body(
            {"type": "object", "properties": {"value": {}}, "required": ["value"], "additionalProperties": False}
        )
        self._add(
            "POST",
            "/pending/{run_id}/{id}",
            inbox_routes.answer,
            "Answer it; the run goes on in the background",
            schemas.answers(400, 404, 409, 410, 413, 415, 422, s202=schemas.gives("Answered", "It is settled")),
            {"parameters": [*one["parameters"], again], "requestBody": value},
            roles,
            202,
        )

    def _add(
        self,
        method: str,
        path: str,
        work: Work,
        summary: str,
        responses: dict[int | str, Any],
        extra: dict[str, Any] | None = None,
        roles: tuple[Role, ...] = (),
        status: int = 200,
        *,
        open: bool = False,
    ) -> None:
        """One route. `open`: it needs no credentials."""
        service = self._service
        self._api.add_api_route(
            path,
            endpoint(service, work, *roles, guarded=not open),
            methods=[method],
            summary=summary,
            status_code=status,
            responses=responses,
            response_class=Response,
            openapi_extra=extra,
            operation_id=f"{method.lower()}{path.replace('/', '_').replace('{', '').replace('}', '')}",
        )


def _path(*names: str) -> dict[str, Any]:
    return {"parameters": [{"name": n, "in": "path", "required": True, "schema": {"type": "string"}} for n in names]}


def _fixed(content: Any) -> Work:
    async def give(call: Call) -> Response:
        return json_response(content)

    return give


async def _alive(request: Request) -> Response:
    return Response(status_code=204)
