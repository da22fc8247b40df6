"""What 10,000 paused runs cost, and how long a page of the inbox takes: `paused.py [sqlite|postgres] [RUNS]`.

The agent asks one question in each run; nothing of a paused run is in the process. Then pages of ten items are read,
from the middle, with as many open items as there are runs, and with 100,000 (the others are put in by hand).
"""

import asyncio
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.postgres_server import a_server, run_sql  # noqa: E402
from timbal import Agent, suspend  # noqa: E402
from timbal.core.codec import encode  # noqa: E402
from timbal.core.facts import Asked, Ended  # noqa: E402
from timbal.ports import Lease  # noqa: E402
from timbal.stores import PostgresStore, SqliteStore  # noqa: E402
from timbal.stores.base import BaseStore  # noqa: E402
from timbal.stores.clock import now  # noqa: E402
from timbal.testing import TestModel  # noqa: E402
from timbal.testing.conformance.facts import done, new_id, opened, question  # noqa: E402
from timbal.types.content import ToolUseContent  # noqa: E402
from timbal.types.message import Message  # noqa: E402

MANY = 100_000


async def ask(question: str) -> str:
    return str(suspend({"question": question}, kind="ask_user"))


def agent(store: BaseStore) -> Agent[str]:
    asks = Message("assistant", [ToolUseContent("c1", "ask", {"question": "Which database?"})], "tool_use")
    return Agent("assistant", TestModel([asks, "done"]), [ask], store=store)


def rss_mib() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 2**20


async def pauses(store: BaseStore, runs: int) -> tuple[list[str], list[float]]:
    """The ids of runs that have paused, and how long each took in milliseconds."""
    taken, ids = [], []
    for _ in range(runs):
        start = time.perf_counter()
        out = await agent(store)("go")
        taken.append((time.perf_counter() - start) * 1000)
        ids.append(out.run_id)
    return ids, taken


async def resume(store: BaseStore, run_id: str) -> float:
    """How long it takes to answer this run and go on with it, in milliseconds."""
    (asked,) = (fact for fact in (await store.get(run_id)).facts if isinstance(fact, Asked))
    start = time.perf_counter()
    out = await agent(store)(parent_id=run_id, resume={asked.id: "postgres"})
    assert out.status.code == "success", out
    return (time.perf_counter() - start) * 1000


async def page(store: BaseStore) -> float:
    """The shortest of thirty times that a page from the middle takes, in milliseconds."""
    after = (await store.pending(limit=50)).next
    times = []
    for _ in range(30):
        start = time.perf_counter()
        items = (await store.pending(limit=10, after=after)).items
        times.append((time.perf_counter() - start) * 1000)
        assert len(items) == 10
    return min(times)


def put_in(store: BaseStore, count: int) -> None:
    """So many open items, a thousand in a run."""
    for first in range(0, count, 1000):
        fact = opened()
        rows = [question(new_id(), fact.run_id) for _ in range(min(1000, count - first))]
        ended = Ended(fact.run_id, "cancelled", now(), "input_required")
        done(store.commit(Lease(), encode((fact, ended)), fact, rows, ended))


async def measure(make: Callable[[], BaseStore], runs: int, analyze: Callable[[], None]) -> None:
    async with make() as store:
        warm, _ = await pauses(store, 100)
        few = await page(store)
        before = rss_mib()
        ids, taken = await pauses(store, runs - 100)
        print(f"{runs} paused runs: {rss_mib() - before:.1f} MiB more in the process")
        print(f"pause: first 100 {median(taken[:100]):.2f} ms, last 100 {median(taken[-100:]):.2f} ms")
    async with make() as store:
        first, last = [await resume(store, id) for id in warm[:20]], [await resume(store, id) for id in ids[-20:]]
        print(f"resume: the oldest {median(first):.2f} ms, the newest {median(last):.2f} ms")
        analyze()
        some = await page(store)
        put_in(store, MANY - runs)
        analyze()
        print(f"page of the inbox, of 100 {few:.2f} ms, of {runs} {some:.2f} ms, of {MANY} {await page(store):.2f} ms")


def main(kind: str = "sqlite", runs: str = "10000") -> None:
    with tempfile.TemporaryDirectory(prefix="timbal-paused-") as folder:
        if kind == "sqlite":
            asyncio.run(measure(lambda: SqliteStore(Path(folder) / "runs.db"), int(runs), lambda: None))
            return
        with a_server(Path(folder)) as url:
            asyncio.run(measure(lambda: PostgresStore(url), int(runs), lambda: run_sql(url, "ANALYZE")))


if __name__ == "__main__":
    main(*sys.argv[1:])
