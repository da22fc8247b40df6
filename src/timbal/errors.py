"""What a caller can catch, one class per thing that can be done about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .types.events import OutputEvent


class TimbalError(Exception):
    """The root of this library's own errors."""


class RunFailed(TimbalError):
    """`raise_for_status()` of an output whose status is an error. Look at `.output` for all of it."""

    def __init__(self, output: OutputEvent) -> None:
        self.output = output
        what = f": {output.error['type']}: {output.error['message']}" if output.error else ""
        super().__init__(f"{output.path} ended with {output.status.reason or 'an error'}{what}")


class ResumeRejected(TimbalError):
    """The resume was refused and nothing has changed; `.receipts` tell what is wrong with which id."""

    def __init__(self, message: str, receipts: list[dict[str, Any]] | None = None) -> None:
        self.receipts = receipts or []
        super().__init__(message)


class ReplayMismatch(TimbalError):
    """The code asks for other operations than were recorded. Put the code right, then `resume={}` goes on."""


class StepFailed(TimbalError):
    """A recorded step had failed with an exception whose class can't be imported here; `.type` is its name."""

    def __init__(self, type: str, message: str) -> None:
        self.type, self.message = type, message
        super().__init__(f"{type}: {message}")


class InteractionExpired(TimbalError):
    """Nobody answered in time and the question said `on_expiry="raise"`."""


class ModelError(TimbalError):
    """The model could not be asked, or its answer broke off."""


class StoreError(TimbalError):
    """The store could not keep or give something; what was reported before is kept."""


class LeaseLost(StoreError):
    """Another run has taken over this execution; what this one had not yet committed does not count."""


class RunNotFound(StoreError, LookupError):
    """The store knows no such run."""


class RunErased(RunNotFound):
    """The run was erased; `.erased_at` says when, in Unix milliseconds."""

    def __init__(self, message: str, erased_at: int) -> None:
        self.erased_at = erased_at
        super().__init__(message)


class RunExists(StoreError):
    """The `run_id` is in use, by a run with another input."""


class UnknownRecord(StoreError):
    """A record was written by a newer version of this library: it is left alone, use that version."""
