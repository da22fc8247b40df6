-- Version 2. Ids of 32 hex digits are kept as their 16 bytes (any other as its text), and each run says which lease it
-- got. `key(id)` is a function of ours.

CREATE TABLE new_executions (
    id          INTEGER PRIMARY KEY,
    run         BLOB NOT NULL,          -- its first run
    runnable    TEXT NOT NULL,
    kind        TEXT NOT NULL,
    parent      BLOB,                   -- the run that this turn of a conversation comes after
    labels      TEXT,                   -- JSON object
    holder      TEXT,                   -- who has the lease; NULL: nobody
    fence       INTEGER NOT NULL,       -- grows with each holder: a stale one can't write
    lease_until INTEGER,
    stop        TEXT,                   -- somebody asked the holder to stop: the reason
    due_at      INTEGER,                -- since when it waits for a run: settled, or left to others, and not taken up
    attempts    INTEGER NOT NULL DEFAULT 0,  -- holders in a row that never gave the lease back
    parked      INTEGER NOT NULL DEFAULT 0   -- it failed too often: only taken up by hand
);
INSERT INTO new_executions
    SELECT id, key(run), runnable, kind, key(parent), labels, holder, fence, lease_until, stop, due_at, attempts, parked
    FROM executions;

CREATE TABLE new_runs (
    id          BLOB PRIMARY KEY,
    execution   INTEGER NOT NULL,
    parent      BLOB,                   -- the run that it goes on from; NULL: the execution's first
    status      TEXT,                   -- NULL: it has not ended
    reason      TEXT,
    t0          INTEGER NOT NULL,
    t1          INTEGER,
    fence       INTEGER                 -- the lease that it got; NULL: none
) WITHOUT ROWID;
INSERT INTO new_runs
    SELECT key(r.id), execution, key(r.parent), status, reason, t0, t1,
        CASE WHEN r.id = (SELECT max(id) FROM runs WHERE execution = r.execution) THEN e.fence END
    FROM runs r JOIN executions e ON e.id = r.execution;

CREATE TABLE new_questions (
    id          INTEGER PRIMARY KEY,
    name        BLOB NOT NULL,          -- the interaction id
    kind        TEXT NOT NULL,
    asked_at    INTEGER NOT NULL,
    due_at      INTEGER,
    body        TEXT NOT NULL,          -- its `asked` fact
    settled     TEXT                    -- its `settled` fact; NULL: open. Set once, in the statement that decides a race
);
INSERT INTO new_questions SELECT id, key(name), kind, asked_at, due_at, body, settled FROM questions;

CREATE TABLE new_event_logs (
    run         BLOB PRIMARY KEY,
    last        INTEGER NOT NULL,       -- the number of the newest event
    closed_at   INTEGER,                -- NULL: more may come
    dropped     INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
INSERT INTO new_event_logs SELECT key(run), last, closed_at, dropped FROM event_logs;

CREATE TABLE new_events (
    run         BLOB NOT NULL,
    first       INTEGER NOT NULL,       -- the number of the first event of the batch
    body        TEXT NOT NULL,          -- one event in JSON per line
    PRIMARY KEY (run, first)
) WITHOUT ROWID;
INSERT INTO new_events SELECT key(run), first, body FROM events;

DROP TABLE executions;
DROP TABLE runs;
DROP TABLE questions;
DROP TABLE event_logs;
DROP TABLE events;
ALTER TABLE new_executions RENAME TO executions;
ALTER TABLE new_runs RENAME TO runs;
ALTER TABLE new_questions RENAME TO questions;
ALTER TABLE new_event_logs RENAME TO event_logs;
ALTER TABLE new_events RENAME TO events;

CREATE INDEX executions_due ON executions (due_at) WHERE due_at IS NOT NULL AND parked = 0;
CREATE INDEX executions_held ON executions (lease_until) WHERE holder IS NOT NULL AND parked = 0;
CREATE INDEX runs_by_time ON runs (t0, id);
CREATE INDEX runs_of_execution ON runs (execution) WHERE parent IS NOT NULL;
CREATE INDEX open_questions ON questions (asked_at, id, name) WHERE settled IS NULL;
CREATE INDEX questions_due ON questions (due_at) WHERE settled IS NULL AND due_at IS NOT NULL;
CREATE INDEX settled_questions ON questions (json_extract(settled, '$[0][3]'), id) WHERE settled IS NOT NULL;
CREATE INDEX event_logs_closed ON event_logs (closed_at) WHERE NOT dropped;
