"""What is committed is there, whole and in order, or not at all."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from ...core.codec import decode, encode
from ...core.facts import Asked, Ended, Noted, Opened
from ...errors import LeaseLost, RunExists
from ...ports import Lease
from ...stores.base import BaseStore
from ...stores.clock import now
from .facts import PATIENCE, answer, asked, begin, done, facts, going_on, load, new_id, notes, opened, question
from .facts import settled as settled_in
from .stores import OnAStore, Stores


class Keeping(OnAStore):
    """Commits, and what they read like."""

    def test_what_is_committed_is_loaded_in_order(self, store: BaseStore) -> None:
        work = begin(store)
        for text in "abc":
            work.note(text)
        assert notes(store, work.run_id) == ["a", "b", "c"]
        assert isinstance(facts(store, work.run_id)[0], Opened)

    def test_commits_that_nobody_waits_for_keep_their_order(self, store: BaseStore) -> None:
        works = [begin(store) for _ in range(5)]
        futures = [work.commit(Noted("/n", str(i))) for i in range(40) for work in works]
        for future in futures:
            done(future)
        assert all(notes(store, work.run_id) == [str(i) for i in range(40)] for work in works)

    def test_the_facts_of_later_holders_come_after_those_of_earlier_ones(self, store: BaseStore) -> None:
        work = begin(store)
        work.note("first")
        work.end("cancelled", "interrupted")
        for text in ("second", "third"):
            row = going_on(work.run_id)
            lease = done(store.acquire(load(store, work.run_id).ref, row))
            assert lease is not None
            done(store.commit(lease, encode((Noted("/n", text),))))
            done(store.commit(lease, ended=Ended(row.run_id, "cancelled", now(), "interrupted")))
        assert notes(store, work.run_id) == ["first", "second", "third"]

    def test_a_record_may_be_large_and_hold_any_character(self, store: BaseStore) -> None:
        work = begin(store, labels={'a "quoted" \\ name': "Grüße, 世界"})
        text = "\x00 ' \" \\ \u2028 \U0001f600 " * 50_000
        work.note(text)
        assert notes(store, work.run_id) == [text]
        done(work.commit(asks=[question("q", work.run_id, text=text)], settles=[answer("q", text)]))
        (asking,) = (fact for fact in facts(store, work.run_id) if isinstance(fact, Asked))
        assert (asking.payload, settled_in(store, work.run_id)) == ({"question": text}, {"q": text})
        assert (opening := facts(store, work.run_id)[0])
        assert isinstance(opening, Opened)
        assert opening.labels == {'a "quoted" \\ name': "Grüße, 世界"}

    def test_any_run_of_an_execution_loads_it(self, store: BaseStore) -> None:
        work = begin(store)
        work.pause("q")
        row = going_on(work.run_id)
        assert done(store.settle(load(store, work.run_id).ref, [answer("q")], row)).lease is not None
        first, newest = load(store, work.run_id), load(store, row.run_id)
        assert first.records == newest.records
        assert (first.run_id, first.newest_run_id) == (newest.run_id, newest.newest_run_id) == (work.run_id, row.run_id)

    def test_a_run_that_never_was_is_not_there(self, store: BaseStore) -> None:
        assert done(store.load(new_id())) is None
        assert done(store.history(new_id())) == []
        assert done(store.load("no id at all' --")) is None

    def test_a_run_id_is_used_once(self, store: BaseStore) -> None:
        work = begin(store)
        work.note("mine")
        again = opened(run_id=work.run_id)
        with pytest.raises(RunExists):
            done(store.commit(Lease(), encode((again,)), again))
        work.note("still mine")
        assert notes(store, work.run_id) == ["mine", "still mine"]

    def test_a_run_id_of_a_run_that_went_on_is_in_use_too(self, store: BaseStore) -> None:
        work = begin(store)
        work.pause("q")
        row = going_on(work.run_id)
        done(store.settle(load(store, work.run_id).ref, [answer("q")], row))
        again = opened(run_id=row.run_id)
        with pytest.raises(RunExists):
            done(store.commit(Lease(), encode((again,)), again))

    def test_of_many_starts_with_one_run_id_one_is_kept(self, stores: Stores) -> None:
        several, run_id = [stores.open(), stores.open()], new_id()

        def start(i: int) -> bool:
            fact = opened(run_id=run_id, labels={"i": str(i)})
            future = several[i % 2].commit(Lease(), encode((fact, Noted("/n", str(i)))), fact)
            return not isinstance(future.exception(PATIENCE), RunExists)

        with ThreadPoolExecutor(10) as threads:
            won = [i for i, kept in enumerate(threads.map(start, range(10))) if kept]
        assert len(won) == 1
        assert notes(several[0], run_id) == [str(won[0])]

    def test_a_start_that_ends_at_once_holds_no_lease(self, store: BaseStore) -> None:
        fact, lease = opened(), Lease()
        ended = Ended(fact.run_id, "success", now())
        done(store.commit(lease, encode((fact, ended)), fact, ended=ended))
        assert not load(store, fact.run_id).held
        with pytest.raises(LeaseLost):
            done(store.commit(lease, encode((Noted("/n", "late"),))))
        assert notes(store, fact.run_id) == []

    def test_nothing_of_a_commit_that_is_refused_is_kept(self, store: BaseStore) -> None:
        work = begin(store)
        work.ask("q")
        work.person.lives = False
        ref = load(store, work.run_id).ref
        assert done(store.acquire(ref, going_on(work.run_id))) is not None
        late = work.commit(Noted("/n", "late"), asks=[question("r", work.run_id)], settles=[answer("q")])
        with pytest.raises(LeaseLost):
            done(late)
        assert (notes(store, work.run_id), asked(store, work.run_id)) == ([], ["q"])
        assert settled_in(store, work.run_id) == {}

    def test_what_an_end_leaves_behind_is_settled_with_it_unless_it_was_before(self, store: BaseStore) -> None:
        work = begin(store)
        work.ask("a", "b")
        assert not done(store.settle(load(store, work.run_id).ref, [answer("a", "first")], None)).conflict
        ended = Ended(work.run_id, "cancelled", now(), "cancelled")
        asks = [question("c", work.run_id)]
        done(work.commit(asks=asks, settles=[answer(id, "late") for id in "abc"], ended=ended))
        assert settled_in(store, work.run_id) == {"a": "first", "b": "late", "c": "late"}

    def test_history_goes_from_the_first_turn_to_this_one(self, store: BaseStore) -> None:
        parent, turns = None, []
        for text in ("one", "two", "three"):
            work = begin(store, parent=parent)
            work.note(text)
            work.ask(f"q-{text}")
            work.end()
            turns.append(work.run_id)
            parent = work.run_id
        fork = begin(store, parent=turns[0])
        fork.note("fork")

        def said(run_id: str) -> list[list[str]]:
            history = done(store.history(run_id))
            return [[f.text for r in one for f in decode(r) if isinstance(f, Noted)] for one in history]

        assert said(turns[2]) == [["one"], ["two"], ["three"]]
        assert said(turns[1]) == [["one"], ["two"]]
        assert said(fork.run_id) == [["one"], ["fork"]]

    def test_questions_come_in_the_order_they_were_asked(self, store: BaseStore) -> None:
        work = begin(store)
        work.ask("z", "m", "a")
        work.ask("k")
        assert asked(store, work.run_id) == ["z", "m", "a", "k"]
