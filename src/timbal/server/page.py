"""The page at `/`: its files, the user's own beside them, and signing in."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.staticfiles import StaticFiles

from ..stores import clock
from ..types.approval import Principal
from .access import Access, session_cookie
from .bodies import read_body
from .problems import Problem

if TYPE_CHECKING:
    from .service import Service

_KINDS = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".ts": "text/plain; charset=utf-8",
}
#: What every answer of the page says: nothing from elsewhere, in nobody's frame, and look whether it is still this.
_HEADERS = {
    "Cache-Control": "no-cache",
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}
#: Files of the user's own that the page loads when they are there.
_CUSTOM = {"custom.js": '<script type="module" src="static/custom.js"></script>'}
_CUSTOM |= {"custom.css": '<link rel="stylesheet" href="static/custom.css">'}
#: The most bytes that a sign-in takes.
_FORM = 64 * 1024

Endpoint = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True)
class File:
    """A file of the page, as it is sent."""

    content: bytes
    kind: str
    tag: str

    def response(self, request: Request) -> Response:
        headers = {**_HEADERS, "ETag": self.tag}
        if request.headers.get("if-none-match") == self.tag:
            return Response(status_code=304, headers=headers)
        return Response(self.content, headers=headers, media_type=self.kind)


@cache
def page_files() -> dict[str, File]:
    """The files of the page by their path below it, read once."""
    return dict(_below(files("timbal") / "web", ""))


def _below(folder: Traversable, at: str) -> Iterable[tuple[str, File]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _below(entry, f"{at}{entry.name}/")
        elif (kind := _KINDS.get(Path(entry.name).suffix)) is not None:
            content = entry.read_bytes()
            yield at + entry.name, File(content, kind, f'"{hashlib.sha256(content).hexdigest()[:32]}"')


@cache
def _html(name: str) -> str:
    return (files("timbal") / "web" / name).read_text(encoding="utf-8")


class Page:
    """The page of one service. `static`: a folder whose files are served below `static/`, to those who are let in."""

    def __init__(self, service: Service, static: Path | None) -> None:
        self._service = service
        self._access: Access = service.access
        self._own = StaticFiles(directory=static) if static is not None else None
        loaded = "\n".join(tag for name, tag in _CUSTOM.items() if static is not None and (static / name).is_file())
        self._index = _html("index.html").replace("<!--custom-->", loaded)

    def routes(self) -> Iterable[tuple[str, str, Endpoint]]:
        """Method, path and function of each."""
        yield "GET", "/", self._placed(self._show)
        yield "POST", "/session", self._placed(self._sign_in)
        yield "GET", "/client.js", self._placed(self._file)
        yield "GET", "/client.d.ts", self._placed(self._file)
        yield "GET", "/web/{path:path}", self._placed(self._file)
        yield "GET", "/static/{path:path}", self._placed(self._static)

    def _placed(self, work: Endpoint) -> Endpoint:
        """The function, for requests that come from where they may."""

        async def answer(request: Request) -> Response:
            try:
                self._access.check_place(request.url.scheme, request.headers)
                return await work(request)
            except Problem as problem:
                return problem.response()

        return answer

    async def _show(self, request: Request) -> Response:
        try:
            by = self._access.who(request.headers)
        except Problem:
            return _html_response(_html("signin.html").replace("<!--again-->", ""), 401)
        return _html_response(self._index.replace("{served}", escape(json.dumps(self._served(by)))))

    def _served(self, by: Principal | None) -> dict[str, object]:
        """What the page has to know before it asks anything."""
        service = self._service
        runnables = [
            {
                "name": one.name,
                "type": one.kind,
                "description": one.description,
                "at": "" if one is service.default else f"{one.name}/",
            }
            for one in service.runnables.values()
        ]
        who = None if by is None else {"sub": by.sub, "roles": list(by.roles)}
        return {"runnables": runnables, "by": who, "now": clock.now()}

    async def _sign_in(self, request: Request) -> Response:
        """Keep a token in a cookie that scripts and other sites don't get; an empty one signs out."""
        form = parse_qs((await read_body(request, _FORM)).decode("utf-8", "replace"))
        token = form.get("token", [""])[0].strip()
        name, home = session_cookie(request.headers), request.url.path.removesuffix("session")
        response = RedirectResponse(".", 303, _HEADERS)
        if not token:
            response.delete_cookie(name, home, httponly=True, samesite="strict")
            return response
        try:
            self._access.who({"authorization": f"Bearer {token}"})
        except Problem as problem:
            told = f'<p role="alert">{escape(problem.detail)}</p>'
            return _html_response(_html("signin.html").replace("<!--again-->", told), 401)
        secure = request.url.scheme == "https"
        response.set_cookie(name, token.encode().hex(), path=home, httponly=True, samesite="strict", secure=secure)
        return response

    async def _file(self, request: Request) -> Response:
        file = page_files().get(request.path_params.get("path") or request.url.path.rpartition("/")[2])
        if file is None:
            raise Problem(404, "the page has no such file")
        return file.response(request)

    async def _static(self, request: Request) -> Response:
        self._access.who(request.headers)
        if self._own is None:
            raise Problem(404, "there are no files of your own: timbal serve --static DIR")
        try:
            response = await self._own.get_response(request.path_params["path"], request.scope)
        except HTTPException:
            raise Problem(404, "there is no such file in the folder of --static") from None
        response.headers.update(_HEADERS)
        return response


def _html_response(text: str, status: int = 200) -> Response:
    return Response(text, status, {**_HEADERS, "Cache-Control": "no-store"}, "text/html; charset=utf-8")
