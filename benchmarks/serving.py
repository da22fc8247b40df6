"""Pause and resume over `/stream`, beside a bare Starlette application that only streams eight canned events.

Run it with: python benchmarks/serving.py [sqlite|memory]. The server has one core, the clients have the others.
"""

import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median, quantiles
from typing import Any, NamedTuple

SECONDS = 4.0
ROUNDS = 3

BARE = """
from starlette.applications import Starlette
from starlette.responses import StreamingResponse
from starlette.routing import Route

EVENT = b'id: 1\\ndata: {"type": "DELTA", "run_id": "%s", "item": {"text_delta": "%s"}}\\n\\n' % (b"0" * 32, b"x" * 200)

async def stream(request):
    await request.body()
    async def events():
        for _ in range(8):
            yield EVENT
    return StreamingResponse(events(), media_type="text/event-stream")

app = Starlette(routes=[Route("/stream", stream, methods=["POST"])])
"""

OURS = """
from timbal import Tool, suspend
from timbal.server import create_app

def pay(amount: int) -> bool:
    return suspend({"amount": amount}, kind="pay", response_type=bool)

app = create_app(Tool(pay, blocking=False), store=STORE)
"""


class Connection:
    """One connection that stays open, as a browser's does."""

    def __init__(self, port: int) -> None:
        self._port = port

    async def open(self) -> None:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)

    async def post(self, path: str, body: dict[str, Any]) -> bytes:
        data = json.dumps(body).encode()
        headers = f"Host: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
        self._writer.write(f"POST {path} HTTP/1.1\r\n{headers}".encode() + data)
        answer = await self._reader.readuntil(b"\r\n\r\n")
        assert b" 200 " in answer.split(b"\r\n")[0], answer
        body_read = b""
        while size := int(await self._reader.readline(), 16):
            body_read += (await self._reader.readexactly(size + 2))[:-2]
        await self._reader.readline()
        return body_read

    def close(self) -> None:
        self._writer.close()


async def bare(connection: Connection) -> int:
    await connection.post("/stream", {"amount": 1})
    return 1


async def pause_and_resume(connection: Connection) -> int:
    told = await connection.post("/stream", {"amount": 1})
    output = json.loads(told.rpartition(b"\n\nevent: end")[0].rpartition(b"data: ")[2])
    resume = {"parent_id": output["run_id"], "resume": {output["output"]["interaction_id"]: True}}
    told = await connection.post("/stream", resume)
    assert b'"code":"success"' in told, told
    return 2


class Measured(NamedTuple):
    """Requests per second, what one piece of work took in milliseconds, and requests per second of the server's CPU."""

    rate: float
    p50: float
    p95: float
    per_core: float


async def load(port: int, work: Callable[..., Any], connections: int) -> tuple[int, float, float, float]:
    """How many requests in how many seconds, and the median and 95th percentile of a piece of work in milliseconds."""
    times: list[float] = []
    done = 0
    until = time.perf_counter() + SECONDS

    async def client() -> None:
        nonlocal done
        connection = Connection(port)
        await connection.open()
        while (since := time.perf_counter()) < until:
            count = await work(connection)
            done += count
            times.append((time.perf_counter() - since) * 1000)
        connection.close()

    since = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(connections)))
    took = time.perf_counter() - since
    cut = quantiles(times, n=100)
    return done, took, cut[49], cut[94]


def serve(folder: str, source: str) -> tuple[subprocess.Popen[bytes], int]:
    with open(f"{folder}/served.py", "w") as file:
        file.write(source)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = ["--app-dir", folder, "--port", str(port), "--no-access-log", "--log-level", "warning", "served:app"]
    process = subprocess.Popen([sys.executable, "-m", "uvicorn", *words], cwd=folder)
    os.sched_setaffinity(process.pid, {0})
    for _ in range(1200):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            break
        except OSError:
            time.sleep(0.05)
    return process, port


def cpu_seconds(process: subprocess.Popen[bytes]) -> float:
    """How much of its core the server has used."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(source: str, kind: str, work: Callable[..., Any], connections: int) -> Measured:
    """One round, on a store of its own."""
    with tempfile.TemporaryDirectory() as folder:
        store = "memory://" if kind == "memory" else f"sqlite:///{folder}/runs.db"
        process, port = serve(folder, source.replace("STORE", repr(store)))
        try:
            asyncio.run(load(port, work, 4))
            before = cpu_seconds(process)
            count, took, p50, p95 = asyncio.run(load(port, work, connections))
            return Measured(count / took, p50, p95, count / (cpu_seconds(process) - before))
        finally:
            process.terminate()
            process.wait()


def main() -> None:
    kind = sys.argv[1] if len(sys.argv) > 1 else "sqlite"
    if (count := os.cpu_count() or 1) > 1:
        os.sched_setaffinity(0, set(range(1, count)))
    cases = [("bare Starlette", BARE, bare), (f"timbal, {kind}", OURS, pause_and_resume)]
    found: dict[tuple[str, int], list[Measured]] = {}
    for _ in range(ROUNDS):  # in turn: what else the machine does changes from minute to minute
        for connections in (16, 256):
            for name, source, work in cases:
                found.setdefault((name, connections), []).append(measure(source, kind, work, connections))
    for (name, connections), rounds in found.items():
        rate, p50, p95, per_core = map(median, zip(*rounds, strict=True))
        print(
            f"{name:>16} {connections:>4} connections: {rate:6.0f} requests/s, {per_core:6.0f} per second of the"
            f" server's CPU, p50 {p50:.1f} ms, p95 {p95:.1f} ms"
        )


if __name__ == "__main__":
    main()
