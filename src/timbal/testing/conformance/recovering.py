"""What waits for a run and not for a person is found by whoever looks for it."""

from __future__ import annotations

import asyncio

from ...core.codec import encode
from ...core.facts import Asked
from ...ports import Due, QuestionRow
from ...stores.base import BaseStore
from ...stores.clock import now
from .facts import Work, answer, begin, done, going_on, load, new_id
from .stores import OnAStore, Stores


def due(store: BaseStore, *names: str, limit: int = 100) -> list[Due]:
    return done(store.due(names or ("agent",), limit))


def crashed(store: BaseStore) -> Work:
    """An execution whose run has died with its lease."""
    work = begin(store)
    work.person.lives = False
    return work


class Recovering(OnAStore):
    """`due`, `release` and `park`."""

    def test_nothing_is_due_of_a_run_at_work_of_one_that_waits_for_a_person_and_of_one_that_ended(
        self, store: BaseStore
    ) -> None:
        begin(store)
        begin(store).pause("q")
        begin(store).end()
        assert due(store) == []

    def test_a_run_that_died_is_due_for_those_who_know_its_runnable(self, store: BaseStore) -> None:
        work = crashed(store)
        assert due(store) == [Due(work.run_id, "agent", 0)]
        assert due(store, "other") == []
        assert due(store, "other", "agent") == [Due(work.run_id, "agent", 0)]

    def test_an_answer_that_nobody_has_taken_up_makes_it_due(self, store: BaseStore) -> None:
        work = begin(store)
        work.pause("a", "b")
        done(store.settle(load(store, work.run_id).ref, [answer("a")], None))
        assert due(store) == [Due(work.run_id, "agent", 0)]
        row = going_on(work.run_id)
        lease = done(store.acquire(load(store, work.run_id).ref, row))
        assert lease is not None
        assert due(store) == []
        Work(store, lease, row.run_id).pause("c")
        assert due(store) == []

    def test_an_answer_that_came_while_a_run_was_at_work_is_due_when_it_has_paused(self, store: BaseStore) -> None:
        work = begin(store)
        work.ask("a", "b")
        done(store.settle(load(store, work.run_id).ref, [answer("a")], None))
        assert due(store) == []
        work.pause("c")
        assert [one.run_id for one in due(store)] == [work.run_id]

    def test_an_answer_to_a_run_that_then_ended_is_not_due(self, store: BaseStore) -> None:
        work = begin(store)
        work.ask("a")
        done(store.settle(load(store, work.run_id).ref, [answer("a")], None))
        work.end()
        assert due(store) == []

    def test_a_question_whose_time_is_over_makes_it_due(self, store: BaseStore) -> None:
        early, late = begin(store), begin(store)
        _pause_until(early, now() - 1000)
        _pause_until(late, now() + 60_000)
        assert [one.run_id for one in due(store)] == [early.run_id]

    def test_each_run_that_died_in_a_row_counts_and_one_that_gave_its_lease_back_begins_anew(
        self, store: BaseStore
    ) -> None:
        work = first = crashed(store)
        for n in (1, 2):
            work = _go_on(store, work)
            work.person.lives = False
            assert due(store) == [Due(first.run_id, "agent", n)]
        work = _go_on(store, work)
        work.pause("q")
        done(store.settle(load(store, work.run_id).ref, [answer("q")], None))
        assert due(store) == [Due(first.run_id, "agent", 0)]

    def test_what_is_left_to_others_is_due_and_costs_no_attempt(self, store: BaseStore) -> None:
        first = crashed(store)
        work = _go_on(store, first)
        done(store.release(work.lease))
        assert due(store) == [Due(first.run_id, "agent", 0)]
        assert not load(store, work.run_id).held
        _go_on(store, work).note("another one")

    def test_who_left_it_to_others_can_not_write_any_more(self, store: BaseStore) -> None:
        work = begin(store)
        done(store.release(work.lease))
        assert done_error(work) == "LeaseLost"

    def test_what_is_parked_is_not_due_says_so_and_is_taken_up_by_hand(self, store: BaseStore) -> None:
        work = crashed(store)
        done(store.park(work.run_id))
        assert due(store) == []
        page = asyncio.run(store.runs(status="parked"))
        assert [info.run_id for info in page.items] == [work.run_id]
        again = _go_on(store, work)
        assert asyncio.run(store.runs(status="parked")).items == []
        again.person.lives = False
        assert due(store) == [Due(work.run_id, "agent", 1)]

    def test_a_run_that_died_is_running_until_another_one_goes_on_and_continued_then(self, store: BaseStore) -> None:
        first = crashed(store)
        assert _statuses(store, first) == {first.run_id: "running"}
        second = _go_on(store, first)
        assert _statuses(store, first) == {first.run_id: "continued", second.run_id: "running"}
        assert [_ids(store, status) for status in ("running", "continued")] == [[second.run_id], [first.run_id]]
        second.person.lives = False
        done(store.park(second.run_id))
        assert _statuses(store, first) == {first.run_id: "continued", second.run_id: "parked"}
        third = _go_on(store, second)
        third.end()
        assert _statuses(store, first) == {
            first.run_id: "continued",
            second.run_id: "continued",
            third.run_id: "success",
        }
        assert _ids(store, "running") == []
        assert next(info for info in asyncio.run(store.get(first.run_id)).runs).t1 is None

    def test_a_run_that_never_got_the_lease_is_running_until_what_it_brought_was_used(self, store: BaseStore) -> None:
        work = begin(store)
        work.ask("a", "b")
        row = going_on(work.run_id)
        assert done(store.settle(load(store, work.run_id).ref, [answer("a")], row)) == (False, None)
        work.pause("c")
        assert _statuses(store, work) == {work.run_id: "paused", row.run_id: "running"}
        other = _go_on(store, work)
        other.pause("d")
        assert _statuses(store, work) == {work.run_id: "paused", row.run_id: "continued", other.run_id: "paused"}
        assert _ids(store, "continued") == [row.run_id]

    def test_those_that_have_waited_longest_come_first(self, stores: Stores) -> None:
        store = stores.open()
        first, second, third = (begin(store) for _ in range(3))
        for n, work in enumerate((third, first, second)):
            _pause_until(work, now() - 10_000 + n)
        assert [one.run_id for one in due(store)] == [work.run_id for work in (third, first, second)]
        assert [one.run_id for one in due(store, limit=2)] == [third.run_id, first.run_id]


def _go_on(store: BaseStore, work: Work) -> Work:
    row = going_on(work.run_id)
    lease = done(store.acquire(load(store, work.run_id).ref, row))
    assert lease is not None
    return Work(store, lease, row.run_id)


def _statuses(store: BaseStore, work: Work) -> dict[str, str]:
    return {info.run_id: info.status for info in asyncio.run(store.get(work.run_id)).runs}


def _ids(store: BaseStore, status: str) -> list[str]:
    return [info.run_id for info in asyncio.run(store.runs(status=status)).items]


def _pause_until(work: Work, due_at: int) -> None:
    asked = Asked("/q", new_id(), work.run_id, "agent.ask", new_id(), "ask", "ask", {}, now(), expires_at=due_at)
    row = QuestionRow(asked.id, "ask", asked.at, due_at, encode((asked,)))
    done(work.commit(asks=[row]))
    work.pause("p")


def done_error(work: Work) -> str:
    try:
        work.note("too late")
    except Exception as error:
        return type(error).__name__
    return "nothing"
