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
    """A store from its URL (`memory://`, `sqlite:///runs.db`, `postgresql://user@host/database`); a store as it is.

    The same object for the same URL. Raises `ValueError` for a URL of no known kind.
    """
    if not isinstance(store, str):
        if not hasattr(store, "commit"):
            raise TypeError(
                f"store= is a store object or a URL such as 'sqlite:///runs.db', not {type(store).__name__}"
            )
        return store
    if check_url(store) == "memory://":
        return _memory()
    if store.startswith(_POSTGRES):
        return _postgres(store, os.getpid())
    return _sqlite(os.path.abspath(store.partition(":///")[2]), os.getpid())


_POSTGRES = ("postgresql://", "postgres://")


def check_url(url: str) -> str:
    """The URL, if it names a kind of store; raises `ValueError`."""
    scheme, _, path = url.partition(":///")
    if url == "memory://" or url.startswith(_POSTGRES) or (scheme == "sqlite" and path):
        return url
    shown = url if "@" not in url and "password" not in url else f"{url.partition(':')[0]}:..."
    raise ValueError(
        "a store URL is 'sqlite:///<file>' (four slashes for an absolute path), "
        f"'postgresql://<user>:<password>@<host>/<database>' or 'memory://', not {shown!r}"
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


@cache
def _postgres(url: str, pid: int) -> BaseStore:
    from .postgres import PostgresStore

    return PostgresStore(url)
