"""What happens in a run, told as it happens."""

from __future__ import annotations

from typing import Any

from ..core.transcript import tool_uses
from ..types.events import DeltaEvent, Event, OutputEvent, StartEvent
from ..types.message import Message
from .screen import Screen
from .words import as_json, call_words, short, took

#: Calls that are nothing but their question, which is shown anyway.
_QUESTIONS = frozenset({"ask_user", "ask_user_multi", "confirm"})


class Narrator:
    """Shows the events of a run, and of those that go on with it."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._started: set[str] = set()
        #: The call whose words were shown as they came, and what the agent's model said last.
        self._streamed: str | None = None
        self._said: Message | None = None

    def tell(self, event: Event) -> None:
        """Show what is new in this event."""
        match event:
            case StartEvent():
                self._start(event)
            case DeltaEvent():
                self._delta(event)
            case OutputEvent() if _is_models(event):
                self._reply(event)
            case OutputEvent() if event.parent_call_id is not None:
                self._outcome(event)
            case _:
                pass

    def begin(self) -> None:
        """A run begins, or goes on: nothing of its output is on the screen yet."""
        self._streamed = self._said = None

    def output(self, event: OutputEvent) -> None:
        """The result of the run, where it is not on the screen yet: it streamed, or is the agent's last words."""
        value = event.output
        spoken = self._said is not None and not tool_uses(self._said)
        if event.status.code == "success" and value is not None and event.call_id != self._streamed and not spoken:
            said = value.collect_text() if isinstance(value, Message) else value
            self._screen.say(said if isinstance(said, str) else as_json(said, indent=2))
        self._screen.end()

    # -- inside ------------------------------------------------------------------------------------------------------

    def _start(self, event: StartEvent) -> None:
        if event.parent_call_id is None or event.path.endswith(".llm") or event.call_id in self._started:
            return
        self._started.add(event.call_id)
        if event.runnable_name not in _QUESTIONS:
            self._screen.line("→", call_words(event.runnable_name, event.input), indent=_depth(event))

    def _delta(self, event: DeltaEvent) -> None:
        item = event.item
        ours = _is_root(event)
        match item.get("type"):
            case "text_delta" if ours:
                self._streamed = event.call_id
                self._screen.say(str(item.get("text_delta", "")))
            case "thinking_delta" if ours:
                self._screen.think(str(item.get("thinking_delta", "")))
            case "custom":
                self._screen.line("·", short(item.get("data"), 400), indent=_depth(event) + 1)
            case _:
                pass

    def _reply(self, event: OutputEvent) -> None:
        """What a model said; where it came in pieces, it is on the screen."""
        message = event.output
        if not isinstance(message, Message):
            return
        words = message.collect_text()
        if not _is_root(event):
            if words.strip():
                self._screen.line("│", words, indent=_depth(event))
        elif event.call_id != self._streamed and words:
            self._screen.say(words)
        if _is_root(event):
            self._said = message
            self._screen.end()

    def _outcome(self, event: OutputEvent) -> None:
        name = event.path.rpartition(".")[2]
        time, depth = took(event.t1 - event.t0), _depth(event)
        if (grant := (event.metadata.get("approval") or {}).get("grant")) is not None:
            self._screen.line("·", f"{name} passed by the standing decision {grant['approval_id'][:12]}", "", "", depth)
        match event.status.code:
            case "success" if name not in _QUESTIONS:
                result = "" if event.output is None else short(event.output, 400)
                self._screen.line("✓", f"{name} {time}", result, "green", depth)
            case "error":
                error: dict[str, Any] = event.error or {}
                problem = f"{error.get('type')}: {error.get('message')}"
                self._screen.line("✗", f"{name} {time}", problem, "red", depth)
            case "cancelled" if not event.status.paused:
                denied = event.status.reason == "approval_denied"
                how, why = (
                    ("denied", event.status.message or "") if denied else (event.status.reason or "cancelled", "")
                )
                self._screen.line("✗", f"{name} {how} {time}", why, "red", depth)
            case _:
                pass


def _is_models(event: OutputEvent) -> bool:
    return event.path.endswith(".llm")


def _is_root(event: DeltaEvent | OutputEvent) -> bool:
    """Whether it speaks of the run itself, or of its agent's own model."""
    names = event.path.split(".")
    return len(names) == 1 or (len(names) == 2 and names[1] == "llm")


def _depth(event: StartEvent | DeltaEvent | OutputEvent) -> int:
    return max(0, event.path.count(".") - 1)
