"""Where executions are kept."""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .base import BaseStore
    from .memory import MemoryStore
    from .postgres import PostgresStore
    from .sqlite import SqliteStore

__all__ = ["MemoryStore", "PostgresStore", "SqliteStore", "open_store"]


def __getattr__(name: str) -> Any:
    if name == "MemoryStore":
        from .memory import MemoryStore

        return MemoryStore
    if name == "SqliteStore":
        from .sqlite import SqliteStore

        return SqliteStore
    if name == "PostgresStore":
        from .postgres import PostgresStore

        return PostgresStore
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def open_store(store: Any) -> Any:
    """A store from its URL (`memory://`, `sqlite:///runs.db`), the same object for the same URL; a store as it is.

    Raises `ValueError` for a URL of no known kind.
    """
    if not isinstance(store, str):
        if not hasattr(store, "commit"):
            raise TypeError(
                f"store= is a store object or a URL such as 'sqlite:///runs.db', not {type(store).__name__}"
            )
        return store
    if check_url(store) == "memory://":
        return _memory()
    return _sqlite(os.path.abspath(store.partition(":///")[2]), os.getpid())


def check_url(url: str) -> str:
    """The URL, if it names a kind of store; raises `ValueError`."""
    scheme, _, path = url.partition(":///")
    if url == "memory://" or (scheme == "sqlite" and path):
        return url
    raise ValueError(
        f"a store URL is 'sqlite:///<file>' (four slashes for an absolute path) or 'memory://', not {url!r}"
    )


def default_store() -> Any:
    """The store of a runnable that was given none: `TIMBAL_STORE`, or the process's memory."""
    return open_store(os.environ.get("TIMBAL_STORE") or "memory://")


@cache
def _memory() -> BaseStore:
    from .memory import MemoryStore

    return MemoryStore()


@cache
def _sqlite(path: str, pid: int) -> BaseStore:
    from .sqlite import SqliteStore

    return SqliteStore(path)
