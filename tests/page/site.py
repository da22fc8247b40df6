"""A small web site for tests of parts of the page: what the test writes, and the page's own files, under its policy."""

import mimetypes
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

WEB = Path(__file__).parents[2] / "src" / "timbal" / "web"
POLICY = "default-src 'self'"


class Site:
    """Serves `files`, by path, and under `/web/` the page's files."""

    def __init__(self, url: str, files: dict[str, str]) -> None:
        self.url = url
        self.files = files


@contextmanager
def site() -> Iterator[Site]:
    """A site on a port of its own."""
    files: dict[str, str] = {}

    class Files(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = _read(self.path, files)
            self.send_response(404 if body is None else 200)
            self.send_header("Content-Type", f"{mimetypes.guess_type(self.path)[0] or 'text/html'}; charset=utf-8")
            self.send_header("Content-Security-Policy", POLICY)
            self.send_header("Content-Length", str(len(body or b"")))
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, format: str, *parts: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Files) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield Site(f"http://127.0.0.1:{server.server_port}", files)
        finally:
            server.shutdown()


def _read(path: str, files: dict[str, str]) -> bytes | None:
    if path in files:
        return files[path].encode()
    if path == "/favicon.ico":
        return b""
    file = WEB / path.removeprefix("/web/")
    return file.read_bytes() if path.startswith("/web/") and file.is_file() else None
