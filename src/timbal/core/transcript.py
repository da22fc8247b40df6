"""The messages of an agent's turn, from its ledger: what the next turn, or a re-execution, tells the model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import count
from typing import Any

from ..types.content import TextContent, ToolResultContent, ToolUseContent
from ..types.message import Message, dump_message, load_message
from .codec import decode_all
from .facts import Returned
from .ids import GATE, ROOT, child, model_segment, tool_segment
from .ledger import Ledger
from .outputs import REPLY, load_output, result_of

#: What the model reads for a tool call that has no result of its own.
UNFINISHED = {
    "superseded": "Not answered: the user sent a new message instead.",
    "cancelled": "Cancelled by the user before it finished.",
    "expired": "Not answered in time.",
    None: "Interrupted before it finished; its effects are unknown.",
}


def input_messages(given: dict[str, Any]) -> list[Message]:
    """The messages that an agent's stored input stands for."""
    if "messages" in given:
        return [load_message(m) for m in given["messages"]]
    prompt = given["prompt"]
    return [
        Message._of({"role": "user", "content": [TextContent.of(prompt)], "stop_reason": None})
        if isinstance(prompt, str)
        else load_message(prompt)
    ]


def dump_prompt(prompt: Message) -> Any:
    """A prompt as the input keeps it: its text where that is all there is."""
    if prompt.role == "user" and len(prompt.content) == 1 and isinstance(prompt.content[0], TextContent):
        return prompt.content[0].text
    return dump_message(prompt)


def reply_at(ledger: Ledger, key: str, turn: int) -> Message | None:
    """The recorded reply to an agent's `turn`-th model call."""
    outcome = ledger.outcomes.get(child(key, model_segment(turn)))
    return None if outcome is None else load_message(outcome.output)


def tool_uses(reply: Message) -> list[ToolUseContent]:
    """The tool calls of a reply, in order."""
    return [part for part in reply.content if isinstance(part, ToolUseContent)]


def result_content(id: str, outcome: Returned, ledger: Ledger) -> ToolResultContent:
    """What the model reads of one finished tool call."""
    if outcome.error is not None:
        return ToolResultContent(id, f"{outcome.error['type']}: {outcome.error['message']}")
    content = result_of(*resolve_output(ledger, outcome.key, outcome.output, outcome.form))
    return ToolResultContent._of({"type": "tool_result", "id": id, "content": content})


def resolve_output(ledger: Ledger, key: str, output: Any, form: str | None) -> tuple[Any, str | None]:
    """An output of the call at `key`, with a reference to one of its replies followed."""
    if form != REPLY:
        return output, form
    return ledger.outcomes[child(key, output)].output, "message"


def output_value(ledger: Ledger, key: str, output: Any, form: str | None) -> Any:
    """A recorded output as a Python value: JSON, a Message or content."""
    return load_output(*resolve_output(ledger, key, output, form))


def transcript(ledger: Ledger) -> list[Message]:
    """The messages of this execution from its input on; every tool call in it has exactly one result."""
    if not _let_in(ledger):
        return []
    passed = ledger.passed(ROOT)
    messages = input_messages(passed.input if passed is not None and passed.input is not None else ledger.root.input)
    for turn in count():
        reply = reply_at(ledger, ROOT, turn)
        if reply is None:
            return messages
        messages.append(reply)
        if uses := tool_uses(reply):
            messages.append(Message("tool", [_closed(ledger, turn, i, use) for i, use in enumerate(uses)]))
        note = ledger.notes.get(child(ROOT, f"n{turn}"))
        if note is not None:
            messages.append(Message("user", note))
    raise AssertionError("unreachable")


def conversation(turns: Iterable[Sequence[bytes | str]]) -> list[Message]:
    """The messages of several executions, from the records of each, oldest first.

    A long conversation is read again at each turn: what was made of the same records before is used again.
    """
    return [message for records in turns for message in _messages_of(tuple(records))]


@lru_cache(maxsize=2048)
def _messages_of(records: tuple[bytes | str, ...]) -> tuple[Message, ...]:
    return tuple(transcript(Ledger.of(decode_all(records))))


#: Let go of what is kept of any conversation.
forget_conversations = _messages_of.cache_clear


def _let_in(ledger: Ledger) -> bool:
    """Whether the gate of the agent itself, where it has one, let its input through: else no model may ever read it."""
    if ledger.question_at(child(ROOT, GATE)) is not None:
        return ledger.passed(ROOT) is not None
    return ledger.ended is None or ledger.ended.reason not in ("approval_denied", "approval_policy_error")


def _closed(ledger: Ledger, turn: int, index: int, use: ToolUseContent) -> ToolResultContent:
    key = child(ROOT, tool_segment(turn, index))
    outcome = ledger.outcomes.get(key)
    if outcome is not None:
        return result_content(use.id, outcome, ledger)
    return ToolResultContent(use.id, UNFINISHED[_why_unfinished(ledger, key)])


def _why_unfinished(ledger: Ledger, key: str) -> str | None:
    settled = [q for q in ledger.questions.values() if q.settled]
    states = {q.settled.state for q in settled if q.settled and q.asked.key.startswith(key + "/")}
    if any(q.settled and q.settled.state == "superseded" for q in settled):
        return "superseded"
    return next((state for state in ("cancelled", "expired") if state in states), None)
