"""A function as something that can be run, by people and by models."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Generator, Iterator, Mapping
from contextvars import copy_context
from functools import cached_property
from threading import get_ident
from typing import TYPE_CHECKING, Any, ClassVar, Generic, ParamSpec, TypeVar, Unpack, overload

from ..core.outputs import dump_output, load_output
from ..runtime.call import Outcome, failed
from ..runtime.gate import GateOptions, gate_of
from ..runtime.schema import Params, description_of, return_codec
from ..runtime.threads import handlers
from ..stores.waiting import wait
from ..types.approval import Principal
from ..types.events import OutputEvent
from ..types.run_status import SUCCESS
from .base import Runnable

if TYPE_CHECKING:
    from ..ports import Store
    from ..runtime.frame import Frame
    from ..runtime.handle import RunHandle

P = ParamSpec("P")
R = TypeVar("R")


class ToolOptions(GateOptions, total=False):
    """What a tool takes besides its handler, name and description; see `Tool`."""

    blocking: bool
    timeout: float | None
    default_params: Mapping[str, Any] | None
    pre_hook: Callable[..., Any] | None
    post_hook: Callable[..., Any] | None
    store: Store | str | None


class Tool(Runnable, Generic[P, R]):
    """A handler with a name, a checked input, and runs that can pause.

    `handler` is a function, async function, generator or async generator; a plain function runs in a worker thread
    (`blocking=False`: on the loop's own, for functions that return at once). `timeout` is in seconds. `default_params`
    fills gaps of the input, by values or zero-argument callables. `pre_hook(input)` and `post_hook(input, output)` are
    called around each execution of the handler, with those of these arguments that they take; `input` is read-only.
    `store` is a store object or URL. `requires_approval` and the `approval_*` parameters put a gate before all of this:
    see `GateOptions`. Contract sections 5 and 9.

    Raises `ValueError` for a name or a parameter that can't be.
    """

    kind: ClassVar[str] = "Tool"

    @overload
    def __init__(
        self: Tool[P, R],
        handler: Callable[P, Coroutine[Any, Any, R]],
        name: str | None = ...,
        description: str | None = ...,
        **options: Unpack[ToolOptions],
    ) -> None: ...
    @overload
    def __init__(
        self: Tool[P, Any],
        handler: Callable[P, Generator[Any, Any, Any] | AsyncGenerator[Any, Any] | Iterator[Any] | AsyncIterator[Any]],
        name: str | None = ...,
        description: str | None = ...,
        **options: Unpack[ToolOptions],
    ) -> None: ...
    @overload
    def __init__(
        self: Tool[P, R],
        handler: Callable[P, R],
        name: str | None = ...,
        description: str | None = ...,
        **options: Unpack[ToolOptions],
    ) -> None: ...
    def __init__(
        self,
        handler: Callable[..., Any],
        name: str | None = None,
        description: str | None = None,
        blocking: bool = True,
        timeout: float | None = None,
        default_params: Mapping[str, Any] | None = None,
        pre_hook: Callable[..., Any] | None = None,
        post_hook: Callable[..., Any] | None = None,
        store: Store | str | None = None,
        **gate: Unpack[GateOptions],
    ) -> None:
        if not callable(handler):
            raise TypeError(f"Tool(handler=) is a function, not {type(handler).__name__}")
        name = name if name is not None else getattr(handler, "__name__", "")
        super().__init__(name, description, timeout, default_params, pre_hook, post_hook, store)
        self.handler: Callable[..., Any] = handler
        self._params = Params(handler, f"Tool {name!r}")
        unknown = self._filled - set(self._params.names)
        if unknown:
            raise ValueError(f"Tool {name!r}: default_params has {sorted(unknown)}, which its handler does not take")
        if gate:
            self._gate = gate_of(f"Tool {name!r}", self._params.names, gate)
        self._run_handler = _way_to_run(handler, blocking and not getattr(handler, "runs_inline", False))
        self._codec = return_codec(handler) if not _is_generator(handler) else None

    @overload
    def __call__(self, *args: P.args, **params: P.kwargs) -> RunHandle: ...
    @overload
    def __call__(
        self,
        *,
        parent_id: str | None = ...,
        resume: Mapping[str, Any] | None = ...,
        run_id: str | None = ...,
        labels: Mapping[str, str] | None = ...,
        by: Principal | None = ...,
        **params: Any,
    ) -> RunHandle: ...
    def __call__(self, *args: Any, **params: Any) -> RunHandle:
        """A run with this input. Also: `parent_id`, `resume`, `run_id`, `labels`, `by` (contract section 2)."""
        if args:
            raise TypeError(f"{self.name} takes its arguments by name: {', '.join(self._params.names)}")
        return self._call(params)

    @overload
    def run_sync(self, *args: P.args, **params: P.kwargs) -> OutputEvent: ...
    @overload
    def run_sync(
        self,
        *,
        parent_id: str | None = ...,
        resume: Mapping[str, Any] | None = ...,
        run_id: str | None = ...,
        labels: Mapping[str, str] | None = ...,
        by: Principal | None = ...,
        **params: Any,
    ) -> OutputEvent: ...
    def run_sync(self, *args: Any, **params: Any) -> OutputEvent:
        """Run to the end or the pause, for code that is not async."""
        return self._run_sync(self(*args, **params))

    @cached_property
    def description(self) -> str:
        """What a model reads of it."""
        return self._description if self._description is not None else description_of(self.handler)

    @cached_property
    def input_schema(self) -> dict[str, Any]:
        """JSON Schema of the arguments, as a model is given it."""
        schema = self._params.json_schema
        for name in self._filled:
            if name in schema.get("required", ()):
                schema["required"].remove(name)
        return schema

    def _conclude(self, frame: Frame, value: Any) -> Outcome:
        if frame.run.ledger.operations:
            frame.check_complete()
        try:
            if self._codec is None:
                dumped, form = dump_output(value, "its output")
                value = dumped if form is None else load_output(dumped, form)
            else:
                dumped, form = self._codec.dump(value), None
                value = self._codec.load(dumped)
        except Exception as problem:
            return failed(frame, TypeError(f"{self.name} returned what can't be kept: {problem}"), None)
        return Outcome(SUCCESS, value, dumped, form)

    def _revive(self, value: Any, form: str | None) -> Any:
        return self._codec.load(value) if self._codec is not None and form is None and value is not None else value

    async def _handle(self, frame: Frame, values: dict[str, Any]) -> Any:
        if self._pre_hook is None and self._post_hook is None:
            return await self._run_handler(frame, self.handler, values)
        shown = self._for_hooks(frame, values)
        await self._hook(self._pre_hook, "pre_hook", input=shown)
        value = await self._run_handler(frame, self.handler, values)
        if not frame.asked:
            await self._hook(self._post_hook, "post_hook", input=shown, output=value)
        return value


@overload
def as_tool(handler: Callable[P, R]) -> Tool[P, R]: ...
@overload
def as_tool(handler: Any) -> Any: ...
def as_tool(handler: Any) -> Any:
    """A function as a tool; what can be run already is given back."""
    return handler if isinstance(handler, Runnable) else Tool(handler)


Way = Callable[["Frame", Callable[..., Any], dict[str, Any]], Awaitable[Any]]


def _is_generator(handler: Callable[..., Any]) -> bool:
    target = _target(handler)
    return inspect.isgeneratorfunction(target) or inspect.isasyncgenfunction(target)


def _target(handler: Callable[..., Any]) -> Callable[..., Any]:
    from functools import partial

    while isinstance(handler, partial):
        handler = handler.func
    return handler if inspect.isroutine(handler) or inspect.isclass(handler) else type(handler).__call__


def _way_to_run(handler: Callable[..., Any], blocking: bool) -> Way:
    target = _target(handler)
    if inspect.iscoroutinefunction(target):
        return _run_async
    if inspect.isasyncgenfunction(target):
        return _run_async_generator
    if inspect.isgeneratorfunction(target):
        return _run_generator if blocking else _run_generator_inline
    return _run_in_thread if blocking else _run_inline


async def _run_async(frame: Frame, handler: Callable[..., Any], values: dict[str, Any]) -> Any:
    return await handler(**values)


async def _run_inline(frame: Frame, handler: Callable[..., Any], values: dict[str, Any]) -> Any:
    value = handler(**values)
    return await value if inspect.isawaitable(value) else value


async def _run_in_thread(frame: Frame, handler: Callable[..., Any], values: dict[str, Any]) -> Any:
    value = await _in_thread(frame, lambda: handler(**values))
    return await value if inspect.isawaitable(value) else value


async def _run_async_generator(frame: Frame, handler: Callable[..., Any], values: dict[str, Any]) -> Any:
    pieces = _Pieces(frame)
    async for piece in handler(**values):
        pieces.add(piece)
    return pieces.output()


async def _run_generator(frame: Frame, handler: Callable[..., Any], values: dict[str, Any]) -> Any:
    return await _in_thread(frame, lambda: _exhaust(frame, handler(**values)))


async def _run_generator_inline(frame: Frame, handler: Callable[..., Any], values: dict[str, Any]) -> Any:
    return _exhaust(frame, handler(**values))


def _exhaust(frame: Frame, generator: Iterator[Any]) -> Any:
    pieces = _Pieces(frame)
    for piece in generator:
        pieces.add(piece)
    return pieces.output()


async def _in_thread(frame: Frame, work: Callable[[], Any]) -> Any:
    context = copy_context()

    def run() -> Any:
        frame.home = get_ident()
        return work()

    return await wait(handlers.submit(lambda: context.run(run)))


class _Pieces:
    """What a generator yields: told as it comes, and joined or listed as its output."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame
        self._pieces: list[Any] = []

    def add(self, piece: Any) -> None:
        self._pieces.append(piece)
        if isinstance(piece, str):
            self._frame.delta({"type": "text_delta", "text_delta": piece})
        else:
            self._frame.emit(piece)

    def output(self) -> Any:
        texts = self._pieces
        return "".join(texts) if all(isinstance(piece, str) for piece in texts) else list(texts)
