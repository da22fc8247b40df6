"""What can happen to an execution: a closed sum of small immutable facts.

Values inside facts are JSON; times are Unix milliseconds. `key` is a call's key (see `ids`). Fields have defaults
where most facts leave them out, and defaults take no room in a record (see `codec`).
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias

from ..types.run_status import PAUSED

#: An operation's kind, as far as recognition is concerned.
OpKind = Literal["model", "step", "Tool", "Agent", "Workflow", "suspend"]


class Opened(NamedTuple):
    """The execution began, with its first run."""

    run_id: str
    call_id: str
    name: str
    kind: str
    input: dict[str, Any]
    at: int
    parent_run_id: str | None = None
    labels: dict[str, str] | None = None
    by: dict[str, Any] | None = None


class Resumed(NamedTuple):
    """Another run went on with it."""

    run_id: str
    parent_run_id: str
    at: int


class Called(NamedTuple):
    """A call is under way: written with the first thing that is recorded inside it, or when it pauses."""

    key: str
    call_id: str
    name: str
    kind: str
    at: int
    streamed: int = 0


class Returned(NamedTuple):
    """A call ended, and this is its outcome for good (unless `Reopened`)."""

    key: str
    call_id: str
    name: str
    kind: str
    t0: int
    t1: int
    output: Any = None
    form: str | None = None
    error: dict[str, Any] | None = None
    reason: str | None = None
    usage: dict[str, int] | None = None


class Reopened(NamedTuple):
    """A recorded failure turned out to have ended the handler: the operation is made again next time."""

    key: str


class Noted(NamedTuple):
    """The agent itself said something to its model, such as what was wrong with the final answer."""

    key: str
    text: str


class Asked(NamedTuple):
    """A question was opened by `suspend()` in the call `call_id`. `key` is the operation's."""

    key: str
    id: str
    run_id: str
    path: str
    call_id: str
    name: str
    runnable: str
    payload: dict[str, Any]
    at: int
    parent_run_id: str | None = None
    parent_call_id: str | None = None
    runnable_type: str = "Tool"
    tool_call_id: str | None = None
    schema: dict[str, Any] | None = None
    enforced: bool = False
    expires_at: int | None = None
    on_expiry: Any = "cancel"
    audience: list[str] | None = None
    nth: int = 0
    round: int = 0


class Gated(NamedTuple):
    """A gate stopped the call `call_id` before any of its code ran, and asks a person.

    `payload` is the call's input as anybody may see it, `input` the real one where that differs. `call` names the tool
    and the arguments it was called with, `digest` what was shown and would run. `redacts`: the keys whose values are
    hidden; `"*"` among them: the values of any may be.
    """

    key: str
    id: str
    run_id: str
    path: str
    call_id: str
    name: str
    runnable: str
    payload: dict[str, Any]
    at: int
    parent_run_id: str | None = None
    parent_call_id: str | None = None
    runnable_type: str = "Tool"
    tool_call_id: str | None = None
    schema: dict[str, Any] | None = None
    expires_at: int | None = None
    audience: list[str] | None = None
    nth: int = 0
    round: int = 0
    input: dict[str, Any] | None = None
    digest: str = ""
    call: str = ""
    prompt: str | None = None
    description: str | None = None
    ui: dict[str, Any] | None = None
    preview: Any = None
    metadata: dict[str, Any] | None = None
    redacts: list[str] | None = None
    grantable: bool = True
    reopened: dict[str, Any] | None = None

    @property
    def proposed(self) -> dict[str, Any]:
        """The input that the call would run with."""
        return self.payload if self.input is None else self.input


#: What a person can be asked.
AnyAsked: TypeAlias = Asked | Gated


class Passed(NamedTuple):
    """A gate let the call at `key` through, with this input (`None`: the one of its approval).

    By the person's decision about `approval_id`; by the standing decision `grant` (`{run_id, approval_id}`); or, with
    neither, since its policy asked for no approval. `shown`: the input as anybody may see it, where that differs.
    """

    key: str
    at: int
    digest: str
    approval_id: str | None = None
    grant: dict[str, Any] | None = None
    input: dict[str, Any] | None = None
    shown: dict[str, Any] | None = None


class Used(NamedTuple):
    """The standing decision about `id` was applied to the call at `key` of an execution of this conversation."""

    id: str
    execution_id: str
    key: str
    at: int


class Revoked(NamedTuple):
    """The standing decision about `id` holds no longer."""

    id: str
    at: int
    by: dict[str, Any] | None = None


SettledState = Literal["answered", "cancelled", "expired", "superseded"]


class Settled(NamedTuple):
    """A question is no longer open; this happens once. `run_id`: the run that brought it, if any.

    `by` and `channel`: who settled it, and by which way, where somebody did and it was said. `key`: how the request
    that did is known when it is sent again.
    """

    id: str
    state: str
    at: int
    value: Any = None
    run_id: str | None = None
    by: dict[str, Any] | None = None
    channel: str | None = None
    key: str | None = None


class Ended(NamedTuple):
    """A run ended: for good, or paused or broken off and can be gone on with.

    `output` with its `form` as in `Returned`; `seen`: settled questions whose calls, still open, have run since.
    `by` and `channel`: who cancelled it, by which way; where that is known only later, the same end is recorded again.
    """

    run_id: str
    code: str
    at: int
    reason: str | None = None
    message: str | None = None
    output: Any = None
    form: str | None = None
    error: dict[str, Any] | None = None
    usage: dict[str, int] | None = None
    seen: list[str] | None = None
    by: dict[str, Any] | None = None
    channel: str | None = None

    @property
    def paused(self) -> bool:
        """Whether the run waits for a person."""
        return self.reason in PAUSED


Fact: TypeAlias = (
    Opened | Resumed | Called | Returned | Reopened | Noted | Asked | Gated | Passed | Used | Revoked | Settled | Ended
)
