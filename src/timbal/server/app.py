"""The application: routes over a service, by itself or as part of somebody's own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from fastapi.middleware.cors import CORSMiddleware
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from .. import __version__
from ..runnables.base import Runnable
from . import schemas
from .access import ANY_HOST, LOOPBACK, Access, JwtRules
from .page import Page
from .problems import KINDS, Problem
from .routes import Router, Routes
from .service import Service
from .settings import Limits

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
    Routes(api).add_all()
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
