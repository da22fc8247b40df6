"""`timbal store`: look after what is kept."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import TypeVar

from ..errors import StoreError
from ..stores.base import BaseStore
from ..terminal import plain_json
from .errors import DONE, FAILED, CliError
from .places import open_to_read
from .screen import Screen
from .words import as_json

T = TypeVar("T")

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
#: The most problems that are shown; `--json` has them all.
_SHOWN = 20


def check(url: str | None, json: bool) -> int:
    """Read everything; gives 1 when something is wrong."""
    found = _on(url, lambda store: store.check())
    screen = Screen()
    if json:
        screen.raw(plain_json(as_json(found._asdict())))
        return FAILED if found.problems else DONE
    runs = ", ".join(f"{count} {status}" for status, count in sorted(found.runs.items())) or "none"
    screen.listing(f"schema version {found.schema_version}")
    screen.listing(f"{found.executions} executions; runs: {runs}")
    screen.listing(f"{found.open_questions} open questions, {found.settled_questions} settled ones")
    if found.newer:
        screen.listing(f"{found.newer} executions were written by a newer version: use that one for them", "yellow")
    for problem in found.problems[:_SHOWN]:
        screen.listing(f"WRONG: {problem}", "red")
    if len(found.problems) > _SHOWN:
        screen.listing(f"... and {len(found.problems) - _SHOWN} more: see --json", "red")
    if not found.problems:
        screen.listing("Everything can be read, and nothing is wrong.", "green")
    return FAILED if found.problems else DONE


def migrate(url: str | None, json: bool) -> int:
    """Open the store, which brings it up to date, and say its version."""

    async def version(store: BaseStore) -> int:
        return store.schema_version

    found = _on(url, version)
    if json:
        Screen().raw(plain_json(as_json({"schema_version": found})))
    else:
        Screen().listing(f"The store has schema version {found}, the newest that this library knows.")
    return DONE


def prune(url: str | None, older_than: str | None, abandoned: str | None, dry_run: bool, json: bool) -> int:
    """Remove what is old, and say how much."""
    if older_than is None:
        raise CliError("--older-than says what is old", hint="For example: --older-than 30d")
    age = _age("--older-than", older_than)
    left = None if abandoned is None else _age("--abandoned-older-than", abandoned)
    found = _on(url, lambda store: store.prune(age, abandoned_older_than=left, dry_run=dry_run))
    if json:
        Screen().raw(plain_json(as_json({**found._asdict(), "dry_run": dry_run})))
        return DONE
    what = f"{found.finished} finished executions and {found.abandoned} abandoned ones"
    Screen().listing(f"{what} would be removed." if dry_run else f"{what} were removed.")
    return DONE


def _age(option: str, text: str) -> float:
    """Seconds."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd])", text)
    if found is None:
        raise CliError(f"{option} is a number with s, m, h or d, such as 30d or 12h, not {text!r}")
    return float(found[1]) * _SECONDS[found[2]]


def _on(url: str | None, work: Callable[[BaseStore], Awaitable[T]]) -> T:
    """Do it with the store that is there, and close it."""
    store = open_to_read(url)
    if store is None:
        raise CliError("there is no store here yet", hint="Name one: timbal store ... sqlite:///runs.db")

    async def do() -> T:
        return await work(store)

    try:
        return asyncio.run(do())
    except StoreError as problem:
        raise CliError(str(problem)) from None
