-- Version 1. Times are Unix milliseconds; the lease alone goes by the database's own clock.
-- Every write to an execution locks its row in `executions` first: that row is where runs, answers and leases queue up.
-- Rows are only ever added or settled; the lease in `executions` changes hands, and `erase` empties an execution.

CREATE TABLE executions (
    run         text COLLATE "C" PRIMARY KEY,   -- its first run
    runnable    text NOT NULL,
    kind        text NOT NULL,
    parent      text,                   -- the run that this turn of a conversation comes after
    labels      jsonb,                  -- strings by name; NULL: none
    holder      text,                   -- which store object has the lease; NULL: nobody
    fence       integer NOT NULL,       -- grows with each holder: a stale one can't write
    seq         integer NOT NULL,       -- commits of this holder: the next one is seq + 1, or does not count
    lease_until timestamptz,
    stop        text,                   -- somebody asked the holder to stop: the reason
    waited      boolean NOT NULL DEFAULT false,  -- somebody waits for the lease: tell when it is given back
    due_at      bigint,                 -- since when it waits for a run: settled, or left to others, and not taken up
    attempts    integer NOT NULL DEFAULT 0,      -- holders in a row that never gave the lease back
    parked      boolean NOT NULL DEFAULT false,  -- it failed too often: only taken up by hand
    erased_at   bigint
) WITH (fillfactor = 70);

CREATE INDEX executions_due ON executions (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX executions_held ON executions (lease_until) WHERE holder IS NOT NULL;

CREATE TABLE runs (
    id          text COLLATE "C" PRIMARY KEY,
    execution   text COLLATE "C" NOT NULL,
    parent      text,                   -- the run that it goes on from; NULL: the execution's first
    runnable    text NOT NULL,          -- this and labels as in `executions`, for the indexes
    labels      jsonb,
    state       text NOT NULL DEFAULT 'running',  -- running, paused, success, error, cancelled or erased
    reason      text,
    t0          bigint NOT NULL,
    t1          bigint,
    fence       integer                 -- the lease that it got; NULL: it waits for one
);

CREATE INDEX runs_of_execution ON runs (execution);
CREATE INDEX runs_by_time ON runs (t0, id);
CREATE INDEX runs_by_state ON runs (state, t0, id);
CREATE INDEX runs_by_runnable ON runs (runnable, t0, id);
CREATE INDEX runs_by_label ON runs USING gin (labels jsonb_path_ops) WHERE labels IS NOT NULL;

CREATE TABLE facts (
    execution   text COLLATE "C" NOT NULL,
    fence       integer NOT NULL,       -- each commit is one row, named by its lease and its place:
    seq         integer NOT NULL,       -- what is sent twice can't be there twice; fence 0: beside all leases
    n           bigint GENERATED ALWAYS AS IDENTITY,  -- the order: written under the execution's lock
    body        text NOT NULL,          -- JSON array of facts
    PRIMARY KEY (execution, fence, seq)
);

CREATE TABLE questions (
    execution   text COLLATE "C" NOT NULL,
    n           bigint GENERATED ALWAYS AS IDENTITY,
    name        text COLLATE "C" NOT NULL,  -- the interaction id
    kind        text NOT NULL,
    runnable    text NOT NULL,          -- this and labels as in `executions`, for the indexes
    labels      jsonb,
    asked_at    bigint NOT NULL,
    due_at      bigint,
    settled_at  bigint,                 -- by the database's clock
    body        text NOT NULL,          -- its `asked` fact
    settled     text,                   -- its `settled` fact; NULL: open. Set once
    PRIMARY KEY (execution, name)
);

CREATE INDEX open_questions ON questions (asked_at, n) WHERE settled IS NULL;
CREATE INDEX open_questions_by_runnable ON questions (runnable, asked_at, n) WHERE settled IS NULL;
CREATE INDEX open_questions_by_kind ON questions (kind, asked_at, n) WHERE settled IS NULL;
CREATE INDEX open_questions_by_name ON questions (name) WHERE settled IS NULL;
CREATE INDEX open_questions_by_label ON questions USING gin (labels jsonb_path_ops)
    WHERE settled IS NULL AND labels IS NOT NULL;
CREATE INDEX questions_due ON questions (due_at) WHERE settled IS NULL AND due_at IS NOT NULL;
CREATE INDEX settled_questions ON questions (settled_at, n) WHERE settled IS NOT NULL;

-- What runs of a server have told (see `events.py`); other runs have no rows here.
CREATE TABLE event_logs (
    run         text COLLATE "C" PRIMARY KEY,
    last        bigint NOT NULL,        -- the number of the newest event
    closed_at   bigint,                 -- NULL: more may come
    dropped     boolean NOT NULL DEFAULT false
);

CREATE INDEX event_logs_closed ON event_logs (closed_at) WHERE NOT dropped;

CREATE TABLE events (
    run         text COLLATE "C" NOT NULL,
    first       bigint NOT NULL,        -- the number of the first event of the batch
    body        text NOT NULL,          -- one event in JSON per line
    PRIMARY KEY (run, first)
);
