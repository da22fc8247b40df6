"""The time of day, in the unit of everything that is kept."""

from __future__ import annotations

import time


def now() -> int:
    """Unix milliseconds."""
    return time.time_ns() // 1_000_000
