"""A PostgreSQL server of one's own, for tests that stop it."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.postgres_server import GUARDED, PASSWORD, Server, run_sql


@pytest.fixture(scope="module")
def own_server() -> Iterator[Server]:
    """A server that syncs, as in production. A test that stops it starts it again."""
    folder = Path(tempfile.mkdtemp(prefix="timbal-own-postgres-"))
    server = Server(folder, fsync=True)
    try:
        server.create()
        server.start()
        run_sql(server.url, f"CREATE ROLE {GUARDED} LOGIN PASSWORD '{PASSWORD}'")
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder)
