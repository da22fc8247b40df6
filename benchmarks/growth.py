"""How long a turn takes after many turns, and a resume after many resumes: `growth.py [sqlite|postgres] [SVG]`.

1,000 turns of one conversation (200 characters each way): in one process, which remembers what it made of the messages,
and as a process that has just come does them. And 300 resumes of one execution, whose handler asks once more each time.
Processor time, since others work on the machine too; a point is the median of ten, or one turn in a new process.
"""

import asyncio
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from itertools import count
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.postgres_server import a_server  # noqa: E402
from timbal import Agent, Tool, suspend  # noqa: E402
from timbal.core.transcript import forget_conversations  # noqa: E402
from timbal.stores import PostgresStore, SqliteStore  # noqa: E402
from timbal.stores.base import BaseStore  # noqa: E402
from timbal.testing import TestModel  # noqa: E402

TURNS, RESUMES, EACH = 1000, 300, 10
TEXT = "The quick brown fox jumps over the lazy dog, again and again. " * 4


async def turns(store: BaseStore) -> tuple[list[float], list[float]]:
    """In one process; and every tenth as in a new one."""
    agent: Agent[str] = Agent("assistant", TestModel([TEXT[:200]]), store=store)
    last = (await agent(TEXT[:200])).run_id

    async def turn() -> None:
        nonlocal last
        out = await agent(TEXT[:200], parent_id=last)
        assert out.status.code == "success", out
        last = out.run_id

    warm, anew = [], []
    for _ in range(0, TURNS, EACH):
        warm += await measured(turn, EACH - 1)
        forget_conversations()
        anew += await measured(turn, 1)
    return warm, anew


async def resumes(store: BaseStore) -> list[float]:
    def asks() -> None:
        for n in count():
            suspend({"n": n})

    tool = Tool(asks, store=store, blocking=False)
    out = await tool()

    async def resume() -> None:
        nonlocal out
        out = await tool(parent_id=out.run_id, resume={out.pending[0].id: "yes"})
        assert out.pending, out

    return [one for _ in range(0, RESUMES, EACH) for one in await measured(resume, EACH)]


async def measured(work: Callable[[], Awaitable[None]], times: int) -> list[float]:
    """Milliseconds of the processor, the median of so many in a row."""
    taken = []
    for _ in range(times):
        start = time.process_time()
        await work()
        taken.append((time.process_time() - start) * 1000)
    return [median(taken)]


def slope(values: list[float]) -> float:
    """Microseconds that each turn before adds, by least squares."""
    n = len(values)
    xs = [EACH * (i + 0.5) for i in range(n)]
    middle = sum(xs) / n
    rise = sum((x - middle) * y for x, y in zip(xs, values, strict=True))
    return 1000 * rise / sum((x - middle) ** 2 for x in xs)


def plot(lines: dict[str, list[float]]) -> str:
    """The curves as an SVG, each in a box of its own."""
    width, height, left, top = 420, 220, 50, 30
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {(width + left + 20) * len(lines)} {height + top + 40}"'
        ' font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    for box, (title, values) in enumerate(lines.items()):
        x0, most = left + box * (width + left + 20), max(values) * 1.1
        last = len(values) * EACH
        points = " ".join(
            f"{x0 + width * (i + 0.5) / len(values):.1f},{top + height * (1 - value / most):.1f}"
            for i, value in enumerate(values)
        )
        parts += [
            f'<text x="{x0}" y="18">{title}</text>',
            f'<path d="M{x0} {top}V{top + height}H{x0 + width}" fill="none" stroke="#888"/>',
            f'<polyline points="{points}" fill="none" stroke="#2060c0" stroke-width="1.5"/>',
            f'<text x="{x0}" y="{top + height + 16}">0</text>',
            f'<text x="{x0 + width}" y="{top + height + 16}" text-anchor="end">{last}</text>',
            f'<text x="{x0 - 4}" y="{top + 10}" text-anchor="end">{most:.1f}</text>',
            f'<text x="{x0 - 4}" y="{top + height}" text-anchor="end">0</text>',
        ]
    return "\n".join([*parts, "</svg>", ""])


async def show(make: Callable[[], BaseStore]) -> dict[str, list[float]]:
    async with make() as store:
        warm, anew = await turns(store)
        lines = {
            "ms of a turn, by turns before": warm,
            "the same in a new process": anew,
            "ms of a resume, by resumes before": await resumes(store),
        }
    for title, values in lines.items():
        ends = f"first {values[0]:.2f} ms, last {values[-1]:.2f} ms"
        print(f"{title}: {ends}, each before adds {slope(values):.1f} us")
    return lines


def main(kind: str, svg: str | None = None) -> None:
    with tempfile.TemporaryDirectory(prefix="timbal-growth-") as folder:
        if kind == "sqlite":
            lines = asyncio.run(show(lambda: SqliteStore(Path(folder) / "runs.db")))
        else:
            with a_server(Path(folder)) as url:
                lines = asyncio.run(show(lambda: PostgresStore(url)))
    if svg is not None:
        Path(svg).write_text(plot(lines))


if __name__ == "__main__":
    main(*sys.argv[1:] or ["sqlite"])
