"""What the runtime asks of the world: a store, a model, the time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple, Protocol

from .core.codec import encode
from .core.facts import Ended, Opened, Settled
from .types.message import Message

Clock = Callable[[], int]
"""The time in Unix milliseconds."""


# -- stores ------------------------------------------------------------------------------------------------------------


class QuestionRow(NamedTuple):
    """A question as the store keeps it: `name` is its interaction id, `body` its `Asked` fact, encoded."""

    name: str
    kind: str
    asked_at: int
    due_at: int | None
    body: bytes


class Holder(Protocol):
    """A run that holds a lease."""

    def alive(self) -> bool:
        """Whether it is still there; the lease of one that has gone is not kept alive."""
        ...

    def stop_asked(self, reason: str) -> None:
        """Somebody asks it to stop, with a reason or ""; from any thread."""
        ...


class _Gone:
    def alive(self) -> bool:
        return False

    def stop_asked(self, reason: str) -> None:
        pass


#: The holder of a lease whose run has come to its end.
GONE: Holder = _Gone()


class Lease:
    """The right to write to one execution. `ref` is the store's own name of it, `fence` grows with each holder."""

    __slots__ = ("fence", "holder", "ref")

    def __init__(self, ref: Any = None, fence: int = 1) -> None:
        self.ref = ref
        self.fence = fence
        self.holder: Holder | None = None

    def alive(self) -> bool:
        return self.holder is None or self.holder.alive()


class Settlement(NamedTuple):
    """One question settled: `body` is its `Settled` fact, encoded."""

    id: str
    state: str
    body: bytes

    @classmethod
    def of(cls, fact: Settled) -> Settlement:
        return cls(fact.id, fact.state, encode((fact,)))


class RunRow(NamedTuple):
    """A run that goes on with an execution."""

    run_id: str
    parent_run_id: str
    at: int


class Stored(NamedTuple):
    """An execution as it is kept. `records` are encoded facts in order; `held`: some run holds its lease right now."""

    ref: Any
    run_id: str
    newest_run_id: str
    held: bool
    fence: int
    records: list[bytes | str]


class Due(NamedTuple):
    """An execution that waits for a run, by its first one.

    `attempts`: how many runs in a row got its lease after another, and none of them gave it back.
    """

    run_id: str
    runnable: str
    attempts: int


#: The future of a commit that is durable already, and that nobody asked to stop: what a store in memory gives.
COMMITTED: Future[str | None] = Future()
COMMITTED.set_result(None)


class Settling(NamedTuple):
    """What a settle came to: `conflict` means that nothing was changed, load again; else a lease, if it was free."""

    conflict: bool
    lease: Lease | None


class Store(Protocol):
    """Keeps executions. Every method may be called from any thread; futures resolve when the work is durable.

    All raise `StoreError` through their future when the store can't do it, and then nothing of the call is kept.
    """

    def commit(
        self,
        lease: Lease,
        record: bytes = b"",
        opened: Opened | None = None,
        questions: Sequence[QuestionRow] = (),
        ended: Ended | None = None,
        settlements: Sequence[Settlement] = (),
    ) -> Future[str | None]:
        """Keep it all or nothing, in the order of submission; gives a reason when somebody asked the run to stop.

        `record` is encoded facts, or empty. `opened` and `ended`, which are in the record too, are what the store
        indexes: the first begins an execution (`RunExists` where its run id is in use), the other gives the lease back.
        `settlements` are of questions that an end leaves behind; one that was settled meanwhile stays as it is.
        Fails with `LeaseLost` when the lease does not hold any more.
        """
        ...

    def load(self, run_id: str) -> Future[Stored | None]:
        """The execution that this run belongs to."""
        ...

    def history(self, run_id: str) -> Future[list[list[bytes | str]]]:
        """The records of the executions of the conversation up to this run's, oldest first, in one query."""
        ...

    def settle(
        self, ref: Any, settlements: Sequence[Settlement], run: RunRow | None, stop: str | None = None
    ) -> Future[Settling]:
        """Settle all or none; with a `run`, enter it and take the lease if it is free; `stop` asks a holder to stop."""
        ...

    def acquire(self, ref: Any, run: RunRow) -> Future[Lease | None]:
        """Take the lease if it is free, for a run that is entered with it when it is not there yet."""
        ...

    def release(self, lease: Lease) -> Future[None]:
        """Give the lease back without an end: the execution is left to others, and this attempt does not count."""
        ...

    def due(self, runnables: Sequence[str], limit: int) -> Future[list[Due]]:
        """Executions of these runnables that wait for a run and not for a person, those that have waited longest first.

        That is: nobody shows signs of life for their lease, a question was settled that no run has used, or one has
        expired. Those that are parked are left out.
        """
        ...

    def park(self, run_id: str) -> Future[None]:
        """Take the execution of this run out of `due`, until a run takes it up by hand; its status is `parked`."""
        ...

    def append(self, run_id: str, record: bytes) -> Future[list[bytes | str]]:
        """Add facts to the execution of this run, finished or not, beside whoever holds its lease.

        Gives its records as they are then: what was appended before is before it, for everybody. Fails with
        `RunNotFound` where there is no such run.
        """
        ...

    def wait(self, ref: Any) -> Future[None]:
        """Resolves when the execution may have changed (a lease given back, an end), or after a while."""
        ...

    def find(self, ids: Sequence[str], runnable: str) -> Future[list[str]]:
        """Runs of this runnable in which one of these ids is pending."""
        ...


# -- models ------------------------------------------------------------------------------------------------------------


class ToolSpec(Protocol):
    """What a model is told of a tool."""

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def input_schema(self) -> dict[str, Any]: ...


class ModelRequest(NamedTuple):
    """One question to a model."""

    messages: Sequence[Message]
    system_prompt: str | None
    tools: Sequence[ToolSpec]
    params: dict[str, Any]
    output_schema: dict[str, Any] | None


class Reply(NamedTuple):
    """A model's whole answer. `usage`: `{"input_tokens": n, "output_tokens": n, ...}`."""

    message: Message
    usage: dict[str, int]


class Model(Protocol):
    """Something that answers. `name` is `<provider>/<model>`."""

    @property
    def name(self) -> str: ...

    async def complete(self, request: ModelRequest, emit: Callable[[dict[str, Any]], None]) -> Reply:
        """The whole reply; what streams in on the way goes to `emit` as delta items (contract section 3)."""
        ...
