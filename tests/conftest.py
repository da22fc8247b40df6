"""What all tests share: the event loop they run on, and one PostgreSQL server."""

import fcntl
import os
import shutil
import signal
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fake_api import FakeApi, fake_api

pytest.register_assert_rewrite("timbal.testing.conformance")

#: The folder of this session's server, for all workers of pytest-xdist.
FOLDER = "TIMBAL_TEST_POSTGRES_FOLDER"
ROOT = Path(__file__).parents[1]


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


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        os.environ[FOLDER] = tempfile.mkdtemp(prefix="timbal-postgres-")


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop the server, if one was started, and wait until it has gone."""
    if hasattr(config, "workerinput"):
        return
    folder = Path(os.environ.pop(FOLDER))
    if (folder / "pid").exists() and not (folder / "failed").exists():
        os.kill(int((folder / "pid").read_text()), signal.SIGTERM)
        until = time.monotonic() + 30
        while folder.exists() and time.monotonic() < until:
            time.sleep(0.02)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres_url() -> str:
    """A PostgreSQL server: the one that `TIMBAL_TEST_POSTGRES` names, or one that the first test to ask starts."""
    if url := os.environ.get("TIMBAL_TEST_POSTGRES"):
        return url
    folder = Path(os.environ[FOLDER])
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "pid").exists():
            command = [sys.executable, "-m", "tests.postgres_server", str(folder), str(_controller())]
            out = os.open(folder / "server.log", os.O_WRONLY | os.O_CREAT)
            actions = [(os.POSIX_SPAWN_DUP2, out, 1), (os.POSIX_SPAWN_DUP2, out, 2)]
            environment = {**os.environ, "PYTHONPATH": str(ROOT)}
            pid = os.posix_spawn(command[0], command, environment, file_actions=actions, setsid=True)
            os.close(out)
            (folder / "pid").write_text(str(pid))
    until = time.monotonic() + 60
    while not (folder / "url").exists():
        assert not (folder / "failed").exists(), (folder / "failed").read_text()
        assert time.monotonic() < until, (folder / "server.log").read_text()
        time.sleep(0.02)
    return (folder / "url").read_text()


def _controller() -> int:
    """The process that outlives all tests: pytest itself, or the one that started this worker."""
    return os.getppid() if "PYTEST_XDIST_WORKER" in os.environ else os.getpid()


@pytest.fixture
def postgres_schema_url(postgres_url: str) -> str:
    """The URL of a schema that nobody else uses."""
    mark = "&" if "?" in postgres_url else "?"
    return f"{postgres_url}{mark}schema=test_{uuid.uuid4().hex}"
