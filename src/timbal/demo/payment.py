"""What the processes of `timbal demo --chaos` run: a payment behind a gate, a bank that forgets nothing, and people."""

from __future__ import annotations

import asyncio
import json
import os
import time
from pathlib import Path
from typing import Any

from .. import Tool, idempotency_key, step
from ..errors import ResumeRejected, StoreError
from ..stores import SqliteStore
from ..types.approval import ApprovalResolution
from ..worker import Worker

STORE, BANK, PEOPLE, REPLY = "runs.db", "bank.jsonl", "people.jsonl", "the-bank-replies"


def write(file: Path, **line: Any) -> None:
    """A line that is on the disk before this returns."""
    to = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(to, (json.dumps({"pid": os.getpid(), **line}) + "\n").encode())
        os.fsync(to)
    finally:
        os.close(to)


def read(file: Path) -> list[dict[str, Any]]:
    """The lines that are there."""
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def payment(folder: Path, store: SqliteStore) -> Tool[..., Any]:
    """The tool. Each effect is a line of the bank's; the bank deduplicates nothing."""

    def tell_bank(what: str) -> str:
        attempt = f"{os.getpid()}-{time.monotonic_ns()}"
        write(folder / BANK, what=what, key=idempotency_key(), attempt=attempt)
        return attempt

    @step
    async def reserve(amount: int) -> str:
        return tell_bank("reserved")

    @step
    async def transfer(amount: int) -> str:
        attempt = tell_bank("paid")
        while not (folder / REPLY).exists():  # noqa: ASYNC110  (the bank is another process)
            await asyncio.sleep(0.005)
        return attempt

    async def pay(amount: int) -> str:
        await reserve(amount)
        await transfer(amount)
        return f"paid {amount}"

    return Tool(pay, store=store, requires_approval=True)


def work(folder: Path) -> None:
    """Be a worker until killed."""

    async def run() -> None:
        store = SqliteStore(folder / STORE)
        write(folder / PEOPLE, what="works")
        await Worker([payment(folder, store)], store, poll_seconds=0.02, max_attempts=1_000_000).run()

    asyncio.run(run())


def answer(folder: Path, run_id: str, approval_id: str, name: str, start: Any) -> None:
    """Approve, at the same time as others and in words of one's own, again and again until the bank replies."""

    async def run() -> None:
        store = SqliteStore(folder / STORE)
        decision = ApprovalResolution(approved=True, approver_id=name, comment=f"{name} says yes")
        start.wait()
        while True:
            try:
                (receipt,) = await store.answer(run_id, {approval_id: decision})
                write(folder / PEOPLE, what="answer", name=name, state=receipt["state"])
            except ResumeRejected:
                write(folder / PEOPLE, what="answer", name=name, state="refused")
            except StoreError as error:
                write(folder / PEOPLE, what="answer", name=name, state="failed", why=str(error))
            if (folder / REPLY).exists():
                return
            await asyncio.sleep(0.25)

    asyncio.run(run())
