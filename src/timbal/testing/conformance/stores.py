"""Store objects for one test, closed after it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ...stores.base import BaseStore

Open = Callable[[Path, float], BaseStore]


class Stores:
    """Opens store objects on the same data, as often as a test wants."""

    def __init__(self, open_at: Open, folder: Path) -> None:
        self.open_at = open_at
        self.folder = folder
        self._opened: list[BaseStore] = []

    def open(self, lease_seconds: float = 30.0) -> BaseStore:
        self._opened.append(self.open_at(self.folder, lease_seconds))
        return self._opened[-1]

    def close(self) -> None:
        async def close_all() -> None:
            for store in self._opened:
                await store.aclose()

        asyncio.run(close_all())


class OnAStore:
    """What all parts of the suite build on: `store`, and `stores` for more objects on the same data."""

    @staticmethod
    def open_at(folder: Path, lease_seconds: float) -> BaseStore:
        """A store object on the data in this folder."""
        raise NotImplementedError

    @pytest.fixture
    def stores(self, tmp_path: Path) -> Iterator[Stores]:
        stores = Stores(self.open_at, tmp_path)
        yield stores
        stores.close()

    @pytest.fixture
    def store(self, stores: Stores) -> BaseStore:
        return stores.open()
