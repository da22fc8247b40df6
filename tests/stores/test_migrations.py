"""Stores of older versions: they are brought to ours, and all that was in them is there."""

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.stores.test_postgres import ask_server
from timbal import Agent, suspend
from timbal.errors import RunErased
from timbal.stores import PostgresStore, SqliteStore
from timbal.stores.event_sqlite import SqliteEventLog
from timbal.testing import TestModel
from timbal.testing.conformance.facts import begin, done, notes

GOLDEN = Path(__file__).parents[1] / "golden"

ANSWERED, RESUMED = "01a232e5a28276ae8525a101326b3863", "01a232e5a29f742491cd58b982ca5f40"
NEXT_TURN = "01a232e5a2be7409b3cb89a011a3d242"
PAUSED = "01a232e5a2c3714cbced22d474b3d173"
ERASED = "01a232e5a2c77113b931e1b325191b84"
FAILED = "01a232e5a2e276af993c5fa873421de4"
DIED, TAKEN_OVER = "01a232e5a2e97257a14676f346257b98", "01a232e5a2ec76a39ebe8a1860bc973d"
QUESTION = "9f4556cdd286862db10454d666d4db9e"


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A file of version 1, with something of everything in it."""
    path = tmp_path / "runs.db"
    with closing(sqlite3.connect(path)) as db:
        db.executescript((GOLDEN / "sqlite-0001.sql").read_text())
    return path


@pytest.fixture
def store(old: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(old)
    yield store
    asyncio.run(store.aclose())


async def test_all_that_an_older_file_holds_is_there(store: SqliteStore) -> None:
    checked = await store.check()
    assert (checked.schema_version, checked.problems, checked.newer) == (2, [], 0)
    statuses = {run.run_id: run.status for run in (await store.runs()).items}
    assert statuses == {
        ANSWERED: "paused",
        RESUMED: "success",
        NEXT_TURN: "success",
        PAUSED: "paused",
        ERASED: "erased",
        FAILED: "error",
        DIED: "running",
        TAKEN_OVER: "running",
    }
    (open_item,) = (await store.pending(labels={"tenant": "b"})).items
    assert (open_item.id, open_item.run_id) == (QUESTION, PAUSED)
    (settled,) = (await store.settled()).items
    assert (settled.run_id, settled.value, settled.settled_by_run_id) == (ANSWERED, "postgres", RESUMED)
    assert notes(store, DIED) == ["at work"]
    assert [len(turn) for turn in done(store.history(NEXT_TURN))] == [6, 1]
    with pytest.raises(RunErased):
        await store.get(ERASED)
    events = await SqliteEventLog(store)._read(ANSWERED, 0, 10)
    assert events is not None
    assert events.items == [(1, '{"type":"START"}'), (2, '{"type":"OUTPUT"}')]


async def test_what_was_paused_by_an_older_version_goes_on(store: SqliteStore) -> None:
    async def ask(question: str) -> object:
        return suspend({"question": question}, kind="ask_user")

    agent: Agent[str] = Agent("assistant", TestModel(["never asked again", "done"]), [ask], store=store)
    out = await agent(parent_id=PAUSED, resume={QUESTION: "sqlite"})
    assert (out.status.code, out.output.collect_text()) == ("success", "done")
    assert (await agent("more", parent_id=NEXT_TURN)).status.code == "success"


def test_what_a_dead_run_of_an_older_version_held_is_due(store: SqliteStore) -> None:
    assert [one.run_id for one in done(store.due(["worker"], 10))] == [DIED]


def test_a_file_whose_migration_fails_stays_as_it_was(old: Path) -> None:
    with closing(sqlite3.connect(old)) as db:
        db.execute("CREATE TABLE new_events (in_the, way)")
        before = "\n".join(db.iterdump())
    with pytest.raises(Exception, match="new_events"):
        SqliteStore(old)
    with closing(sqlite3.connect(old)) as db:
        assert "\n".join(db.iterdump()) == before
        assert db.execute("PRAGMA user_version").fetchone() == (1,)


def test_an_older_schema_of_postgres_is_brought_to_ours(postgres_schema_url: str) -> None:
    record = (GOLDEN / "record-0.1.0.jsonl").read_text().splitlines()[0]
    first = PostgresStore(postgres_schema_url)
    work = begin(first)
    done(first.commit(work.lease, record.encode()))
    asyncio.run(first.aclose())
    ask_server(postgres_schema_url, "UPDATE timbal_version SET version = 1 RETURNING version")
    store = PostgresStore(postgres_schema_url)
    facts = asyncio.run(store.get(work.run_id)).facts
    assert [type(fact).__name__ for fact in facts] == ["Opened", "Opened", "Returned"]
    assert facts[1].at == 1796132945372
    assert ask_server(postgres_schema_url, "SELECT version FROM timbal_version") == [(2,)]
    asyncio.run(store.aclose())
