"""`timbal pending` and `timbal runs`: what is in a store."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import StoreError
from ..terminal import command, plain_json
from .answers import options_of
from .errors import DONE, CliError
from .places import APP_LABEL, ID_LENGTH, named_store, open_to_read
from .running import pairs, store_of
from .screen import Screen
from .words import about, ago, as_json, short, took, words_of

if TYPE_CHECKING:
    from ..stores.base import BaseStore, Page, PendingItem, RunInfo

T = TypeVar("T")

STATUSES = ("running", "paused", "success", "error", "cancelled")
#: A terminal of fewer columns gets the first digits of run ids only.
WIDE, SHORT_ID = 120, 16


def pending(
    runnable: str | None,
    kind: str | None,
    labels: Sequence[str],
    limit: str,
    after: str | None,
    url: str | None,
    app: str | None,
    json: bool,
) -> int:
    """List open questions."""
    screen = Screen()
    wanted, most = pairs(labels, "--label"), _number(limit)
    page = _ask(screen, url, app, lambda store: store.pending(runnable, kind, wanted, after, most))
    if json:
        _print_json(screen, page, _pending_json)
        return DONE
    if page is None or not page.items:
        screen.listing("Nothing waits for an answer." if page is not None else _nothing_yet())
        return DONE
    words = [*(["--store", url] if url else []), *(["--app", app] if app else [])]
    for item in page.items:
        _show_pending(screen, item, url, app)
    _say_more(screen, page, "pending", words)
    return DONE


def runs(
    status: str | None,
    runnable: str | None,
    labels: Sequence[str],
    limit: str,
    after: str | None,
    url: str | None,
    app: str | None,
    json: bool,
) -> int:
    """List runs."""
    if status is not None and status not in STATUSES:
        raise CliError(f"--status is one of {', '.join(STATUSES)}, not {status!r}")
    screen = Screen()
    wanted, most = pairs(labels, "--label"), _number(limit)
    page = _ask(screen, url, app, lambda store: store.runs(status, runnable, wanted, after, most))
    if json:
        _print_json(screen, page, lambda info: info._asdict())
        return DONE
    if page is None or not page.items:
        screen.listing("No runs." if page is not None else _nothing_yet())
        return DONE
    now = time.time_ns() // 1_000_000
    length = SHORT_ID if screen.out.is_terminal and screen.out.width < WIDE else ID_LENGTH
    gone_on = {info.parent_run_id for info in page.items if info.run_id != info.execution_id}
    rows = [_row(info, length, now, info.run_id in gone_on) for info in page.items]
    screen.rows(("RUN", "STATUS", "RUNNABLE", "TOOK", "STARTED", "LABELS"), rows)
    _say_more(screen, page, "runs", [*(["--store", url] if url else []), *(["--app", app] if app else [])])
    return DONE


def store_to_read(url: str | None, app: str | None) -> BaseStore | None:
    """The store that a listing looks into: the named one, that of `app`, or the command line's."""
    if url is None and app is not None:
        store: BaseStore = store_of(app)
        return store
    return open_to_read(url)


def _number(limit: str) -> int:
    if not limit.isdecimal() or int(limit) < 1:
        raise CliError(f"--limit is a number of at least 1, not {limit!r}")
    return int(limit)


def _ask(
    screen: Screen, url: str | None, app: str | None, question: Callable[[BaseStore], Awaitable[Page[T]]]
) -> Page[T] | None:
    store = store_to_read(url, app)
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


def _show_pending(screen: Screen, item: PendingItem, url: str | None, app: str | None) -> None:
    """A question, and the command that answers it."""
    now = time.time_ns() // 1_000_000
    words = words_of(item.event)
    screen.listing(f"? {words.headline}", "bold")
    aside = [*about(item.event), f"asked {ago(item.asked_at, now)}"]
    aside += [f"{name}={value}" for name, value in item.labels.items() if name != APP_LABEL]
    screen.listing(" · ".join(aside), "dim", indent=1)
    for name, text in words.details:
        screen.listing(f"{name}: {text}" if name else text, indent=1)
    if options := options_of(item.event):
        screen.listing("options: " + " | ".join(short(option) for option in options), indent=1)
    target = [] if APP_LABEL in item.labels and app is None else [app or "APP.PY::" + item.runnable]
    more = [*target, *(["--store", url] if url else [])]
    screen.copyable(command("resume", item.run_id, *more, "--answer", f"{item.id[:12]}=ANSWER"))
    screen.listing()


def _row(info: RunInfo, length: int, now: int, gone_on: bool) -> tuple[str, ...]:
    status = info.status if info.status in ("success", "paused", "running") else info.reason or info.status
    if gone_on:
        status = "went on"
    lasted = took(info.t1 - info.t0) if info.t1 is not None else ""
    labels = " ".join(f"{name}={value}" for name, value in info.labels.items() if name != APP_LABEL)
    return info.run_id[:length], status, info.runnable, lasted, ago(info.t0, now), labels


def _say_more(screen: Screen, page: Page[Any], name: str, words: Sequence[str]) -> None:
    if page.next is not None:
        screen.text("There is more:", "dim")
        screen.verbatim(command(name, "--after", page.next, *words), "dim")


def _nothing_yet() -> str:
    return f"No runs were kept in {named_store(None)} yet."
