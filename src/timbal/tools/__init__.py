"""Ready-made ways for an agent to ask its user; their docstrings are what the model reads."""

from __future__ import annotations

from ..state import inline, suspend

__all__ = ["ask_user", "ask_user_multi", "confirm"]


@inline
def ask_user(question: str, options: list[str] | None = None) -> str:
    """Ask the user one question and wait for the answer.

    Use it only when you are blocked: you need a fact or a preference that only the user has, and no tool, file or
    earlier message tells it. Don't use it for what you can find out or sensibly assume, to report progress, or to ask
    whether to go on. Ask one thing at a time.

    Args:
        question: A short, complete question that can be understood without the rest of the conversation.
        options: Likely answers to choose from, if there are some. The user may still answer in their own words.
    """
    return str(suspend({"question": question, "options": options}, kind="ask_user", response_schema={"type": "string"}))


@inline
def ask_user_multi(question: str, options: list[str]) -> list[str]:
    """Let the user choose one or several of the given options and wait for the choice.

    Use it only when you are blocked and more than one option may be right at the same time. For a choice of exactly
    one, or an open question, use ask_user.

    Args:
        question: A short, complete question that can be understood without the rest of the conversation.
        options: What can be chosen; at least one.
    """
    schema = {"type": "array", "items": {"type": "string", "enum": options}, "minItems": 1}
    chosen = suspend({"question": question, "options": options}, kind="ask_user_multi", response_schema=schema)
    return list(chosen)


@inline
def confirm(action: str) -> bool:
    """Ask the user for a yes or no before an action, and wait for it; true means that the user agreed.

    Use it right before something that can't be undone, costs money or reaches other people. When the answer is false,
    do not do it and do not ask again. Don't use it for harmless or reversible actions.

    Args:
        action: What will be done, in one sentence with the names and amounts that matter.
    """
    return suspend({"action": action}, kind="confirm", response_schema={"type": "boolean"}) is True
