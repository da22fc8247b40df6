"""`timbal demo --chaos`, with few kills."""

import json
from pathlib import Path

import pytest

from tests.cli.commands import piped

pytestmark = pytest.mark.slow


def test_workers_are_killed_and_the_payment_is_made_once(tmp_path: Path) -> None:
    done = piped("demo", "--chaos", "--kills", "4", "--json", folder=tmp_path, TMPDIR=str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    table = json.loads(done.stdout)
    assert (table["kills"], table["paid"], table["payments"], table["answers_accepted"]) == (4, 1, 1, 1)
    assert (table["answers_lost"], table["recorded_steps_run_again"], table["executions_stuck"]) == (0, 0, 0)
    assert table["answers_given"] >= 5
    assert not list(tmp_path.glob("timbal-chaos-*"))


def test_it_tells_what_it_does(tmp_path: Path) -> None:
    done = piped("demo", "--chaos", "--kills", "2", folder=tmp_path, TMPDIR=str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    assert "kills 2, answers lost 0, paid 1 of 1" in done.stdout
    assert "attempts cut off" in done.stdout
