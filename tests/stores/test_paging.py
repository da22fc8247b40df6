"""A page of the inbox costs the same whether a hundred items are open or a hundred thousand."""

import asyncio
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest

from tests.stores.urls import store_at
from timbal.core.codec import encode
from timbal.core.facts import Ended
from timbal.ports import Lease
from timbal.stores import postgres_queries, sqlite_queries
from timbal.stores.base import BaseStore
from timbal.stores.clock import now
from timbal.stores.listings import Slice, Where
from timbal.stores.postgres_session import Ask
from timbal.testing.conformance.facts import answer, begin, done, new_id, opened, question

FEW, MANY = 100, 100_000
QUESTIONS = [
    ("open", Where(), False),
    ("open of a time", Where(since=1000, until=now() + 10**6), False),
    ("settled", Where(), True),
]


class Case(NamedTuple):
    """A store, and how it would find something, as its database explains it."""

    store: BaseStore
    explain: Callable[[Where, Slice, bool], str]
    explain_runs: Callable[[Where, Slice], str]
    #: Let the database look at what it has, as a server does by itself in a while.
    analyze: Callable[[], None]


def sqlite_case(path: Path) -> Case:
    def explain(query: tuple[str, list[Any]]) -> str:
        with closing(sqlite3.connect(path)) as db:
            return "\n".join(row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {query[0]}", query[1]))

    return Case(
        store_at(f"sqlite:///{path}"),
        lambda where, page, settled: explain(sqlite_queries.questions_query(where, page, settled=settled)),
        lambda where, page: explain(sqlite_queries.runs_query(where, page)),
        lambda: None,
    )


def postgres_case(url: str) -> Case:
    base, _, schema = url.partition("?schema=")

    def analyze() -> None:
        with psycopg.connect(base, autocommit=True) as connection:
            connection.execute(f'SET search_path TO "{schema}"; ANALYZE questions, runs, executions'.encode())

    def explain(ask: Ask) -> str:
        analyze()
        with psycopg.connect(base, autocommit=True) as connection:
            connection.execute(f'SET search_path TO "{schema}"'.encode())
            values = [None if value is None else str(value).encode() for value in ask.values]
            result = connection.pgconn.exec_params(f"EXPLAIN {ask.statement.sql}".encode(), values)
            assert not result.error_message, result.error_message
            return "\n".join((result.get_value(row, 0) or b"").decode() for row in range(result.ntuples))

    return Case(
        store_at(url),
        lambda where, page, settled: explain(postgres_queries.questions_ask(where, page, settled=settled)),
        lambda where, page: explain(postgres_queries.runs_ask(where, page)),
        analyze,
    )


@pytest.fixture(params=["sqlite", "postgres"])
def case(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Case]:
    if request.param == "sqlite":
        case = sqlite_case(tmp_path / "runs.db")
    else:
        case = postgres_case(request.getfixturevalue("postgres_schema_url"))
    yield case
    asyncio.run(case.store.aclose())


def ask_many(store: BaseStore, count: int) -> None:
    """So many open items, a thousand in a run, and a tenth as many settled ones."""
    for first in range(0, count, 1000):
        fact = opened(labels={"tenant": "a"})
        rows = [question(new_id(), fact.run_id, at=now() - MANY + first + i) for i in range(min(1000, count - first))]
        ended = Ended(fact.run_id, "cancelled", now(), "input_required")
        done(store.commit(Lease(), encode((fact, ended)), fact, rows, ended))
        answers = [answer(row.name) for row in rows[:: len(rows) // 10]]
        stored = done(store.load(fact.run_id))
        assert stored is not None
        done(store.settle(stored.ref, answers, None))


@pytest.mark.slow
def test_a_page_of_a_hundred_thousand_open_items_takes_as_long_as_one_of_a_hundred(case: Case) -> None:
    def best(page_of: Callable[..., Any], **which: Any) -> float:
        """The shortest of some times that a middle page takes."""
        times = []
        after = asyncio.run(page_of(limit=10, **which)).next
        for _ in range(15):
            start = time.perf_counter()
            asyncio.run(page_of(limit=10, after=after, **which))
            times.append(time.perf_counter() - start)
        return min(times)

    def all_best() -> dict[str, float]:
        case.analyze()
        ways = {"oldest": False, "newest": True}
        return {
            f"{page_of.__name__} {way}": best(page_of, newest_first=newest_first)
            for page_of in (case.store.pending, case.store.runs)
            for way, newest_first in ways.items()
        } | {
            "kind": best(case.store.pending, kind="confirm"),
            "tenant": best(case.store.pending, labels={"tenant": "a"}),
        }

    ask_many(case.store, FEW)
    for _ in range(20):
        begin(case.store)
    few = all_best()
    ask_many(case.store, MANY - FEW)
    many = all_best()
    slower = {what: round(many[what] / few[what], 1) for what in few}
    assert all(ratio < 8 for ratio in slower.values()), slower


@pytest.mark.parametrize(("name", "where", "settled"), QUESTIONS, ids=[name for name, _, _ in QUESTIONS])
@pytest.mark.parametrize("newest_first", [False, True])
def test_a_page_is_read_from_an_index_in_order(
    name: str, where: Where, settled: bool, newest_first: bool, case: Case
) -> None:
    ask_many(case.store, 3000)
    plan = case.explain(where, Slice("1500.10", newest_first, 10), settled)
    assert ("settled_questions" if settled else "open_questions") in plan
    assert not any(word in plan for word in ("Sort", "TEMP B-TREE", "Seq Scan on questions", "SCAN q\n")), plan


def test_a_filter_has_an_index_of_its_own_on_postgres(postgres_schema_url: str) -> None:
    case = postgres_case(postgres_schema_url)
    ask_many(case.store, 3000)
    for i in range(30):
        begin(case.store, f"rare-{i}").pause(new_id(), kind=f"rare-{i}")
    page = Slice(None, False, 10)
    assert "open_questions_by_runnable" in case.explain(Where(runnable="rare-3"), page, False)
    assert "open_questions_by_kind" in case.explain(Where(kind="rare-3"), page, False)
    asyncio.run(case.store.aclose())


@pytest.mark.parametrize("newest_first", [False, True])
def test_a_page_of_runs_is_read_from_an_index_in_order(newest_first: bool, case: Case) -> None:
    for _ in range(200):
        begin(case.store)
    plan = case.explain_runs(Where(), Slice("1500.a", newest_first, 10))
    assert not any(word in plan for word in ("Sort", "TEMP B-TREE", "SCAN r\n")), plan
    assert "runs_by_time" in plan
