"""What a store's listings are about: runs, open and settled items, in pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from ..core.codec import decode
from ..core.facts import Asked, Gated, Settled
from ..core.gates import public_decision
from ..core.narrate import asked_event
from ..types.events import ApprovalEvent, InteractionEvent
from . import clock

T = TypeVar("T")
Age: TypeAlias = "float | timedelta"

#: Why a run may have ended though its execution has not.
UNFINISHED = ("input_required", "approval_required", "interrupted")


class Page(NamedTuple, Generic[T]):
    """Some of the items; `next` asks for the following ones (`after=page.next`), or is `None`."""

    items: list[T]
    next: str | None


class RunInfo(NamedTuple):
    """What is known of a run. Times in Unix milliseconds; `status` is `running` until the run has ended or paused.

    A run whose process died is `continued` once another one has gone on with its execution; how it ended nobody knows,
    so it has no `t1`. Of an erased run, `t1` is when it was erased.
    """

    run_id: str
    execution_id: str
    parent_run_id: str | None
    runnable: str
    runnable_type: str
    labels: dict[str, str]
    status: str
    reason: str | None
    t0: int
    t1: int | None


class Where(NamedTuple):
    """Which runs or items; `None` and no labels mean any. `since` and `until` are Unix milliseconds, both included."""

    runnable: str | None = None
    kind: str | None = None
    status: str | None = None
    labels: Mapping[str, str] = MappingProxyType({})
    since: int | None = None
    until: int | None = None


class Slice(NamedTuple):
    """Which part of what was found: the first `limit` of those after the position `after`."""

    after: str | None
    newest_first: bool
    limit: int


class Found(NamedTuple):
    """A question as a store finds it: its position, its `Asked` fact, and its `Settled` fact once it has one."""

    position: str
    run_id: str
    labels: dict[str, str]
    runnable: str
    body: bytes | str
    settled: bytes | str | None


class PendingItem(NamedTuple):
    """An open item of the inbox: `event` is what the run emitted, `run_id` the run to resume."""

    id: str
    run_id: str
    kind: str
    runnable: str
    labels: dict[str, str]
    asked_at: int
    expires_at: int | None
    event: InteractionEvent | ApprovalEvent


class SettledItem(NamedTuple):
    """What became of an item: who settled it, when, with what, and by which channel.

    `state`: `answered | cancelled | expired | superseded`; `value`: the answer, or why it was cancelled; `by`: the
    `Principal`, where one was given; `channel`: where the answer came in, where that was said; `settled_by_run_id`: the
    run that brought it, `None` for `store.answer`.
    """

    id: str
    run_id: str
    kind: str
    runnable: str
    labels: dict[str, str]
    asked_at: int
    settled_at: int
    state: str
    value: Any
    by: dict[str, Any] | None
    channel: str | None
    settled_by_run_id: str | None
    event: InteractionEvent | ApprovalEvent


class RunRecord(NamedTuple):
    """A run with everything that its execution recorded: `facts` in order, `messages` as a model would read them."""

    info: RunInfo
    runs: list[RunInfo]
    facts: list[Any]


class Prune(NamedTuple):
    """What is to be removed, by the time of the last sign of life in Unix milliseconds; `None`: no abandoned ones."""

    finished_before: int
    abandoned_before: int | None
    dry_run: bool


class Pruned(NamedTuple):
    """How many executions were removed: those that had finished, and those that were open and abandoned."""

    finished: int
    abandoned: int


def where_of(
    runnable: str | None,
    kind: str | None,
    status: str | None,
    labels: Mapping[str, str] | None,
    older_than: Age | None,
    newer_than: Age | None,
) -> Where:
    now = clock.now()
    return Where(
        runnable,
        kind,
        status,
        labels or {},
        None if newer_than is None else now - milliseconds(newer_than),
        None if older_than is None else now - milliseconds(older_than),
    )


def milliseconds(age: Age) -> int:
    return int((age.total_seconds() if isinstance(age, timedelta) else age) * 1000)


def slice_of(after: str | None, newest_first: bool, limit: int) -> Slice:
    """The page, and one more: it tells whether there are more."""
    if limit < 1:
        raise ValueError(f"limit is at least 1, not {limit!r}")
    if after is not None:
        position(after, str)
    return Slice(after, newest_first, limit + 1)


def position(after: str, of: Callable[[str], T]) -> tuple[int, T]:
    """The time and the id that a page's `.next` names; raises `ValueError` for what is none."""
    at, dot, id = after.partition(".")
    try:
        if dot:
            return int(at), of(id)
    except ValueError:
        pass
    raise ValueError(f"after={after!r} is no position: pass the .next of a page")


def pending_item(found: Found) -> PendingItem:
    (asked,) = decode(found.body)
    assert isinstance(asked, Asked | Gated)
    event = asked_event(asked)
    return PendingItem(
        asked.id, found.run_id, asked.name, found.runnable, found.labels, asked.at, asked.expires_at, event
    )


def settled_item(found: Found) -> SettledItem:
    assert found.settled is not None
    (asked,), (settled,) = decode(found.body), decode(found.settled)
    assert isinstance(asked, Asked | Gated)
    assert isinstance(settled, Settled)
    return SettledItem(
        asked.id,
        found.run_id,
        asked.name,
        found.runnable,
        found.labels,
        asked.at,
        settled.at,
        settled.state,
        public_decision(asked, settled.value) if isinstance(asked, Gated) else settled.value,
        settled.by,
        settled.channel,
        settled.run_id,
        asked_event(asked),
    )
