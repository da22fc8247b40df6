"""Notices, while a person types, that their question was settled elsewhere."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ..core.facts import Gated, Settled
from ..core.gates import public_decision
from ..errors import StoreError

if TYPE_CHECKING:
    from ..stores.base import BaseStore

#: How often the store is looked at.
SECONDS = 0.5


class SettledElsewhere(BaseException):
    """Raised out of the prompt, as a Ctrl-C would be; `settled` is the settlement."""

    def __init__(self, settled: dict[str, Any]) -> None:
        self.settled = settled
        super().__init__()


@contextmanager
def watching(store: BaseStore, run_id: str, id: str) -> Iterator[None]:
    """While it lasts, `SettledElsewhere` is raised in the main thread once the question `id` is settled."""
    done = threading.Event()
    settled: dict[str, Any] = {}
    if not hasattr(signal, "pthread_kill"):
        yield
        return
    waiting = threading.main_thread().ident
    assert waiting is not None

    def interrupt(*_: object) -> None:
        if not done.is_set():
            done.set()
            raise SettledElsewhere(settled)

    async def watch() -> None:
        while not done.wait(SECONDS):
            try:
                record = await store.get(run_id)
            except StoreError:
                continue
            found = next((fact for fact in record.facts if isinstance(fact, Settled) and fact.id == id), None)
            if found is not None and not done.is_set():
                settled.update(found._asdict(), value=_as_anybody_may_see_it(record.facts, found))
                signal.pthread_kill(waiting, signal.SIGUSR1)
                return

    before = signal.signal(signal.SIGUSR1, interrupt)
    thread = threading.Thread(target=lambda: asyncio.run(watch()), name="timbal-watch", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join(2 * SECONDS)
        signal.signal(signal.SIGUSR1, before)


def _as_anybody_may_see_it(facts: Sequence[Any], settled: Settled) -> Any:
    gate = next((fact for fact in facts if isinstance(fact, Gated) and fact.id == settled.id), None)
    return settled.value if gate is None else public_decision(gate, settled.value)
