"""Tasks that begin at once: what never waits costs no turn of the event loop.

Python 3.12 has this as `Task(eager_start=True)`. On 3.11 the same is done with the functions that asyncio documents for
task implementations (docs.python.org/3/library/asyncio-extending.html): a task gives its first step to the loop's
`call_soon`, which for that moment is ours. Where a task factory is set, a task begins when the loop comes to it.
"""

from __future__ import annotations

import asyncio
import sys
from asyncio.tasks import _enter_task, _leave_task
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any, TypeVar

T = TypeVar("T")


def start(work: Coroutine[Any, Any, T], name: str) -> asyncio.Task[T]:
    """A task with a context of its own that has run up to where it first waits."""
    loop = asyncio.get_running_loop()
    if loop.get_task_factory() is not None:
        return loop.create_task(work, name=name)
    if sys.version_info >= (3, 12):
        return asyncio.Task(work, loop=loop, name=name, eager_start=True)
    here = asyncio.current_task(loop)
    if here is None:
        return loop.create_task(work, name=name)
    own: Any = loop
    own.call_soon = step = _FirstStep()
    try:
        task = asyncio.Task(work, loop=loop, name=name)
    finally:
        del own.call_soon
    _leave_task(loop, here)
    try:
        step.context.run(step.callback)
    finally:
        _enter_task(loop, here)
    return task


class _FirstStep:
    """Takes the one call that a task makes when it is made."""

    callback: Callable[[], Any]
    context: Context

    def __call__(self, callback: Callable[[], Any], *, context: Context) -> None:
        self.callback, self.context = callback, context
