"""Files and records that are not what they should be: a clear error each, and nothing is touched."""

import asyncio
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import time_machine

from tests.stores.urls import store_at
from timbal import Tool, suspend
from timbal.core.facts import Noted
from timbal.errors import LeaseLost, StoreError, UnknownRecord
from timbal.stores import SqliteStore
from timbal.stores.base import BaseStore
from timbal.stores.sqlite_file import check_version
from timbal.testing.conformance.facts import begin, done, going_on, load, notes


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BaseStore]:
    urls = {"memory": "memory://", "sqlite": f"sqlite:///{tmp_path / 'runs.db'}"}
    store = store_at(urls.get(request.param) or request.getfixturevalue("postgres_schema_url"))
    yield store
    asyncio.run(store.aclose())


# -- SQLite files ------------------------------------------------------------------------------------------------------


def foreign(path: Path) -> None:
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE notes (text)")
    db.close()


def foreign_by_its_id(path: Path) -> None:
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA application_id = 7")
        db.execute("CREATE TABLE runs (id)")
    db.close()


def newer(path: Path) -> None:
    ours(path)
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 99")
    db.close()


def ours(path: Path) -> None:
    store = SqliteStore(path)
    for _ in range(50):
        begin(store).note("x" * 1000)
    asyncio.run(store.aclose())
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()


def no_database(path: Path) -> None:
    path.write_text("dear diary, " * 1000)


def torn_head(path: Path) -> None:
    ours(path)
    path.write_bytes(b"\0" * 100 + path.read_bytes()[100:])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (foreign, "of something else; nothing was touched"),
        (foreign_by_its_id, "of something else; nothing was touched"),
        (newer, "schema version 99, and this library knows"),
        (no_database, "damaged, or no SQLite file; nothing was changed"),
        (torn_head, "damaged, or no SQLite file; nothing was changed"),
    ],
)
def test_a_file_that_is_not_ours_is_refused_and_stays_as_it_was(make: object, message: str, tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    make(path)  # type: ignore[operator]
    before = path.read_bytes()
    with pytest.raises(StoreError, match=message):
        SqliteStore(path)
    assert path.read_bytes() == before
    assert [left.name for left in tmp_path.iterdir()] == ["runs.db"]


def test_a_file_that_was_cut_off_says_so_when_what_is_missing_is_read(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    ours(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 4096 // 2 * 4096])

    async def read_all() -> None:
        async with SqliteStore(path) as store:
            for run in (await store.runs()).items:
                await store.get(run.run_id)

    with pytest.raises(StoreError, match="damaged"):
        asyncio.run(read_all())


def test_a_sqlite_older_than_3_35_is_refused_by_its_version() -> None:
    check_version((3, 35, 0))
    check_version((4, 0))
    with pytest.raises(StoreError, match=r"SQLite 3\.34\.1 is too old: 3\.35 is the oldest that works"):
        check_version((3, 34, 1))


@pytest.mark.parametrize("hours", [-24, 24])
def test_after_a_jump_of_the_clock_two_never_write(hours: int, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'runs.db'}"
    store, other = store_at(url), store_at(url)
    work = begin(store)
    with time_machine.travel(time.time() + hours * 3600):
        taken = done(other.acquire(load(other, work.run_id).ref, going_on(work.run_id)))
        late = work.commit(Noted("/n", "mine"))
        if taken is None:
            done(late)
        else:
            with pytest.raises(LeaseLost):
                done(late)
    assert notes(other, work.run_id) == (["mine"] if taken is None else [])
    for one in (store, other):
        asyncio.run(one.aclose())


# -- records -----------------------------------------------------------------------------------------------------------


async def test_a_record_of_a_newer_version_is_left_to_it(store: BaseStore) -> None:
    def ask() -> str:
        return str(suspend({"q": 1}))

    paused = await Tool(ask, store=store)()
    stored = load(store, paused.run_id)
    row = going_on(paused.run_id)
    lease = done(store.acquire(stored.ref, row))
    assert lease is not None
    done(store.commit(lease, b'[["dreamed","of","something",7]]'))
    lease.holder = Gone()
    before = load(store, paused.run_id)
    for work in (
        Tool(ask, store=store)(parent_id=paused.run_id, resume={paused.pending[0].id: "a"}),
        store.answer(paused.run_id, {paused.pending[0].id: "a"}),
        store.get(paused.run_id),
    ):
        with pytest.raises(UnknownRecord, match=r"'dreamed'.*written by a newer one"):
            await work
    assert load(store, paused.run_id) == before
    assert len((await store.pending()).items) == 1


async def test_a_record_that_is_no_json_says_so(store: BaseStore) -> None:
    work = begin(store)
    done(store.commit(work.lease, b'[["noted"'))
    with pytest.raises(StoreError, match="can't be read"):
        await store.get(work.run_id)


class Gone:
    def alive(self) -> bool:
        return False

    def stop_asked(self, reason: str) -> None:
        raise AssertionError(reason)
