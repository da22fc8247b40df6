"""Where code is running: the one ContextVar, and what a handler may ask of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta
from functools import update_wrapper
from inspect import iscoroutinefunction
from typing import Any, Literal, NamedTuple, ParamSpec, Protocol, TypeVar, overload
from uuid import uuid4

from .types.approval import Default

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

OnExpiry = Literal["cancel", "raise"] | Default


class Pause(BaseException):
    """The signal of an unanswered question. A handler that catches it is paused all the same."""


class Halt(BaseException):
    """The signal that this run is over for its handlers: cancelled, refused, or its store or lease was lost."""


class Ask(NamedTuple):
    """What `suspend()` was given."""

    payload: Any
    kind: str
    response_schema: dict[str, Any] | None
    response_type: Any
    expires_in: float | timedelta | None
    on_expiry: OnExpiry
    audience: list[str] | None
    key: str | None


class Step(NamedTuple):
    """One call of a `@step` function."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    key: Callable[..., str] | None


class RunContext(Protocol):
    """The call that is running, as its handler may know it."""

    @property
    def run_id(self) -> str: ...
    @property
    def parent_run_id(self) -> str | None: ...
    @property
    def path(self) -> str: ...
    @property
    def call_id(self) -> str: ...
    @property
    def tool_call_id(self) -> str | None: ...
    @property
    def labels(self) -> dict[str, str]: ...
    def emit(self, data: Any) -> None:
        """Send `data` (JSON) to whoever listens, as a `custom` delta; a re-execution does not send it again."""
        ...


class Frame(RunContext, Protocol):
    """One execution of a handler: where its operations go."""

    def suspend(self, ask: Ask) -> Any: ...
    def step(self, step: Step) -> Any: ...
    async def step_async(self, step: Step) -> Any: ...
    def idempotency_key(self) -> str: ...


class Scope:
    """A task or thread in which a handler's code runs; `pausing` once a question in it stays unanswered."""

    home: object
    pausing: bool
    parent_scope: Scope | None

    @property
    def frame(self) -> Any:
        """The call whose handler's code it is; the handler's own task is the frame itself."""
        return self


class Branch(Scope):
    """A task or thread that a handler started."""

    def __init__(self, frame: Any, parent: Scope, home: object) -> None:
        self._frame = frame
        self.parent_scope = parent
        self.home = home
        self.pausing = False

    @property
    def frame(self) -> Any:
        return self._frame


class Place(NamedTuple):
    """Code of the user's that is no handler: a hook, a default, a system prompt. Nothing may pause there."""

    name: str


current: ContextVar[Scope | Place | None] = ContextVar("timbal", default=None)


def home() -> object:
    """The running task, or where there is none the thread."""
    try:
        task = asyncio.current_task()
    except RuntimeError:
        task = None
    return task if task is not None else _thread()


def _thread() -> int:
    from threading import get_ident

    return get_ident()


def inline(function: Callable[P, R]) -> Callable[P, R]:
    """Mark a plain function as one that returns at once: as a tool it runs on the loop's thread, not in a worker."""
    function.runs_inline = True  # type: ignore[attr-defined]
    return function


@contextmanager
def place(name: str) -> Iterator[None]:
    """While it lasts, operations raise an error that says `name`."""
    token = current.set(Place(name))
    try:
        yield
    finally:
        current.reset(token)


def _frame(what: str) -> Frame:
    scope = current.get()
    if scope is None:
        raise RuntimeError(
            f"{what} was called outside a run: call it in the handler of a Tool that is being run "
            "(threads that you start yourself don't belong to the run; asyncio.to_thread does)"
        )
    if isinstance(scope, Place):
        raise RuntimeError(f"{what} can't be used in {scope.name}; use it in a handler")
    frame: Frame = scope.frame
    return frame


def get_run_context() -> RunContext:
    """The call whose handler is running; raises `RuntimeError` outside a run."""
    return _frame("get_run_context()")


@overload
def suspend(
    payload: Any,
    *,
    kind: str = ...,
    response_schema: dict[str, Any] | None = ...,
    response_type: type[T],
    expires_in: float | timedelta | None = ...,
    on_expiry: OnExpiry = ...,
    audience: list[str] | None = ...,
    key: str | None = ...,
) -> T: ...
@overload
def suspend(
    payload: Any,
    *,
    kind: str = ...,
    response_schema: dict[str, Any] | None = ...,
    response_type: Any = ...,
    expires_in: float | timedelta | None = ...,
    on_expiry: OnExpiry = ...,
    audience: list[str] | None = ...,
    key: str | None = ...,
) -> Any: ...
def suspend(
    payload: Any,
    *,
    kind: str = "suspend",
    response_schema: dict[str, Any] | None = None,
    response_type: Any = None,
    expires_in: float | timedelta | None = None,
    on_expiry: OnExpiry = "cancel",
    audience: list[str] | None = None,
    key: str | None = None,
) -> Any:
    """Stop the run and ask a person; when the answer is there, the handler runs again and this returns it.

    `payload` is a dict of JSON, what the person is shown; `kind` tells a front end how. `response_schema` is advice
    for the client; `response_type` (anything pydantic knows) is enforced: the answer arrives as that type.
    `expires_in` seconds from now the question is over: `on_expiry="cancel"` ends the execution, `"raise"` raises
    `InteractionExpired` here, `Default(value)` answers. `audience` says who may answer, as in `["role:finance"]`.
    `key` names the question where a handler asks several at once in tasks of its own.

    Raises `TypeError` for a payload that is no JSON and `RuntimeError` where nothing can pause. Contract section 4.
    """
    ask = Ask(payload, kind, response_schema, response_type, expires_in, on_expiry, audience, key)
    return _frame("suspend()").suspend(ask)


def idempotency_key() -> str:
    """32 hex digits that stay the same over every attempt of the running step (or handler): for payment APIs."""
    if current.get() is None:
        return uuid4().hex
    return _frame("idempotency_key()").idempotency_key()


@overload
def step(function: Callable[P, R], /) -> Callable[P, R]: ...
@overload
def step(*, key: Callable[..., str] | None = ...) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
def step(function: Callable[..., Any] | None = None, /, *, key: Callable[..., str] | None = None) -> Any:
    """Record a function's result: once it is recorded, the function never runs again in this execution.

    As a decorator, or `step(fn)(...)`; for sync and async functions, called inside a handler. What it returns must have
    a JSON form, and comes back through its return annotation. `key(*args)` names a call where equal ones run at once in
    tasks. Outside a run it is the plain function. Contract section 4.
    """
    if function is None:
        return lambda f: step(f) if key is None else _step(f, key)
    return _step(function, None)


def _step(function: Callable[..., Any], key: Callable[..., str] | None) -> Callable[..., Any]:
    if not callable(function):
        raise TypeError(f"step() takes a function, not {type(function).__name__}")

    def perform(*args: Any, **kwargs: Any) -> Any:
        if current.get() is None:
            return function(*args, **kwargs)
        return _frame("a @step").step(Step(function, args, kwargs, key))

    async def perform_async(*args: Any, **kwargs: Any) -> Any:
        if current.get() is None:
            return await function(*args, **kwargs)
        return await _frame("a @step").step_async(Step(function, args, kwargs, key))

    wrapper: Callable[..., Awaitable[Any]] | Callable[..., Any]
    wrapper = perform_async if iscoroutinefunction(function) else perform
    return update_wrapper(wrapper, function)
