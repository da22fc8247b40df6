"""What all tests share."""

import pytest


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Run async tests on asyncio only."""
    return "asyncio"
