"""Stores of tests, opened anew by URL: in whichever process needs one."""

from timbal.stores import MemoryStore, PostgresStore, SqliteStore
from timbal.stores.base import BaseStore


def store_at(url: str, *, lease_seconds: float = 30.0) -> BaseStore:
    """A store object of its own. Files are not synced: nobody cuts the power of a test."""
    if url == "memory://":
        return MemoryStore()
    if url.startswith("sqlite:///"):
        return SqliteStore(url.removeprefix("sqlite:///"), synchronous="normal", lease_seconds=lease_seconds)
    return PostgresStore(url, lease_seconds=lease_seconds)
