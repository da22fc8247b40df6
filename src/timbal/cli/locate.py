"""`app.py::agent`, found: the file is imported as a script would import it, and its errors are told as its own."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ..terminal import plain
from .errors import CliError

if TYPE_CHECKING:
    from ..runnables.base import Runnable

FORM = "app.py::agent (a file and a name in it), or package.module::agent"
_OURS = str(Path(__file__).parents[1]) + os.sep


class Target:
    """Where a runnable is: a file or a module, and a name in it or `None`."""

    def __init__(self, text: str) -> None:
        place, colons, name = text.partition("::")
        if not place or (colons and not name.isidentifier()):
            raise CliError(f"{text!r} names no runnable", hint=f"Give {FORM}.")
        self.place, self.name = place, name or None
        self.is_file = place.endswith(".py") or os.sep in place
        if not self.is_file and not all(part.isidentifier() for part in place.split(".")):
            raise CliError(f"{text!r} names no runnable", hint=f"Give {FORM}.")
        if self.is_file and self.is_here():
            self.place = os.path.relpath(place)

    def __str__(self) -> str:
        return f"{self.place}::{self.name}" if self.name else self.place

    def is_here(self) -> bool:
        """Whether it lies in the working folder: only such a place is taken from a record, which others may write."""
        here = Path.cwd().resolve()
        if self.is_file:
            paths = [Path(self.place)]
        else:
            path = Path(*self.place.split("."))
            paths = [path.with_suffix(".py"), path / "__init__.py"]
        return any(path.is_file() and here in path.resolve().parents for path in paths)


def load(target: Target) -> Runnable:
    """Import it, and give the runnable; raises `CliError`. `target` gets its name where it had none."""
    return _pick(target, _import(target))


def load_all(target: Target) -> list[Runnable]:
    """Import it, and give all runnables at its top level; raises `CliError`."""
    found = list({id(value): value for _, value in _runnables(_import(target))}.values())
    if not found:
        raise CliError(f"{target.place} has no runnable (an Agent or a Tool)", hint="Give it one at the top level.")
    names = [runnable.name for runnable in found]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise CliError(f"{target.place} has two runnables named {twice!r}", hint="Give one another name=.")
    return found


def _import(target: Target) -> ModuleType:
    return _import_file(Path(target.place)) if target.is_file else _import_module(target.place)


def _import_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise CliError(f"there is no file {path}", hint=f"Give {FORM}.")
    sys.path.insert(0, str(path.resolve().parent))
    name = path.stem
    if name in sys.modules or not name.isidentifier():
        name = f"_timbal_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path.resolve())
    if spec is None or spec.loader is None:
        raise CliError(f"{path} is no Python file", hint=f"Give {FORM}.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise _broken(str(path), error) from None
    return module


def _import_module(name: str) -> ModuleType:
    sys.path.insert(0, os.getcwd())
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(error.name + ".")):
            raise CliError(f"there is no module {name}", hint=f"Give {FORM}.") from None
        raise _broken(name, error) from None
    except (Exception, SystemExit) as error:
        raise _broken(name, error) from None


def _broken(place: str, error: BaseException) -> CliError:
    if isinstance(error, SystemExit):
        return CliError(f"{place} ended the process while it was imported: sys.exit({error.code!r})")
    hint = ""
    if isinstance(error, ImportError) and "relative import" in str(error):
        hint = "A file in a package is named as a module: package.module::agent."
    return CliError(f"{place} can't be imported", details=own_traceback(error), hint=hint)


def own_traceback(error: BaseException) -> str:
    """The traceback without the lines of this library and of the import machinery."""
    told = traceback.TracebackException.from_exception(error)
    _strip(told, set())
    return plain("".join(told.format())).rstrip()


def has_own_lines(error: BaseException) -> bool:
    """Whether any line of its traceback is the user's."""
    return any(not _is_ours(frame.filename) for frame in traceback.extract_tb(error.__traceback__))


def _strip(told: traceback.TracebackException, seen: set[int]) -> None:
    if id(told) in seen:
        return
    seen.add(id(told))
    told.stack[:] = [frame for frame in told.stack if not _is_ours(frame.filename)]
    for other in (told.__cause__, told.__context__, *(getattr(told, "exceptions", None) or ())):
        if other is not None:
            _strip(other, seen)


def _is_ours(filename: str) -> bool:
    return filename.startswith((_OURS, "<frozen importlib", "<frozen runpy"))


def _pick(target: Target, module: ModuleType) -> Runnable:
    found = dict(_runnables(module))
    if target.name is None:
        if len(found) != 1:
            what = f"{len(found)} runnables: {', '.join(found)}" if found else "no runnable (an Agent or a Tool)"
            hint = f"Say which: {target.place}::{next(iter(found))}" if found else "Give it one at the top level."
            raise CliError(f"{target.place} has {what}", hint=hint)
        target.name = next(iter(found))
    if target.name in found:
        runnable: Runnable = found[target.name]
        return runnable
    there = f"The runnables there: {', '.join(found)}." if found else "There is no Agent or Tool at its top level."
    if not hasattr(module, target.name):
        raise CliError(f"{target.place} has no {target.name!r}", hint=there)
    thing = type(getattr(module, target.name)).__name__
    wrap = f" A function becomes one with Tool({target.name})." if thing == "function" else ""
    raise CliError(f"{target} is of type {thing}, and no Agent or Tool.{wrap}", hint=there)


def _runnables(module: ModuleType) -> Iterator[tuple[str, Any]]:
    from ..runnables.base import Runnable

    for name, value in vars(module).items():
        if isinstance(value, Runnable) and not name.startswith("_"):
            yield name, value
