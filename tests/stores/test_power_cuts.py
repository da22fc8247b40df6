"""A power cut at any moment loses nothing that was told: all that was not synced by then may be gone, or half of it."""

import asyncio
import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.stores.power import STRACE, Call, Disk, calls_in
from timbal.core.codec import decode_all
from timbal.core.facts import Asked, Ended, Returned, Settled
from timbal.stores import SqliteStore
from timbal.stores.waiting import wait

#: Runs with large inputs, so that the log is written back into the file and begun anew more than once.
PROGRAM = """
import asyncio, json, os
from timbal import Tool, step, suspend
from timbal.state import get_run_context
from timbal.stores import SqliteStore

def tell(what, *of):
    os.write(1, ("TOLD " + json.dumps([what, *of])).encode())

@step
async def note(text):
    return text

async def order(n, text):
    text = await note(f"before {n}")
    tell("recorded", get_run_context().run_id, text)
    answer = suspend({"n": n})
    tell("recorded", get_run_context().run_id, await note(f"after {n}"))
    return answer

async def live(numbers):
    async with SqliteStore("runs.db") as store:
        tool = Tool(order, store=store)
        for n in numbers:
            async for event in tool(n=n, text="x" * 200_000):
                if event.type == "INTERACTION":
                    tell("asked", event.run_id, event.interaction_id)
            tell("ended", event.run_id, event.run_id)
            id = event.pending[0].interaction_id
            if n % 3 == 0:
                await store.answer(event.run_id, {id: n})
                tell("answered", event.run_id, id)
            elif n % 3 == 1:
                out = await tool(parent_id=event.run_id, resume={id: n})
                tell("answered", event.run_id, id)
                tell("ended", event.run_id, out.run_id)

asyncio.run(live(range(0, 20)))
asyncio.run(live(range(20, 24)))
"""


def traced(folder: Path) -> list[Call]:
    """The calls of the program, which works in this folder."""
    strace = shutil.which("strace")
    assert strace is not None, "this test needs strace: apt-get install strace (`make test` does it as root)"
    log = folder.with_suffix(".log")
    folder.mkdir()
    done = subprocess.run(
        [strace, *STRACE, "-o", str(log), sys.executable, "-c", PROGRAM],
        cwd=folder,
        env=dict(os.environ),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    with log.open() as lines:
        return list(calls_in(lines))


async def is_there(path: Path, told: list[list[str]]) -> None:
    """All that was told is in the file, and nothing in it is wrong."""
    async with SqliteStore(path, synchronous="normal") as store:
        kept: set[tuple[str, ...]] = set()
        for run_id in {run_id for _, run_id, _ in told}:
            stored = await wait(store.load(run_id))
            assert stored is not None, f"run {run_id} was lost"
            for fact in decode_all(stored.records):
                match fact:
                    case Asked():
                        kept.add(("asked", fact.id))
                    case Settled():
                        kept.add(("answered", fact.id))
                    case Ended():
                        kept.add(("ended", fact.run_id))
                    case Returned(kind="step"):
                        kept.add(("recorded", fact.output))
        lost = [what for what in told if (what[0], what[2]) not in kept]
        assert not lost, f"told and lost: {lost}"
        assert (await store.check()).problems == []


@pytest.mark.slow
def test_what_was_told_outlives_a_power_cut_at_any_moment(tmp_path: Path) -> None:
    calls = traced(tmp_path / "run")
    writes = [i for i, call in enumerate(calls) if call.path.endswith(("runs.db", "runs.db-wal", "runs.db-journal"))]
    assert sum(calls[i].name == "pwrite64" and calls[i].path.endswith("runs.db") for i in writes) > 1000, (
        "no checkpoint"
    )
    chance = random.Random(7)
    syncs = [i for i in writes if calls[i].name in ("fsync", "fdatasync")]
    moments = [*chance.sample(syncs, 30), *(i - 1 for i in chance.sample(syncs, 20)), *chance.sample(writes, 40)]
    cuts = {*writes[:60:4], *moments, *writes[-30::3]}
    disk, told = Disk(tmp_path / "run"), list[list[str]]()
    cut = tmp_path / "cut"
    for i, call in enumerate(calls):
        disk.apply(call)
        if call.name == "write" and call.data.startswith(b"TOLD "):
            told.append(json.loads(call.data[5:]))
        if i not in cuts:
            continue
        for keeps in (0.0, chance.uniform(0.2, 0.8), 1.0):
            shutil.rmtree(cut, ignore_errors=True)
            cut.mkdir()
            for name, content in disk.after_a_cut(chance, keeps).items():
                if not name.endswith("-shm"):
                    (cut / name).write_bytes(content)
            try:
                asyncio.run(is_there(cut / "runs.db", told[-30:]))
            except Exception as error:
                raise AssertionError(f"cut after call {i} ({call.name} of {call.path}), {keeps:.2f} kept") from error
    assert len(told) > 80


def test_a_disk_without_a_sync_is_noticed() -> None:
    """The check of the check: what was told before its sync is not there after a cut."""
    disk = Disk(Path("/f"))
    for call in (Call("openat", "/f/a"), Call("fsync", "/f"), Call("pwrite64", "/f/a", b"told", 0)):
        disk.apply(call)
    chance: Any = random.Random(0)
    assert disk.after_a_cut(chance, 0.0) == {"a": b""}
    assert disk.after_a_cut(chance, 1.0) == {"a": b"told"}
    disk.apply(Call("fdatasync", "/f/a"))
    assert disk.after_a_cut(chance, 0.0) == {"a": b"told"}
