"""A person who follows a script."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from ..runnables.base import Runnable, run_to_end
from ..types.events import ApprovalEvent, InteractionEvent, OutputEvent


class Unexpected(AssertionError):
    """The run asked for something that the script does not know; `.items` are the questions."""

    def __init__(self, items: Sequence[InteractionEvent | ApprovalEvent], known: Sequence[str]) -> None:
        self.items = list(items)
        asked = "; ".join(f"kind {e.kind!r} with {_words(e)!r}" for e in items)
        super().__init__(f"nobody expected these asks: {asked}. The script knows: {', '.join(known) or 'none'}")


class ScriptedHuman:
    """A person who answers by a script until the run is done.

    Keys are a kind (`"confirm"`), or a kind and a piece of the text that is shown (`"ask_user(database)"`), which is
    looked for first. Values are the answer, or a callable that gets the event and gives the answer (sync or async).
    """

    def __init__(self, answers: Mapping[str, Any], max_rounds: int = 100) -> None:
        self._answers = dict(answers)
        self._max_rounds = max_rounds
        #: Every item that was answered, in order.
        self.asked: list[InteractionEvent | ApprovalEvent] = []

    async def run(self, runnable: Runnable, **params: Any) -> OutputEvent:
        """Run it and answer until it ends; raises `Unexpected` when it asks what the script does not know."""
        output = await runnable._call(dict(params))
        by, store = params.get("by"), runnable
        for _ in range(self._max_rounds):
            if not output.pending:
                return output
            answers = await self.answers(output.pending)
            output = await store._call({"parent_id": output.run_id, "resume": answers, "by": by})
        raise AssertionError(f"the run still asks after {self._max_rounds} rounds: {_words(output.pending[0])!r}")

    def run_sync(self, runnable: Runnable, **params: Any) -> OutputEvent:
        """The same, for tests that are not async."""
        return run_to_end(self.run(runnable, **params))

    async def answers(self, items: Sequence[InteractionEvent | ApprovalEvent]) -> dict[str, Any]:
        """`{id: answer}` for these items; raises `Unexpected`."""
        strange = [event for event in items if self._key(event) is None]
        if strange:
            raise Unexpected(strange, list(self._answers))
        given: dict[str, Any] = {}
        for event in items:
            answer = self._answers[self._key(event) or ""]
            if callable(answer):
                answer = answer(event)
                if inspect.isawaitable(answer):
                    answer = await answer
            given[_id(event)] = answer
            self.asked.append(event)
        return given

    def _key(self, event: InteractionEvent | ApprovalEvent) -> str | None:
        words = _words(event)
        for key in self._answers:
            kind, bracket, text = key.partition("(")
            if bracket and kind == event.kind and text.removesuffix(")") in words:
                return key
        return event.kind if event.kind in self._answers else None


def _id(event: InteractionEvent | ApprovalEvent) -> str:
    return event.interaction_id if isinstance(event, InteractionEvent) else event.approval_id


def _words(event: InteractionEvent | ApprovalEvent) -> str:
    shown = event.payload if isinstance(event, InteractionEvent) else {"prompt": event.prompt, **event.input}
    return " ".join(str(value) for value in shown.values())
