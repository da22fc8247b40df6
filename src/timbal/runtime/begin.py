"""Begin an execution: the first run of a conversation, or its next turn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.codec import decode_all, encode
from ..core.facts import Ended, Gated, Opened, Settled
from ..core.ids import ROOT
from ..core.ledger import Ledger
from ..core.redaction import secrets
from ..core.transcript import conversation
from ..errors import RunExists
from ..ports import Lease, RunRow, Settlement
from ..stores.clock import now
from ..stores.waiting import wait
from ..types.run_status import RunStatus
from .executions import Refused, check_runnable, check_same, fold, is_paused, load, tell_no_run
from .failures import describe
from .frame import Frame
from .gated import show, visible
from .resume import Resumption
from .root import run_root
from .run import Run, new_id, with_cause
from .schema import InvalidInput, presentable

if TYPE_CHECKING:
    from ..ports import Store
    from ..runnables.base import Runnable
    from ..types.events import OutputEvent
    from ..types.message import Message
    from .handle import RunHandle


async def begin(handle: RunHandle) -> OutputEvent:
    """A run of its own."""
    runnable, given, run_id = handle._runnable, handle._given, handle._run_id
    try:
        values, stored = runnable._prepare(handle._arguments)
    except Exception as error:
        return _invalid(handle, error)
    store = runnable._store or runnable._store_in_use()
    history = await _turn_after(runnable, store, given.parent_id, run_id) if given.parent_id is not None else ()
    name, kind, parent_id = runnable.name, runnable.kind, given.parent_id
    opened = Opened(run_id, new_id(), name, kind, stored, now(), parent_id, given.labels, given.said_by)
    run = Run(store, handle._stream, Ledger(opened), run_id, parent_id, run_id, Lease(), opened)
    run.history = history
    frame = Frame(run, ROOT, name, name, kind, opened.call_id, None)
    frame.t0 = opened.at
    frame.input = stored
    if runnable._gate is not None:
        show(frame, runnable, stored)
    if given.labels is not None:
        run.labels = given.labels
    if given.run_id is not None:
        try:
            await run.flush()
        except RunExists:
            return await _follow_first(handle)
    handle.begun(run)
    return await run_root(run, frame, runnable, values, {}, handle._arguments)


def _invalid(handle: RunHandle, error: Exception) -> OutputEvent:
    """Arguments that don't fit: nothing is stored, nothing has run."""
    reason = "invalid_input" if isinstance(error, InvalidInput) else None
    given = presentable(handle._arguments)
    told = describe(error, hidden=secrets(given, visible(handle._runnable, given)))
    if reason is not None:
        told["traceback"] = None
    return with_cause(tell_no_run(handle, RunStatus("error", reason, told["message"]), told, {}), error)


async def _follow_first(handle: RunHandle) -> OutputEvent:
    """The run id is in use: the same start follows the first run, another one is refused."""
    going_on = Resumption(handle)
    stored = await load(going_on.store, handle._run_id)
    try:
        ledger = fold(stored)
        check_runnable(handle._runnable, ledger)
        check_same(handle._runnable, ledger, handle._arguments)
    except Refused as refusal:
        raise Refused(f"run {handle._run_id} exists already, with another input: {refusal}") from None
    return await going_on.follow(stored, again=False)


# -- the next turn of a conversation -----------------------------------------------------------------------------------


async def _turn_after(runnable: Runnable, store: Store, parent_id: str, run_id: str) -> list[Message]:
    """The messages of a conversation, up to the run that this turn comes after."""
    while True:
        records = await wait(store.history(parent_id))
        if not records:
            raise Refused(f"there is no run {parent_id} in this store: check parent_id, and that the store is the same")
        last = Ledger.of(decode_all(records[-1]))
        check_runnable(runnable, last)
        if last.ended is None:
            raise Refused(
                f"run {parent_id} has not ended: wait for it or, if its process is gone, go on with resume={{}}"
            )
        if not is_paused(last.ended):
            return conversation(records) if runnable.kind == "Agent" else []
        if unused := [id for id in last.seen_by_open_calls() if _is_answered(last, id)]:
            raise Refused(
                f"run {parent_id} has an accepted answer that no run has used yet ({', '.join(unused)}): go on with it "
                "first, with resume={}, or let a worker do so"
            )
        await _supersede(runnable, store, parent_id, last, run_id)


def _is_answered(ledger: Ledger, id: str) -> bool:
    settled = ledger.questions[id].settled
    return settled is not None and settled.state == "answered"


async def _supersede(runnable: Runnable, store: Store, parent_id: str, ledger: Ledger, by_run: str) -> None:
    """A new message instead of an answer (contract section 6)."""
    waiting = ledger.open_questions
    what = ", ".join(f"{q.asked.id} ({q.asked.name} of {q.asked.path})" for q in waiting)
    if runnable.kind != "Agent":
        raise Refused(f"run {parent_id} waits for {what}: answer with resume={{id: value}}")
    policy = runnable.on_new_message
    guarded = [q for q in waiting if q.asked.audience is not None or isinstance(q.asked, Gated)]
    if policy == "refuse" or (policy is None and guarded):
        raise Refused(f"run {parent_id} waits for {what}: answer it or cancel it before a new message")
    stored = await load(store, parent_id)
    run_id = new_id()
    settlements = [Settlement.of(Settled(q.asked.id, "superseded", now(), None, by_run)) for q in waiting]
    result = await wait(store.settle(stored.ref, settlements, RunRow(run_id, parent_id, now())))
    if result.conflict:
        return
    if result.lease is None:
        raise Refused(f"run {parent_id} is going on with an answer: wait for it")
    ended = Ended(run_id, "cancelled", now(), "cancelled", "superseded by a new message")
    await wait(store.commit(result.lease, encode((ended,)), ended=ended))
