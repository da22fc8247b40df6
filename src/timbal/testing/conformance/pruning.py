"""Old executions can be removed, and open ones only when that is asked for; a check finds nothing wrong."""

from __future__ import annotations

import asyncio
from typing import Any

from ...stores.base import BaseStore
from ...stores.checking import Checked
from ...stores.listings import Pruned
from .asking import run_ids
from .facts import answer, begin, done, going_on, load
from .stores import OnAStore, Stores

#: The last sign of life of what a test has just made is longer ago: in seconds.
_NOT_YET = -60.0


def prune(store: BaseStore, **more: Any) -> Pruned:
    return asyncio.run(store.prune(_NOT_YET, **more))


def check(store: BaseStore) -> Checked:
    return asyncio.run(store.check())


class Pruning(OnAStore):
    """`prune` and `check`."""

    def test_what_has_finished_is_removed_and_what_is_open_stays(self, store: BaseStore) -> None:
        finished, paused, interrupted, working = (begin(store) for _ in range(4))
        finished.end()
        paused.pause("q")
        interrupted.end("cancelled", "interrupted")
        answered = begin(store)
        answered.pause("q")
        done(store.settle(load(store, answered.run_id).ref, [answer("q")], None))
        kept = {work.run_id for work in (paused, interrupted, working, answered)}
        assert prune(store, dry_run=True) == Pruned(1, 0)
        assert set(run_ids(store)) == kept | {finished.run_id}
        assert prune(store) == Pruned(1, 0)
        assert set(run_ids(store)) == kept
        assert done(store.load(finished.run_id)) is None
        assert prune(store, abandoned_older_than=_NOT_YET) == Pruned(0, 3)
        assert run_ids(store) == [working.run_id]
        working.note("goes on")
        working.end()
        assert check(store).problems == []

    def test_what_is_not_old_enough_stays(self, store: BaseStore) -> None:
        begin(store).end()
        begin(store).pause("q")
        assert asyncio.run(store.prune(60.0, abandoned_older_than=60.0)) == Pruned(0, 0)
        assert len(run_ids(store)) == 2

    def test_a_run_whose_holder_has_gone_is_open(self, store: BaseStore) -> None:
        work = begin(store)
        work.person.lives = False
        assert prune(store) == Pruned(0, 0)
        assert run_ids(store) == [work.run_id]

    def test_the_turns_before_one_that_stays_stay(self, store: BaseStore) -> None:
        first = begin(store)
        first.end()
        second = begin(store, parent=first.run_id)
        second.end()
        third = begin(store, parent=second.run_id)
        third.pause("q")
        alone = begin(store)
        alone.end()
        assert prune(store) == Pruned(1, 0)
        assert len(done(store.history(third.run_id))) == 3
        assert prune(store, abandoned_older_than=_NOT_YET) == Pruned(2, 1)

    def test_a_tombstone_stays(self, store: BaseStore) -> None:
        work = begin(store)
        work.end()
        asyncio.run(store.erase(work.run_id))
        assert prune(store, abandoned_older_than=_NOT_YET) == Pruned(0, 0)
        assert run_ids(store) == [work.run_id]

    def test_what_comes_after_is_an_execution_of_its_own(self, stores: Stores) -> None:
        store = stores.open()
        old = begin(store)
        old.note("old")
        old.end()
        prune(store)
        new = begin(store)
        new.note("new")
        new.pause("q")
        assert prune(store) == Pruned(0, 0)
        assert load(store, new.run_id).run_id == new.run_id
        new_run = done(store.acquire(load(store, new.run_id).ref, going_on(new.run_id)))
        assert new_run is not None

    def test_a_check_counts_what_is_there(self, store: BaseStore) -> None:
        work = begin(store)
        work.pause("q", "r")
        done(store.settle(load(store, work.run_id).ref, [answer("q")], None))
        begin(store).end()
        found = check(store)
        assert (found.executions, found.open_questions, found.settled_questions, found.newer) == (2, 1, 1, 0)
        assert found.runs == {"paused": 1, "success": 1}
        assert found.problems == []
