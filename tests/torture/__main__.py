"""`python -m tests.torture [--points N] [--races N] [--seeds N]`: the whole harness, and the table of what it found."""

import argparse
import logging
import sys
import tempfile
import uuid
from collections.abc import Iterable
from pathlib import Path

from tests.postgres_server import a_server
from tests.torture.crash import WAYS, crash
from tests.torture.race import KINDS, race
from tests.torture.samples import SAMPLES
from tests.torture.simulation import simulate
from tests.torture.table import Counts, show


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.torture", description=__doc__)
    parser.add_argument("--points", type=int, help="of each sample; else all")
    parser.add_argument("--races", type=int, default=20, help="of each kind, on each store")
    parser.add_argument("--seeds", type=int, default=1000, help="of the simulation")
    parser.add_argument("--seed", type=int, default=0, help="the first seed; what went wrong replays by its number")
    given = parser.parse_args()
    logging.disable(logging.CRITICAL)  # that things fail is no news here
    rows: dict[str, Counts] = {}
    with tempfile.TemporaryDirectory(prefix="timbal-torture-") as folder:
        _torture(f"sqlite:///{folder}/runs.db", given, rows)
        with a_server(Path(folder)) as server_url:
            _torture(f"{server_url}?schema=t_{uuid.uuid4().hex}", given, rows)
    _count(rows, "simulation (memory)", (simulate(given.seed + n) for n in range(given.seeds)))
    total = Counts()
    for counts in rows.values():
        total.add(counts)
    print("\n" + show({**rows, "all": total}))
    for wrong in total.wrong:
        print(f"WRONG: {wrong}")
    return 1 if total.wrong else 0


def _torture(url: str, given: argparse.Namespace, rows: dict[str, Counts]) -> None:
    store = url.partition(":")[0]
    for sample in SAMPLES:
        for way in WAYS:
            _count(rows, f"crash {sample}, {way} ({store})", [crash(url, sample, way, given.seed, given.points)])
    for kind in KINDS:
        _count(rows, f"race {kind} ({store})", (race(url, given.seed + n, kind) for n in range(given.races)))


def _count(rows: dict[str, Counts], name: str, found: Iterable[Counts]) -> None:
    rows[name] = Counts()
    for counts in found:
        rows[name].add(counts)
    print(f"{name}: {rows[name].tried} tried, {len(rows[name].wrong)} wrong", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
