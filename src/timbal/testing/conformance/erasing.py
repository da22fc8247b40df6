"""What a person said can be removed for good, and a tombstone says so."""

from __future__ import annotations

import asyncio

import pytest

from ...core.codec import decode, encode
from ...core.facts import Noted
from ...errors import LeaseLost, RunErased, RunExists, RunNotFound
from ...ports import Lease
from ...stores.base import BaseStore
from .asking import ask, ids, run_ids, settled_ids
from .facts import answer, begin, done, going_on, load, new_id, opened
from .stores import OnAStore, Stores


class Erasing(OnAStore):
    """`erase` and its tombstone."""

    def test_nothing_that_was_recorded_is_left(self, stores: Stores) -> None:
        store = stores.open()
        work = begin(store, labels={"customer": "ada"})
        work.note("secret")
        work.pause("q", "r")
        done(store.settle(load(store, work.run_id).ref, [answer("q", "secret")], None))
        ask(store.erase(work.run_id))
        for one in (store, stores.open()):
            assert done(one.load(work.run_id)) is None
            assert done(one.history(work.run_id)) == []
            assert (ids(one), settled_ids(one)) == ([], [])
            assert run_ids(one, labels={"customer": "ada"}) == []
            assert done(one.find(["r"], "agent")) == []

    def test_the_tombstone_has_the_runs_and_when_it_was(self, store: BaseStore) -> None:
        work = begin(store, "desk", labels={"customer": "ada"})
        work.pause("q")
        row = going_on(work.run_id)
        done(store.settle(load(store, work.run_id).ref, [answer("q")], row))
        ask(store.erase(row.run_id))
        tombs = ask(store.runs(status="erased")).items
        assert {tomb.run_id for tomb in tombs} == {work.run_id, row.run_id}
        assert all((tomb.runnable, tomb.labels, tomb.reason) == ("desk", {}, None) for tomb in tombs)
        for ask_for in (store.get, store.messages):
            with pytest.raises(RunErased) as erased:
                ask(ask_for(work.run_id))
            assert erased.value.erased_at == tombs[0].t1
        with pytest.raises(RunErased):
            ask(store.answer(work.run_id, {"q": True}))

    def test_its_id_stays_in_use(self, store: BaseStore) -> None:
        work = begin(store)
        work.end()
        ask(store.erase(work.run_id))
        again = opened(run_id=work.run_id)
        with pytest.raises(RunExists):
            done(store.commit(Lease(), encode((again,)), again))
        assert done(store.load(work.run_id)) is None

    def test_a_run_at_work_loses_its_lease(self, stores: Stores) -> None:
        store, other = stores.open(), stores.open()
        work = begin(store)
        ref = load(store, work.run_id).ref
        ask(other.erase(work.run_id))
        with pytest.raises(LeaseLost):
            done(work.commit(Noted("/n", "late")))
        assert done(store.settle(ref, [answer("q")], going_on(work.run_id))).conflict
        assert done(other.load(work.run_id)) is None
        begin(store).note("others go on")

    def test_who_waits_for_it_is_woken(self, store: BaseStore) -> None:
        work = begin(store)
        waiter = store.wait(load(store, work.run_id).ref)
        ask(store.erase(work.run_id))
        done(waiter)

    def test_other_turns_of_its_conversation_are_still_there(self, store: BaseStore) -> None:
        first = begin(store)
        first.note("first")
        first.end()
        second = begin(store, parent=first.run_id)
        second.note("second")
        second.end()
        third = begin(store, parent=second.run_id)
        third.note("third")
        ask(store.erase(second.run_id))
        history = done(store.history(third.run_id))
        assert [[f.text for r in one for f in decode(r) if isinstance(f, Noted)] for one in history] == [
            ["first"],
            ["third"],
        ]
        third.end()

    def test_erasing_twice_is_done_and_what_never_was_is_not_found(self, store: BaseStore) -> None:
        work = begin(store)
        work.end()
        ask(store.erase(work.run_id))
        (before,) = ask(store.runs()).items
        ask(store.erase(work.run_id))
        assert ask(store.runs()).items == [before]
        with pytest.raises(RunNotFound):
            asyncio.run(store.erase(new_id()))
