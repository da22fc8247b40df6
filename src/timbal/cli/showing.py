"""`timbal show`: a run as a timeline that one can read."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from ..core.timeline import Entry, timeline
from ..terminal import command, plain_json
from .decisions import decision_words
from .errors import DONE, CliError
from .listing import Where, options, store_to_read, target_words
from .places import APP_LABEL, record_of
from .screen import Screen
from .words import answer_words, as_json, call_words, cut, headline, moment, short, tokens, took, who

if TYPE_CHECKING:
    from ..stores.listings import RunInfo, RunRecord

_STYLES = {"error": "red", "open": "yellow"}


def show(run_id: str, where: Where, json: bool) -> int:
    """Show a run."""
    screen = Screen()
    store = store_to_read(where)
    if store is None:
        raise CliError(f"there is no run {run_id}: nothing was kept in this folder yet", hint="--store names a store.")
    record = asyncio.run(record_of(store, run_id))
    entries = timeline(record.facts)
    if json:
        screen.raw(plain_json(as_json(_as_dict(record, entries))))
        return DONE
    _head(screen, record, entries)
    start = record.runs[0].t0
    for entry in entries:
        _line(screen, entry, start)
    if record.runs[-1].status == "paused":
        target = target_words(record.info.labels, record.info.runnable, where)
        screen.listing()
        screen.listing("It waits for an answer. Go on with:")
        screen.copyable(command("resume", record.runs[0].run_id, *target, *options(("--store", where.store))))
    return DONE


def _as_dict(record: RunRecord, entries: list[Entry]) -> dict[str, Any]:
    return {
        "run": record.info._asdict(),
        "runs": [info._asdict() for info in record.runs],
        "timeline": [entry._asdict() for entry in entries],
    }


def _head(screen: Screen, record: RunRecord, entries: list[Entry]) -> None:
    first, last = record.runs[0], record.runs[-1]
    status = last.status if last.status in ("success", "paused", "running") else f"{last.status} / {last.reason}"
    screen.listing(f"{first.runnable} ({first.runnable_type})  {status}", "bold")
    worked = sum(_lasted(info) for info in record.runs)
    over = (last.t1 or max((entry.at for entry in entries), default=first.t0)) - first.t0
    times = f"started {moment(first.t0)}, {took(over)} from first to last, {took(worked)} of it at work"
    screen.listing(times, "dim")
    usage: dict[str, int] = {}
    for entry in entries:
        for name, count in (entry.usage or {}).items():
            usage[name] = usage.get(name, 0) + count
    parts = [f"{len(record.runs)} run{'s' if len(record.runs) > 1 else ''}", tokens(usage)]
    if APP_LABEL in first.labels:
        parts.append(f"of {first.labels[APP_LABEL]}")
    parts += [f"{name}={value}" for name, value in first.labels.items() if name != APP_LABEL]
    if first.parent_run_id is not None:
        parts.append(f"after run {first.parent_run_id}")
    screen.listing(" · ".join(part for part in parts if part), "dim")
    screen.listing()


def _lasted(info: RunInfo) -> int:
    return info.t1 - info.t0 if info.t1 is not None else 0


def _line(screen: Screen, entry: Entry, start: int) -> None:
    """One entry: when, and what."""
    at = f"{took(entry.at - start):>10}" if entry.at >= start else " " * 10
    margin = "  " * entry.depth
    text, aside, style = _words(entry)
    screen.entry(at, margin, text, aside, style)


def _words(entry: Entry) -> tuple[str, str, str]:
    """What an entry says, what it says beside, and how it looks."""
    match entry.what:
        case "started":
            by = f"by {who(entry.by)}" if entry.by else ""
            return f"run {entry.run_id}", f"{by}  {call_words(entry.name, entry.given)}".strip(), "bold"
        case "resumed":
            return f"run {entry.run_id} goes on", "", "bold"
        case "call":
            return _call_words(entry)
        case "question":
            words = headline(entry.given) or entry.given
            return f"? {entry.kind}: {short(words, 200)}", f"({str(entry.id)[:12]})", "yellow"
        case "settled":
            return _settled_words(entry)
        case "gate":
            return _gate_words(entry)
        case "decided":
            return _decided_words(entry)
        case "passed":
            grant = entry.grant or {}
            of = f"made in run {grant.get('run_id')}"
            return f"✓ passed by the standing decision {str(grant.get('approval_id'))[:12]}", of, "green"
        case "revoked":
            by = f"by {who(entry.by)}"
            return f"! the standing decision {str(entry.id)[:12]} about {entry.name} is revoked", by, "yellow"
        case "note":
            return f"told the model: {short(entry.value, 200)}", "", "dim"
        case "ended":
            return f"run {entry.status}", short(entry.error or "", 400), "bold"


def _call_words(entry: Entry) -> tuple[str, str, str]:
    time = "" if entry.took is None else f"  {took(entry.took)}"
    name = entry.name if entry.kind in ("model", "step") else call_words(entry.name, entry.given or {})
    mark = {"open": "…", "error": "✗", "approval_denied": "✗"}.get(entry.status or "", "✓")
    label = "step " if entry.kind == "step" else ""
    if entry.status == "approval_denied":
        denial = entry.value or {}
        parts = [denial.get("reason"), f"by decision {str(denial.get('approval_id'))[:12]}"]
        return f"{mark} {name} denied", " · ".join(short(part, 400) for part in parts if part), "red"
    parts = [tokens(entry.usage or {}), entry.error or ("" if entry.value in (None, "") else short(entry.value, 400))]
    return f"{mark} {label}{name}{time}", "  ".join(part for part in parts if part), _STYLES.get(entry.status or "", "")


def _gate_words(entry: Entry) -> tuple[str, str, str]:
    asked = entry.prompt or call_words(entry.name, entry.given)
    again = f"  asked again: {entry.reopened['reason']}" if entry.reopened is not None else ""
    return f"? {entry.kind}: {cut(asked, 400)}", f"({str(entry.id)[:12]}){again}", "yellow"


def _decided_words(entry: Entry) -> tuple[str, str, str]:
    after = f"after {took(entry.waited or 0)}"
    if entry.status == "expired":
        return "! denied, since nobody decided in time", after, "yellow"
    if entry.status != "answered":
        return f"! {entry.kind} {entry.status}", after, "yellow"
    text = f"! {decision_words(entry.value, entry.given)}"
    return text, f"by {who(entry.by, entry.channel)} {after}", "green"


def _settled_words(entry: Entry) -> tuple[str, str, str]:
    after = f"after {took(entry.waited or 0)}"
    if entry.status != "answered":
        return f"! {entry.kind} {entry.status}", after, "yellow"
    text = f"! {answer_words(entry.value)}"
    return text, f"answered by {who(entry.by, entry.channel)} {after}", "green"
