"""How a call or a run stands: a code, a reason and a message."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

from .value import Value

StatusCode = Literal["success", "error", "cancelled"]

#: The reasons that mean "waiting for a person": the run has paused and can be resumed.
PAUSED = frozenset({"input_required", "approval_required"})


class RunStatus(Value):
    """Contract section 3: `code`, a machine-readable `reason` (or None), a `message` for people (or None)."""

    code: StatusCode
    reason: str | None = None
    message: str | None = None

    @property
    def paused(self) -> bool:
        """Whether this is a pause: somebody is asked, and the run goes on when the answer comes."""
        return self.reason in PAUSED


SUCCESS = RunStatus("success")


@lru_cache(maxsize=64)
def success(reason: str | None) -> RunStatus:
    """Success, with the model's stop reason where there is one."""
    return RunStatus("success", reason)


INPUT_REQUIRED = RunStatus("cancelled", "input_required")
APPROVAL_REQUIRED = RunStatus("cancelled", "approval_required")
INTERRUPTED = RunStatus("cancelled", "interrupted")
