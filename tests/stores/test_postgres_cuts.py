"""PostgreSQL's connection breaks, or its server goes down: nothing is kept twice, nothing reported is lost."""

import asyncio
import random
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

import psycopg
import pytest

from tests.postgres_server import Server
from tests.stores.proxy import Proxy
from timbal.core.codec import encode
from timbal.core.facts import Ended, Noted
from timbal.errors import LeaseLost, StoreError
from timbal.ports import Lease, RunRow
from timbal.stores import PostgresStore
from timbal.stores.clock import now
from timbal.testing.conformance.facts import (
    answer,
    asked,
    begin,
    done,
    going_on,
    load,
    notes,
    opened,
    settled,
)


def through(port: int, url: str) -> str:
    """The same place, by another port."""
    head, _, tail = url.rpartition("@127.0.0.1:")
    return f"{head}@127.0.0.1:{port}/{tail.partition('/')[2]}"


def port_of(url: str) -> int:
    return int(url.rpartition("@127.0.0.1:")[2].partition("/")[0])


@pytest.fixture
def proxy(postgres_url: str) -> Iterator[Proxy]:
    with Proxy(port_of(postgres_url)) as proxy:
        yield proxy


@pytest.fixture
def direct(postgres_schema_url: str) -> Iterator[PostgresStore]:
    """The store, by a connection that nobody cuts."""
    store = PostgresStore(postgres_schema_url)
    yield store
    asyncio.run(store.aclose())


@pytest.fixture
def store(proxy: Proxy, direct: PostgresStore, postgres_schema_url: str) -> Iterator[PostgresStore]:
    """The store, by the proxy."""
    store = PostgresStore(through(proxy.port, postgres_schema_url), retry_seconds=20)
    yield store
    asyncio.run(store.aclose())


def until(true: Callable[[], bool]) -> None:
    for _ in range(100_000):
        if true():
            return
    raise AssertionError("it did not come to that")


# -- the answer to a commit is lost ------------------------------------------------------------------------------------


def test_a_commit_whose_answer_was_lost_is_there_once(
    proxy: Proxy, store: PostgresStore, direct: PostgresStore
) -> None:
    work = begin(store)
    work.ask("q")
    proxy.lose_answers = True
    futures = [work.commit(Noted("/n", "a")), work.commit(Noted("/n", "b"), settles=[answer("q", 1)])]
    until(lambda: notes(direct, work.run_id)[:1] == ["a"])
    proxy.cut()
    assert [done(future) for future in futures] == [None, None]
    work.note("c")
    assert (notes(direct, work.run_id), settled(direct, work.run_id)) == (["a", "b", "c"], {"q": 1})


def test_a_commit_that_never_arrived_is_there_once(proxy: Proxy, store: PostgresStore, direct: PostgresStore) -> None:
    work = begin(store)
    proxy.lose_questions = True
    future = work.commit(Noted("/n", "a"))
    until(lambda: notes(direct, work.run_id) == [])
    proxy.cut()
    done(future)
    assert notes(direct, work.run_id) == ["a"]


def test_a_start_whose_answer_was_lost_is_ours(proxy: Proxy, store: PostgresStore, direct: PostgresStore) -> None:
    fact, lease = opened(), Lease()
    proxy.lose_answers = True
    future = store.commit(lease, encode((fact,)), fact)
    until(lambda: done(direct.load(fact.run_id)) is not None)
    proxy.cut()
    done(future)
    done(store.commit(lease, encode((Noted("/n", "a"),))))
    assert notes(direct, fact.run_id) == ["a"]


def test_an_end_whose_answer_was_lost_gives_the_lease_back_once(
    proxy: Proxy, store: PostgresStore, direct: PostgresStore
) -> None:
    work = begin(store)
    proxy.lose_answers = True
    future = work.commit(ended=Ended(work.run_id, "cancelled", now(), "interrupted"))
    until(lambda: not load(direct, work.run_id).held)
    taken = done(direct.acquire(load(direct, work.run_id).ref, going_on(work.run_id)))
    assert taken is not None
    proxy.cut()
    done(future)
    done(direct.commit(taken, encode((Noted("/n", "the next one"),))))
    assert notes(direct, work.run_id) == ["the next one"]


def test_an_answer_whose_answer_was_lost_has_won_and_has_the_lease(
    proxy: Proxy, store: PostgresStore, direct: PostgresStore
) -> None:
    work = begin(store)
    work.pause("q")
    ref, row = load(store, work.run_id).ref, going_on(work.run_id)
    proxy.lose_answers = True
    future = store.settle(ref, [answer("q", 1)], row)
    until(lambda: settled(direct, work.run_id) == {"q": 1})
    proxy.cut()
    result = done(future)
    assert not result.conflict
    assert result.lease is not None
    done(store.commit(result.lease, encode((Noted("/n", "a"),))))
    assert notes(direct, row.run_id) == ["a"]
    assert done(direct.settle(ref, [answer("q", 2)], None)).conflict


def test_who_lost_the_race_while_the_connection_was_cut_has_lost_it(
    proxy: Proxy, store: PostgresStore, direct: PostgresStore
) -> None:
    work = begin(store)
    work.pause("q")
    ref = load(store, work.run_id).ref
    proxy.lose_questions = True
    future = store.settle(ref, [answer("q", "ours")], going_on(work.run_id))
    assert not done(direct.settle(ref, [answer("q", "theirs")], None)).conflict
    proxy.cut()
    assert done(future).conflict
    assert settled(direct, work.run_id) == {"q": "theirs"}


def test_a_lease_whose_answer_was_lost_is_held(proxy: Proxy, store: PostgresStore, direct: PostgresStore) -> None:
    work = begin(store)
    work.pause("q")
    ref, row = load(store, work.run_id).ref, going_on(work.run_id)
    proxy.lose_answers = True
    future = store.acquire(ref, row)
    until(lambda: load(direct, work.run_id).held)
    proxy.cut()
    lease = done(future)
    assert lease is not None
    done(store.commit(lease, encode((Noted("/n", "a"),))))
    assert done(direct.acquire(ref, going_on(work.run_id))) is None


def test_a_commit_of_a_holder_that_was_replaced_meanwhile_is_refused_after_the_cut(
    proxy: Proxy, store: PostgresStore, direct: PostgresStore
) -> None:
    work = begin(store)
    proxy.lose_questions = True
    future = work.commit(Noted("/n", "late"))
    asyncio.run(direct.erase(work.run_id))
    proxy.cut()
    with pytest.raises(LeaseLost):
        done(future)
    assert done(direct.load(work.run_id)) is None


def test_reading_goes_on_after_a_cut(proxy: Proxy, store: PostgresStore) -> None:
    work = begin(store)
    proxy.cut()
    assert asyncio.run(store.get(work.run_id)).info.status == "running"
    work.note("a")
    assert notes(store, work.run_id) == ["a"]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_cut_anywhere_everything_is_there_once_and_in_order(
    seed: int, postgres_url: str, direct: PostgresStore, postgres_schema_url: str
) -> None:
    """Connections are cut after some bytes, in the middle of whatever is said, again and again."""
    chance = random.Random(seed)
    with Proxy(port_of(postgres_url)) as proxy:
        store = PostgresStore(through(proxy.port, postgres_schema_url), retry_seconds=60)
        proxy._budget = lambda: chance.randrange(20_000, 40_000)
        proxy.cut()
        works = [begin(store) for _ in range(4)]
        for i in range(12):
            text = str(i) + "." * chance.randrange(4000)
            futures: list[Future[Any]] = [work.commit(Noted("/n", text)) for work in works]
            futures += [work.commit(asks=[], settles=[]) for work in works]
            for future in futures:
                done(future)
        for work in works:
            work.pause("q")
            row = going_on(work.run_id)
            result = done(store.settle(load(store, work.run_id).ref, [answer("q", work.run_id)], row))
            assert result.lease is not None
            done(store.commit(result.lease, encode((Noted("/n", "after"),))))
        asyncio.run(store.aclose())
        assert proxy.cuts > 8
    for work in works:
        assert [text.rstrip(".") for text in notes(direct, work.run_id)] == [*map(str, range(12)), "after"]
        assert (asked(direct, work.run_id), settled(direct, work.run_id)) == (["q"], {"q": work.run_id})


# -- the server goes down ----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_while_the_server_is_down_calls_fail_and_the_run_goes_on_afterwards(own_server: Server) -> None:
    store = PostgresStore(f"{own_server.url}?schema=down", retry_seconds=0.2)
    work = begin(store)
    work.note("before")
    own_server.stop(signal.SIGQUIT)
    with pytest.raises(StoreError, match="can't be reached"):
        work.note("lost")
    with pytest.raises(StoreError, match="not kept"):
        work.note("after a gap")
    with pytest.raises(StoreError, match="can't be reached"):
        done(store.load(work.run_id))
    with pytest.raises(StoreError, match="can't be reached"):
        done(store.settle(work.run_id, [], None))
    with pytest.raises(StoreError, match="can't be reached"):
        asyncio.run(store.pending())
    own_server.start()
    work.person.lives = False
    row: RunRow = going_on(work.run_id)
    lease = done(store.acquire(load(store, work.run_id).ref, row))
    assert lease is not None
    done(store.commit(lease, encode((Noted("/n", "after"),))))
    assert notes(store, work.run_id) == ["before", "after"]
    asyncio.run(store.aclose())


@pytest.mark.slow
def test_a_restart_is_only_a_pause(own_server: Server) -> None:
    store = PostgresStore(f"{own_server.url}?schema=restart", retry_seconds=60)
    work = begin(store)
    future = work.commit(Noted("/n", "0"))
    for i in range(1, 4):
        own_server.stop(signal.SIGQUIT)
        later = work.commit(Noted("/n", str(i)))
        own_server.start()
        done(future)
        future = later
    done(future)
    assert notes(store, work.run_id) == ["0", "1", "2", "3"]
    asyncio.run(store.aclose())


@pytest.mark.slow
def test_what_was_reported_survives_a_crash_of_the_server(own_server: Server) -> None:
    store = PostgresStore(f"{own_server.url}?schema=crash", retry_seconds=0.1)
    with psycopg.connect(own_server.url) as connection:
        assert connection.execute("SHOW fsync").fetchone() == ("on",)
    works = [begin(store) for _ in range(20)]
    futures = [work.commit(Noted("/n", str(i))) for i in range(20) for work in works]
    done(futures[150])
    own_server.stop(signal.SIGQUIT)
    failures = [future.exception(60) for future in futures]
    reported = [failure is None for failure in failures]
    own_server.start()
    for n, work in enumerate(works):
        kept = notes(store, work.run_id)
        assert kept == [str(i) for i in range(len(kept))]
        assert len(kept) >= sum(reported[n::20])
    asyncio.run(store.aclose())


def test_a_lost_answer_while_the_server_stays_away_is_reported_as_unknown(
    proxy: Proxy, postgres_schema_url: str, direct: PostgresStore
) -> None:
    store = PostgresStore(through(proxy.port, postgres_schema_url), retry_seconds=0.1)
    work = begin(store)
    proxy.lose_answers = True
    future = work.commit(Noted("/n", "a"))
    until(lambda: notes(direct, work.run_id) == ["a"])
    proxy.__exit__(None, None, None)
    with pytest.raises(StoreError, match="not known: load the run again"):
        done(future)
    assert notes(direct, work.run_id) == ["a"]
    asyncio.run(store.aclose())
