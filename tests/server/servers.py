"""`timbal serve` as its users run it: processes on loopback, and clients that talk to them."""

import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import httpx

TIMBAL = str(Path(sys.executable).with_name("timbal"))
APP = Path(__file__).parent / "apps" / "house.py"
SECONDS = 60
_LEFT_OUT = ("TIMBAL_STORE", "TIMBAL_RUNNABLE", "TIMBAL_TOKEN", "TIMBAL_JWT_KEY", "TIMBAL_SERVE")


class Told(NamedTuple):
    """One server-sent event."""

    name: str | None
    id: int | None
    data: Any


class Server:
    """A server in a process of its own."""

    def __init__(self, folder: Path, *options: str, command: list[str] | None = None, **environment: str) -> None:
        """`timbal serve house.py` with these options, or another command that tells its address as uvicorn does."""
        if not (folder / "house.py").exists():
            shutil.copy(APP, folder / "house.py")
        kept = {name: value for name, value in os.environ.items() if name not in _LEFT_OUT}
        self._log = folder / f"log-{uuid.uuid4().hex}"
        with self._log.open("wb") as log:  # not a pipe: a server would wait for somebody to read it
            self.process = subprocess.Popen(
                command or [TIMBAL, "serve", "house.py", "--port", "0", *options],
                cwd=folder,
                env=kept | environment,
                stderr=log,
                stdout=subprocess.DEVNULL,
            )
        try:
            self.url = self._ready()
        except BaseException:
            self.kill()
            raise

    def _ready(self) -> str:
        """Its address, once it takes requests."""
        until = time.monotonic() + SECONDS
        while not ((found := re.search(r"running on (http://\S+) ", self.read_log())) and _is_there(_local(found[1]))):
            assert self.process.poll() is None, self.read_log()
            assert time.monotonic() < until, self.read_log()
            select.select([], [], [], 0.05)
        return _local(found[1])

    def read_log(self) -> str:
        """What it has logged."""
        return self._log.read_text()

    def client(self, **options: Any) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=SECONDS, trust_env=False, **options)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(SECONDS)

    def stop(self) -> None:
        """Ask it to stop, and wait until it has."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(15)
            except subprocess.TimeoutExpired:
                self.kill()


def _local(url: str) -> str:
    return url.replace("0.0.0.0", "127.0.0.1")


def _is_there(url: str) -> bool:
    """Whether it takes requests: with several processes the address is told before the first of them listens."""
    try:
        httpx.get(f"{url}/healthcheck", trust_env=False)
    except httpx.ConnectError:
        return False
    return True


def read(response: httpx.Response) -> Iterator[Told]:
    """The server-sent events of a response."""
    name, id, data = None, None, []
    for line in _lines(response):
        field, _, value = line.partition(": ")
        if field == "event":
            name = value
        elif field == "id":
            id = int(value)
        elif field == "data":
            data.append(value)
        elif not line and data:
            yield Told(name, id, json.loads("\n".join(data)))
            name, id, data = None, None, []


def _lines(response: httpx.Response) -> Iterator[str]:
    """Lines that end with LF: `iter_lines` also breaks at what else Unicode has for that, which JSON may hold."""
    left = ""
    for text in response.iter_text():
        *lines, left = (left + text).split("\n")
        yield from lines


@contextmanager
def stream(client: httpx.Client, path: str, body: Any = None, **options: Any) -> Iterator[Iterator[Told]]:
    """Open a stream and read it."""
    method = "GET" if body is None else "POST"
    with client.stream(method, path, **({"json": body} if body is not None else {}), **options) as response:
        if response.status_code != 200:
            response.read()
            raise AssertionError(f"{response.status_code}: {response.text}")
        yield read(response)


def all_of(client: httpx.Client, path: str, body: Any = None, **options: Any) -> list[Told]:
    """A stream, read to its end."""
    with stream(client, path, body, **options) as told:
        return list(told)


def events(told: list[Told]) -> list[Any]:
    """The events among what was told."""
    return [one.data for one in told if one.name is None]
