"""The root call of a run, from its START to the end of the run."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from ..state import Halt
from ..types.run_status import INTERRUPTED
from .call import Outcome, execute, tell_start
from .gated import execute_gated
from .run import Run, Stopped

if TYPE_CHECKING:
    from ..runnables.base import Runnable
    from ..types.events import OutputEvent
    from .frame import Frame


async def run_root(
    run: Run,
    frame: Frame,
    runnable: Runnable,
    values: dict[str, Any],
    metadata: dict[str, Any],
    arguments: dict[str, Any],
) -> OutputEvent:
    """Perform it, and end the run. `arguments` are what it was called with, for its gate."""
    try:
        tell_start(frame)
        try:
            if run.halt is not None:
                raise Halt
            run.performing = True
            if frame.effective is not None:
                outcome = await execute_gated(frame, runnable, arguments)
            else:
                outcome = await execute(frame, runnable, values)
        except Halt:
            outcome = Outcome(INTERRUPTED)
        except asyncio.CancelledError:
            run.stop_with(Stopped(None, final=False))
            task = asyncio.current_task()
            while task is not None and task.cancelling():
                task.uncancel()
            outcome = Outcome(INTERRUPTED)
        finally:
            run.performing = False
        if run.tasks:
            await run.finish_tasks()
        return await run.end(frame, outcome, metadata)
    finally:
        run.close()
