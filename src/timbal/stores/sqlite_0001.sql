-- Version 1. Times are Unix milliseconds. Rows are only ever added or settled; the lease in `executions` changes hands.
-- What belongs to an execution lies together: its ids are the execution's, shifted by 20 bits, plus a position.

CREATE TABLE executions (
    id          INTEGER PRIMARY KEY,
    run         TEXT NOT NULL,          -- its first run
    runnable    TEXT NOT NULL,
    kind        TEXT NOT NULL,
    parent      TEXT,                   -- the run that this turn of a conversation comes after
    labels      TEXT,                   -- JSON object
    holder      TEXT,                   -- who has the lease; NULL: nobody
    fence       INTEGER NOT NULL,       -- grows with each holder: a stale one can't write
    lease_until INTEGER,
    stop        TEXT,                   -- somebody asked the holder to stop: the reason
    due_at      INTEGER,                -- since when it waits for a run: settled, or left to others, and not taken up
    attempts    INTEGER NOT NULL DEFAULT 0,  -- holders in a row that never gave the lease back
    parked      INTEGER NOT NULL DEFAULT 0   -- it failed too often: only taken up by hand
);

CREATE INDEX executions_due ON executions (due_at) WHERE due_at IS NOT NULL AND parked = 0;
CREATE INDEX executions_held ON executions (lease_until) WHERE holder IS NOT NULL AND parked = 0;

CREATE TABLE runs (
    id          TEXT PRIMARY KEY,
    execution   INTEGER NOT NULL,
    parent      TEXT,                   -- the run that it goes on from; NULL: the execution's first
    status      TEXT,                   -- NULL: running
    reason      TEXT,
    t0          INTEGER NOT NULL,
    t1          INTEGER
) WITHOUT ROWID;

CREATE INDEX runs_by_time ON runs (t0, id);
CREATE INDEX runs_of_execution ON runs (execution) WHERE parent IS NOT NULL;

CREATE TABLE facts (
    id          INTEGER PRIMARY KEY,
    body        TEXT NOT NULL           -- JSON array of facts
);

CREATE TABLE questions (
    id          INTEGER PRIMARY KEY,
    name        TEXT NOT NULL,          -- the interaction id
    kind        TEXT NOT NULL,
    asked_at    INTEGER NOT NULL,
    due_at      INTEGER,
    body        TEXT NOT NULL,          -- its `asked` fact
    settled     TEXT                    -- its `settled` fact; NULL: open. Set once, in the statement that decides a race
);

CREATE INDEX open_questions ON questions (asked_at, id, name) WHERE settled IS NULL;
CREATE INDEX questions_due ON questions (due_at) WHERE settled IS NULL AND due_at IS NOT NULL;
CREATE INDEX settled_questions ON questions (json_extract(settled, '$[0][3]'), id) WHERE settled IS NOT NULL;

-- What runs of a server have told (see `events.py`); other runs have no rows here.
CREATE TABLE event_logs (
    run         TEXT PRIMARY KEY,
    last        INTEGER NOT NULL,       -- the number of the newest event
    closed_at   INTEGER,                -- NULL: more may come
    dropped     INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;

CREATE INDEX event_logs_closed ON event_logs (closed_at) WHERE NOT dropped;

CREATE TABLE events (
    run         TEXT NOT NULL,
    first       INTEGER NOT NULL,       -- the number of the first event of the batch
    body        TEXT NOT NULL,          -- one event in JSON per line
    PRIMARY KEY (run, first)
) WITHOUT ROWID;
