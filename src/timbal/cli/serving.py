"""`timbal serve`: runnables over HTTP, in one process or several."""

from __future__ import annotations

import ipaddress
import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from .errors import DONE, FAILED, CliError
from .locate import Target, load, load_all
from .places import give_store, has_own_store, named_store

if TYPE_CHECKING:
    from ..runnables.base import Runnable

#: How a server's own processes are told what to serve. Secrets are read from variables of their own.
HANDED_ON = "TIMBAL_SERVE"
TOKEN, JWT_KEY = "TIMBAL_TOKEN", "TIMBAL_JWT_KEY"


class Serving(NamedTuple):
    """What to serve, where, and to whom."""

    target: str
    host: str = "127.0.0.1"
    port: int = 4444
    store: str | None = None
    workers: int = 1
    allow_hosts: Sequence[str] = ()
    allow_origins: Sequence[str] = ()
    jwt_audience: str | None = None
    jwt_issuer: str | None = None
    jwt_leeway: float = 30.0
    insecure: bool = False
    logs: str = "text"
    grace: float = 10.0
    static: str | None = None


def target_of(given: str | None) -> str:
    """The named runnable, or that of TIMBAL_RUNNABLE; raises `CliError`."""
    target = given or os.environ.get("TIMBAL_RUNNABLE")
    if not target:
        raise CliError("what shall be served?", hint="Name it: timbal serve app.py::agent, or set TIMBAL_RUNNABLE.")
    return target


def serve(serving: Serving, token: str | None, jwt_key: str | None) -> int:
    """Serve until it is told to stop."""
    token = token or os.environ.get(TOKEN) or None
    jwt_key = _read_key(jwt_key or os.environ.get(JWT_KEY) or None)
    if not (token or jwt_key or serving.insecure or _is_loopback(serving.host)):
        raise CliError(
            f"everybody who reaches {serving.host} could run and answer everything",
            hint=f"Give --token (or {TOKEN}) or --jwt-key, or --insecure where something else keeps others out.",
        )
    for name, secret in ((TOKEN, token), (JWT_KEY, jwt_key)):
        if secret:
            os.environ[name] = secret
        else:
            os.environ.pop(name, None)
    if serving.static is not None and not Path(serving.static).is_dir():
        raise CliError(f"--static {serving.static} is no folder")
    served, _ = _runnables(serving)  # what is wrong with them is said here, once
    if serving.workers > 1 and named_store(serving.store) == "memory://" and not any(map(has_own_store, served)):
        raise CliError("memory:// belongs to one process", hint="Name another --store, or take --workers 1.")
    return _serve(serving)


def _serve(serving: Serving) -> int:
    try:
        import uvicorn
    except ImportError:
        raise CliError("serving needs more packages", hint="pip install 'timbal-hitl[server]'") from None
    from ..server.logs import set_up_logs

    set_up_logs(serving.logs)
    os.environ[HANDED_ON] = json.dumps(serving._asdict())
    options: dict[str, Any] = {
        "host": serving.host,
        "port": serving.port,
        "log_config": None,
        "timeout_graceful_shutdown": max(1, int(serving.grace)),
        "server_header": False,
        "ws": "none",
    }
    if serving.workers > 1:
        uvicorn.run(f"{__name__}:app", factory=True, workers=serving.workers, **options)
        return DONE
    server = uvicorn.Server(uvicorn.Config(app(), **options))
    server.run()
    return DONE if server.started else FAILED


def app() -> Any:
    """The application of one of the server's processes."""
    from ..server import Limits, create_app
    from ..server.access import JwtRules
    from ..server.logs import set_up_logs

    serving = Serving(**json.loads(os.environ[HANDED_ON]))
    set_up_logs(serving.logs)
    served, default = _runnables(serving)
    store = give_store(served[0], serving.store)
    key = os.environ.get(JWT_KEY)
    token = os.environ.get(TOKEN)
    try:
        rules = JwtRules(key, serving.jwt_audience, serving.jwt_issuer, serving.jwt_leeway) if key else None
        return create_app(
            served,
            store=store,
            default=default,
            token=token,
            jwt=rules,
            allow_hosts=_hosts(serving, guarded=bool(token or key)),
            allow_origins=serving.allow_origins,
            limits=Limits(grace=serving.grace),
            static=serving.static,
        )
    except ValueError as problem:
        raise CliError(str(problem)) from None


def _runnables(serving: Serving) -> tuple[list[Runnable], Runnable | None]:
    """What is served, and which of it at the root: the one that is named, else the only one."""
    target = Target(serving.target)
    if target.name is None:
        served = load_all(target)
        return served, served[0] if len(served) == 1 else None
    default = load(target)
    return [default], default


def _hosts(serving: Serving, *, guarded: bool) -> Iterable[str] | None:
    """What may stand in `Host`: anything where credentials are needed, or where --insecure says who cares for that."""
    from ..server.access import ANY_HOST, LOOPBACK

    if serving.allow_hosts:
        return {*LOOPBACK, *serving.allow_hosts}
    return ANY_HOST if guarded or not _is_loopback(serving.host) else None


def _read_key(given: str | None) -> str | None:
    """A key, or what is in the file `@path`."""
    if given is None or not given.startswith("@"):
        return given
    try:
        return Path(given[1:]).read_text(encoding="utf-8").strip()
    except OSError as problem:
        raise CliError(f"the JWT key can't be read from {given[1:]}: {problem.strerror}") from None


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"
