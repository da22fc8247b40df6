"""What a SQLite store reads: each question it is asked, as one statement."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

from ..ports import Due
from .listings import UNFINISHED, Found, Prune, Pruned, RunInfo, Slice, Where, position

#: Ids of facts and questions: the execution's, shifted, plus a position up to TOP.
SHIFT = 20
TOP = (1 << SHIFT) - 1


#: An id as the file keeps it.
Key: TypeAlias = "bytes | str"


def key(id: str) -> Key:
    """The 16 bytes of an id of 32 hex digits, as all of ours are; any other as it is."""
    if len(id) == 32:
        with suppress(ValueError):
            raw = bytes.fromhex(id)
            if raw.hex() == id:
                return raw
    return id


def id_of(key: Key) -> str:
    """The inverse of `key`."""
    return key if isinstance(key, str) else key.hex()


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
            SELECT e.id, e.parent, 0 FROM runs r JOIN executions e ON e.id = r.execution
                WHERE r.id = ? AND r.status IS NOT 'erased'
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
        (key(run_id),),
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
        (runnable, *map(key, ids)),
    )
    return [id_of(run) for (run,) in rows]


def questions(db: sqlite3.Connection, where: Where, page: Slice, *, settled: bool) -> list[Found]:
    """Items of the inbox, or those that were settled: open ones by when they were asked, others by when settled."""
    return [
        Found(f"{at}.{id}", id_of(run), json.loads(labels) if labels else {}, runnable, body, settlement)
        for at, id, run, labels, runnable, body, settlement in db.execute(
            *questions_query(where, page, settled=settled)
        )
    ]


def questions_query(where: Where, page: Slice, *, settled: bool) -> tuple[str, list[Any]]:
    conditions = _Conditions()
    conditions.add("q.settled IS NOT NULL" if settled else "q.settled IS NULL")
    conditions.add("q.kind = ?", where.kind)
    at = "json_extract(q.settled, '$[0][3]')" if settled else "q.asked_at"
    conditions.add_where(at, where)
    conditions.add_page(at, "q.id", int, page)
    sql = (
        f"SELECT {at}, q.id, e.run, e.labels, e.runnable, q.body, q.settled"
        f" FROM questions q JOIN executions e ON e.id = q.id >> {SHIFT} WHERE {conditions} {_order(at, 'q.id', page)}"
    )
    return sql, conditions.values


class _Conditions:
    """Conditions that all hold, with the values in them."""

    def __init__(self) -> None:
        self._texts = ["true"]
        self.values: list[Any] = []

    def __str__(self) -> str:
        return " AND ".join(self._texts)

    def add(self, text: str, *values: Any) -> None:
        """A condition; none where a value is `None`."""
        if None not in values:
            self._texts.append(text)
            self.values += values

    def add_where(self, at: str, where: Where) -> None:
        self.add("e.runnable = ?", where.runnable)
        for name, value in where.labels.items():
            self.add("EXISTS (SELECT 1 FROM json_each(e.labels) WHERE key = ? AND value = ?)", name, value)
        self.add(f"{at} >= ?", where.since)
        self.add(f"{at} <= ?", where.until)

    def add_page(self, at: str, id: str, of: Callable[[str], Any], page: Slice) -> None:
        if page.after is not None:
            sign = "<" if page.newest_first else ">"
            self.add(f"({at}, {id}) {sign} (?, ?)", *position(page.after, of))


def _order(at: str, id: str, page: Slice) -> str:
    way = "DESC" if page.newest_first else "ASC"
    return f"ORDER BY {at} {way}, {id} {way} LIMIT {page.limit}"


#: A run that has not ended never will where another one has had the lease since, or has used what it brought.
_STATUS = """
    CASE WHEN r.reason IN ('input_required', 'approval_required') THEN 'paused'
        WHEN r.status IS NOT NULL THEN r.status
        WHEN coalesce(r.fence < e.fence, e.holder IS NULL AND e.due_at IS NULL) THEN 'continued'
        WHEN e.parked THEN 'parked' ELSE 'running' END
"""
_INFO = (
    f"SELECT r.id, e.run, coalesce(r.parent, e.parent), e.runnable, e.kind, e.labels, {_STATUS}, r.reason, r.t0, r.t1"
    " FROM runs r JOIN executions e ON e.id = r.execution"
)


def list_runs(db: sqlite3.Connection, where: Where, page: Slice) -> list[RunInfo]:
    return [_info(*row) for row in db.execute(*runs_query(where, page))]


def runs_query(where: Where, page: Slice) -> tuple[str, list[Any]]:
    conditions = _Conditions()
    conditions.add(f"{_STATUS} = ?", where.status)
    conditions.add_where("r.t0", where)
    conditions.add_page("r.t0", "r.id", key, page)
    return f"{_INFO} WHERE {conditions} {_order('r.t0', 'r.id', page)}", conditions.values


def runs_of(db: sqlite3.Connection, run_id: str) -> list[RunInfo]:
    rows = db.execute(
        f"{_INFO} WHERE r.execution = (SELECT execution FROM runs WHERE id = ?) ORDER BY r.t0, r.id", (key(run_id),)
    )
    return [_info(*row) for row in rows]


def _info(
    run: Key,
    execution: Key,
    parent: Key | None,
    runnable: str,
    kind: str,
    labels: str | None,
    status: str,
    reason: str | None,
    t0: int,
    t1: int | None,
) -> RunInfo:
    return RunInfo(
        id_of(run),
        id_of(execution),
        None if parent is None else id_of(parent),
        runnable,
        kind,
        json.loads(labels) if labels else {},
        status,
        reason,
        t0,
        t1,
    )


#: What has a lease (of whom, since when), what was settled and not taken up, what has expired. ?1 now.
_DUE = f"""
    SELECT id, lease_until AS since FROM executions WHERE holder IS NOT NULL AND parked = 0
    UNION ALL SELECT id, due_at FROM executions WHERE due_at IS NOT NULL AND parked = 0 AND holder IS NULL
    UNION ALL SELECT id >> {SHIFT}, due_at FROM questions WHERE settled IS NULL AND due_at <= ?1
"""


def due(db: sqlite3.Connection, runnables: Sequence[str], now: int) -> list[tuple[Due, int, str | None, int | None]]:
    """Executions that may wait for a run, longest first, each with its id and its lease."""
    names = ", ".join("?" * len(runnables))
    rows = db.execute(
        f"SELECT e.run, e.runnable, e.attempts, e.id, e.holder, e.lease_until FROM ({_DUE}) d"
        " JOIN executions e ON e.id = d.id"
        f" WHERE e.parked = 0 AND e.runnable IN ({names}) GROUP BY e.id ORDER BY min(d.since)",
        (now, *runnables),
    )
    return [(Due(id_of(run), runnable, attempts), *lease) for run, runnable, attempts, *lease in rows]


def park(db: sqlite3.Connection, run_id: str) -> None:
    db.execute("UPDATE executions SET parked = 1 WHERE id = (SELECT execution FROM runs WHERE id = ?)", (key(run_id),))


_LAST = "max(coalesce((SELECT max(coalesce(t1, t0)) FROM runs WHERE execution = e.id), 0), coalesce(e.due_at, 0))"
_OVER = f"""
    e.holder IS NULL AND e.due_at IS NULL
    AND NOT EXISTS (SELECT 1 FROM questions q
        WHERE q.id BETWEEN e.id << {SHIFT} AND (e.id << {SHIFT}) + {TOP} AND q.settled IS NULL)
    AND coalesce((SELECT reason FROM runs WHERE execution = e.id AND t1 IS NOT NULL ORDER BY t1 DESC LIMIT 1), '')
        NOT IN {UNFINISHED}
    AND EXISTS (SELECT 1 FROM runs WHERE execution = e.id AND t1 IS NOT NULL)
"""
#: Executions to be removed, and whether they are open: ?1 finished before, ?2 abandoned before or NULL, ?3 now.
#: What has a lease that lasts is at work. What a kept turn of a conversation comes after is kept.
_PRUNABLE = f"""
    WITH RECURSIVE old (id, open) AS MATERIALIZED (
        SELECT id, NOT over FROM (SELECT e.id, {_OVER} AS over, {_LAST} AS last FROM executions e
            WHERE (e.holder IS NULL OR e.lease_until < ?3)
            AND EXISTS (SELECT 1 FROM runs WHERE execution = e.id AND status IS NOT 'erased'))
        WHERE CASE WHEN over THEN last < ?1 ELSE last < ?2 END
    ), needed (id) AS (
        SELECT r.execution FROM executions e JOIN runs r ON r.id = e.parent WHERE e.id NOT IN (SELECT id FROM old)
        UNION SELECT r.execution FROM needed n JOIN executions e ON e.id = n.id JOIN runs r ON r.id = e.parent
    )
    SELECT id, open FROM old WHERE id NOT IN (SELECT id FROM needed)
"""


def prune(db: sqlite3.Connection, prune: Prune, now: int) -> Pruned:
    found = db.execute(_PRUNABLE, (prune.finished_before, prune.abandoned_before, now)).fetchall()
    if not prune.dry_run:
        db.execute("DELETE FROM executions WHERE id NOT IN (SELECT execution FROM runs)")  # see below
        (newest,) = db.execute("SELECT max(id) FROM executions").fetchone()
        for id, _ in found:
            base = id << SHIFT
            for table in ("facts", "questions"):
                db.execute(f"DELETE FROM {table} WHERE id BETWEEN ? AND ?", (base, base + TOP))
            db.execute("DELETE FROM runs WHERE execution = ?", (id,))
            if id != newest:  # the number of the newest one must not be given to another one
                db.execute("DELETE FROM executions WHERE id = ?", (id,))
    abandoned = sum(is_open for _, is_open in found)
    return Pruned(len(found) - abandoned, abandoned)


_NAME = "CASE typeof(name) WHEN 'blob' THEN lower(hex(name)) ELSE name END"
#: What must find nothing, and what it means when it does.
_WRONG = {
    "SELECT id FROM runs WHERE execution NOT IN (SELECT id FROM executions)": "run {} belongs to no execution",
    f"SELECT id FROM facts WHERE id >> {SHIFT} NOT IN (SELECT id FROM executions)": "record {} belongs to no execution",
    f"SELECT name FROM questions WHERE id >> {SHIFT} NOT IN (SELECT id FROM executions)": (
        "question {} belongs to no execution"
    ),
    "SELECT run FROM executions WHERE (holder IS NULL) <> (lease_until IS NULL)": "run {} has half a lease",
    f"SELECT name FROM questions WHERE json_extract(body, '$[0][2]') <> {_NAME}": "question {} holds another one",
    f"SELECT name FROM questions WHERE json_extract(settled, '$[0][1]') <> {_NAME}": (
        "question {} holds another's answer"
    ),
}


def check(db: sqlite3.Connection) -> list[str]:
    """What is wrong with the file, and with how its rows belong together."""
    damage = [text for (text,) in db.execute("PRAGMA integrity_check") if text != "ok"]
    if damage:
        return damage
    return [
        what.format(id if isinstance(id, int) else id_of(id))
        for sql, what in _WRONG.items()
        for (id,) in db.execute(sql)
    ]
