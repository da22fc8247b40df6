"""What a SQLite store reads: each question it is asked, as one statement."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence

from ..errors import StoreError
from .base import RunInfo

#: Ids of facts and questions: the execution's, shifted, plus a position up to TOP.
SHIFT = 20
TOP = (1 << SHIFT) - 1


def records(db: sqlite3.Connection, ref: int) -> list[bytes | str]:
    """Facts in order, then each question with its settlement."""
    base = ref << SHIFT
    rows = db.execute(
        "SELECT id, body, NULL FROM facts WHERE id BETWEEN ?1 AND ?2"
        " UNION ALL SELECT id, body, settled FROM questions WHERE id BETWEEN ?1 AND ?2",
        (base, base + TOP),
    )
    return [text for _, body, settled in rows for text in (body, settled) if text is not None]


def history(db: sqlite3.Connection, run_id: str) -> list[list[bytes | str]]:
    rows = db.execute(
        f"""
        WITH RECURSIVE turns (execution, parent, depth) AS (
            SELECT e.id, e.parent, 0 FROM runs r JOIN executions e ON e.id = r.execution WHERE r.id = ?
            UNION ALL
            SELECT e.id, e.parent, t.depth + 1 FROM turns t
                JOIN runs r ON r.id = t.parent JOIN executions e ON e.id = r.execution
        )
        SELECT t.depth, 0, f.id, f.body, NULL FROM turns t
            JOIN facts f ON f.id BETWEEN t.execution << {SHIFT} AND (t.execution << {SHIFT}) + {TOP}
        UNION ALL
        SELECT t.depth, 1, q.id, q.body, q.settled FROM turns t
            JOIN questions q ON q.id BETWEEN t.execution << {SHIFT} AND (t.execution << {SHIFT}) + {TOP}
        ORDER BY 1 DESC, 2, 3
        """,
        (run_id,),
    )
    turns: dict[int, list[bytes | str]] = {}
    for depth, _, _, body, settled in rows:
        records = turns.setdefault(depth, [])
        records.append(body)
        if settled is not None:
            records.append(settled)
    return list(turns.values())


def find(db: sqlite3.Connection, ids: Sequence[str], runnable: str) -> list[str]:
    rows = db.execute(
        f"SELECT DISTINCT e.run FROM questions q JOIN executions e ON e.id = q.id >> {SHIFT}"
        f" WHERE q.settled IS NULL AND e.runnable = ? AND q.name IN ({', '.join('?' * len(ids))})",
        (runnable, *ids),
    )
    return [run for (run,) in rows]


def _labelled(labels: Mapping[str, str]) -> tuple[str, list[str]]:
    """A condition for these labels, and its values."""
    values: list[str] = []
    for name, value in labels.items():
        values += [f'$."{name}"', value]
    return " AND json_extract(e.labels, ?) = ?" * len(labels), values


def open_questions(
    db: sqlite3.Connection,
    runnable: str | None,
    kind: str | None,
    labels: Mapping[str, str],
    after: str | None,
    limit: int,
) -> list[tuple[str, str, dict[str, str], str, bytes | str]]:
    condition, values = _labelled(labels)
    rows = db.execute(
        "SELECT q.asked_at, q.id, e.run, e.labels, e.runnable, q.body"
        f" FROM questions q JOIN executions e ON e.id = q.id >> {SHIFT}"
        " WHERE q.settled IS NULL AND (q.asked_at, q.id) > (?1, ?2) AND (?3 IS NULL OR e.runnable = ?3)"
        f" AND (?4 IS NULL OR q.kind = ?4){condition} ORDER BY q.asked_at, q.id LIMIT ?",
        (*_position(after), runnable, kind, *values, limit),
    )
    return [
        (f"{at}.{id}", run, json.loads(labels) if labels else {}, name, body)
        for at, id, run, labels, name, body in rows
    ]


def _position(after: str | None) -> tuple[int, int]:
    try:
        at, _, id = after.partition(".") if after is not None else ("0", "", "0")
        return int(at), int(id)
    except ValueError:
        raise StoreError(f"after={after!r} is no position: pass the .next of a page") from None


_INFO = (
    "SELECT r.id, e.run, coalesce(r.parent, e.parent), e.runnable, e.kind, e.labels, r.status, r.reason, r.t0, r.t1"
    " FROM runs r JOIN executions e ON e.id = r.execution"
)
_STATUS = (
    "CASE WHEN r.reason IN ('input_required', 'approval_required') THEN 'paused' ELSE coalesce(r.status, 'running') END"
)


def list_runs(
    db: sqlite3.Connection,
    status: str | None,
    runnable: str | None,
    labels: Mapping[str, str],
    after: str | None,
    limit: int,
) -> list[RunInfo]:
    condition, values = _labelled(labels)
    rows = db.execute(
        f"{_INFO} WHERE (?1 IS NULL OR r.id < ?1) AND (?2 IS NULL OR e.runnable = ?2)"
        f" AND (?3 IS NULL OR {_STATUS} = ?3){condition} ORDER BY r.id DESC LIMIT ?",
        (after, runnable, status, *values, limit),
    )
    return [_info(*row) for row in rows]


def runs_of(db: sqlite3.Connection, run_id: str) -> list[RunInfo]:
    rows = db.execute(
        f"{_INFO} WHERE r.execution = (SELECT execution FROM runs WHERE id = ?) ORDER BY r.t0, r.id", (run_id,)
    )
    return [_info(*row) for row in rows]


def _info(
    run_id: str,
    execution: str,
    parent: str | None,
    runnable: str,
    kind: str,
    labels: str | None,
    status: str | None,
    reason: str | None,
    t0: int,
    t1: int | None,
) -> RunInfo:
    state = "paused" if reason in ("input_required", "approval_required") else status or "running"
    return RunInfo(
        run_id, execution, parent, runnable, kind, json.loads(labels) if labels else {}, state, reason, t0, t1
    )
