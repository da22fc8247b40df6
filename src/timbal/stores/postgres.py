"""The place of the PostgreSQL store, which this version does not have yet."""

from __future__ import annotations

from typing import NoReturn


class PostgresStore:
    """Not there yet: making one raises `NotImplementedError`. Use `SqliteStore`."""

    def __init__(self, dsn: str) -> NoReturn:
        raise NotImplementedError("PostgresStore comes with a later version; use SqliteStore or MemoryStore")
