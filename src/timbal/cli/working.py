"""`timbal worker`: goes on with what needs nobody, until it is stopped."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from contextlib import redirect_stdout
from typing import TYPE_CHECKING

from .errors import CliError
from .locate import Target, load, load_all
from .options import number
from .places import give_store, has_own_store, is_kept

if TYPE_CHECKING:
    from ..worker import Worker


def work(target: str, store: str | None, concurrency: str, attempts: str, grace: str) -> int:
    """Work until SIGINT or SIGTERM; gives the exit code."""
    from ..worker import Worker

    place = Target(target)
    with redirect_stdout(sys.stderr):
        runnables = load_all(place) if place.name is None else [load(place)]
    stores = {id(kept): kept for kept in (give_store(runnable, store) for runnable in runnables)}
    if len(stores) > 1:
        names = ", ".join(runnable.name for runnable in runnables if has_own_store(runnable))
        raise CliError(
            f"the runnables of {place} keep their runs in several stores ({names} have their own)",
            hint="Give --store URL, or one runnable: app.py::agent.",
        )
    (kept_in,) = stores.values()
    if not is_kept(kept_in):
        raise CliError(
            "a store in memory ends with its process, so there is nothing to go on with", hint="Give --store."
        )
    worker = Worker(
        runnables,
        kept_in,
        concurrency=number("--concurrency", concurrency),
        max_attempts=number("--attempts", attempts),
    )
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
    asyncio.run(
        _until_stopped(worker, ", ".join(runnable.name for runnable in runnables), float(number("--grace", grace)))
    )
    return 0


async def _until_stopped(worker: Worker, names: str, grace: float) -> None:
    log = logging.getLogger("timbal.worker")
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for stopping in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(stopping, stopped.set)
    running = asyncio.ensure_future(worker.run())
    log.info("works on %s; stop it with Ctrl-C", names)
    waiting = asyncio.ensure_future(stopped.wait())
    await asyncio.wait([running, waiting], return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    log.info("stops: what is at work has %g s to finish, the rest is left to others", grace)
    await worker.stop(grace)
    await running
