"""Each scenario on every store, and `world.cold()` for what a fresh process would have."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.stores.urls import store_at
from timbal.stores.base import BaseStore


class World:
    """One place where runs are kept, named by `url`."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._opened: list[BaseStore] = []
        self.store: BaseStore = self.cold()

    def cold(self) -> BaseStore:
        """A store object that has seen nothing, on the same data; a store in memory has one object per process."""
        if self.url == "memory://" and self._opened:
            return self._opened[0]
        self._opened.append(store_at(self.url))
        return self._opened[-1]

    async def aclose(self) -> None:
        for store in self._opened:
            await store.aclose()


def _world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    if request.param == "postgres":
        url = request.getfixturevalue("postgres_schema_url")
    else:
        url = f"sqlite:///{tmp_path / 'runs.db'}" if request.param == "sqlite" else "memory://"
    world = World(url)
    yield world
    asyncio.run(world.aclose())


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    """A place for runs, on each kind of store."""
    yield from _world(request, tmp_path)


@pytest.fixture(params=["sqlite", "postgres"])
def shared_world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    """A place for runs that other processes can open, too."""
    yield from _world(request, tmp_path)
