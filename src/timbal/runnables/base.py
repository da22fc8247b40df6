"""What tools and agents have in common: a name, an input, a store, and how they are called."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextvars import copy_context
from copy import copy
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeVar

from ..runtime.gate import Gate, Policy
from ..runtime.handle import Given, RunHandle
from ..runtime.schema import RESERVED, Params
from ..runtime.threads import handlers
from ..state import place
from ..types.approval import Principal
from ..types.events import OutputEvent
from ..types.json_value import json_value

if TYPE_CHECKING:
    from ..ports import Store
    from ..runtime.call import Outcome
    from ..runtime.frame import Frame

T = TypeVar("T")

OnNewMessage = Literal["refuse", "supersede"]

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_RUN_ID = re.compile(r"[0-9a-f]{32}")


class Runnable:
    """A tool or an agent. Calling it gives a `RunHandle`; nothing happens until that is iterated or awaited."""

    kind: ClassVar[str]
    #: What a new message does to a paused run; `None`: supersedes it, unless an audience was asked.
    on_new_message: OnNewMessage | None = None
    #: What stands before the handler, where something does.
    _gate: Gate | None = None

    def __init__(
        self,
        name: str,
        description: str | None,
        timeout: float | None,
        default_params: Mapping[str, Any] | None,
        pre_hook: Callable[..., Any] | None,
        post_hook: Callable[..., Any] | None,
        store: Store | str | None,
    ) -> None:
        if not _NAME.fullmatch(name) or name == "llm":
            what = "letters, digits, _ and -, at most 64, no digit first, and not 'llm'"
            raise ValueError(f"{name!r} can't be the name of a {self.kind}: {what}")
        if timeout is not None and timeout <= 0:
            raise ValueError(f"{self.kind} {name!r}: timeout is a number of seconds above 0, not {timeout!r}")
        self.name = name
        self.timeout = timeout
        self._description = description
        self._defaults = dict(default_params or {})
        self._filled = frozenset(self._defaults)
        self._pre_hook, self._post_hook = pre_hook, post_hook
        self._store: Store | None = None
        self._store_url: str | None = None
        if isinstance(store, str):
            from ..stores import check_url

            self._store_url = check_url(store)
        elif store is not None:
            from ..stores import open_store

            self._store = open_store(store)
        self._params: Params
        if (taken := self._filled & RESERVED) or not all(isinstance(n, str) for n in self._defaults):
            raise ValueError(
                f"{self.kind} {name!r}: default_params can't hold {sorted(taken)}; these names belong to the call"
            )

    @cached_property
    def description(self) -> str:
        """What a model reads of it."""
        return self._description or ""

    def preload(self) -> None:
        """Begin to load what the first run will need, in the background."""

    # -- calling -----------------------------------------------------------------------------------------------------

    def _call(self, arguments: dict[str, Any]) -> RunHandle:
        if RESERVED.isdisjoint(arguments):
            return RunHandle(self, arguments)
        parent_id = arguments.pop("parent_id", None)
        resume = arguments.pop("resume", None)
        run_id = arguments.pop("run_id", None)
        labels = arguments.pop("labels", None)
        by = arguments.pop("by", None)
        if resume is not None and type(resume) is not dict and not isinstance(resume, Mapping):
            raise TypeError(f"resume is a dict {{interaction_id: value}}, not {type(resume).__name__}")
        if parent_id is not None and not isinstance(parent_id, str):
            raise TypeError(f"parent_id is the id of a run, a str, not {type(parent_id).__name__}")
        if run_id is not None and not (isinstance(run_id, str) and _RUN_ID.fullmatch(run_id)):
            raise ValueError(f"run_id is 32 lower-case hex digits (uuid4().hex), not {run_id!r}")
        if labels is not None and not _are_labels(labels):
            raise TypeError(f"labels is a dict of strs, not {labels!r}")
        if by is not None and not isinstance(by, Principal):
            raise TypeError(f"by is a Principal(sub, roles), not {type(by).__name__}")
        return RunHandle(self, arguments, Given(parent_id, resume, run_id, dict(labels) if labels else None, by))

    def _run_sync(self, handle: RunHandle) -> OutputEvent:
        handle.claim()
        return run_to_end(handle.collect())

    async def cancel(self, run_id: str, reason: str | None = None, *, by: Principal | None = None) -> OutputEvent:
        """End the execution that `run_id` belongs to, `cancelled / cancelled`: running or paused, here or elsewhere.

        `by` is recorded. Gives the OUTPUT it ended with; one that had ended before stays as it was.
        """
        from ..runtime.drive import cancel

        return await cancel(self, run_id, reason, by)

    def _and_if(self, policy: Policy, what: str) -> Self:
        """The same, with a gate that also asks where this policy says so."""
        guarded = copy(self)
        gate = self._gate or Gate(f"{self.kind} {self.name!r}", self._input_names, {})
        guarded._gate = gate.and_if(policy, what)
        return guarded

    @property
    def _input_names(self) -> Sequence[str]:
        return self._params.names

    # -- for the runtime ---------------------------------------------------------------------------------------------

    def _store_in_use(self) -> Store:
        if self._store is None:
            from ..stores import default_store, open_store

            self._store = open_store(self._store_url) if self._store_url is not None else default_store()
        return self._store

    def _prepare(self, arguments: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """The input as the handler takes it and as JSON, gaps filled; raises `InvalidInput`."""
        if self._defaults:
            arguments = {**self._fill(arguments), **arguments}
        return self._params.prepare(arguments)

    def _restore(self, stored: dict[str, Any]) -> dict[str, Any]:
        """The input as the handler takes it, from what is stored; raises `InvalidInput`."""
        return self._params.validate(stored, stored=True)

    def _reread(self, recorded: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """What a gate recorded as the handler takes it, in containers of its own if `recorded` is, and as JSON.

        Gaps stay: what would run is what was shown. Raises `InvalidInput`.
        """
        return self._params.prepare(recorded, stored=True)

    def _for_hooks(self, frame: Frame, values: dict[str, Any]) -> Mapping[str, Any]:
        """The input as hooks see it; behind a gate it is a copy all the way down: what was approved is what runs."""
        if frame.effective is not None:
            values = self._reread(json_value(frame.effective))[0]
        return MappingProxyType(values)

    def _fill(self, given: dict[str, Any]) -> dict[str, Any]:
        filled = {}
        for name, default in self._defaults.items():
            if name in given:
                continue
            if callable(default):
                with place(f"default_params[{name!r}] of {self.name}"):
                    default = default()
            filled[name] = default
        return filled

    @property
    def input_schema(self) -> dict[str, Any]:
        """JSON Schema of the input."""
        raise NotImplementedError

    def _conclude(self, frame: Frame, value: Any) -> Outcome:
        """How a call came out whose work gave `value`."""
        raise NotImplementedError

    def _revive(self, value: Any, form: str | None) -> Any:
        """A recorded output as it was given first."""
        return value

    async def _handle(self, frame: Frame, values: dict[str, Any]) -> Any:
        """Do the work."""
        raise NotImplementedError

    async def _hook(self, hook: Callable[..., Any] | None, what: str, **given: Any) -> None:
        """Call a hook with those of the `given` that it has parameters for."""
        if hook is None:
            return
        wanted = inspect.signature(hook).parameters
        with place(f"the {what} of {self.name}"):
            result = hook(**{n: v for n, v in given.items() if n in wanted})
            if inspect.isawaitable(result):
                await result


def run_to_end(work: Coroutine[Any, Any, T]) -> T:
    """The result of async work, for code that is not: where a loop is running, by a thread of its own."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    context = copy_context()
    return handlers.submit(lambda: context.run(asyncio.run, work)).result()


def _are_labels(labels: Any) -> bool:
    """Whether they are strs by name, of text that can be kept; raises `TypeError` or `ValueError` where it can't."""
    if not isinstance(labels, Mapping) or not all(isinstance(v, str) for v in labels.values()):
        return False
    json_value(dict(labels), "labels")
    if any("\0" in text for pair in labels.items() for text in pair):
        raise ValueError("labels can't hold NUL characters: not every store can keep them")
    return True
