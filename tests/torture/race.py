"""Many answerers in many processes on one pause: one of them wins, and what it said has one effect."""

import asyncio
import random
import tempfile
import uuid
from collections.abc import Callable
from pathlib import Path
from queue import Empty
from typing import Any, NamedTuple

from tests.stores.urls import store_at
from tests.torture.crash import processes
from tests.torture.diary import Diary
from tests.torture.table import Counts
from timbal import Tool, step, suspend
from timbal.stores.base import BaseStore
from timbal.types.approval import Cancel, Default

PROCESSES, ANSWERERS = 5, 10
#: After so long an answerer is stuck, in seconds: on a busy machine 50 of them take two minutes.
PATIENCE = 600.0


class Race(NamedTuple):
    """One process of a race: its answerers all answer at once, each with one of the values."""

    url: str
    diary: Path
    run_id: str
    id: str
    expires_in: float | None
    values: list[Any]


def _tool(store: BaseStore, diary: Diary, expires_in: float | None) -> Tool[..., Any]:
    @step
    async def pay(value: Any) -> str:
        return diary.effect("pay")

    async def order() -> Any:
        value = suspend({"q": "pay?"}, expires_in=expires_in, on_expiry=Default("expired"))
        await pay(value)
        return value

    return Tool(order, store=store)


def answer_at_once(race: Race, start: Any, told: Any) -> None:
    """What a process does: wait for the others, answer, and tell how each answerer fared."""
    told.put(asyncio.run(_answer_at_once(race, start)))


async def _answer_at_once(race: Race, start: Any) -> list[tuple[Any, str, Any, str | None]]:
    store = store_at(race.url)
    tool = _tool(store, Diary(race.diary), race.expires_in)
    await store.pending()
    start.wait(PATIENCE)

    async def answer(value: Any) -> tuple[Any, str, Any, str | None]:
        given = Cancel("no") if value == "cancel" else value
        out = await tool(parent_id=race.run_id, resume={race.id: given})
        return value, out.status.code, out.output, out.status.reason

    fared = await asyncio.gather(*(answer(value) for value in race.values))
    await store.aclose()
    return fared


def race(url: str, seed: int, kind: str) -> Counts:
    """50 answerers race. `kind`: `same` or `different` values, with a `cancel` among them, or while it may `expire`."""
    chance = random.Random(f"{seed} {kind}")
    with tempfile.TemporaryDirectory(prefix="timbal-torture-") as folder:
        diary = Path(folder) / "diary"
        run_id = uuid.uuid4().hex
        expires_in = chance.uniform(0.3, 1.5) if kind == "expire" else None
        id = asyncio.run(_ask(url, diary, run_id, expires_in))
        values = [_VALUES[kind](chance, n) for n in range(PROCESSES * ANSWERERS)]
        parts = [values[n::PROCESSES] for n in range(PROCESSES)]
        fared = _run([Race(url, diary, run_id, id, expires_in, part) for part in parts])
        return asyncio.run(_judge(url, Diary(diary), run_id, fared, f"race {kind} on {url} (seed {seed})"))


_VALUES: dict[str, Callable[[random.Random, int], str]] = {
    "same": lambda chance, n: "yes",
    "different": lambda chance, n: f"value {n}",
    "some same": lambda chance, n: chance.choice(["yes", "no", "later"]),
    "cancel": lambda chance, n: chance.choice(["yes", "no", "cancel"]),
    "expire": lambda chance, n: chance.choice(["yes", "no"]),
}
KINDS = tuple(_VALUES)


async def _ask(url: str, diary: Path, run_id: str, expires_in: float | None) -> str:
    store = store_at(url)
    out = await _tool(store, Diary(diary), expires_in)(run_id=run_id)
    await store.aclose()
    return str(out.output["interaction_id"])


def _run(races: list[Race]) -> list[tuple[Any, str, Any, str | None]] | None:
    start, told = processes.Barrier(len(races)), processes.Queue()
    children = [processes.Process(target=answer_at_once, args=(one, start, told)) for one in races]
    for child in children:
        child.start()
    try:
        return [one for _ in children for one in told.get(timeout=PATIENCE)]
    except Empty:
        return None
    finally:
        for child in children:
            child.join(5)
            child.kill()


async def _judge(url: str, diary: Diary, run_id: str, fared: Any, where: str) -> Counts:
    counts = Counts(tried=1)
    store = store_at(url)
    await _tool(store, diary, None)(parent_id=run_id, resume={})  # what has expired is applied at a touch
    settled = [item for item in (await store.settled()).items if item.run_id == run_id]
    record = await store.get(run_id)
    await store.aclose()
    effects = [line for line in diary.lines() if line["what"] == "effect"]
    if fared is None or len(settled) != 1 or any(info.t1 is None for info in record.runs):
        counts.stuck = 1
    else:
        (winner,) = settled
        cancelled = winner.state == "cancelled"
        counts.doubled = abs(len(effects) - (0 if cancelled else 1))
        mine = "cancel" if cancelled else winner.value
        for value, code, output, reason in fared:
            if value == mine:  # whoever says the same gets what came of it
                right = (
                    (code, reason) == ("cancelled", "cancelled") if cancelled else (code, output) == ("success", value)
                )
            else:
                right = code == "cancelled" or (code, reason) == ("error", "resume_rejected")
            counts.lost += not right
    if counts.stuck or counts.doubled or counts.lost:
        counts.wrong.append(f"{where}: settled {settled}, fared {fared}, runs {record.runs}")
    return counts
