"""Readers that don't read are let go, and those that wait hear that somebody is there."""

import json
import shutil
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from .servers import APP, SECONDS, Server, all_of

#: More than the buffers of a connection hold, on both sides.
MANY = 30_000
READERS = 16


@pytest.fixture
def brisk(folder: Path) -> Iterator[Server]:
    """A server that sends a comment after a tenth of a second, and has a second's patience."""
    shutil.copy(APP.with_name("brisk.py"), folder / "brisk.py")
    command = [sys.executable, "-m", "uvicorn", "--app-dir", str(folder), "--port", "0", "brisk:app"]
    with Server(folder, command=command) as server:
        yield server


def ask_and_never_read(server: Server, path: str) -> socket.socket:
    """A connection that has sent a request, and can take a few kilobytes of its answer."""
    place = urlsplit(server.url)
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(SECONDS)
    connection.connect((place.hostname, place.port))
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
    return connection


def rest_of(connection: socket.socket) -> bytes:
    """What comes until the server closes the connection, without the framing of HTTP."""
    raw = b"".join(iter(lambda: connection.recv(65536), b""))
    head, _, chunks = raw.partition(b"\r\n\r\n")
    assert b" 200 " in head.splitlines()[0]
    body = b""
    while chunks:
        size, _, chunks = chunks.partition(b"\r\n")
        body, chunks = body + chunks[: int(size, 16)], chunks[int(size, 16) + 2 :]
    return body


def long_run(client: httpx.Client) -> str:
    """A run that has told more than a connection holds."""
    run_id: str = client.post("/count/run", json={"to": MANY}, timeout=SECONDS).json()["run_id"]
    return run_id


def wait_until_let_go(server: Server, count: int) -> None:
    until = time.monotonic() + SECONDS
    while server.read_log().count("was let go") < count:
        assert time.monotonic() < until, server.read_log()


@pytest.mark.slow
def test_a_reader_that_never_reads_is_let_go_and_can_read_on_after_the_last_number_it_has(brisk: Server) -> None:
    with brisk.client() as client:
        run_id = long_run(client)
        whole = client.get(f"/runs/{run_id}/events").content
        with ask_and_never_read(brisk, f"/runs/{run_id}/events") as connection:
            wait_until_let_go(brisk, 1)
            told = rest_of(connection)
        assert whole.startswith(told)
        assert told.endswith(b"\n\n")
        assert len(told) < len(whole)
        last = told.rstrip().rpartition(b"id: ")[2].split(b"\n")[0].decode()
        rest = client.get(f"/runs/{run_id}/events", headers={"Last-Event-ID": last}).content
        assert told + rest == whole


@pytest.mark.slow
def test_readers_that_never_read_hold_little_memory(brisk: Server) -> None:
    def memory() -> int:
        """The most that the server has had so far, in bytes."""
        status = Path(f"/proc/{brisk.process.pid}/status").read_text()
        return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) * 1024

    with brisk.client() as client, ExitStack() as stack:
        run_id = long_run(client)
        size = len(client.get(f"/runs/{run_id}/events").content)
        before = memory()
        for _ in range(READERS):
            stack.enter_context(ask_and_never_read(brisk, f"/runs/{run_id}/events"))
        wait_until_let_go(brisk, READERS)
        assert memory() - before < READERS * size / 8
        assert client.get("/readyz").status_code == 200


def test_somebody_who_waits_hears_that_the_server_is_there(folder: Path, brisk: Server) -> None:
    with brisk.client() as client, brisk.client() as reader:
        with client.stream("POST", "/wait/stream", json={"name": "go"}) as waiting:
            lines = waiting.iter_lines()
            while next(lines) != ":":
                pass
            with reader.stream("GET", "/pending/stream") as inbox:
                for told in (lines, inbox.iter_lines()):
                    assert [line for line in (next(told) for _ in range(20)) if line.startswith(":")]
            (folder / "go").touch()
            assert json.loads([line for line in lines if line.startswith("data: ")][-1][6:]).keys() == {"run_id"}
        run_id = waiting.headers["x-run-id"]
        assert all_of(client, f"/runs/{run_id}/events")[-1].name == "end"


def test_a_server_that_stops_ends_its_inbox_streams(folder: Path) -> None:
    with (
        Server(folder) as server,
        server.client() as client,
        client.stream("GET", "/pending/stream") as inbox,
    ):
        lines = inbox.iter_lines()
        assert next(lines) == "event: snapshot"
        server.process.terminate()
        assert "event: settled" not in list(lines)
        assert server.process.wait(SECONDS) is not None
