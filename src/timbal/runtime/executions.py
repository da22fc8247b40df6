"""Executions as a call from outside finds them in the store, and what makes it refuse them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core.codec import decode_all
from ..core.ledger import Ledger, Question
from ..core.narrate import pending_metadata
from ..errors import ResumeRejected
from ..stores.clock import now
from ..stores.waiting import wait
from ..types.events import OutputEvent
from ..types.run_status import RunStatus
from .gated import visible
from .run import new_id, with_cause
from .schema import presentable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..core.facts import Ended
    from ..ports import Store, Stored
    from ..runnables.base import Runnable
    from .handle import RunHandle


class Refused(Exception):
    """The call is refused with this status, and nothing has changed. `waiting`: what is open in that execution."""

    def __init__(
        self,
        message: str,
        receipts: list[dict[str, Any]] | None = None,
        status: RunStatus | None = None,
        waiting: Sequence[Question] = (),
    ) -> None:
        self.status = status or RunStatus("error", "resume_rejected", message)
        self.receipts = receipts or []
        self.waiting = waiting
        super().__init__(message)


async def load(store: Store, run_id: str) -> Stored:
    """The execution of a run; raises `Refused` where there is none."""
    stored = await wait(store.load(run_id))
    if stored is None:
        raise Refused(f"there is no run {run_id} in this store: check parent_id, and that the store is the same")
    return stored


def fold(stored: Stored) -> Ledger:
    return Ledger.of(decode_all(stored.records))


def is_paused(ended: Ended) -> bool:
    return RunStatus(ended.code, ended.reason).paused  # type: ignore[arg-type]


def cut_off(ended: Ended) -> bool:
    """Whether a run was interrupted, so that what it was about is still to be done."""
    return ended.code == "cancelled" and ended.reason == "interrupted"


def check_runnable(runnable: Runnable, ledger: Ledger) -> None:
    """Raises `Refused` when the execution is one of another runnable."""
    opened = ledger.root
    if (opened.name, opened.kind) != (runnable.name, runnable.kind):
        raise Refused(
            f"run {opened.run_id} is one of {opened.kind} {opened.name!r}, not of {runnable.kind} {runnable.name!r}"
        )


def check_same(runnable: Runnable, ledger: Ledger, given: dict[str, Any]) -> None:
    """Input that is given again must be what is stored; raises `Refused`."""
    if not given:
        return
    stored = ledger.root.input
    try:
        _, dumped = runnable._prepare({**given})
    except Exception as error:
        raise Refused(f"the input does not fit: {error}") from None
    free = runnable._filled - given.keys()
    changed = sorted(n for n in dumped.keys() | stored.keys() if n not in free and dumped.get(n) != stored.get(n))
    if changed:
        raise Refused(
            f"the input differs from the stored one in {', '.join(changed)}; what is stored is what runs, "
            "so leave the input out, or give the same"
        )


# -- calls that come to no run -----------------------------------------------------------------------------------------


def tell_refusal(handle: RunHandle, refusal: Refused) -> OutputEvent:
    """The OUTPUT of a call that was refused."""
    status = refusal.status
    metadata: dict[str, Any] = {"receipts": refusal.receipts}
    if refusal.waiting:
        metadata.update(pending_metadata(refusal.waiting))
    if status.code != "error":
        return tell_no_run(handle, status, None, metadata)
    error = {"type": "ResumeRejected", "message": str(refusal), "traceback": None}
    event = tell_no_run(handle, status, error, metadata)
    return with_cause(event, ResumeRejected(str(refusal), refusal.receipts))


def tell_no_run(
    handle: RunHandle, status: RunStatus, error: dict[str, Any] | None, metadata: dict[str, Any]
) -> OutputEvent:
    """The OUTPUT of a call that came to no run."""
    t = now()
    event = OutputEvent._of(
        {
            "type": "OUTPUT",
            "run_id": handle._run_id,
            "parent_run_id": handle._given.parent_id,
            "path": handle._runnable.name,
            "call_id": new_id(),
            "parent_call_id": None,
            "input": visible(handle._runnable, presentable(handle._arguments)),
            "status": status,
            "output": None,
            "error": error,
            "t0": t,
            "t1": t,
            "usage": {},
            "metadata": metadata,
        }
    )
    handle._stream.put(event)
    return event
