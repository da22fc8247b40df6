"""The parts a message is made of."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from .value import Value, constant

#: The largest file a message may carry, in bytes of its base64 form (contract section 9: 20 MB of data).
MAX_FILE_BYTES = 20 * 1024 * 1024 * 4 // 3 + 4


class TextContent(Value):
    """Words, as the user or the model wrote them."""

    type: Literal["text"] = constant("text")
    text: str

    @classmethod
    def of(cls, text: str) -> TextContent:
        """The quick way in for our own code."""
        return cls._of({"type": "text", "text": text})


class ThinkingContent(Value):
    """A model's reasoning; `signature` is what its provider wants back with it on the next turn."""

    type: Literal["thinking"] = constant("thinking")
    thinking: str
    signature: str | None = None


class ToolUseContent(Value):
    """The model asks for the tool `name` with the arguments `input`; the result is matched by `id`."""

    type: Literal["tool_use"] = constant("tool_use")
    id: str
    name: str
    input: dict[str, Any]


class FileContent(Value):
    """A file by `url`, or by `data` in base64 (20 MB at most); one of the two."""

    type: Literal["file"] = constant("file")
    media_type: str
    name: str | None = None
    url: str | None = None
    data: str | None = None

    def __init__(self, *args: Any, **fields: Any) -> None:
        super().__init__(*args, **fields)
        if (self.url is None) == (self.data is None):
            raise ValueError("FileContent: give either url or data (base64)")
        if self.data is not None and len(self.data) > MAX_FILE_BYTES:
            raise ValueError(
                f"FileContent: {len(self.data)} bytes of base64 are more than a message may carry (20 MB); give a url"
            )


class ToolResultContent(Value):
    """What the tool call `id` gave: its text, or its parts."""

    type: Literal["tool_result"] = constant("tool_result")
    id: str
    content: str | list[TextContent | FileContent]


Content: TypeAlias = TextContent | ThinkingContent | ToolUseContent | ToolResultContent | FileContent

_BY_TYPE: dict[str, type[Content]] = {
    "text": TextContent,
    "thinking": ThinkingContent,
    "tool_use": ToolUseContent,
    "tool_result": ToolResultContent,
    "file": FileContent,
}
CONTENT_TYPES: tuple[type[Content], ...] = tuple(_BY_TYPE.values())


def content_of(part: Any) -> Content:
    """A content object from itself, a str, or a dict with a `type`; raises `ValueError` or `TypeError`."""
    if isinstance(part, CONTENT_TYPES):
        return part
    if isinstance(part, str):
        return TextContent(part)
    if not isinstance(part, dict):
        raise TypeError(f"a message part is a str, a dict or a content object, not {type(part).__name__}")
    cls = _BY_TYPE.get(part.get("type", ""))
    if cls is None:
        raise ValueError(f"a message part has a 'type' out of {sorted(_BY_TYPE)}, not {part.get('type')!r}")
    fields = {k: v for k, v in part.items() if k != "type"}
    if cls is ToolResultContent and isinstance(fields.get("content"), list):
        fields["content"] = [content_of(p) for p in fields["content"]]
    return cls.model_validate(fields)


def dump_content(part: Content) -> dict[str, Any]:
    """The part as compact JSON for records: fields that are None are left out."""
    if type(part) is TextContent:
        return {"type": "text", "text": part.text}
    fields = {k: v for k, v in part.__dict__.items() if v is not None}
    if isinstance(fields.get("content"), list):
        fields["content"] = [dump_content(p) for p in fields["content"]]
    return fields


def load_content(fields: dict[str, Any]) -> Content:
    """The inverse of `dump_content`, for records that we wrote: not validated again."""
    kind = fields["type"]
    if kind == "text":
        return TextContent.of(fields["text"])
    cls = _BY_TYPE[kind]
    full = {**cls._blank, **fields}
    if cls is ToolResultContent and isinstance(full["content"], list):
        full["content"] = [load_content(p) for p in full["content"]]
    return cls._of(full)
