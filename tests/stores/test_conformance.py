"""Every store passes the suite that authors of stores are given."""

from functools import cache
from pathlib import Path

from tests.stores.urls import store_at
from timbal.stores.base import BaseStore
from timbal.stores.memory import MemoryStore
from timbal.testing import store_conformance


@cache
def in_memory(folder: Path, lease_seconds: float) -> BaseStore:
    return MemoryStore()


def in_sqlite(folder: Path, lease_seconds: float) -> BaseStore:
    return store_at(f"sqlite:///{folder / 'runs.db'}", lease_seconds=lease_seconds)


TestMemoryStore = store_conformance(in_memory, processes=False, durable=False)
TestSqliteStore = store_conformance(in_sqlite)
