"""The file of a SQLite store: opened, brought up to date, and what its errors mean."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from ..errors import StoreError
from .sqlite_queries import key
from .sqlite_writer import BUSY_SECONDS

APPLICATION_ID = 0x54494D42  # "TIMB" in the file's header: the file is ours
#: Files `sqlite_<version>.sql` bring a file from the version before.
SCHEMA_VERSION = 2


class SqliteFile:
    """The file at `path`, made when missing."""

    def __init__(self, path: str, synchronous: str) -> None:
        self._path = path
        self._synchronous = synchronous
        self._identity: tuple[int, int] | None = None

    def connect(self) -> sqlite3.Connection:
        """Open it, as ours and of our version; raises `StoreError`."""
        check_version(sqlite3.sqlite_version_info)
        folder = os.path.dirname(self._path)
        if not os.path.isdir(folder):
            raise StoreError(f"{self._path} can't be opened: the folder {folder} does not exist; make it first")
        db = None
        try:
            db = sqlite3.connect(self._path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
            self._version(db)
            db.execute("PRAGMA journal_mode=WAL")
            db.execute(f"PRAGMA synchronous={self._synchronous}")
            self._migrate(db)
            db.execute("PRAGMA busy_timeout=0")  # from here on the writer waits, so that an event loop never does
            self._identity = _identity(self._path)
        except Exception as error:
            if db is not None:
                db.close()
            raise error if isinstance(error, StoreError) else self.explain(error) from error
        return db

    def check(self) -> None:
        """Raises `StoreError` when the file is not the one that was opened."""
        if _identity(self._path) != self._identity:
            raise StoreError(f"{self._path} was deleted or replaced while it was open; nothing more is kept in it")

    def _version(self, db: sqlite3.Connection) -> int:
        """The version of the tables in the file, 0 for none; raises `StoreError` when it is not ours, or newer."""
        app, version, tables = db.execute(
            "SELECT a.application_id, v.user_version, (SELECT count(*) FROM sqlite_master)"
            " FROM pragma_application_id a, pragma_user_version v"
        ).fetchone()
        if app == 0 and tables == 0:
            return 0
        if app != APPLICATION_ID:
            raise StoreError(
                f"{self._path} is a SQLite file of something else; nothing was touched, choose another path"
            )
        if version > SCHEMA_VERSION:
            raise StoreError(
                f"{self._path} has schema version {version}, and this library knows {SCHEMA_VERSION}: use a newer one"
            )
        found: int = version
        return found

    def _migrate(self, db: sqlite3.Connection) -> None:
        """Bring the file to our version, all or nothing."""
        if self._version(db) == SCHEMA_VERSION:
            return
        db.create_function("key", 1, lambda text: None if text is None else key(text))
        db.execute("BEGIN IMMEDIATE")
        try:
            for number in range(self._version(db) + 1, SCHEMA_VERSION + 1):
                for statement in Path(__file__).with_name(f"sqlite_{number:04}.sql").read_text().split(";\n"):
                    db.execute(statement)
            db.execute(f"PRAGMA application_id={APPLICATION_ID}")
            db.execute(f"PRAGMA user_version={SCHEMA_VERSION}")
            db.execute("COMMIT")
        except BaseException:
            db.execute("ROLLBACK")
            raise

    def explain(self, error: Exception) -> StoreError:
        """A `StoreError` that says what this means for whoever runs the program."""
        text = str(error)
        if "not a database" in text or "malformed" in text:
            what = "it is damaged, or no SQLite file; nothing was changed"
        elif "readonly" in text:
            what = "it, or its folder, can't be written"
        elif "full" in text:
            what = "the disk is full; nothing of this was kept, and it can be done again when there is room"
        elif "locked" in text:
            what = "another process has kept it locked for 30 s"
        else:
            what = "nothing of this was kept"
        failure = StoreError(f"{self._path}: {text}: {what}")
        failure.__cause__ = error
        return failure


def check_version(version: tuple[int, ...]) -> None:
    """Raises `StoreError` for a SQLite that lacks what is needed (RETURNING)."""
    if version < (3, 35):
        number = ".".join(map(str, version))
        raise StoreError(
            f"SQLite {number} is too old: 3.35 is the oldest that works. Use a Python that was built with a newer one"
        )


def _identity(path: str) -> tuple[int, int] | None:
    """What tells a file from another one that takes its place."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def data_version(db: sqlite3.Connection) -> int:
    """A number that is another one once another connection has changed the file."""
    version: int = db.execute("PRAGMA data_version").fetchone()[0]
    return version
