"""When a failed request to a model is made again."""

from __future__ import annotations

from random import random

from ..errors import ModelError

#: The longest that a provider may ask us to wait, in seconds; who asks for more is taken at its word: it failed.
LONGEST_PAUSE = 60.0
_FIRST_PAUSE = 0.5
_LONGEST_BACKOFF = 8.0


class TryAgain(ModelError):
    """A request failed in passing (429, 5xx, no connection, silence). `after`: the seconds that the provider named."""

    def __init__(self, message: str, after: float | None = None) -> None:
        self.after = after
        super().__init__(message)


def pause_before(attempt: int, after: float | None, max_retries: int, chance: float | None = None) -> float | None:
    """How long to wait after the `attempt`-th attempt failed, from 1 on, in seconds; None: don't try again.

    What the provider named counts; else 0.5, 1, 2, 4, 8 ... seconds, less up to half of it by `chance` (0 to 1).
    """
    if attempt > max_retries:
        return None
    if after is not None:
        return after if after <= LONGEST_PAUSE else None
    whole = min(_FIRST_PAUSE * 2.0 ** (attempt - 1), _LONGEST_BACKOFF)
    return whole * (1 - (random() if chance is None else chance) / 2)
