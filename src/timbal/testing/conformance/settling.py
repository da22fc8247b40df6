"""A question is settled once, whoever else settles it at the same moment."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import product

import pytest

from ...errors import RunExists
from ...stores.base import BaseStore
from .facts import answer, begin, done, going_on, load, new_id
from .facts import settled as settled_in
from .stores import OnAStore, Stores


class Settling(OnAStore):
    """Compare and set, all or none."""

    def test_the_first_answer_stands(self, stores: Stores) -> None:
        store, other = stores.open(), stores.open()
        work = begin(store)
        work.pause("q")
        assert not done(store.settle(load(store, work.run_id).ref, [answer("q", 1)], None)).conflict
        for one, value in product((store, other), (1, 2)):
            assert done(one.settle(load(one, work.run_id).ref, [answer("q", value)], None)).conflict
        assert settled_in(other, work.run_id) == {"q": 1}

    def test_all_answers_are_taken_or_none(self, store: BaseStore) -> None:
        work = begin(store)
        work.pause("a", "b", "c")
        ref = load(store, work.run_id).ref
        done(store.settle(ref, [answer("b", "first")], None))
        row = going_on(work.run_id)
        result = done(store.settle(ref, [answer(id, "second") for id in "abc"], row))
        assert (result.conflict, result.lease) == (True, None)
        assert settled_in(store, work.run_id) == {"b": "first"}
        assert done(store.load(row.run_id)) is None
        assert not load(store, work.run_id).held

    def test_an_id_that_nobody_asked_is_a_conflict(self, store: BaseStore) -> None:
        work = begin(store)
        work.pause("q")
        assert done(store.settle(load(store, work.run_id).ref, [answer("other")], None)).conflict

    def test_an_equal_id_of_another_execution_stays_open(self, store: BaseStore) -> None:
        one, other = begin(store), begin(store)
        one.pause("q")
        other.pause("q")
        done(store.settle(load(store, one.run_id).ref, [answer("q")], None))
        assert (settled_in(store, one.run_id), settled_in(store, other.run_id)) == ({"q": True}, {})

    def test_whoever_answers_gets_the_free_lease(self, store: BaseStore) -> None:
        work = begin(store)
        work.pause("q")
        before, row = load(store, work.run_id), going_on(work.run_id)
        result = done(store.settle(before.ref, [answer("q")], row))
        assert result.lease is not None
        assert result.lease.fence == before.fence + 1
        after = load(store, row.run_id)
        assert (after.held, after.fence, after.newest_run_id) == (True, result.lease.fence, row.run_id)

    def test_an_answer_beside_a_run_at_work_is_kept_and_its_run_waits(self, store: BaseStore) -> None:
        work = begin(store)
        work.ask("q")
        row = going_on(work.run_id)
        result = done(store.settle(load(store, work.run_id).ref, [answer("q")], row))
        assert (result.conflict, result.lease) == (False, None)
        assert load(store, row.run_id).newest_run_id == row.run_id
        work.note("still at work")

    def test_an_answer_with_a_run_id_in_use_changes_nothing(self, store: BaseStore) -> None:
        work, other = begin(store), begin(store)
        work.pause("q")
        row = going_on(work.run_id)._replace(run_id=other.run_id)
        with pytest.raises(RunExists):
            done(store.settle(load(store, work.run_id).ref, [answer("q")], row))
        assert settled_in(store, work.run_id) == {}
        assert not load(store, work.run_id).held

    def test_of_many_answers_at_once_one_wins(self, stores: Stores) -> None:
        several = [stores.open() for _ in range(3)]
        work = begin(several[0])
        work.pause("q")

        def settle(i: int) -> bool:
            store = several[i % 3]
            return not done(
                store.settle(load(store, work.run_id).ref, [answer("q", i)], going_on(work.run_id))
            ).conflict

        with ThreadPoolExecutor(12) as threads:
            won = [i for i, first in enumerate(threads.map(settle, range(24))) if first]
        assert len(won) == 1
        assert settled_in(several[1], work.run_id) == {"q": won[0]}

    def test_of_answers_that_overlap_no_two_win(self, stores: Stores) -> None:
        several = [stores.open(), stores.open()]
        for _ in range(5):
            work = begin(several[0])
            work.pause("a", "b", "c")
            sets = [("a", "b"), ("b", "c"), ("c", "a"), ("a", "b", "c")]
            refs = [load(store, work.run_id).ref for store in several]

            def settle(i: int, sets: list[tuple[str, ...]] = sets, refs: list[object] = refs) -> bool:
                answers = [answer(id, i) for id in sets[i]]
                return not done(several[i % 2].settle(refs[i % 2], answers, None)).conflict

            with ThreadPoolExecutor(4) as threads:
                won = [i for i, first in enumerate(threads.map(settle, range(4))) if first]
            assert len(won) == 1
            assert settled_in(several[0], work.run_id) == dict.fromkeys(sets[won[0]], won[0])

    def test_what_waits_for_an_answer_is_found_by_its_id(self, store: BaseStore) -> None:
        one, other, third = begin(store, "agent"), begin(store, "other"), begin(store, "agent")
        id = new_id()
        for work in (one, other, third):
            work.pause(id, new_id())
        found = done(store.find([id], "agent"))
        assert sorted(found) == sorted([one.run_id, third.run_id])
        done(store.settle(load(store, one.run_id).ref, [answer(id)], None))
        assert done(store.find([new_id(), id], "agent")) == [third.run_id]
        assert done(store.find(["' OR 1=1 --", '"}'], "agent")) == []
