"""What a PostgreSQL store writes: one statement for each operation, and the one that decides a race."""

from __future__ import annotations

from .listings import UNFINISHED
from .postgres_session import Statement

_NOW = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
_UNTIL = "clock_timestamp() + {} * interval '1 millisecond'"

#: Each write begins with it, or with an update of the same row: what follows sees all that was committed before.
LOCK = Statement(
    "lock",
    "SELECT run FROM executions WHERE run = (SELECT execution FROM runs WHERE id = $1) FOR NO KEY UPDATE",
    (str,),
)

_FACT = "INSERT INTO facts (execution, fence, seq, body) SELECT run, {fence}, {seq}, {body} FROM held"
_QUESTIONS = f"""
    INSERT INTO questions (execution, name, kind, runnable, labels, asked_at, due_at, body, settled, settled_at)
    SELECT held.run, q.name, q.kind, held.runnable, held.labels, q.asked_at, q.due_at, q.body, q.settled,
        CASE WHEN q.settled IS NOT NULL THEN {_NOW} END
    FROM held, ROWS FROM (json_to_recordset({{rows}}::json)
            AS (name text, kind text, asked_at bigint, due_at bigint, body text, settled text))
        WITH ORDINALITY AS q (name, kind, asked_at, due_at, body, settled, position)
    ORDER BY q.position
"""

#: $1 run, $2 runnable, $3 kind, $4 parent, $5 labels, $6 t0, $7 holder, $8 lease, $9 record, $10 questions,
#: $11 state, $12 reason, $13 t1
OPEN = Statement(
    "open",
    f"""
    WITH entered AS (
        INSERT INTO runs (id, execution, runnable, labels, state, reason, t0, t1, fence)
        VALUES ($1, $1, $2, $5::jsonb, $11, $12, $6::bigint, $13::bigint, 1) ON CONFLICT (id) DO NOTHING RETURNING id
    ), held AS (
        INSERT INTO executions (run, runnable, kind, parent, labels, holder, fence, seq, lease_until)
        SELECT id, $2, $3, $4, $5::jsonb, $7, 1, 1, {_UNTIL.format("$8::integer")} FROM entered
        RETURNING run, runnable, labels
    ), fact AS ({_FACT.format(fence=1, seq=1, body="$9")}
    ), asked AS ({_QUESTIONS.format(rows="$10")})
    SELECT true FROM entered
    """,
    (bool,),
)

#: $1 run, $2 fence, $3 seq, $4 lease, $5 holder, $6 record, $7 questions, $8 settlements,
#: $9 the run that ends, or NULL, with $10 state, $11 reason, $12 t1
COMMIT = Statement(
    "commit",
    f"""
    WITH held AS (
        UPDATE executions SET seq = $3::integer,
            holder = CASE WHEN $9::text IS NULL THEN holder END,
            stop = CASE WHEN $9::text IS NULL THEN stop END,
            lease_until = CASE WHEN $9::text IS NULL THEN {_UNTIL.format("$4::integer")} END,
            attempts = CASE WHEN $9::text IS NULL THEN attempts ELSE 0 END,
            due_at = CASE WHEN $9::text IS NULL OR $10 = 'paused' THEN due_at END
        WHERE run = $1 AND fence = $2::integer AND seq = $3::integer - 1 AND holder = $5
        RETURNING run, runnable, labels, stop, waited AND $9::text IS NOT NULL AS waited
    ), fact AS ({_FACT.format(fence="$2::integer", seq="$3::integer", body="$6")}
    ), asked AS ({_QUESTIONS.format(rows="$7")}
    ), settled AS (
        UPDATE questions q SET settled = s.body, settled_at = {_NOW}
        FROM held, json_to_recordset($8::json) AS s (name text, body text)
        WHERE q.execution = held.run AND q.name = s.name AND q.settled IS NULL
    ), ended AS (
        UPDATE runs SET state = $10, reason = $11, t1 = $12::bigint FROM held WHERE id = $9::text
    )
    SELECT stop, CASE WHEN waited THEN pg_notify(current_schema(), run)::text END FROM held
    """,
    (str, str),
)

#: Whether a commit whose answer was lost is there: $1 run, $2 fence, $3 seq.
WAS_COMMITTED = Statement(
    "was_committed",
    "SELECT body FROM facts WHERE execution = $1 AND fence = $2::integer AND seq = $3::integer",
    (str,),
)

_FREE = (
    "(e.holder IS NULL OR e.lease_until < clock_timestamp() OR e.holder = {gone}"
    " OR e.holder = {me} AND e.fence = {dead})"
)

#: Decides a race for an answer; after LOCK, so that nobody else is at these questions. All of them are open, or nothing
#: is changed. $1 run, $2 settlements, $3 how many, $4 the run to enter, or NULL, with $5 parent, $6 t0, and the lease
#: for it: $7 holder, $8 lease, $9 fence of a dead lease of ours, or 0; $10 why the holder is asked to stop, or NULL.
#: Gives whether it was done, whether the run was there already, the new fence, and who has the lease if not we.
SETTLE = Statement(
    "settle",
    f"""
    WITH given AS (
        SELECT name, body FROM json_to_recordset($2::json) AS g (name text, body text)
    ), there AS (
        SELECT EXISTS (SELECT FROM runs WHERE id = $4::text) AS run
    ), ok AS (
        SELECT e.run, e.runnable, e.labels, e.holder, e.waited,
            $4::text IS NOT NULL AND {_FREE.format(gone="''", me="$7", dead="$9::integer")} AS free
        FROM executions e, there
        WHERE e.run = $1 AND e.erased_at IS NULL AND NOT there.run AND $3::integer = (
            SELECT count(*) FROM questions q JOIN given USING (name) WHERE q.execution = $1 AND q.settled IS NULL)
    ), settled AS (
        UPDATE questions q SET settled = given.body, settled_at = {_NOW} FROM ok, given
        WHERE q.execution = ok.run AND q.name = given.name
    ), leased AS (
        UPDATE executions e SET
            holder = CASE WHEN ok.free THEN $7 ELSE e.holder END,
            fence = e.fence + ok.free::integer,
            seq = CASE WHEN ok.free THEN 0 ELSE e.seq END,
            lease_until = CASE WHEN ok.free THEN {_UNTIL.format("$8::integer")} ELSE e.lease_until END,
            stop = CASE WHEN ok.free OR e.holder IS NULL THEN NULL ELSE coalesce($10, e.stop) END,
            waited = e.waited AND NOT ok.free,
            due_at = CASE WHEN NOT ok.free THEN coalesce(e.due_at, CASE WHEN $3::integer > 0 THEN {_NOW} END) END,
            attempts = e.attempts + (ok.free AND e.holder IS NOT NULL)::integer,
            parked = e.parked AND NOT ok.free
        FROM ok WHERE e.run = ok.run AND (ok.free OR $3::integer > 0 OR $10::text IS NOT NULL)
        RETURNING CASE WHEN ok.free THEN e.fence END AS fence
    ), entered AS (
        INSERT INTO runs (id, execution, parent, runnable, labels, t0, fence)
        SELECT $4::text, ok.run, $5, ok.runnable, ok.labels, $6::bigint, (SELECT fence FROM leased)
        FROM ok WHERE $4::text IS NOT NULL
    )
    SELECT ok.run IS NOT NULL, there.run, (SELECT fence FROM leased), ok.holder,
        CASE WHEN ok.waited OR $10::text IS NOT NULL THEN pg_notify(current_schema(), ok.run)::text END
    FROM there LEFT JOIN ok ON true
    """,
    (bool, bool, int, str, str),
)

#: Whether a settling whose answer was lost is there: $1 run, $2 settlements, $3 how many, $4 the run that was entered.
WAS_SETTLED = Statement(
    "was_settled",
    """
    SELECT $3::integer = (SELECT count(*) FROM questions q
            JOIN json_to_recordset($2::json) AS g (name text, body text) ON g.name = q.name AND g.body = q.settled
            WHERE q.execution = $1) AND ($4::text IS NULL OR r.id IS NOT NULL), r.fence
    FROM (SELECT 1) one LEFT JOIN runs r ON r.id = $4::text AND r.execution = $1
    """,
    (bool, int),
)

#: $1 run, $2 holder, $3 lease, $4 fence of a dead lease of ours, or 0, $5 a holder that has gone, or ''; $6 the run
#: that takes it, $7 parent, $8 t0.
#: Gives the new fence, and who has the lease if not we; no row where the execution is erased.
TAKE = Statement(
    "take",
    f"""
    WITH taken AS (
        UPDATE executions e SET holder = $2, fence = e.fence + 1, seq = 0, stop = NULL, waited = false,
            lease_until = {_UNTIL.format("$3::integer")}, due_at = NULL, parked = false,
            attempts = e.attempts + (e.holder IS NOT NULL)::integer
        WHERE e.run = $1 AND e.erased_at IS NULL AND {_FREE.format(gone="$5", me="$2", dead="$4::integer")}
        RETURNING e.fence, e.runnable, e.labels
    ), entered AS (
        INSERT INTO runs (id, execution, parent, runnable, labels, t0, fence)
        SELECT $6, $1, $7, runnable, labels, $8::bigint, fence FROM taken
        ON CONFLICT (id) DO UPDATE SET fence = excluded.fence
    )
    SELECT (SELECT fence FROM taken), e.holder FROM executions e WHERE e.run = $1 AND e.erased_at IS NULL
    """,
    (int, str),
)

#: The lease goes back without an end: $1 run, $2 fence, $3 holder.
RELEASE = Statement(
    "release",
    f"""
    UPDATE executions SET holder = NULL, lease_until = NULL, stop = NULL, attempts = greatest(0, attempts - 1),
        due_at = {_NOW}
    WHERE run = $1 AND fence = $2::integer AND holder = $3
    RETURNING run, CASE WHEN waited THEN pg_notify(current_schema(), run)::text END
    """,
    (str, str),
)
#: Whether a lease that was to go back has: $1 run, $2 fence.
WAS_RELEASED = Statement(
    "was_released", "SELECT run FROM executions WHERE run = $1 AND fence = $2::integer AND holder IS NULL", (str,)
)

#: After LOCK: facts beside whoever has the lease, unless they are there already. $1 a run of the execution, $2 record.
APPEND = Statement(
    "append",
    """
    WITH beside AS (
        SELECT f.seq, f.body FROM runs r JOIN facts f USING (execution) WHERE r.id = $1 AND f.fence = 0
    )
    INSERT INTO facts (execution, fence, seq, body)
    SELECT e.run, 0, 1 + (SELECT count(*) FROM beside), $2 FROM runs r JOIN executions e ON e.run = r.execution
    WHERE r.id = $1 AND e.erased_at IS NULL AND NOT EXISTS (SELECT FROM beside WHERE body = $2)
    """,
)

#: Nobody takes it up but by hand: $1 a run of the execution.
PARK = Statement(
    "park",
    "UPDATE executions SET parked = true WHERE run = (SELECT execution FROM runs WHERE id = $1) RETURNING run",
    (str,),
)

#: The lease that a run got: $1 run.
WAS_TAKEN = Statement("was_taken", "SELECT fence FROM runs WHERE id = $1 AND fence IS NOT NULL", (int,))

#: From now on whoever gives the lease back tells: $1 run.
WATCH = Statement(
    "watch", "UPDATE executions SET waited = true WHERE run = $1 AND NOT waited AND holder IS NOT NULL", ()
)
#: Who has the lease: $1 run.
HOLDER = Statement(
    "holder",
    "SELECT holder, fence FROM executions WHERE run = $1 AND holder IS NOT NULL AND lease_until > clock_timestamp()",
    (str, int),
)

#: A sign of life for all leases: $1 lease, $2 runs, $3 fences. Gives those still ours, and why they shall stop.
BEAT = Statement(
    "beat",
    f"""
    UPDATE executions e SET lease_until = {_UNTIL.format("$1::integer")}
    FROM unnest($2::text[], $3::integer[]) AS mine (run, fence) WHERE e.run = mine.run AND e.fence = mine.fence
    RETURNING e.run, e.stop
    """,
    (str, str),
)

#: After LOCK: what was recorded goes, a tombstone stays. $1 a run of the execution.
ERASE = Statement(
    "erase",
    f"""
    WITH erased AS (
        UPDATE executions SET erased_at = coalesce(erased_at, {_NOW}), labels = NULL, fence = fence + 1, holder = NULL,
            lease_until = NULL, stop = NULL
        WHERE run = (SELECT execution FROM runs WHERE id = $1) RETURNING run, erased_at
    ), fact AS (DELETE FROM facts USING erased WHERE execution = erased.run
    ), question AS (DELETE FROM questions USING erased WHERE execution = erased.run
    ), told AS (DELETE FROM events USING erased, runs WHERE events.run = runs.id AND runs.execution = erased.run
    ), log AS (DELETE FROM event_logs USING erased, runs WHERE event_logs.run = runs.id AND runs.execution = erased.run
    ), runs_of AS (
        UPDATE runs SET state = 'erased', reason = NULL, labels = NULL, t1 = erased.erased_at
        FROM erased WHERE execution = erased.run
    )
    SELECT run, pg_notify(current_schema(), run)::text FROM erased
    """,
    (str, str),
)

_LAST = """greatest((SELECT max(coalesce(t1, t0)) FROM runs WHERE execution = e.run), coalesce(e.due_at, 0))"""
_AT_WORK = "(e.holder IS NOT NULL AND e.lease_until > clock_timestamp())"
_OVER = f"""
    (e.holder IS NULL AND e.due_at IS NULL
    AND NOT EXISTS (SELECT FROM questions q WHERE q.execution = e.run AND q.settled IS NULL)
    AND EXISTS (SELECT FROM runs WHERE execution = e.run AND t1 IS NOT NULL)
    AND coalesce((SELECT reason FROM runs WHERE execution = e.run AND t1 IS NOT NULL ORDER BY t1 DESC LIMIT 1), '')
        NOT IN {UNFINISHED})
"""
_OLD = f"""
    WITH RECURSIVE old AS MATERIALIZED (
        SELECT run, NOT over AS open FROM (SELECT e.run, {_OVER} AS over, {_LAST} AS last FROM executions e
            WHERE e.erased_at IS NULL AND NOT {_AT_WORK}) found
        WHERE CASE WHEN over THEN last < $1::bigint ELSE last < $2::bigint END
    ), needed AS (
        SELECT r.execution AS run FROM executions e JOIN runs r ON r.id = e.parent
            WHERE e.run NOT IN (SELECT run FROM old)
        UNION SELECT r.execution FROM needed n JOIN executions e ON e.run = n.run JOIN runs r ON r.id = e.parent
    ), found AS (SELECT run, open FROM old WHERE run NOT IN (SELECT run FROM needed))
"""
#: Executions to be removed, and whether they are open: $1 finished before, $2 abandoned before, or NULL. What a kept
#: turn of a conversation comes after is kept.
PRUNABLE = Statement("prunable", f"{_OLD} SELECT run, open FROM found", (str, bool))
#: The same, removed. What a run has taken up meanwhile stays: its row is looked at again once it is locked.
PRUNE = Statement(
    "prune",
    f"""
    {_OLD}, removed AS (
        DELETE FROM executions e USING found WHERE e.run = found.run AND NOT {_AT_WORK}
            AND (found.open OR (e.holder IS NULL AND e.due_at IS NULL)) RETURNING e.run, found.open
    ), fact AS (DELETE FROM facts USING removed WHERE execution = removed.run
    ), question AS (DELETE FROM questions USING removed WHERE execution = removed.run
    ), runs_of AS (DELETE FROM runs USING removed WHERE execution = removed.run)
    SELECT run, open FROM removed
    """,
    (str, bool),
)

#: What a call in a new process asks for first.
FIRST = (OPEN, COMMIT, LOCK, SETTLE)
