"""Each scenario on every store, and `world.cold()` for what a fresh process would have."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from timbal.stores import MemoryStore, SqliteStore
from timbal.stores.base import BaseStore


class World:
    """One place where runs are kept. `path` is its file, or `None` for a store in memory."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._opened: list[BaseStore] = []
        self.store: BaseStore = self.cold()

    def cold(self) -> BaseStore:
        """A store object that has seen nothing, on the same data; a store in memory has one object per process."""
        if self.path is None:
            self._opened = self._opened or [MemoryStore()]
            return self._opened[0]
        self._opened.append(SqliteStore(self.path, synchronous="normal"))
        return self._opened[-1]

    async def aclose(self) -> None:
        for store in self._opened:
            await store.aclose()


def _world(path: Path | None) -> Iterator[World]:
    world = World(path)
    yield world
    asyncio.run(world.aclose())


@pytest.fixture(params=["memory", "sqlite"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    """A place for runs, in memory and in a file."""
    yield from _world(tmp_path / "runs.db" if request.param == "sqlite" else None)


@pytest.fixture
def shared_world(tmp_path: Path) -> Iterator[World]:
    """A place for runs that other processes can open, too."""
    yield from _world(tmp_path / "runs.db")
