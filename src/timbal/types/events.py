"""What a run tells, as it happens (contract section 3)."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from .run_status import RunStatus
from .value import Value, constant

if TYPE_CHECKING:
    from collections.abc import Mapping

RunnableType = Literal["Tool", "Agent", "Workflow"]


class BaseEvent(Value):
    """The fields of every event. Ids are 32 lower-case hex digits; `path` is like `assistant.ask_user`."""

    type: str
    run_id: str
    parent_run_id: str | None
    path: str
    call_id: str
    parent_call_id: str | None


class StartEvent(BaseEvent):
    """A call has begun. `t0`: Unix milliseconds; `input`: its arguments as JSON."""

    type: Literal["START"] = constant("START")
    t0: int
    runnable_name: str
    runnable_type: str
    tool_call_id: str | None
    input: Any


class DeltaEvent(BaseEvent):
    """A piece of what a call gives while it runs; `item` has an `id` and a `type`."""

    type: Literal["DELTA"] = constant("DELTA")
    item: dict[str, Any]


class ApprovalEvent(BaseEvent):
    """A gated call waits for a person's decision; nothing of it has run."""

    type: Literal["APPROVAL"] = constant("APPROVAL")
    t0: int
    approval_id: str
    runnable_path: str
    runnable_name: str
    runnable_type: str
    tool_call_id: str | None
    input: dict[str, Any]
    input_schema: dict[str, Any] | None
    prompt: str | None
    description: str | None
    kind: str
    ui: dict[str, Any] | None
    preview: Any
    expires_at: int | None
    metadata: dict[str, Any]

    @property
    def id(self) -> str:
        """What a resume answers it by."""
        return self.approval_id


class InteractionEvent(BaseEvent):
    """A handler has asked with `suspend()`; answer with `resume={interaction_id: value}`. Emitted when it is stored."""

    type: Literal["INTERACTION"] = constant("INTERACTION")
    t0: int
    interaction_id: str
    kind: str
    runnable_path: str
    runnable_name: str
    runnable_type: str
    tool_call_id: str | None
    payload: dict[str, Any]
    response_schema: dict[str, Any] | None
    expires_at: int | None
    audience: list[str] | None

    @property
    def id(self) -> str:
        """What a resume answers it by."""
        return self.interaction_id


class OutputEvent(BaseEvent):
    """A call has ended, or paused. `error`: `{type, message, traceback}`; `usage`: counts of this run's own work."""

    __slots__ = ("_cause",)

    type: Literal["OUTPUT"] = constant("OUTPUT")
    input: Any
    status: RunStatus
    output: Any
    error: dict[str, Any] | None
    t0: int
    t1: int
    usage: dict[str, int]
    metadata: dict[str, Any]

    @property
    def pending(self) -> list[InteractionEvent | ApprovalEvent]:
        """Everything that waits for a person, in the order it was asked."""
        waiting = [*self.metadata.get("pending_approvals", ()), *self.metadata.get("pending_interactions", ())]
        waiting.sort(key=_asked_at)
        return [_as_event(item) for item in waiting]  # type: ignore[misc]

    @property
    def receipts(self) -> list[dict[str, Any]]:
        """What became of each id of the resume: `{id, state, run_id, same_value, value, by, at, ...}`."""
        return list(self.metadata.get("receipts", ()))

    def raise_for_status(self) -> OutputEvent:
        """Itself when nothing went wrong; else raises what the handler raised, or `RunFailed`."""
        if self.status.code != "error":
            return self
        from ..errors import RunFailed

        cause: BaseException | None = getattr(self, "_cause", None)
        raise cause or RunFailed(self)


Event: TypeAlias = StartEvent | DeltaEvent | ApprovalEvent | InteractionEvent | OutputEvent

_BY_TYPE: dict[str, type[Event]] = {
    "START": StartEvent,
    "DELTA": DeltaEvent,
    "APPROVAL": ApprovalEvent,
    "INTERACTION": InteractionEvent,
    "OUTPUT": OutputEvent,
}


def _asked_at(fields: Mapping[str, Any]) -> int:
    at: int = fields["t0"]
    return at


def _as_event(fields: Mapping[str, Any]) -> Event:
    cls = _BY_TYPE[fields["type"]]
    return cls._of({f: fields.get(f) for f in cls._fields})


def validate_event(data: dict[str, Any] | bytes | str) -> Event:
    """An event from its JSON (a dict, or a line of the wire); raises `pydantic.ValidationError`."""
    adapter = _adapter()
    event: Event = adapter.validate_json(data) if isinstance(data, bytes | str) else adapter.validate_python(data)
    return event


@cache
def _adapter() -> Any:
    from pydantic import Discriminator, Tag, TypeAdapter

    def tag(value: Any) -> str | None:
        return value.get("type") if isinstance(value, dict) else getattr(value, "type", None)

    tagged: Any = None
    for name, cls in _BY_TYPE.items():
        member: Any = Annotated[cls, Tag(name)]
        tagged = member if tagged is None else tagged | member
    return TypeAdapter(Annotated[tagged, Discriminator(tag)])
