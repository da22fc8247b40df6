"""Kill a process at every point of a sample, and let others go on."""

import multiprocessing
import random
import signal
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

from tests.torture.child import Life, live
from tests.torture.diary import Diary
from tests.torture.samples import SAMPLES
from tests.torture.table import Counts, judge

WAYS = ("resume", "worker")
#: After so long a process is stuck, in seconds.
PATIENCE = 300.0

#: Loaded once, in the process that all others are forks of: what a process loads at first use takes a second.
_LOADED = (
    "importlib.metadata",
    "tests.torture.child",
    "tests.torture.race",
    "docstring_parser",
    "jsonschema_rs",
    "psycopg",
    "decimal",
)
_PYDANTIC = ("main", "type_adapter", "json_schema", "fields", "functional_validators", "deprecated.parse")

processes = multiprocessing.get_context("forkserver")
processes.set_forkserver_preload([*_LOADED, "psycopg", *(f"pydantic.{name}" for name in _PYDANTIC)])


def crash(url: str, sample: str, way: str, seed: int, most: int | None = None) -> Counts:
    """Each point of a sample once, or `most` of them; in half of them the next process is killed as well."""
    counts = Counts()
    with tempfile.TemporaryDirectory(prefix="timbal-torture-") as folder:
        for point in _points(url, sample, way, seed, most, Path(folder)):
            counts.add(_die_at(url, sample, way, seed, point, Path(folder)))
    return counts


def _points(url: str, sample: str, way: str, seed: int, most: int | None, folder: Path) -> Iterator[int]:
    undisturbed = Life(url, folder / "undisturbed", sample, uuid.uuid4().hex, way, 0)
    assert _run(undisturbed)[1] == 0, f"{sample} does not even work undisturbed"
    total = Diary(undisturbed.diary).lines()[-1]["points"]
    points = range(1, total + 1)
    yield from points if most is None else sorted(random.Random(seed).sample(points, min(most, total)))


def _die_at(url: str, sample: str, way: str, seed: int, point: int, folder: Path) -> Counts:
    run_id = uuid.uuid4().hex
    diary = folder / run_id
    chance = random.Random(f"{seed} {sample} {way} {point}")
    deadly = [point, *([chance.randint(1, 40)] if chance.random() < 0.5 else []), 0]
    killed: set[int] = set()
    for at in deadly:
        pid, code = _run(Life(url, diary, sample, run_id, way, at))
        if code != -signal.SIGKILL:
            break
        killed.add(pid)
    where = f"{sample} by {way} on {url.partition(':')[0]}, killed at {deadly[:-1]} (seed {seed})"
    return judge(Diary(diary).lines(), SAMPLES[sample][2], killed, where)


def _run(life: Life) -> tuple[int, int | None]:
    """Let a process live; gives its id and how it ended."""
    process = processes.Process(target=live, args=(life,))
    process.start()
    process.join(PATIENCE)
    if process.exitcode is None:  # stuck: nothing is written into its diary
        process.kill()
        process.join()
        return process.pid or 0, None
    return process.pid or 0, process.exitcode
