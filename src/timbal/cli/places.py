"""Which store a command works on, and which run in it is meant."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import RunNotFound, StoreError
from .errors import CliError

if TYPE_CHECKING:
    from ..runnables.base import Runnable
    from ..stores.base import BaseStore
    from ..stores.listings import RunRecord

#: The store of the command line, where no other is named (contract section 7).
DEFAULT = "sqlite:///.timbal/runs.db"
#: With which runnable a run was started, as a label of the run: so `timbal resume RUN_ID` finds it.
APP_LABEL = "timbal.app"
ID_LENGTH = 32
#: How many runs are read at a time, newest first, to find one by the beginning of its id.
PAGE = 1000
_PREFIX = re.compile(r"[0-9a-f]{1,32}")


def named_store(url: str | None) -> str:
    """The URL of the store: the given one, `TIMBAL_STORE`, or the default in the working folder."""
    return url or os.environ.get("TIMBAL_STORE") or DEFAULT


def open_to_write(url: str | None) -> BaseStore:
    """The store, made where it is missing; raises `CliError`."""
    url = named_store(url)
    if url == DEFAULT:
        _make_default_folder()
    return _open(url)


def open_to_read(url: str | None) -> BaseStore | None:
    """The store that is there; `None` when it is the default one and nothing was kept yet. Raises `CliError`."""
    url = named_store(url)
    file = _file_of(url)
    if file is not None and not file.exists():
        if url == DEFAULT:
            return None
        raise CliError(f"there is no store {url}", hint="Check --store and TIMBAL_STORE, and the folder you are in.")
    if url == "memory://":
        raise CliError("memory:// ends with its process, so there is nothing to look at", hint="Name another --store.")
    return _open(url)


def give_store(runnable: Runnable, url: str | None) -> BaseStore:
    """The store that its runs are kept in: the named one, else its own, else that of the command line."""
    if url is not None or not has_own_store(runnable):
        runnable._store = open_to_write(url)
    try:
        store: Any = runnable._store_in_use()
    except (StoreError, ValueError, ImportError) as problem:
        raise CliError(str(problem)) from None
    return store  # type: ignore[no-any-return]


def has_own_store(runnable: Runnable) -> bool:
    """Whether it was made with `store=`."""
    return runnable._store is not None or runnable._store_url is not None


def is_kept(store: Any) -> bool:
    """Whether its runs are there for other processes."""
    from ..stores import MemoryStore

    return not isinstance(store, MemoryStore)


def _open(url: str) -> BaseStore:
    from ..stores import open_store

    try:
        store: BaseStore = open_store(url)
    except (StoreError, ValueError, ImportError) as problem:
        raise CliError(f"the store can't be opened: {problem}") from None
    return store


def _file_of(url: str) -> Path | None:
    scheme, _, path = url.partition(":///")
    return Path(path) if scheme == "sqlite" and path else None


def _make_default_folder() -> None:
    folder = Path(DEFAULT.partition(":///")[2]).parent
    try:
        folder.mkdir(exist_ok=True)
        if not (folder / ".gitignore").exists():
            (folder / ".gitignore").write_text("*\n", encoding="utf-8")
    except OSError as problem:
        raise CliError(
            f"{folder.resolve()} can't be made, where runs are kept: {problem.strerror}",
            hint="Name another place: --store sqlite:////tmp/runs.db",
        ) from None


async def record_of(store: BaseStore, given: str) -> RunRecord:
    """The record of the run whose id this is, or begins with this; raises `CliError`."""
    try:
        return await store.get(await _full_id(store, given))
    except RunNotFound:
        raise _no_run(given) from None
    except StoreError as problem:
        raise CliError(str(problem)) from None


async def _full_id(store: BaseStore, given: str) -> str:
    given = given.lower()
    if len(given) == ID_LENGTH:
        return given
    if not _PREFIX.fullmatch(given):
        raise CliError(
            f"{given!r} is no run id: ids are hex digits, as `timbal runs` shows them", hint="Their first ones will do."
        )
    found: list[str] = []
    after: str | None = None
    while len(found) < 2:
        page = await store.runs(after=after, limit=PAGE)
        found += [info.run_id for info in page.items if info.run_id.startswith(given)]
        after = page.next
        if after is None:
            break
    if not found:
        raise _no_run(given)
    if len(found) > 1:
        raise CliError(f"several runs begin with {given}: {found[0]}, {found[1]}, ...", hint="Give more of the id.")
    return found[0]


def _no_run(given: str) -> CliError:
    return CliError(f"there is no run {given} in this store", hint="`timbal runs` lists them; --store names another.")
