"""Places for runs, as the scenarios have them."""

from tests.scenarios.conftest import shared_world, world

__all__ = ["shared_world", "world"]
