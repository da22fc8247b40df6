"""How an operation of a re-executed handler is recognised (contract section 4): the rule that everything rests on.

In the handler's own task position decides: the n-th operation is the n-th recorded one, and its kind and name must
agree. In tasks that the handler started, arrival order means nothing: kind, name and arguments decide, with a count
among equals. An operation whose arguments are new is held while records of its name are unclaimed: it may be one of
them, with arguments that have drifted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from .ids import spawned_segment
from .ledger import Op

_CALLS = frozenset({"Tool", "Agent", "Workflow"})


class Recalled(NamedTuple):
    """Where an operation stands: the segment of its key, and whether the ledger knows it."""

    segment: str
    recorded: bool


class Held(NamedTuple):
    """An operation in a task that matches no record while these, of its name, are unclaimed: it can't be told yet."""

    segment: str
    unclaimed: tuple[str, ...]


class Mismatch(Exception):
    """The handler asks for another operation than was recorded at this place."""


class Recall:
    """The operations of one call, claimed one by one as the handler asks for them again."""

    __slots__ = ("_claimed", "_counts", "_position", "_records")

    def __init__(self, records: Mapping[str, Op] | None) -> None:
        self._records: Mapping[str, Op] = records or {}
        self._claimed: set[str] = set()
        self._counts: dict[tuple[str, str, str], int] = {}
        self._position = 0

    def own(self, kind: str, name: str) -> Recalled:
        """The next operation of the handler's own task; raises `Mismatch`."""
        segment = str(self._position)
        record = self._records.get(segment)
        if record is not None and not _same(record, kind, name):
            raise Mismatch(
                f"operation {self._position + 1} was recorded as {_describe(record.kind, record.name)}, "
                f"and now comes {_describe(kind, name)}"
            )
        self._position += 1
        self._claimed.add(segment)
        return Recalled(segment, record is not None)

    def spawned(self, kind: str, name: str, what: str) -> Recalled | Held:
        """An operation in a task that the handler started; `what` is the digest of its arguments, or its `key=`."""
        equal = ("call" if kind in _CALLS else kind, name, what)
        count = self._counts.get(equal, 0)
        segment = spawned_segment(*equal, count)
        recorded = segment in self._records
        if not recorded and not count and (rest := self.unclaimed(kind, name)):
            return Held(segment, rest)
        self._counts[equal] = count + 1
        self._claimed.add(segment)
        return Recalled(segment, recorded)

    def fresh(self, kind: str, name: str, what: str) -> Recalled:
        """An operation in a task that is known to be none of the recorded ones."""
        equal = ("call" if kind in _CALLS else kind, name, what)
        count = self._counts.get(equal, 0)
        self._counts[equal] = count + 1
        segment = spawned_segment(*equal, count)
        self._claimed.add(segment)
        return Recalled(segment, False)

    def unclaimed(self, kind: str, name: str) -> tuple[str, ...]:
        """Segments of recorded operations of this kind and name, from tasks, that nobody has asked for again."""
        return tuple(
            segment
            for segment, op in dict(self._records).items()
            if segment[0] == "~" and segment not in self._claimed and _same(op, kind, name)
        )

    def check_complete(self) -> None:
        """To be called when the handler returns; raises `Mismatch` when recorded operations were left out."""
        left = [op for segment, op in self._records.items() if segment not in self._claimed]
        if left:
            what = ", ".join(_describe(*op) for op in left)
            raise Mismatch(f"{what} {'was' if len(left) == 1 else 'were'} recorded, and the handler returned without")


def _same(record: Op, kind: str, name: str) -> bool:
    return record.name == name and (record.kind == kind or (record.kind in _CALLS and kind in _CALLS))


def _describe(kind: str, name: str) -> str:
    return f"suspend(kind={name!r})" if kind == "suspend" else f"{'a call of' if kind in _CALLS else 'step'} {name!r}"
