"""What is told has been synced before: the system calls of a run, as strace shows them."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import asyncio, os
from timbal import Tool, suspend
from timbal.stores import SqliteStore

async def main():
    store = SqliteStore("runs.db")
    for _ in range(3):
        async for event in Tool(lambda: suspend({"q": "?"}), name="ask", store=store)():
            os.write(1, f"EVENT {event.type}\\n".encode())
    await store.aclose()

asyncio.run(main())
"""


@pytest.mark.slow
def test_the_commit_is_synced_before_the_event_is_written(tmp_path: Path) -> None:
    strace = shutil.which("strace")
    assert strace is not None, "this test needs strace: apt-get install strace (`make test` does it as root)"
    log = tmp_path / "calls"
    command = [strace, "-f", "-y", "-e", "trace=fdatasync,fsync,write,pwrite64", "-s", "40", "-o", str(log)]
    done = subprocess.run(
        [*command, sys.executable, "-c", PROGRAM], cwd=tmp_path, env=dict(os.environ), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    unsynced = None
    told = []
    for line in log.read_text().splitlines():
        if re.search(r"pwrite64\(\d+<.*runs\.db-wal>", line):
            unsynced = line
        elif re.search(r"f(data)?sync\(\d+<.*runs\.db-wal>", line):
            unsynced = None
        elif event := re.search(r'write\(1<.*"EVENT (\w+)', line):
            told.append(event[1])
            if event[1] in ("INTERACTION", "OUTPUT"):
                assert unsynced is None, f"{event[1]} was told before this was synced: {unsynced}"
    assert told == ["START", "INTERACTION", "OUTPUT"] * 3
    assert re.search(r"f(data)?sync\(\d+<.*runs\.db-wal>", log.read_text())
