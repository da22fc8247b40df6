"""One message of a conversation."""

from __future__ import annotations

from typing import Any, Literal

from .content import Content, TextContent, content_of, dump_content, load_content
from .value import Value

Role = Literal["system", "user", "assistant", "tool"]
ROLES = ("system", "user", "assistant", "tool")


class Message(Value):
    """A role and a list of parts; `stop_reason` is the model's own word for why it stopped.

    `content` may be given as a str or as a list of parts, dicts or strs; it is kept as a list of content objects.
    """

    role: Role
    content: list[Content]
    stop_reason: str | None = None

    def __init__(self, role: Role, content: Any, stop_reason: str | None = None) -> None:
        if role not in ROLES:
            raise ValueError(f"a message has a role out of {', '.join(ROLES)}, not {role!r}")
        parts = content if isinstance(content, list | tuple) else [content]
        self.__dict__.update(role=role, content=[content_of(p) for p in parts], stop_reason=stop_reason)

    def collect_text(self) -> str:
        """All text parts, joined."""
        return "".join(part.text for part in self.content if isinstance(part, TextContent))

    @classmethod
    def validate(cls, value: Any) -> Message:
        """A message from a Message, `{role, content}`, a str or a list of content (these two are the user's)."""
        if isinstance(value, Message):
            return value
        if isinstance(value, dict) and "role" in value:
            unknown = value.keys() - {"role", "content", "stop_reason"}
            if unknown or "content" not in value:
                raise ValueError(f"a message is {{role, content, stop_reason?}}, not {sorted(value)}")
            return cls(value["role"], value["content"], value.get("stop_reason"))
        if isinstance(value, str | list | tuple | Value):
            return cls("user", value)
        raise TypeError(
            f"a message is a Message, {{role, content}}, a str or a list of content, not {type(value).__name__}"
        )

    @classmethod
    def model_validate(cls, data: Any) -> Message:
        """The same as `validate`: a message knows how to read every form it may be given in."""
        return cls.validate(data)


def dump_message(message: Message) -> dict[str, Any]:
    """The message as compact JSON for records."""
    fields: dict[str, Any] = {"role": message.role, "content": [dump_content(p) for p in message.content]}
    if message.stop_reason is not None:
        fields["stop_reason"] = message.stop_reason
    return fields


def load_message(fields: dict[str, Any]) -> Message:
    """The inverse of `dump_message`, for records that we wrote: not validated again."""
    return Message._of(
        {
            "role": fields["role"],
            "content": [load_content(p) for p in fields["content"]],
            "stop_reason": fields.get("stop_reason"),
        }
    )
