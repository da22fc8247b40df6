"""What all tests share."""

from collections.abc import Iterator

import pytest

from tests.fake_api import FakeApi, fake_api


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Run async tests on asyncio only."""
    return "asyncio"


@pytest.fixture(scope="session")
def _fake_api() -> Iterator[FakeApi]:
    with fake_api() as api:
        yield api


@pytest.fixture
def api(_fake_api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> FakeApi:
    """The fake model APIs, with nothing to say yet; the environment leads all providers to them."""
    _fake_api.reset()
    for name, value in _fake_api.environment.items():
        monkeypatch.setenv(name, value)
    return _fake_api
