"""`timbal demo --chaos`: workers are killed in the middle of an approved payment while five people answer at once."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import random
import shutil
import sys
import time
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, NamedTuple

from ..core.facts import Returned, Settled
from ..stores import SqliteStore
from . import payment
from .payment import BANK, PEOPLE, REPLY, STORE
from .screen import Screen

ANSWERERS = ("ada", "bob", "cleo", "dan", "eve")
AMOUNT = 120
#: A worker is killed within so long after it has begun to work: before, in and after its call of the bank.
MIDDLE_SECONDS = 0.15
#: After so long without an end the run is stuck.
PATIENCE = 60.0
_LOADED = ("timbal.demo.payment", "timbal.stores.sqlite", "pydantic.main", "pydantic.type_adapter", "jsonschema_rs")


class Table(NamedTuple):
    """What came of it. Effects are counted by their idempotency key."""

    kills: int
    answers_given: int
    answers_accepted: int
    answers_lost: int
    recorded_steps_run_again: int
    paid: int
    payments: int
    attempts_cut_off: int
    executions_stuck: int
    seconds: float

    @property
    def right(self) -> bool:
        """Whether everything is as promised."""
        wrong = self.answers_lost + self.recorded_steps_run_again + self.executions_stuck
        return not wrong and self.paid == self.payments == self.answers_accepted


def play_chaos(kills: int, *, as_json: bool) -> int:
    """Play it in a temporary folder; gives 0 when everything is as promised."""
    folder = Path(mkdtemp(prefix="timbal-chaos-"))
    try:
        table = _play(folder, kills, None if as_json else Screen())
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if as_json:
        sys.stdout.write(json.dumps(table._asdict(), indent=2) + "\n")
    return 0 if table.right else 1


def _play(folder: Path, kills: int, screen: Screen | None) -> Table:
    began = time.monotonic()
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(list(_LOADED))
    run_id, approval_id = asyncio.run(_begin(folder))
    if screen is not None:
        screen.heading("timbal demo --chaos: one payment, five people, and workers that die")
        screen.text(
            f"A payment of {AMOUNT} waits for an approval. Five processes approve it at once, each in its own words; "
            f"one of them wins. Workers go on with it and are killed with SIGKILL in the middle, {kills} times. The "
            "bank deduplicates nothing: it counts what it is told by idempotency key."
        )
        screen.space()
    start = processes.Barrier(len(ANSWERERS))
    people = [
        processes.Process(target=payment.answer, args=(folder, run_id, approval_id, name, start)) for name in ANSWERERS
    ]
    for person in people:
        person.start()
    killed = 0
    while killed < kills:
        killed += _kill_one(processes, folder)
        _tell(folder, killed, began, screen)
    (folder / REPLY).touch()
    last = processes.Process(target=payment.work, args=(folder,))
    last.start()
    stuck = not asyncio.run(_ends(folder, run_id))
    last.kill()
    for process in (last, *people):
        process.join()
    table = asyncio.run(_count(folder, run_id, killed, stuck=stuck, seconds=time.monotonic() - began))
    if screen is not None:
        _show(screen, table)
    return table


async def _begin(folder: Path) -> tuple[str, str]:
    async with SqliteStore(folder / STORE) as store:
        out = await payment.payment(folder, store)(amount=AMOUNT)
        return out.run_id, str(out.output["approval_id"])


def _kill_one(processes: Any, folder: Path) -> int:
    """Let a worker begin, and kill it at some moment; gives whether it was alive until then."""
    worker = processes.Process(target=payment.work, args=(folder,))
    worker.start()
    until = time.monotonic() + PATIENCE
    while not any(line["pid"] == worker.pid for line in payment.read(folder / PEOPLE)):
        if time.monotonic() > until or not worker.is_alive():
            break
        time.sleep(0.002)
    time.sleep(random.uniform(0, MIDDLE_SECONDS))
    alive = worker.is_alive()
    worker.kill()
    worker.join()
    return int(alive)


async def _ends(folder: Path, run_id: str) -> bool:
    """Whether the run comes to its end in time."""
    until = time.monotonic() + PATIENCE
    async with SqliteStore(folder / STORE) as store:
        while time.monotonic() < until:
            if any(info.status == "success" for info in (await store.get(run_id)).runs):
                return True
            await asyncio.sleep(0.02)
    return False


async def _count(folder: Path, run_id: str, kills: int, *, stuck: bool, seconds: float) -> Table:
    async with SqliteStore(folder / STORE) as store:
        facts = (await store.get(run_id)).facts
    recorded = {fact.output for fact in facts if isinstance(fact, Returned) and fact.kind == "step"}
    decisions = [fact.value for fact in facts if isinstance(fact, Settled)]
    answers = [line for line in payment.read(folder / PEOPLE) if line["what"] == "answer"]
    accepted = {line["name"] for line in answers if line["state"] == "accepted"}
    kept = {decision.get("approver_id") for decision in decisions if isinstance(decision, dict)}
    effects = payment.read(folder / BANK)
    finished: set[str] = set()
    again = 0
    for line in effects:
        again += line["key"] in finished
        if line["attempt"] in recorded:
            finished.add(line["key"])
    return Table(
        kills,
        len(answers),
        len(accepted),
        len(accepted - kept),
        again,
        len({line["key"] for line in effects if line["what"] == "paid"}),
        1,
        sum(line["attempt"] not in recorded for line in effects),
        int(stuck),
        round(seconds, 1),
    )


def _tell(folder: Path, killed: int, began: float, screen: Screen | None) -> None:
    """How it stands, on one line that is written over."""
    if screen is not None and sys.stdout.isatty():
        told = len(payment.read(folder / BANK))
        sys.stdout.write(f"\r  kills {killed}, the bank was told {told} times, {time.monotonic() - began:.0f} s ")
        sys.stdout.flush()


def _show(screen: Screen, table: Table) -> None:
    if sys.stdout.isatty():
        sys.stdout.write("\r\x1b[K")
    screen.text(
        f"kills {table.kills}, answers lost {table.answers_lost}, paid {table.paid} of {table.payments}", "bold"
    )
    screen.space()
    for name, value in table._asdict().items():
        screen.line("", f"{name.replace('_', ' ').ljust(28)}{value}", "dim")
    screen.space()
    screen.text(
        "An attempt that is cut off before its record is made again, under the same idempotency key: a bank that knows "
        "the key pays once. What was recorded is never run again."
    )
