"""What a pause and a resume cost the disk, read from the write-ahead log itself (sqlite.org/fileformat2.html, WAL)."""

import asyncio
import os
import struct
import threading
from pathlib import Path
from typing import Any

from timbal import Agent, suspend
from timbal.stores import MemoryStore, PostgresStore, SqliteStore
from timbal.testing import TestModel
from timbal.types.content import ToolUseContent
from timbal.types.message import Message

ASKS = Message("assistant", [ToolUseContent(id="c1", name="ask", input={"question": "Which?"})])
ADDS = Message("assistant", [ToolUseContent(id="c1", name="add", input={"a": 1, "b": 2})])


async def ask(question: str) -> str:
    return str(suspend({"question": question}, kind="ask_user"))


async def add(a: int, b: int) -> int:
    await asyncio.sleep(0)
    return a + b


def agent(store: Any, first: Message = ASKS) -> Agent[Any]:
    return Agent("assistant", TestModel([first, "done"]), [ask, add], store=store)


def commits(path: Path) -> int:
    """Frames of the log that end a transaction: those that carry the size of the database."""
    log = Path(f"{path}-wal").read_bytes()
    if not log:
        return 0
    page, salt = struct.unpack(">I", log[8:12])[0], log[16:24]
    frames = [log[i : i + 24] for i in range(32, len(log), 24 + page)]
    return sum(1 for head in frames if head[8:16] == salt and head[4:8] != bytes(4))


async def test_a_pause_is_two_commits_and_a_resume_three(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    async with SqliteStore(path) as store:
        before = commits(path)
        paused = await agent(store)("go")
        after_pause = commits(path)
    assert after_pause - before == 2
    async with SqliteStore(path) as store:
        before = commits(path)
        done = await agent(store)(parent_id=paused.run_id, resume={paused.pending[0].id: "postgres"})
        after_resume = commits(path)
    assert done.status.code == "success"
    assert after_resume - before == 3


async def test_two_hundred_turns_at_once_share_commits(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    async with SqliteStore(path) as store:
        before = commits(path)
        outs = await asyncio.gather(*(agent(store, ADDS)("go").collect() for _ in range(200)))
        shared = commits(path) - before
    assert {out.status.code for out in outs} == {"success"}
    assert shared < 3 * 200 / 2  # how many depends on the disk: while that is quick, no commit waits for others


async def test_paused_runs_hold_no_task_thread_or_open_file(tmp_path: Path, postgres_schema_url: str) -> None:
    for store in (MemoryStore(), SqliteStore(tmp_path / "runs.db"), PostgresStore(postgres_schema_url)):
        await agent(store)("warm up")
        tasks = asyncio.all_tasks()
        threads, files = threading.active_count(), len(os.listdir("/proc/self/fd"))
        outs = [await agent(store)("go") for _ in range(100)]
        assert all(out.pending for out in outs)
        assert asyncio.all_tasks() == tasks
        assert threading.active_count() <= threads  # fewer, where one of another test was about to end
        assert len(os.listdir("/proc/self/fd")) <= files
        await store.aclose()
