"""The application: routes over a service, by itself or as part of somebody's own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, FastAPI
from fastapi.middleware.cors import CORSMiddleware
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from .. import __version__
from ..runnables.base import Runnable
from . import inbox_routes, run_routes, schemas
from .access import ANY_HOST, LOOPBACK, Access, JwtRules, Role
from .endpoints import Call, Work, endpoint, json_response
from .page import Page
from .problems import KINDS, Problem
from .service import Service
from .settings import LONGEST_WAIT, MOST, USUAL, Limits

if TYPE_CHECKING:
    from ..stores.base import BaseStore

#: What no runnable can be called that has routes of its own beside others.
TAKEN = frozenset(
    {"stream", "run", "runs", "cancel", "pending", "params_model_schema", "return_model_schema", "healthcheck"}
    | {"readyz", "docs", "redoc", "session", "static", "web"}
)


def create_app(
    runnables: Runnable | Iterable[Runnable],
    *,
    store: BaseStore | str | None = None,
    default: Runnable | None = None,
    token: str | None = None,
    jwt: JwtRules | None = None,
    allow_hosts: Iterable[str] | None = None,
    allow_origins: Iterable[str] = (),
    limits: Limits | None = None,
    static: Path | str | None = None,
) -> FastAPI:
    """An ASGI application with all routes of contract section 8.

    `default` is the runnable at the root, where it is not the only one. `store`: an object or a URL; else that of the
    runnables. `token` or `jwt`: then every route but the health ones needs credentials. `allow_hosts`: what may stand
    in `Host`; else the names of this machine itself, and anything where credentials are needed. `allow_origins`: sites
    whose pages may call. `static`: a folder with files of your own for the page, `custom.js` and `custom.css` among
    them. Raises `ValueError` for runnables that can't be served together.
    """
    api = router(
        runnables,
        store=store,
        default=default,
        token=token,
        jwt=jwt,
        allow_hosts=allow_hosts,
        allow_origins=allow_origins,
        limits=limits,
        static=static,
    )
    app = FastAPI(title="timbal", version=__version__, lifespan=lifespan(api), docs_url=None, redoc_url=None)
    app.state.timbal = api.service
    app.include_router(api)
    app.add_exception_handler(HTTPException, _no_such_route)
    if api.service.access.allow_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=sorted(api.service.access.allow_origins),
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization", "Content-Type", "Idempotency-Key", "Last-Event-ID"],
            expose_headers=["X-Run-Id", "Location", "Retry-After"],
        )
    return app


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


def router(
    runnables: Runnable | Iterable[Runnable],
    *,
    store: BaseStore | str | None = None,
    default: Runnable | None = None,
    token: str | None = None,
    jwt: JwtRules | None = None,
    allow_hosts: Iterable[str] | None = None,
    allow_origins: Iterable[str] = (),
    limits: Limits | None = None,
    static: Path | str | None = None,
) -> Router:
    """The same routes for an application of your own: `app.include_router(api, prefix="/ai")`."""
    served = [runnables] if isinstance(runnables, Runnable) else list(runnables)
    if default is None and len(served) == 1:
        default = served[0]
    _check(served, default)
    hosts = frozenset(allow_hosts) if allow_hosts is not None else ANY_HOST if token or jwt else LOOPBACK
    access = Access(token, jwt, hosts, frozenset(allow_origins))
    api = Router(Service(served, default, store, access, limits or Limits()))
    _Routes(api).add_all()
    page = Page(api.service, _folder(static))
    for method, path, show in page.routes():
        api.add_route(path, show, [method], include_in_schema=False)
    return api


def _folder(given: Path | str | None) -> Path | None:
    if given is not None and not Path(given).is_dir():
        raise ValueError(f"static={str(given)!r} is no folder")
    return Path(given) if given is not None else None


def _check(served: list[Runnable], default: Runnable | None) -> None:
    names = [runnable.name for runnable in served]
    if not served:
        raise ValueError("a server needs a runnable: an Agent or a Tool")
    if len(set(names)) != len(names):
        raise ValueError(f"two runnables have the same name: {', '.join(sorted(names))}; give one another name")
    if default is not None and default not in served:
        raise ValueError(f"the default runnable {default.name!r} is not among those that are served")
    if taken := TAKEN.intersection(names):
        raise ValueError(f"{', '.join(sorted(taken))} can't be served: a route has this name; give it another one")


def lifespan(*parts: FastAPI | Router) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    """What starts and stops routers, or applications made by `create_app`, inside another application.

    `app = FastAPI(lifespan=lifespan(api))`. Without it the routes say at the first request that they were not started.
    """
    services = [part.service if isinstance(part, Router) else part.state.timbal for part in parts]

    @asynccontextmanager
    async def alive(app: FastAPI) -> AsyncIterator[None]:
        _describe(app)
        async with AsyncExitStack() as stack:
            for service in services:
                await service.start()
                stack.push_async_callback(service.stop)
            yield

    return alive


def _describe(app: FastAPI) -> None:
    """Let the application's OpenAPI document hold what the routes refer to."""
    plain = app.openapi

    def described() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = schemas.complete(plain())
        return app.openapi_schema

    app.openapi = described  # type: ignore[method-assign]


async def _no_such_route(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    detail = "there is nothing at this address" if error.status_code == 404 else str(error.detail)
    status = error.status_code if error.status_code in KINDS else 400
    return Problem(status, detail, headers=error.headers).response()


class _Routes:
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
