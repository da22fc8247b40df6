"""What every event log promises, on each store."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from timbal import Tool
from timbal.stores import MemoryStore, PostgresStore, SqliteStore
from timbal.stores.events import INBOX, Batch, EventLog, open_log

RUN = "0" * 32


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def stores(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[tuple[Any, Any]]:
    """Two store objects on the same data; the memory store has only one."""
    if request.param == "memory":
        one: Any = MemoryStore()
        other = one
    elif request.param == "sqlite":
        one, other = SqliteStore(tmp_path / "a.db"), SqliteStore(tmp_path / "a.db")
    else:
        url = request.getfixturevalue("postgres_schema_url")
        one, other = PostgresStore(url), PostgresStore(url)
    yield one, other
    await one.aclose()
    await other.aclose()


@pytest.fixture
async def log(stores: tuple[Any, Any]) -> AsyncIterator[EventLog]:
    log = open_log(stores[0])
    yield log
    await log.aclose()


@pytest.fixture
async def other(stores: tuple[Any, Any]) -> AsyncIterator[EventLog]:
    """The log of another process."""
    log = open_log(stores[1])
    yield log
    await log.aclose()


def batch(first: int, *events: str, closes: bool = False, asks: bool = False, run_id: str = RUN) -> Batch:
    return Batch(run_id, first, events, closes, asks)


async def everything(log: EventLog, after: int = 0, limit: int = 100) -> list[tuple[int, str]]:
    piece = await log.read(RUN, after, limit)
    assert piece is not None
    return piece.items


async def test_events_are_read_by_number_from_anywhere(log: EventLog, other: EventLog) -> None:
    assert await log.read(RUN, 0, 10) is None
    await log.append(batch(1, '"a"', '"b"', '"c"'))
    await log.append(batch(4, '"d"'))
    await log.append(batch(5, '"e"', '"f"', closes=True))
    kept = list(enumerate(['"a"', '"b"', '"c"', '"d"', '"e"', '"f"'], start=1))
    for one in (log, other):
        for after in range(8):
            for limit in (1, 2, 10):
                assert await everything(one, after, limit) == kept[after : after + limit]
        piece = await one.read(RUN, 6, 10)
        assert piece is not None
        assert (piece.items, piece.first, piece.last, piece.closed) == ([], 1, 6, True)


async def test_a_batch_that_is_kept_twice_or_late_changes_nothing(log: EventLog, other: EventLog) -> None:
    await log.append(batch(1, '"a"', '"b"'))
    await log.append(batch(1, '"a"', '"b"'))
    await log.append(batch(3, '"c"', closes=True))
    await log.append(batch(3, '"c"', closes=True))
    await log.append(batch(4, '"after the end"'))
    assert await everything(other) == [(1, '"a"'), (2, '"b"'), (3, '"c"')]


async def test_dropped_events_are_known_to_have_been(log: EventLog, other: EventLog) -> None:
    await log.append(batch(1, '"a"', closes=True))
    await log.append(batch(1, '"b"', run_id="1" * 32))
    assert await log.drop(2**60) == 1  # the other one is still open
    assert await log.drop(2**60) == 0
    piece = await other.read(RUN, 0, 10)
    assert piece is not None
    assert (piece.items, piece.first, piece.closed) == ([], 2, True)


async def test_listeners_in_other_processes_are_woken(log: EventLog, other: EventLog) -> None:
    with other.listen(RUN) as bell, other.listen(INBOX) as inbox:
        assert await other.read(RUN, 0, 1) is None
        await log.append(batch(1, '"a"', asks=True))
        if type(log).__name__ != "MemoryEventLog":  # whose processes have nothing to share
            async with asyncio.timeout(20):
                await bell.wait()
                await inbox.wait()


async def test_erasing_a_run_erases_its_events(stores: tuple[Any, Any], log: EventLog, other: EventLog) -> None:
    output = await Tool(lambda: 1, name="one", store=stores[0])()
    await log.append(batch(1, '"a"', closes=True, run_id=output.run_id))
    assert await other.read(output.run_id, 0, 1) is not None
    await stores[0].erase(output.run_id)
    for one in (log, other):
        assert await one.read(output.run_id, 0, 1) is None


def test_a_store_without_a_place_for_events_is_refused() -> None:
    with pytest.raises(TypeError, match="has no place for"):
        open_log(object())  # type: ignore[arg-type]
