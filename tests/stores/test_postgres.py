"""What PostgreSQL adds: a schema of its own, a password that nobody sees, shared commits, notifications."""

import asyncio
import gc
import logging
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
import time_machine

from tests.postgres_server import GUARDED, PASSWORD, Server, run_sql
from timbal.core.codec import encode
from timbal.core.facts import Noted
from timbal.errors import LeaseLost, RunExists, StoreError
from timbal.ports import Lease
from timbal.stores import PostgresStore, open_store
from timbal.testing.conformance.facts import answer, begin, done, going_on, load, new_id, notes, opened, question


@pytest.fixture
def store(postgres_schema_url: str) -> Iterator[PostgresStore]:
    store = PostgresStore(postgres_schema_url)
    yield store
    asyncio.run(store.aclose())


def ask_server(url: str, sql: str) -> list[Any]:
    """Rows, as an administrator sees them in the store's schema."""
    base, _, schema = url.partition("?schema=")
    with psycopg.connect(base, autocommit=True) as connection:
        connection.execute(f'SET search_path TO "{schema}"'.encode())
        return connection.execute(sql.encode()).fetchall()


# -- the schema --------------------------------------------------------------------------------------------------------


def test_many_who_come_first_make_the_schema_once(postgres_schema_url: str) -> None:
    with ThreadPoolExecutor(6) as threads:
        stores = list(threads.map(lambda _: PostgresStore(postgres_schema_url), range(6)))
    assert ask_server(postgres_schema_url, "SELECT version FROM timbal_version") == [(2,)]
    work = begin(stores[0])
    assert all(load(store, work.run_id).held for store in stores)
    for store in stores:
        asyncio.run(store.aclose())


def test_a_schema_is_chosen_by_the_url_or_the_argument(postgres_schema_url: str) -> None:
    base, _, schema = postgres_schema_url.partition("?schema=")
    one, other = PostgresStore(postgres_schema_url), PostgresStore(base, schema=schema)
    work = begin(one)
    assert load(other, work.run_id).held
    for store in (one, other):
        asyncio.run(store.aclose())


@pytest.mark.parametrize("schema", ["Upper", "a-b", 'a"; DROP SCHEMA x; --', "", "pg_mine", "a" * 64])
def test_a_schema_of_another_form_is_refused(schema: str, postgres_url: str) -> None:
    with pytest.raises(ValueError, match=r"schema=.*can't be used"):
        PostgresStore(postgres_url, schema=schema or "?")


def left_alone(url: str, message: str, look: str) -> None:
    """The store is refused with this message, and what `look` shows does not change."""
    before = ask_server(url, look)
    with pytest.raises(StoreError, match=message) as refused:
        PostgresStore(url)
    assert "Nothing was touched" in str(refused.value)
    assert ask_server(url, look) == before


TABLES = "SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace ORDER BY 1"


def test_a_schema_with_tables_of_something_else_is_left_alone(postgres_schema_url: str) -> None:
    base, _, schema = postgres_schema_url.partition("?schema=")
    run_sql(base, f"CREATE SCHEMA {schema}; CREATE TABLE {schema}.runs (id integer)")
    left_alone(postgres_schema_url, "tables of something else.*owned by postgres", TABLES)


def test_a_schema_of_a_newer_version_is_left_alone(store: PostgresStore, postgres_schema_url: str) -> None:
    ask_server(postgres_schema_url, "UPDATE timbal_version SET version = 99 RETURNING version")
    left_alone(postgres_schema_url, "version 99, and this library knows", "SELECT version FROM timbal_version")


def test_a_schema_owned_by_another_role_is_left_alone(own_server: Server) -> None:
    asyncio.run(PostgresStore(f"{own_server.url}?schema=theirs").aclose())
    mine = own_server.url.replace("postgres@", f"{GUARDED}:{PASSWORD}@")
    with pytest.raises(StoreError, match=r"owned by postgres, and this connection is guarded.*Nothing was touched"):
        PostgresStore(f"{mine}?schema=theirs")
    run_sql(own_server.url, f"GRANT USAGE ON SCHEMA theirs TO {GUARDED}")
    run_sql(own_server.url, f"GRANT SELECT ON ALL TABLES IN SCHEMA theirs TO {GUARDED}")
    with pytest.raises(StoreError, match="all rights on its tables"):
        PostgresStore(f"{mine}?schema=theirs")
    run_sql(own_server.url, f"GRANT ALL ON ALL TABLES IN SCHEMA theirs TO {GUARDED}")
    store = PostgresStore(f"{mine}?schema=theirs")
    begin(store).pause("q")
    asyncio.run(store.aclose())


def test_a_role_that_may_not_make_the_schema_is_told_what_to_ask_for(own_server: Server) -> None:
    mine = own_server.url.replace("postgres@", f"{GUARDED}:{PASSWORD}@")
    with pytest.raises(StoreError, match=r'may not make the tables.*CREATE SCHEMA "fresh" AUTHORIZATION') as refused:
        PostgresStore(f"{mine}?schema=fresh")
    assert PASSWORD not in str(refused.value)
    run_sql(own_server.url, f"CREATE SCHEMA fresh AUTHORIZATION {GUARDED}")
    asyncio.run(PostgresStore(f"{mine}?schema=fresh").aclose())


def test_a_server_that_only_reads_says_so(own_server: Server) -> None:
    url = f"{own_server.url}?schema=reading"
    asyncio.run(PostgresStore(url).aclose())
    store = PostgresStore(f"{url}&options=-c%20default_transaction_read_only%3Don")
    with pytest.raises(StoreError, match="only reads"):
        begin(store)
    asyncio.run(store.aclose())


# -- the address -------------------------------------------------------------------------------------------------------


def told(error: BaseException) -> str:
    return "".join(traceback.format_exception(error)) + repr(error)


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://guarded:{PASSWORD}@127.0.0.1:1/postgres",
        f"postgresql://guarded:{PASSWORD}@127.0.0.1:{PASSWORD}/postgres",
        f"postgresql://guarded:{PASSWORD}@[::1/postgres",
        f"postgresql://guarded@127.0.0.1:1/postgres?password={PASSWORD}",
        f"postgresql://guarded@127.0.0.1:1/postgres?passwort={PASSWORD}",
        f"host=127.0.0.1 port=1 password={PASSWORD}",
        f"host=127.0.0.1 password='{PASSWORD}",
    ],
)
def test_no_error_shows_the_password(url: str) -> None:
    with pytest.raises((StoreError, ValueError)) as refused:
        PostgresStore(url)
    assert PASSWORD not in told(refused.value)


@pytest.mark.parametrize("scheme", ["postgre", "mysql", "postgresql:", "POSTGRESQL"])
def test_a_url_of_no_known_kind_is_refused_without_its_password(scheme: str) -> None:
    with pytest.raises(ValueError, match="a store URL is") as refused:
        open_store(f"{scheme}://guarded:{PASSWORD}@127.0.0.1/postgres")
    assert PASSWORD not in told(refused.value)


def test_neither_the_store_nor_a_log_nor_a_failure_shows_the_password(
    own_server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    mine = own_server.url.replace("postgres@", f"{GUARDED}:{PASSWORD}@")
    run_sql(own_server.url, f"CREATE SCHEMA quiet AUTHORIZATION {GUARDED}")
    store = PostgresStore(f"{mine}?schema=quiet", retry_seconds=0.1)
    assert repr(store) == (
        f"<PostgresStore: PostgreSQL at 127.0.0.1:{own_server.port}, database postgres, schema quiet>"
    )
    run_sql(own_server.url, f"ALTER ROLE {GUARDED} PASSWORD 'other'")
    run_sql(own_server.url, f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{GUARDED}'")
    try:
        with pytest.raises(StoreError, match="password authentication failed") as failure:
            begin(store)
        with pytest.raises(StoreError, match="does not answer") as refused:
            PostgresStore(f"{mine}?schema=quiet")
    finally:
        run_sql(own_server.url, f"ALTER ROLE {GUARDED} PASSWORD '{PASSWORD}'")
    for text in (told(failure.value), told(refused.value), caplog.text, repr(store.__dict__)):
        assert PASSWORD not in text
    asyncio.run(store.aclose())


@pytest.mark.slow
def test_a_host_that_never_answers_is_given_up(postgres_url: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"postgresql://postgres@127.0.0.1:{silent.getsockname()[1]}/postgres?connect_timeout=2"
        beats = 0
        stop = threading.Event()

        def beat() -> None:
            nonlocal beats
            while not stop.wait(0.01):
                beats += 1

        with ThreadPoolExecutor(1) as threads:
            threads.submit(beat)
            with pytest.raises(StoreError, match="does not answer"):
                PostgresStore(url)
            stop.set()
        assert beats > 20, "other threads stood still meanwhile"


def test_without_psycopg_it_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from timbal.stores import open_store\n"
        "try: open_store('postgresql://x')\n"
        "except ImportError as error: print(error)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "pip install 'timbal-hitl[postgres]'" in out


def test_open_store_gives_one_object_for_one_url(postgres_schema_url: str) -> None:
    store = open_store(postgres_schema_url)
    assert isinstance(store, PostgresStore)
    assert open_store(postgres_schema_url) is store
    asyncio.run(store.aclose())


def test_a_store_that_is_closed_says_so(postgres_schema_url: str) -> None:
    store = PostgresStore(postgres_schema_url)
    work = begin(store)
    asyncio.run(store.aclose())
    asyncio.run(store.aclose())
    for future in (work.commit(Noted("/n", "a")), store.load(work.run_id)):
        with pytest.raises(StoreError, match="closed"):
            done(future)  # type: ignore[misc]


# -- commits that share a transaction ----------------------------------------------------------------------------------


def test_commits_that_arrive_together_share_transactions(store: PostgresStore, postgres_schema_url: str) -> None:
    works = [begin(store) for _ in range(20)]
    futures = [work.commit(Noted("/n", str(i))) for i in range(20) for work in works]
    for future in futures:
        done(future)
    count = "SELECT count(*), count(DISTINCT xmin::text) FROM facts WHERE seq > 1"
    ((commits, transactions),) = ask_server(postgres_schema_url, count)
    assert commits == 400
    assert transactions < 400 / 4


def test_what_fails_among_commits_that_came_together_fails_alone(store: PostgresStore) -> None:
    works = [begin(store) for _ in range(10)]
    dead = begin(store)
    dead.person.lives = False
    assert done(store.acquire(load(store, dead.run_id).ref, going_on(dead.run_id))) is not None
    again, unkept = opened(run_id=works[0].run_id), opened(labels={"a": "\x00"})

    futures = [work.commit(Noted("/n", "1")) for work in works]
    stale = dead.commit(Noted("/n", "late"))
    exists = store.commit(Lease(), encode((again,)), again)
    broken = store.commit(Lease(), encode((unkept,)), unkept)
    conflict = store.settle(works[0].run_id, [answer("nobody asked")], None)
    futures += [work.commit(Noted("/n", "2")) for work in works]

    for future in futures:
        done(future)
    with pytest.raises(LeaseLost):
        done(stale)
    with pytest.raises(RunExists):
        done(exists)
    with pytest.raises(StoreError, match=r"U\+0000"):
        done(broken)
    assert done(conflict).conflict
    assert all(notes(store, work.run_id) == ["1", "2"] for work in works)
    assert done(store.load(unkept.run_id)) is None


def test_after_a_commit_that_was_not_kept_no_later_one_of_its_run_is(store: PostgresStore) -> None:
    work = begin(store)
    work.ask("q")
    bad = work.commit(Noted("/n", "1"), asks=[question("r", work.run_id)._replace(kind="a\x00b")])
    later = work.commit(Noted("/n", "2"))
    with pytest.raises(StoreError, match=r"U\+0000"):
        done(bad)
    for late in (later, work.commit(Noted("/n", "3"))):
        with pytest.raises(StoreError, match="an earlier commit of this run was not kept"):
            done(late)
    assert notes(store, work.run_id) == []


# -- telling each other ------------------------------------------------------------------------------------------------


def test_nobody_is_notified_unless_somebody_waits(store: PostgresStore, postgres_schema_url: str) -> None:
    base, _, schema = postgres_schema_url.partition("?schema=")
    other = PostgresStore(postgres_schema_url)
    with psycopg.connect(base, autocommit=True) as listener:
        listener.execute(f'LISTEN "{schema}"'.encode())
        quiet = begin(store)
        quiet.pause("q")
        waited = begin(store)
        waiter = other.wait(load(other, waited.run_id).ref)
        while not ask_server(postgres_schema_url, f"SELECT FROM executions WHERE run = '{waited.run_id}' AND waited"):
            pass
        waited.end()
        done(waiter)
        (heard,) = listener.notifies(timeout=30, stop_after=1)
    assert (heard.channel, heard.payload) == (schema, waited.run_id)
    asyncio.run(other.aclose())


@pytest.mark.parametrize("hours", [-24, 24])
def test_a_clock_that_jumps_moves_no_lease(hours: int, store: PostgresStore, postgres_schema_url: str) -> None:
    other = PostgresStore(postgres_schema_url)
    work = begin(store)
    with time_machine.travel(time.time() + hours * 3600):
        assert load(other, work.run_id).held
        assert done(other.acquire(load(other, work.run_id).ref, going_on(work.run_id))) is None
        work.note("still here")
        work.pause("q")
        assert [item.id for item in asyncio.run(other.pending()).items] == ["q"]
    row = going_on(work.run_id)
    assert done(other.settle(load(other, work.run_id).ref, [answer("q")], row)).lease is not None
    asyncio.run(other.aclose())


def test_a_store_that_is_dropped_without_closing_lets_go_of_its_connections(postgres_schema_url: str) -> None:
    schema = postgres_schema_url.partition("?schema=")[2]
    store = PostgresStore(f"{postgres_schema_url}&application_name={schema}")
    begin(store).pause(new_id())
    del store
    gc.collect()
    while ask_server(postgres_schema_url, f"SELECT FROM pg_stat_activity WHERE application_name = '{schema}'"):
        pass
