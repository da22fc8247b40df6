"""What a PostgreSQL store reads: each question it is asked, as one statement."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..ports import Due
from .listings import Found, RunInfo, Slice, Where, position
from .postgres_session import Ask, Row, Session, Statement, Value, kept_text

_INFO = Statement(
    "info",
    """
    SELECT e.run, e.fence, e.lease_until > clock_timestamp(), e.holder,
        (SELECT max(id) FROM runs WHERE execution = e.run AND parent IS NOT NULL)
    FROM runs r JOIN executions e ON e.run = r.execution WHERE r.id = $1 AND e.erased_at IS NULL
    """,
    (str, int, bool, str, str),
)
#: Facts in order, then each question with its settlement.
RECORDS = Statement(
    "records",
    """
    WITH one AS MATERIALIZED (SELECT execution FROM runs WHERE id = $1)
    SELECT f.body, NULL, 0, f.n FROM one JOIN facts f USING (execution)
    UNION ALL SELECT q.body, q.settled, 1, q.n FROM one JOIN questions q USING (execution)
    ORDER BY 3, 4
    """,
    (str, str),
)
_HISTORY = Statement(
    "history",
    """
    WITH RECURSIVE turns (execution, parent, depth) AS (
        SELECT e.run, e.parent, 0 FROM runs r JOIN executions e ON e.run = r.execution
            WHERE r.id = $1 AND e.erased_at IS NULL
        UNION ALL
        SELECT e.run, e.parent, t.depth + 1 FROM turns t
            JOIN runs r ON r.id = t.parent JOIN executions e ON e.run = r.execution
    )
    SELECT t.depth, f.body, NULL, 0, f.n FROM turns t JOIN facts f ON f.execution = t.execution
    UNION ALL
    SELECT t.depth, q.body, q.settled, 1, q.n FROM turns t JOIN questions q ON q.execution = t.execution
    ORDER BY 1 DESC, 4, 5
    """,
    (int, str, str),
)
_FIND = Statement(
    "find",
    """
    SELECT execution FROM questions WHERE settled IS NULL AND runnable = $1 AND name = ANY ($2::text[])
    GROUP BY execution ORDER BY min(n)
    """,
    (str,),
)
#: Executions of some runnables that may wait for a run, longest first, each with its lease: what has one (of whom),
#: what was settled and not taken up, what has expired. $1 names.
_DUE = Statement(
    "due",
    """
    SELECT e.run, e.runnable, e.attempts, e.holder, e.fence, e.lease_until > clock_timestamp() FROM (
        SELECT run, (extract(epoch FROM lease_until) * 1000)::bigint AS since FROM executions WHERE holder IS NOT NULL
        UNION ALL SELECT run, due_at FROM executions WHERE due_at IS NOT NULL AND holder IS NULL
        UNION ALL SELECT execution, due_at FROM questions
            WHERE settled IS NULL AND due_at <= extract(epoch FROM clock_timestamp()) * 1000
    ) waiting JOIN executions e USING (run)
    WHERE NOT e.parked AND e.erased_at IS NULL AND e.runnable = ANY ($1::text[])
    GROUP BY e.run ORDER BY min(waiting.since)
    """,
    (str, str, int, str, int, bool),
)
#: Whether a run that has not ended never will: another one has had the lease since, or has used what it brought.
_CONTINUED = "coalesce(r.fence < e.fence, e.holder IS NULL AND e.due_at IS NULL)"
_STATE = (
    f"CASE WHEN r.state <> 'running' THEN r.state WHEN {_CONTINUED} THEN 'continued'"
    " WHEN e.parked THEN 'parked' ELSE r.state END"
)
_RUN_COLUMNS = (
    f"r.id, e.run, coalesce(r.parent, e.parent), e.runnable, e.kind, e.labels, {_STATE}, r.reason, r.t0, r.t1"
    " FROM runs r JOIN executions e ON e.run = r.execution"
)
_RUN_TYPES = (str, str, str, str, str, str, str, str, int, int)
#: Which of the runs that have not ended have a status.
_UNENDED = {
    "running": f"NOT {_CONTINUED} AND NOT e.parked",
    "parked": f"NOT {_CONTINUED} AND e.parked",
    "continued": _CONTINUED,
}
_RUNS_OF = Statement(
    "runs_of",
    f"SELECT {_RUN_COLUMNS} WHERE r.execution = (SELECT execution FROM runs WHERE id = $1) ORDER BY r.t0, r.id",
    _RUN_TYPES,
)


#: What a call in a new process asks for first.
FIRST = (_INFO, RECORDS)


def stored(session: Session, run_id: str) -> tuple[tuple[Any, ...], list[bytes | str]] | None:
    """An execution's run, fence, whether its lease lasts, holder and newest run; and its records."""
    infos, rows = session.run([Ask(_INFO, (run_id,)), Ask(RECORDS, (run_id,))])
    return (infos[0], texts(rows)) if infos else None


def texts(rows: Iterable[Row]) -> list[bytes | str]:
    """The bodies in rows of records: facts, questions and settlements."""
    return [text for row in rows for text in row if text is not None]


def history(session: Session, run_id: str) -> list[list[bytes | str]]:
    (rows,) = session.run([Ask(_HISTORY, (run_id,))])
    turns: dict[int, list[bytes | str]] = {}
    for depth, *bodies in rows:
        turns.setdefault(depth, []).extend(texts([tuple(bodies)]))
    return list(turns.values())


def find(session: Session, ids: Sequence[str], runnable: str) -> list[str]:
    (rows,) = session.run([Ask(_FIND, (runnable, array(ids)))])
    return [run for (run,) in rows]


def due(session: Session, runnables: Sequence[str]) -> list[tuple[Due, str | None, int, bool]]:
    """Executions that may wait for a run, each with its holder, its fence, and whether the lease lasts."""
    (rows,) = session.run([Ask(_DUE, (array(runnables),))])
    return [(Due(run, runnable, attempts), *lease) for run, runnable, attempts, *lease in rows]


def runs_of(session: Session, run_id: str) -> list[RunInfo]:
    (rows,) = session.run([Ask(_RUNS_OF, (run_id,))])
    return [_info(*row) for row in rows]


def questions(session: Session, where: Where, page: Slice, *, settled: bool) -> list[Found]:
    """Items of the inbox, or those that were settled: open ones by when they were asked, others by when settled."""
    (rows,) = session.run([questions_ask(where, page, settled=settled)])
    return [
        Found(f"{at}.{n}", run, json.loads(labels) if labels else {}, runnable, body, settlement)
        for at, n, run, labels, runnable, body, settlement in rows
    ]


def questions_ask(where: Where, page: Slice, *, settled: bool) -> Ask:
    conditions = _Conditions()
    conditions.add("q.settled IS NOT NULL" if settled else "q.settled IS NULL")
    conditions.add("q.kind = {}", where.kind)
    at = "q.settled_at" if settled else "q.asked_at"
    conditions.add_where("q", at, where)
    conditions.add_page(at, "q.n", int, page)
    sql = (
        f"SELECT {at}, q.n, q.execution, q.labels, q.runnable, q.body, q.settled FROM questions q"
        f" WHERE {conditions} {_order(at, 'q.n', page)}"
    )
    return Ask(Statement("", sql, (int, int, str, str, str, str, str)), conditions.values)


def runs(session: Session, where: Where, page: Slice) -> list[RunInfo]:
    (rows,) = session.run([runs_ask(where, page)])
    return [_info(*row) for row in rows]


def runs_ask(where: Where, page: Slice) -> Ask:
    conditions = _Conditions()
    if (unended := _UNENDED.get(where.status or "")) is not None:
        conditions.add("r.state = 'running'")
        conditions.add(unended)
    else:
        conditions.add("r.state = {}", where.status)
    conditions.add_where("r", "r.t0", where)
    conditions.add_page("r.t0", "r.id", str, page)
    sql = f"SELECT {_RUN_COLUMNS} WHERE {conditions} {_order('r.t0', 'r.id', page)}"
    return Ask(Statement("", sql, _RUN_TYPES), conditions.values)


class _Conditions:
    """Conditions that all hold, with the values in them."""

    def __init__(self) -> None:
        self._texts = ["true"]
        self.values: list[Value] = []

    def __str__(self) -> str:
        return " AND ".join(self._texts)

    def add(self, text: str, *values: Value) -> None:
        """A condition with `{}` for each value; none where a value is `None`."""
        if None not in values:
            numbers = (f"${len(self.values) + i}" for i in range(1, len(values) + 1))
            self._texts.append(text.format(*numbers))
            self.values += values

    def add_where(self, table: str, at: str, where: Where) -> None:
        self.add(f"{table}.runnable = {{}}", where.runnable)
        labels = {kept_text(name): kept_text(value) for name, value in where.labels.items()}
        self.add(f"{table}.labels @> {{}}::jsonb", json.dumps(labels) if labels else None)
        self.add(f"{at} >= {{}}::bigint", where.since)
        self.add(f"{at} <= {{}}::bigint", where.until)

    def add_page(self, at: str, id: str, of: Callable[[str], int | str], page: Slice) -> None:
        if page.after is not None:
            sign = "<" if page.newest_first else ">"
            then, last = position(page.after, of)
            self.add(f"({at}, {id}) {sign} ({{}}::bigint, {{}})", then, last)


def _order(at: str, id: str, page: Slice) -> str:
    way = "DESC" if page.newest_first else "ASC"
    return f"ORDER BY {at} {way}, {id} {way} LIMIT {page.limit}"


def array(items: Sequence[str]) -> str:
    """Strings as PostgreSQL writes an array of them."""
    return "{" + ",".join('"' + item.replace("\\", "\\\\").replace('"', '\\"') + '"' for item in items) + "}"


def _info(
    run_id: str,
    execution: str,
    parent: str | None,
    runnable: str,
    kind: str,
    labels: str | None,
    state: str,
    reason: str | None,
    t0: int,
    t1: int | None,
) -> RunInfo:
    return RunInfo(
        run_id, execution, parent, runnable, kind, json.loads(labels) if labels else {}, state, reason, t0, t1
    )


#: What must find nothing, and what it means when it does.
_WRONG = {
    "SELECT id FROM runs r WHERE NOT EXISTS (SELECT FROM executions WHERE run = r.execution)": (
        "run {} belongs to no execution"
    ),
    "SELECT DISTINCT execution FROM facts f WHERE NOT EXISTS (SELECT FROM executions WHERE run = f.execution)": (
        "records of run {} belong to no execution"
    ),
    "SELECT name FROM questions q WHERE NOT EXISTS (SELECT FROM executions WHERE run = q.execution)": (
        "question {} belongs to no execution"
    ),
    "SELECT run FROM executions WHERE (holder IS NULL) <> (lease_until IS NULL)": ("run {} has half a lease"),
    "SELECT name FROM questions WHERE body::json #>> '{0,2}' <> name OR settled::json #>> '{0,1}' <> name": (
        "question {} holds another one, or another's answer"
    ),
}


def check(session: Session) -> list[str]:
    """What is wrong with how the rows belong together."""
    found = session.run([Ask(Statement("", sql, (str,)), ()) for sql in _WRONG])
    return [what.format(id) for rows, what in zip(found, _WRONG.values(), strict=True) for (id,) in rows]
