"""The task of a run, from the call to its output."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from .begin import begin
from .executions import Refused, tell_refusal
from .resume import Resumption

if TYPE_CHECKING:
    from ..runnables.base import Runnable
    from ..types.approval import Principal
    from ..types.events import OutputEvent
    from .handle import RunHandle


async def drive(handle: RunHandle) -> None:
    """Everything that the run tells goes into the handle's stream."""
    stream, resume = handle._stream, handle._given.resume
    try:
        output = await (begin(handle) if resume is None else Resumption(handle).resume(resume))
    except Refused as refusal:
        stream.close(tell_refusal(handle, refusal))
    except asyncio.CancelledError:
        stream.close(None, asyncio.CancelledError("the run was interrupted before it had begun"))
    except BaseException as error:
        stream.close(None, error)
        if not isinstance(error, Exception):
            raise
    else:
        stream.close(output)


async def cancel(
    runnable: Runnable, run_id: str, reason: str | None, by: Principal | None = None, channel: str = "cancel"
) -> OutputEvent:
    """End the execution of `run_id` for good, wherever it runs or waits; gives the OUTPUT it ended with."""
    from .handle import Given, RunHandle

    handle = RunHandle(runnable, {}, Given(run_id, by=by))
    handle.channel = channel
    return await Resumption(handle).cancel(run_id, reason)
