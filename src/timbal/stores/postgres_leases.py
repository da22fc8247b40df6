"""The leases of one store object: which it holds, and which of the others' holders have gone."""

from __future__ import annotations

import os

from ..errors import StoreError
from ..ports import Lease
from .process import is_gone, process_name


class Held:
    """What a lease of ours is of. `seq` counts its commits; `broken`: why no further one can count."""

    __slots__ = ("broken", "lease", "run", "seq")

    def __init__(self, lease: Lease, run: str) -> None:
        self.lease = lease
        self.run = run
        self.seq = 0
        self.broken: StoreError | None = None


class Leases:
    """Changed by the writer's thread; others may ask."""

    def __init__(self, milliseconds: int) -> None:
        self.milliseconds = milliseconds
        #: The name under which this store object holds leases.
        self.me = f"{process_name()}/{os.urandom(4).hex()}"
        self._held: dict[str, Held] = {}

    def granted(self, run: str, fence: int) -> Lease:
        lease = Lease(None, fence)
        lease.ref = Held(lease, run)
        self.keep(lease.ref)
        return lease

    def keep(self, held: Held) -> None:
        self._held[held.run] = held

    def drop(self, held: Held) -> None:
        if self._held.get(held.run) is held:
            del self._held[held.run]

    def living(self) -> list[Held]:
        """Those whose runs are there; the others are left to expire."""
        return [held for held in self._held.values() if held.lease.alive()]

    def of(self, run: str) -> Held | None:
        return self._held.get(run)

    def dead_fence(self, run: str) -> int:
        """The fence of our lease of this run, if whoever held it has gone; else 0, which none has."""
        held = self._held.get(run)
        return held.lease.fence if held is not None and not held.lease.alive() else 0

    def shows_life(self, run: str, holder: str, fence: int) -> bool:
        """Whether a holder whose lease has not expired is still there."""
        if holder == self.me:
            return self.dead_fence(run) != fence
        return not self.has_gone(holder)

    def has_gone(self, holder: str) -> bool:
        """Whether it was a process beside this one that has ended."""
        return holder != self.me and is_gone(holder)
