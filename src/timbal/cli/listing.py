"""`timbal pending` and `timbal runs`: what is in a store."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from ..errors import StoreError
from ..stores import clock
from ..terminal import command, plain_json
from .answers import options_of
from .errors import DONE, CliError
from .options import number
from .places import APP_LABEL, ID_LENGTH, named_store, open_to_read
from .running import pairs, store_of
from .screen import Screen
from .words import about, ago, as_json, short, took, ways_to_answer, words_of

if TYPE_CHECKING:
    from ..stores.base import BaseStore
    from ..stores.listings import Page, PendingItem, RunInfo

T = TypeVar("T")

STATUSES = ("running", "paused", "parked", "continued", "success", "error", "cancelled", "erased")
#: A terminal of fewer columns gets the first digits of run ids only.
WIDE, SHORT_ID = 120, 16


class Where(NamedTuple):
    """Which store to look into: by its URL, or as that of a runnable."""

    store: str | None
    app: str | None

    @property
    def words(self) -> list[str]:
        """The options that say so."""
        return options(("--store", self.store), ("--app", self.app))


class Query(NamedTuple):
    """What a listing shows, as the command's options say it."""

    runnable: str | None
    labels: Sequence[str]
    limit: str
    after: str | None
    where: Where
    as_json: bool

    @property
    def most(self) -> int:
        """How many items at most; raises `CliError`."""
        return number("--limit", self.limit)

    @property
    def words(self) -> list[str]:
        """The options that say so, but for the page."""
        labels = (("--label", label) for label in self.labels)
        return options(("--runnable", self.runnable), *labels, ("--limit", self.limit)) + self.where.words


def pending(kind: str | None, query: Query) -> int:
    """List open questions."""
    screen, most = Screen(), query.most
    wanted = pairs(query.labels, "--label")
    page = _ask(query, lambda store: store.pending(query.runnable, kind, wanted, after=query.after, limit=most))
    if query.as_json:
        _print_json(screen, page, _pending_json)
    elif page is None or not page.items:
        screen.listing("Nothing waits for an answer." if page is not None else _nothing_yet())
    else:
        for item in page.items:
            _show_pending(screen, item, query.where)
        _say_more(screen, page, "pending", options(("--kind", kind)) + query.words)
    return DONE


def runs(status: str | None, query: Query) -> int:
    """List runs."""
    if status is not None and status not in STATUSES:
        raise CliError(f"--status is one of {', '.join(STATUSES)}, not {status!r}")
    screen, most = Screen(), query.most
    wanted = pairs(query.labels, "--label")
    page = _ask(query, lambda store: store.runs(status, query.runnable, wanted, after=query.after, limit=most))
    if query.as_json:
        _print_json(screen, page, lambda info: info._asdict())
    elif page is None or not page.items:
        screen.listing("No runs." if page is not None else _nothing_yet())
    else:
        screen.rows(("RUN", "STATUS", "RUNNABLE", "TOOK", "STARTED", "LABELS"), _rows(screen, page.items))
        _say_more(screen, page, "runs", options(("--status", status)) + query.words)
    return DONE


def options(*named: tuple[str, str | None]) -> list[str]:
    """Those that have a value, as words of a command."""
    return [word for name, value in named if value is not None for word in (name, value)]


def store_to_read(where: Where) -> BaseStore | None:
    """The store that a listing looks into: the named one, that of a runnable, or the command line's."""
    if where.store is None and where.app is not None:
        store: BaseStore = store_of(where.app)
        return store
    return open_to_read(where.store)


def _ask(query: Query, question: Callable[[BaseStore], Awaitable[Page[T]]]) -> Page[T] | None:
    store = store_to_read(query.where)
    if store is None:
        return None

    async def ask() -> Page[T]:
        return await question(store)

    try:
        return asyncio.run(ask())
    except StoreError as problem:
        raise CliError(str(problem)) from None


def _print_json(screen: Screen, page: Page[Any] | None, dump: Callable[[Any], Any]) -> None:
    items = page.items if page is not None else []
    told = {"items": [dump(item) for item in items], "next": page.next if page is not None else None}
    screen.raw(plain_json(as_json(told)))


def _pending_json(item: PendingItem) -> dict[str, Any]:
    return {**item._asdict(), "event": item.event.model_dump(mode="json")}


def _show_pending(screen: Screen, item: PendingItem, where: Where) -> None:
    """A question, and the command that answers it."""
    now = clock.now()
    words = words_of(item.event)
    screen.listing(f"? {words.headline}", "bold")
    aside = [*about(item.event), f"asked {ago(item.asked_at, now)}"]
    aside += [f"{name}={value}" for name, value in item.labels.items() if name != APP_LABEL]
    screen.listing(" · ".join(aside), "dim", indent=1)
    for indent, text in words.details:
        screen.listing(text, indent=indent)
    if choices := options_of(item.event):
        screen.listing("options: " + " | ".join(short(option) for option in choices), indent=1)
    target = target_words(item.labels, item.runnable, where)
    named = [*target, *options(("--store", where.store))]
    for way in ways_to_answer(item.event):
        screen.copyable(command("resume", item.run_id, *named, *way))
    screen.listing()


def target_words(labels: Mapping[str, str], runnable: str, where: Where) -> list[str]:
    """The runnable, as `timbal resume` has to be told: not at all where the run's record tells it."""
    if where.app is not None:
        return [where.app]
    return [] if APP_LABEL in labels else [f"APP.PY::{runnable}"]


def _rows(screen: Screen, infos: Sequence[RunInfo]) -> list[tuple[str, ...]]:
    now = clock.now()
    length = SHORT_ID if screen.out.is_terminal and screen.out.width < WIDE else ID_LENGTH
    rows: list[tuple[str, ...]] = []
    later: set[str] = set()
    for info in infos:  # the newest of an execution comes first
        status = info.status if info.status in ("success", "paused", "running") else info.reason or info.status
        if info.execution_id in later:
            status = "went on"
        later.add(info.execution_id)
        lasted = took(info.t1 - info.t0) if info.t1 is not None else ""
        labels = " ".join(f"{name}={value}" for name, value in info.labels.items() if name != APP_LABEL)
        rows.append((info.run_id[:length], status, info.runnable, lasted, ago(info.t0, now), labels))
    return rows


def _say_more(screen: Screen, page: Page[Any], name: str, words: Sequence[str]) -> None:
    if page.next is not None:
        screen.text("There is more:", "dim")
        screen.verbatim(command(name, "--after", page.next, *words), "dim")


def _nothing_yet() -> str:
    return f"No runs were kept in {named_store(None)} yet."
