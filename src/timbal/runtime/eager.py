"""Tasks that begin at once: what never waits costs no turn of the event loop.

Python 3.12 has this as `Task(eager_start=True)`. On 3.11 the same is done with the functions that asyncio documents for
task implementations (docs.python.org/3/library/asyncio-extending.html); where the loop is not asyncio's own, or has a
task factory, a task begins when the loop comes to it.
"""

from __future__ import annotations

import asyncio
import sys
from asyncio.tasks import _enter_task, _leave_task
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def start(work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """A task with a context of its own that has run up to where it first waits."""
    loop = asyncio.get_running_loop()
    if loop.get_task_factory() is not None:
        return loop.create_task(work)
    if sys.version_info >= (3, 12):
        return asyncio.Task(work, loop=loop, eager_start=True)
    ready = getattr(loop, "_ready", None)
    here = asyncio.current_task(loop)
    task = asyncio.Task(work, loop=loop)
    if ready and here is not None:
        first_step = ready.pop()
        _leave_task(loop, here)
        try:
            first_step._run()
        finally:
            _enter_task(loop, here)
    return task
