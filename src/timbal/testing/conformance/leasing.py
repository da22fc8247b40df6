"""One run at a time writes to an execution; a holder that has gone is replaced, and can't write when it comes back."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import wait as wait_for

import pytest

from ...core.facts import Noted
from ...errors import LeaseLost
from ...ports import Lease, RunRow
from ...stores.base import BaseStore
from .facts import PATIENCE, Work, answer, begin, done, going_on, load, notes
from .stores import OnAStore, Stores

#: A short lease, in seconds.
SHORT = 0.6


def acquire_in_the_end(store: BaseStore, run_id: str, row: RunRow) -> Lease:
    """Wait for the lease, as a run does."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        ref = load(store, run_id).ref
        if (lease := done(store.acquire(ref, row))) is not None:
            return lease
        done(store.wait(ref))
    raise AssertionError(f"nobody gave the lease of {run_id} back in {PATIENCE:g} s")


class Leasing(OnAStore):
    """Leases, fences and waiters."""

    def test_a_lease_that_is_held_is_not_given_to_another(self, stores: Stores) -> None:
        store, other = stores.open(), stores.open()
        work = begin(store)
        assert load(store, work.run_id).held
        assert load(other, work.run_id).held
        for one in (store, other):
            assert done(one.acquire(load(one, work.run_id).ref, going_on(work.run_id))) is None
        work.note("still here")

    def test_a_lease_that_was_given_back_is_free_and_its_fence_grows(self, stores: Stores) -> None:
        store, other = stores.open(), stores.open()
        work = begin(store)
        work.pause("q")
        before = load(other, work.run_id)
        assert not before.held
        row = going_on(work.run_id)
        lease = done(other.acquire(before.ref, row))
        assert lease is not None
        assert lease.fence == before.fence + 1
        assert load(store, row.run_id).newest_run_id == row.run_id

    def test_of_many_who_want_a_free_lease_one_gets_it(self, stores: Stores) -> None:
        several = [stores.open(), stores.open()]
        work = begin(several[0])
        work.pause("q")

        def take(i: int) -> bool:
            store = several[i % 2]
            return done(store.acquire(load(store, work.run_id).ref, going_on(work.run_id))) is not None

        with ThreadPoolExecutor(10) as threads:
            assert sum(threads.map(take, range(10))) == 1

    def test_the_lease_of_a_run_that_has_died_here_is_free_at_once(self, store: BaseStore) -> None:
        work = begin(store)
        work.person.lives = False
        assert not load(store, work.run_id).held
        assert done(store.acquire(load(store, work.run_id).ref, going_on(work.run_id))) is not None

    def test_a_holder_that_was_replaced_can_not_write_any_more(self, stores: Stores) -> None:
        store = stores.open(SHORT)
        work = begin(store)
        work.note("before")
        work.person.lives = False
        row = going_on(work.run_id)
        new = Work(store, acquire_in_the_end(store, work.run_id, row), row.run_id)
        work.person.lives = True  # it was not dead, only slow
        for late in (work.commit(Noted("/n", "late")), work.commit(ended=None, asks=()), work.commit(Noted("/n", "x"))):
            with pytest.raises(LeaseLost):
                done(late)
        new.note("after")
        assert notes(store, work.run_id) == ["before", "after"]

    def test_a_holder_that_shows_signs_of_life_is_not_replaced(self, stores: Stores) -> None:
        store, other = stores.open(SHORT), stores.open(SHORT)
        work = begin(store)
        until = time.monotonic() + 3 * SHORT
        while time.monotonic() < until:
            assert done(other.acquire(load(other, work.run_id).ref, going_on(work.run_id))) is None
            time.sleep(SHORT / 10)
        work.note("still here")

    def test_who_waits_for_a_free_lease_does_not_wait(self, store: BaseStore) -> None:
        work = begin(store)
        work.pause("q")
        done(store.wait(load(store, work.run_id).ref))

    def test_waiters_are_woken_first_come_first_served(self, store: BaseStore) -> None:
        work = begin(store)
        ref = load(store, work.run_id).ref
        woken: list[int] = []
        waiters = [store.wait(ref) for _ in range(20)]
        for i, waiter in enumerate(waiters):
            waiter.add_done_callback(lambda _, i=i: woken.append(i))  # type: ignore[misc]
        work.end()
        wait_for(waiters, PATIENCE)
        assert woken == list(range(20))

    def test_a_waiter_gets_the_lease_that_another_store_object_gives_back(self, stores: Stores) -> None:
        store, other = stores.open(), stores.open()
        work = begin(store)
        with ThreadPoolExecutor(1) as threads:
            row = going_on(work.run_id)
            waiting = threads.submit(acquire_in_the_end, other, work.run_id, row)
            work.note("first")
            work.end("cancelled", "interrupted")
            new = Work(other, waiting.result(PATIENCE), row.run_id)
        new.note("second")
        assert notes(store, work.run_id) == ["first", "second"]

    def test_a_holder_hears_that_it_shall_stop(self, stores: Stores) -> None:
        store, other = stores.open(), stores.open()
        for asking in (store, other):
            work = begin(store)
            done(asking.settle(load(asking, work.run_id).ref, [], going_on(work.run_id), "enough"))
            assert work.person.why_it_stops() == "enough"
            assert done(work.commit(Noted("/n", "a"))) == "enough"
            work.end("cancelled", "cancelled")
            assert not load(other, work.run_id).held

    def test_the_next_holder_is_not_asked_to_stop(self, store: BaseStore) -> None:
        work = begin(store)
        work.ask("q")
        done(store.settle(load(store, work.run_id).ref, [answer("q")], going_on(work.run_id), "enough"))
        work.end("cancelled", "interrupted")
        row = going_on(work.run_id)
        new = Work(store, acquire_in_the_end(store, work.run_id, row), row.run_id)
        assert done(new.commit(Noted("/n", "a"))) is None
