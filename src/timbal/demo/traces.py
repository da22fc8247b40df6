"""What the processes of the demo leave behind: a run in a store, and effects in a file."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from ..core.facts import Asked, Fact, Returned, Settled
from ..core.ids import segment_of
from ..stores import SqliteStore
from ..types.events import ApprovalEvent, InteractionEvent
from .assistant import EFFECTS, MODEL_LABEL, SCRIPTED, STORE


class Standing(NamedTuple):
    """How the run stands, by the store alone.

    `status` is as in `store.runs()`; `ledger` holds what was recorded, as `(what, outcome)`; `question` is what waits;
    `model` is the one that it was begun with.
    """

    run_id: str
    model: str
    status: str
    ledger: list[tuple[str, str]]
    question: InteractionEvent | None


async def standing(folder: Path) -> Standing | None:
    """Read the store; `None` before anything was recorded."""
    if not (folder / STORE).exists():
        return None
    async with SqliteStore(folder / STORE) as store:
        newest = (await store.runs(limit=1)).items
        if not newest:
            return None
        record = await store.get(newest[0].run_id)
        pending = (await store.pending()).items
    info, question = newest[0], pending[0].event if pending else None
    assert not isinstance(question, ApprovalEvent), "nothing in the demo has a gate"
    return Standing(info.run_id, info.labels.get(MODEL_LABEL, SCRIPTED), info.status, _ledger(record.facts), question)


def _ledger(facts: Iterable[Fact]) -> list[tuple[str, str]]:
    """Steps and questions in the order in which the tool's function comes to them: the order of their places in it."""
    kept = list(facts)
    answers = {fact.id: fact.value for fact in kept if isinstance(fact, Settled)}
    places: dict[int, tuple[str, str]] = {}
    for fact in kept:
        if isinstance(fact, Returned) and fact.kind == "step":
            places[int(segment_of(fact.key))] = (f"step {fact.name}", _json(fact.output))
        elif isinstance(fact, Asked):
            outcome = _json(answers[fact.id]) if fact.id in answers else "waits for its answer"
            places[int(segment_of(fact.key))] = (f"question {fact.name}", outcome)
    return [places[place] for place in sorted(places)]


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def effects(folder: Path) -> list[tuple[str, str]]:
    """The lines of the effects file: a process, and what it did."""
    if not (folder / EFFECTS).exists():
        return []
    lines = (folder / EFFECTS).read_text(encoding="utf-8").splitlines()
    return [(pid, what) for pid, _, what in (line.partition(" ") for line in lines)]
