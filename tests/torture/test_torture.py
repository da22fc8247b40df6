"""A bounded part of the harness; `make torture` does all of it."""

from pathlib import Path

import pytest

from tests.torture.crash import WAYS, crash
from tests.torture.race import KINDS, race
from tests.torture.samples import SAMPLES
from tests.torture.simulation import simulate
from tests.torture.table import Counts, judge

pytestmark = pytest.mark.slow


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres_schema_url"))
    return f"sqlite:///{tmp_path / 'runs.db'}"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("sample", SAMPLES)
def test_whatever_line_or_store_call_a_process_dies_at_the_next_one_goes_on(url: str, sample: str, way: str) -> None:
    crash(url, sample, way, seed=1, most=3).check()


@pytest.mark.parametrize("kind", KINDS)
def test_of_fifty_answerers_in_five_processes_one_wins_and_its_answer_has_one_effect(url: str, kind: str) -> None:
    race(url, seed=1, kind=kind).check()


def test_whatever_fails_answers_are_kept_effects_come_once_and_all_comes_to_its_end() -> None:
    counts = Counts()
    for seed in range(5):
        counts.add(simulate(seed))
    counts.check()
    assert counts.cut_off > 0, "nothing was cut off: that is no torture"


def test_a_schedule_replays_by_its_seed() -> None:
    assert simulate(7) == simulate(7)


# -- the harness can fail ----------------------------------------------------------------------------------------------

_OVER = {"what": "over", "pid": 2, "status": "success", "open": 0, "attempts": ["2.1"], "settled": {"q": "yes"}}
_FIRST = {"what": "effect", "pid": 1, "name": "pay", "key": "k", "attempt": "1.1"}
_SECOND = {"what": "effect", "pid": 2, "name": "pay", "key": "k", "attempt": "2.1"}


@pytest.mark.parametrize(
    ("lines", "killed", "what"),
    [
        ([_FIRST, _SECOND, _OVER], {1}, "cut_off"),
        ([_FIRST, _SECOND, _OVER], set(), "doubled"),
        ([_FIRST, {**_SECOND, "key": "other"}, _OVER], {1}, "doubled"),
        ([_FIRST, {"what": "recorded", "pid": 1, "attempt": "1.1"}, _SECOND, _OVER], {1}, "again"),
        ([_FIRST, {"what": "known", "pid": 2, "attempts": ["1.1"]}, _SECOND, _OVER], {1}, "again"),
        ([_SECOND], set(), "stuck"),
        ([_SECOND, {**_OVER, "status": "error"}], set(), "stuck"),
        ([_OVER], set(), "stuck"),
        ([_SECOND, {"what": "accepted", "pid": 1, "id": "q", "value": "no"}, _OVER], set(), "lost"),
        ([_SECOND, {"what": "got", "pid": 1, "q": "q", "value": "no"}, _OVER], set(), "lost"),
    ],
)
def test_what_goes_wrong_is_counted(lines: list[dict[str, object]], killed: set[int], what: str) -> None:
    assert getattr(judge(lines, {"pay"}, killed, "here"), what) > 0
