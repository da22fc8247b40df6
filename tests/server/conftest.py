"""One server for all tests that only ask it things."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.server.servers import Server


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("house")) as one:
        yield one


@pytest.fixture
def client(server: Server) -> Iterator[httpx.Client]:
    with server.client() as one:
        yield one


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where a server of the test's own works."""
    return tmp_path
