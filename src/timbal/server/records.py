"""Runs as the API shows them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ..core.facts import Ended
from ..core.ids import ROOT
from ..core.ledger import Ledger
from ..core.timeline import Shows, timeline
from ..core.transcript import output_value
from ..types.run_status import RunStatus
from .items import pending_of, settled_of
from .service import shown_labels

if TYPE_CHECKING:
    from ..runnables.base import Runnable
    from ..runtime.gate import Gate
    from ..stores.listings import RunInfo, RunRecord


def info_json(info: RunInfo) -> dict[str, Any]:
    """A run as it is listed."""
    return {**info._asdict(), "labels": shown_labels(info.labels)}


def run_record(kept: RunRecord, runnable: Runnable | None, told: Sequence[str]) -> dict[str, Any]:
    """All there is to know of a run.

    `runnable`: the one that it is a run of, where it is here; `told`: the runs whose events can be read.
    """
    run_id = kept.info.run_id
    ledger = Ledger.of(kept.facts)
    order = ledger.runs
    later = order[order.index(run_id) + 1 :] if run_id in order else []
    ended = next((f for f in reversed(kept.facts) if isinstance(f, Ended) and f.run_id == run_id), None)
    entries = timeline(kept.facts, _shows(runnable))
    return {
        **info_json(kept.info),
        "input": next(entry.given for entry in entries if entry.what == "started"),
        "parent_id": ledger.root.parent_run_id,
        "next_run_id": later[0] if later else None,
        "runs": [info_json(info) for info in kept.runs],
        "told": list(told),
        **_came_to(ledger, ended),
        "pending": [pending_of(ledger, question) for question in ledger.open_questions],
        "settled": [settled_of(q) for q in ledger.questions.values() if q.settled is not None],
        "timeline": [entry._asdict() for entry in entries],
    }


def _shows(runnable: Runnable | None) -> Shows:
    """How its inputs, and those of its tools, are shown."""
    return {} if runnable is None else {name: gate.redacted for name, gate in _redacting(runnable)}


def _redacting(runnable: Runnable) -> Iterator[tuple[str, Gate]]:
    if runnable._gate is not None and runnable._gate.redacts:
        yield runnable.name, runnable._gate
    for tool in getattr(runnable, "tools", ()):
        yield from _redacting(tool)


def _came_to(ledger: Ledger, ended: Ended | None) -> dict[str, Any]:
    """What a run came to; nothing yet where it has not ended."""
    if ended is None:
        return {"outcome": None, "output": None, "error": None, "usage": {}}
    error = ended.error
    return {
        "outcome": RunStatus(ended.code, ended.reason, ended.message),  # type: ignore[arg-type]
        "output": output_value(ledger, ROOT, ended.output, ended.form),
        "error": {"type": error.get("type"), "message": error.get("message"), "traceback": None} if error else None,
        "usage": ended.usage or {},
    }
