"""The inbox, what became of it, and the list of runs: filtered, both ways, page by page while they change."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import pytest

from ...core.facts import Ended
from ...stores.base import BaseStore
from ...stores.clock import now
from ...stores.listings import Page
from ...types.events import InteractionEvent
from .facts import Work, answer, begin, done, load
from .stores import OnAStore, Stores

T = TypeVar("T")

HOUR = 3_600_000


def ask(question: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(question)


def ids(store: BaseStore, **which: Any) -> list[str]:
    return [item.id for item in ask(store.pending(**which)).items]


def settled_ids(store: BaseStore, **which: Any) -> list[str]:
    return [item.id for item in ask(store.settled(**which)).items]


def run_ids(store: BaseStore, **which: Any) -> list[str]:
    return [run.run_id for run in ask(store.runs(**which)).items]


def walk(
    page_of: Callable[..., Coroutine[Any, Any, Page[Any]]], between: Callable[[], None], limit: int, **which: Any
) -> list[Any]:
    """All pages, with something happening between them."""
    found: list[Any] = []
    page = ask(page_of(limit=limit, **which))
    while True:
        found += page.items
        if page.next is None:
            return found
        assert len(page.items) == limit
        between()
        page = ask(page_of(limit=limit, after=page.next, **which))


def settle(store: BaseStore, work: Work, *ids: str) -> None:
    done(store.settle(load(store, work.run_id).ref, [answer(id) for id in ids], None))


class Asking(OnAStore):
    """`pending`, `settled` and `runs`."""

    def test_the_inbox_holds_what_is_open_oldest_first(self, stores: Stores) -> None:
        store = stores.open()
        one, other = begin(store, "one"), begin(store, "other")
        one.pause("a", at=now() - 2)
        other.pause("b", "c", at=now() - 1)
        assert ids(stores.open()) == ["a", "b", "c"]
        assert ids(store, newest_first=True) == ["c", "b", "a"]
        settle(store, other, "b")
        assert ids(store) == ["a", "c"]

    def test_an_item_says_what_is_asked_where(self, store: BaseStore) -> None:
        work = begin(store, "desk", labels={"tenant": "a"})
        work.pause("q", kind="ask_user")
        (item,) = ask(store.pending()).items
        assert isinstance(item.event, InteractionEvent)
        assert (item.id, item.run_id, item.kind, item.runnable) == ("q", work.run_id, "ask_user", "desk")
        assert (item.labels, item.event.interaction_id, item.event.payload) == (
            {"tenant": "a"},
            "q",
            {"question": "q"},
        )

    def test_items_are_filtered(self, store: BaseStore) -> None:
        a = begin(store, "one", labels={"tenant": "a", "team": "x"})
        a.pause("old", at=now() - 2 * HOUR)
        b = begin(store, "other", labels={"tenant": "b", "team": "x"})
        b.pause("new", kind="ask_user")
        begin(store, "other").pause("bare")
        assert ids(store, runnable="one") == ["old"]
        assert ids(store, kind="ask_user") == ["new"]
        assert ids(store, labels={"team": "x"}) == ["old", "new"]
        assert ids(store, labels={"team": "x", "tenant": "b"}) == ["new"]
        assert ids(store, labels={"tenant": "c"}) == ids(store, labels={"no": "x"}) == []
        assert ids(store, older_than=3600) == ["old"]
        assert ids(store, newer_than=3600) == ["new", "bare"]
        assert ids(store, newer_than=3 * 3600, older_than=3600, runnable="one", kind="confirm") == ["old"]

    def test_pages_show_each_item_once_while_items_come_and_go(self, store: BaseStore) -> None:
        for newest_first in (False, True):
            begun = now()
            # Of four items of one time, one is settled before each page is turned, and others come at both ends.
            work = begin(store, f"runnable-{newest_first}")
            names = [f"{newest_first}-{i}" for i in range(40)]
            for i in range(0, 40, 4):
                work.ask(*names[i : i + 4], at=begun + i)
            leaving = iter(names[3::4])

            def change(work: Work = work, leaving: Any = leaving, begun: int = begun) -> None:
                name = next(leaving)
                settle(store, work, name)
                work.ask(f"{name}-early", at=begun - 1000)
                work.ask(f"{name}-late", at=begun + 1000)

            seen = [i.id for i in walk(store.pending, change, 7, runnable=work_name(work), newest_first=newest_first)]
            assert len(seen) == len(set(seen))
            stayed = [name for name in names if name not in names[3::4]]
            if newest_first:
                stayed.reverse()
            assert [name for name in seen if name in stayed] == stayed
            work.end()

    def test_what_was_settled_says_who_when_what_and_by_which_channel(self, store: BaseStore) -> None:
        work = begin(store, "desk", labels={"tenant": "a"})
        work.pause("q", "r")
        by = {"id": "ada", "roles": ["finance"]}
        settlement = answer("q", {"amount": 3}, run_id=work.run_id, by=by, channel="http")
        done(store.settle(load(store, work.run_id).ref, [settlement], None))
        (item,) = ask(store.settled()).items
        assert isinstance(item.event, InteractionEvent)
        assert (item.id, item.run_id, item.kind, item.runnable) == ("q", work.run_id, "confirm", "desk")
        assert (item.state, item.value, item.by, item.channel) == ("answered", {"amount": 3}, by, "http")
        assert (item.labels, item.settled_by_run_id, item.event.payload) == (
            {"tenant": "a"},
            work.run_id,
            {"question": "q"},
        )
        assert item.asked_at <= item.settled_at
        assert ids(store) == ["r"]

    def test_settled_items_come_as_they_were_settled(self, store: BaseStore) -> None:
        one, other = begin(store, "one", labels={"t": "a"}), begin(store, "other")
        one.pause("a", "b", "c")
        other.pause("d", kind="ask_user")
        settle(store, one, "c")
        settle(store, other, "d")
        settle(store, one, "a")
        assert sorted(settled_ids(store)) == ["a", "c", "d"]
        assert settled_ids(store) == settled_ids(store, newest_first=False)[::-1]
        assert sorted(settled_ids(store, runnable="one")) == ["a", "c"]
        assert settled_ids(store, kind="ask_user") == ["d"]
        assert sorted(settled_ids(store, labels={"t": "a"})) == ["a", "c"]
        assert settled_ids(store, older_than=3600) == []
        assert len(settled_ids(store, newer_than=3600)) == 3
        seen = [item.id for item in walk(store.settled, lambda: settle(store, one, "b"), 1, newest_first=False)]
        assert sorted(seen) == ["a", "b", "c", "d"]

    def test_runs_are_listed_newest_first_and_filtered(self, store: BaseStore) -> None:
        old = begin(store, "one", labels={"t": "a"}, at=now() - 2 * HOUR)
        paused = begin(store, "other", labels={"t": "a"}, at=now() - 2)
        at_work = begin(store, "other", at=now() - 1)
        old.end()
        paused.pause("q")
        assert run_ids(store) == [at_work.run_id, paused.run_id, old.run_id]
        assert run_ids(store, newest_first=False) == [old.run_id, paused.run_id, at_work.run_id]
        assert run_ids(store, status="success") == [old.run_id]
        assert run_ids(store, status="paused") == [paused.run_id]
        assert run_ids(store, status="running") == [at_work.run_id]
        assert run_ids(store, runnable="other") == [at_work.run_id, paused.run_id]
        assert run_ids(store, labels={"t": "a"}) == [paused.run_id, old.run_id]
        assert run_ids(store, older_than=3600) == [old.run_id]
        assert run_ids(store, newer_than=3600, runnable="other", status="paused") == [paused.run_id]

    def test_a_run_tells_what_became_of_it(self, store: BaseStore) -> None:
        first = begin(store, "one", labels={"t": "a"})
        first.end()
        work = begin(store, "one", parent=first.run_id)
        done(work.commit(ended=Ended(work.run_id, "error", now(), "max_iter")))
        info = next(run for run in ask(store.runs()).items if run.run_id == work.run_id)
        assert (info.execution_id, info.parent_run_id, info.runnable, info.runnable_type) == (
            *(work.run_id, first.run_id),
            *("one", "Agent"),
        )
        assert (info.status, info.reason, info.labels) == ("error", "max_iter", {})
        assert info.t1 is not None
        assert info.t0 <= info.t1
        record = ask(store.get(work.run_id))
        assert (record.info, record.runs, len(record.facts)) == (info, [info], 2)

    def test_pages_show_each_run_once_while_others_begin(self, store: BaseStore) -> None:
        begun = now() - 1000
        works = [begin(store, at=begun + i // 4) for i in range(30)]
        place = {work.run_id: (begun + i // 4, work.run_id) for i, work in enumerate(works)}

        def more() -> None:
            begin(store, at=begun - 1000)
            begin(store)

        for newest_first in (True, False):
            seen = [run.run_id for run in walk(store.runs, more, 7, newest_first=newest_first)]
            assert len(seen) == len(set(seen))
            first = [run_id for run_id in seen if run_id in place]
            assert first == sorted(place, key=lambda run_id: place[run_id], reverse=newest_first)

    def test_what_is_no_position_or_no_limit_is_refused(self, store: BaseStore) -> None:
        for page_of in (store.pending, store.settled, store.runs):
            with pytest.raises(ValueError, match="position"):
                ask(page_of(after="nowhere"))
            with pytest.raises(ValueError, match="limit"):
                ask(page_of(limit=0))


def work_name(work: Work) -> str:
    return next(run.runnable for run in ask(work.store.runs()).items if run.run_id == work.run_id)
