"""The APIs of OpenAI, Anthropic and Google on a loopback port: aimock answers, and a recorder stands before it.

The recorder keeps each request as it came, and can answer in aimock's place with what no working API would send.
"""

import json
import socket
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any

ROOT = Path(__file__).parents[1]
AIMOCK = ROOT / ".venv/node/node_modules/@copilotkit/aimock/dist/cli.js"
NOTHING = {"fixtures": [{"match": {"userMessage": "never said"}, "response": {"content": ""}}]}  # strict wants one


@dataclass(frozen=True)
class Raw:
    """An answer as bytes. `cut`: the connection breaks after them. `hold`: it stays open until this is set."""

    body: str | bytes = ""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    cut: bool = False
    hold: Event | None = None


@dataclass(frozen=True)
class Asked:
    """A request as it came; `client` is the connection it came by."""

    path: str
    headers: dict[str, str]
    body: Any
    client: Any = None


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away in the middle is none of our business."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class FakeApi:
    """What tests see of it. `url` is the base that `environment` gives each provider its own form of."""

    def __init__(self, aimock: int) -> None:
        self._aimock = aimock
        self._queue: deque[Raw] = deque()
        self.requests: list[Asked] = []
        self._server = _Server(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables that lead all providers here."""
        return {
            "OPENAI_BASE_URL": f"{self.url}/v1",
            "OPENAI_API_KEY": "sk-of-openai",
            "ANTHROPIC_BASE_URL": self.url,
            "ANTHROPIC_API_KEY": "sk-of-anthropic",
            "GOOGLE_GEMINI_BASE_URL": self.url,
            "GOOGLE_API_KEY": "key-of-google",
        }

    def answer(self, *fixtures: dict[str, Any]) -> None:
        """Add fixtures of aimock: `{"match": {...}, "response": {...}}`; the first that matches answers."""
        self._control("POST", "fixtures", {"fixtures": list(fixtures)})

    def say(self, *replies: dict[str, Any], **match: Any) -> None:
        """Answer the requests that match, in their order, with these responses of aimock; the last one repeats."""
        *first, last = replies
        self.answer(
            *({"match": {**match, "sequenceIndex": i}, "response": reply} for i, reply in enumerate(first)),
            {"match": match, "response": last},
        )

    def serve(self, *answers: Raw) -> None:
        """Answer the next requests with these, in aimock's place."""
        self._queue.extend(answers)

    def reset(self) -> None:
        self._queue.clear()
        self.requests.clear()
        self._control("POST", "reset")

    def serve_forever(self) -> None:
        self._server.serve_forever(poll_interval=0.05)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _control(self, method: str, what: str, body: Any = None) -> None:
        connection = HTTPConnection("127.0.0.1", self._aimock, timeout=30)
        connection.request(method, f"/__aimock/{what}", json.dumps(body or {}), {"content-type": "application/json"})
        answer = connection.getresponse()
        said = answer.read().decode()
        connection.close()
        assert answer.status == 200, said

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        api = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                api.requests.append(Asked(self.path, headers, json.loads(body), self.client_address))
                if api._queue:
                    self._raw(api._queue.popleft())
                else:
                    self._pass_on(body)

            def _raw(self, raw: Raw) -> None:
                self.close_connection = True
                body = raw.body.encode() if isinstance(raw.body, str) else raw.body
                headers = {"content-type": "text/event-stream", "connection": "close", **raw.headers}
                if raw.cut or raw.hold:
                    headers["transfer-encoding"] = "chunked"  # so that its end is missed
                else:
                    headers["content-length"] = str(len(body))
                self.send_response(raw.status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                chunked = raw.cut or raw.hold
                self.wfile.write(b"%x\r\n%b\r\n" % (len(body), body) if chunked and body else b"" if chunked else body)
                self.wfile.flush()
                if raw.hold is not None:
                    raw.hold.wait(60)

            def _pass_on(self, body: bytes) -> None:
                upstream = HTTPConnection("127.0.0.1", api._aimock, timeout=60)
                headers = {n: v for n, v in self.headers.items() if n.lower() not in ("host", "accept-encoding")}
                upstream.request("POST", self.path, body, headers)
                answer = upstream.getresponse()
                self.send_response(answer.status)
                for name, value in answer.getheaders():
                    if name.lower() not in ("transfer-encoding", "content-length", "connection", "keep-alive"):
                        self.send_header(name, value)
                self.send_header("transfer-encoding", "chunked")
                self.end_headers()
                with suppress(BrokenPipeError, ConnectionResetError):
                    while piece := answer.read1(65536):
                        self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
                        self.wfile.flush()
                    self.wfile.write(b"0\r\n\r\n")
                upstream.close()

            def log_message(self, format: str, *args: Any) -> None:
                pass

        return Handler


@contextmanager
def fake_api() -> Iterator[FakeApi]:
    """Both servers, on free ports, until the end of the block."""
    with _aimock() as port:
        api = FakeApi(port)
        thread = Thread(target=api.serve_forever)
        thread.start()
        try:
            yield api
        finally:
            api.close()
            thread.join()


@contextmanager
def _aimock() -> Iterator[int]:
    if not AIMOCK.exists():
        raise RuntimeError("the fake model API is not installed: run `make setup`")
    with tempfile.TemporaryDirectory() as folder:
        fixtures = Path(folder, "fixtures.json")
        fixtures.write_text(json.dumps(NOTHING))
        options = ["--port", "0", "--strict", "--log-level", "info", "--fixtures", str(fixtures)]
        with subprocess.Popen(["node", str(AIMOCK), *options], stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                line = next(line for line in process.stdout if "listening on" in line)
                Thread(target=process.stdout.read, daemon=True).start()  # so that its log never fills the pipe
                yield int(line.rsplit(":", 1)[1])
            finally:
                process.terminate()


def free_port() -> int:
    """A port on which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
