"""A disk that is full, read-only or broken in mid-run: a loud failure, nothing half kept, and the run goes on."""

import asyncio
import os
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from timbal import Tool, step
from timbal.errors import StoreError
from timbal.stores import SqliteStore

#: Its last step begins when the disk works again: as often as it takes, what failed is gone on with.
PROGRAM = """
import asyncio
from timbal import Tool, step
from timbal.errors import StoreError
from timbal.stores import SqliteStore

made = []

@step
async def effect(n):
    made.append(n)
    return "x" * 5000

async def works():
    for n in range(20):
        await effect(n)
    return "done"

async def main():
    async with SqliteStore("runs.db") as store:
        tool = Tool(works, store=store)
        handle = tool()
        try:
            await handle.collect()
            print("not noticed")
        except StoreError as error:
            print(error)
        for _ in range(50):
            before = await store.check()
            assert before.problems == [], before.problems
            try:
                out = await tool(parent_id=handle.run_id, resume={})
            except StoreError:
                continue
            break
        print(out.output, len(made) - len(set(made)), sorted(set(made)) == list(range(20)))

asyncio.run(main())
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        ("pwrite64", "ENOSPC", "the disk is full; nothing of this was kept"),
        ("pwrite64", "EROFS", "nothing of this was kept"),
        ("pwrite64", "EIO", "nothing of this was kept"),
        ("fdatasync", "EIO", "nothing of this was kept"),
        ("fdatasync", "ENOSPC", "nothing of this was kept"),
    ],
)
def test_a_run_whose_disk_fails_goes_on_when_it_is_back(call: str, error: str, says: str, tmp_path: Path) -> None:
    strace = shutil.which("strace")
    assert strace is not None, "this test needs strace: apt-get install strace (`make test` does it as root)"
    first = {"pwrite64": 150, "fdatasync": 12}[call]  # the tables are there, and some of the steps
    fault = f"inject={call}:error={error}:when={first}..{first + 2}"
    command = [strace, "-f", "-o", "/dev/null", "-P", str(tmp_path / "runs.db-wal"), "-e", f"trace={call}", "-e", fault]
    done = subprocess.run(
        [*command, sys.executable, "-c", PROGRAM], cwd=tmp_path, env=dict(os.environ), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    said, outcome = done.stdout.splitlines()
    assert says in said
    assert outcome.startswith("done ")
    assert outcome.endswith(" True")
    assert int(outcome.split()[1]) <= 3, "only steps whose record was refused are made again"


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a file system needs root")
def test_a_run_on_a_disk_that_is_full_goes_on_when_there_is_room(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", disk], capture_output=True, text=True)
    if mounted.returncode != 0:
        pytest.skip(f"this container may not mount: {mounted.stderr}")
    try:
        asyncio.run(_fill_and_go_on(disk))
    finally:
        subprocess.run(["umount", disk], check=True)


def fill(filler: Path) -> None:
    """Take all the room that there is."""
    with filler.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(4096))


async def _fill_and_go_on(disk: Path) -> None:
    made: list[int] = []
    filler = disk / "filler"

    @step
    def effect(n: int) -> str:
        made.append(n)
        if n == 5 and made.count(5) == 1:
            fill(filler)
        return "x" * 20_000

    def works() -> str:
        return "".join(effect(n)[0] for n in range(10))

    async with SqliteStore(disk / "runs.db") as store:
        tool = Tool(works, store=store)
        handle = tool()
        with pytest.raises(StoreError, match="the disk is full"):
            await handle.collect()
        with pytest.raises(StoreError, match="the disk is full"):
            await tool(parent_id=handle.run_id, resume={})
        filler.unlink()
        out = await tool(parent_id=handle.run_id, resume={})
        assert out.output == "x" * 10
        assert set(made) == set(range(10))
        assert (await store.check()).problems == []
