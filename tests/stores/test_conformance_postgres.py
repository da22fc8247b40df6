"""The suite on PostgreSQL."""

import hashlib
import os
from pathlib import Path

import pytest

from tests.stores.urls import store_at
from timbal.stores.base import BaseStore
from timbal.testing import store_conformance

#: Where the children of a test find its server.
SERVER = "TIMBAL_TEST_POSTGRES_URL"


def in_postgres(folder: Path, lease_seconds: float) -> BaseStore:
    url = os.environ[SERVER]
    schema = "test_" + hashlib.sha256(str(folder).encode()).hexdigest()[:32]
    return store_at(f"{url}{'&' if '?' in url else '?'}schema={schema}", lease_seconds=lease_seconds)


@pytest.fixture(autouse=True)
def server(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SERVER, postgres_url)


TestPostgresStore = store_conformance(in_postgres)
