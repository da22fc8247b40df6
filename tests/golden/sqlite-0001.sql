-- A store as version 1 of the schema kept it: `test_migrations.py` says what is in it.
BEGIN TRANSACTION;
CREATE TABLE event_logs (
    run         TEXT PRIMARY KEY,
    last        INTEGER NOT NULL,       -- the number of the newest event
    closed_at   INTEGER,                -- NULL: more may come
    dropped     INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
INSERT INTO "event_logs" VALUES('01a232e5a28276ae8525a101326b3863',2,1796150239982,0);
CREATE TABLE events (
    run         TEXT NOT NULL,
    first       INTEGER NOT NULL,       -- the number of the first event of the batch
    body        TEXT NOT NULL,          -- one event in JSON per line
    PRIMARY KEY (run, first)
) WITHOUT ROWID;
INSERT INTO "events" VALUES('01a232e5a28276ae8525a101326b3863',1,'{"type":"START"}
{"type":"OUTPUT"}');
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
INSERT INTO "executions" VALUES(1,'01a232e5a28276ae8525a101326b3863','assistant','Agent',NULL,'{"tenant": "a"}',NULL,2,NULL,NULL,NULL,0,0);
INSERT INTO "executions" VALUES(2,'01a232e5a2be7409b3cb89a011a3d242','assistant','Agent','01a232e5a29f742491cd58b982ca5f40',NULL,NULL,1,NULL,NULL,NULL,0,0);
INSERT INTO "executions" VALUES(3,'01a232e5a2c3714cbced22d474b3d173','assistant','Agent',NULL,'{"tenant": "b"}',NULL,1,NULL,NULL,NULL,0,0);
INSERT INTO "executions" VALUES(4,'01a232e5a2c77113b931e1b325191b84','assistant','Agent',NULL,NULL,NULL,2,NULL,NULL,NULL,0,0);
INSERT INTO "executions" VALUES(5,'01a232e5a2e276af993c5fa873421de4','boom','Tool',NULL,NULL,NULL,1,NULL,NULL,NULL,0,0);
INSERT INTO "executions" VALUES(6,'01a232e5a2e97257a14676f346257b98','worker','Agent',NULL,NULL,'elsewhere/7003/2493852/e8205dbc',2,1796150269980,NULL,NULL,1,0);
CREATE TABLE facts (
    id          INTEGER PRIMARY KEY,
    body        TEXT NOT NULL           -- JSON array of facts
);
INSERT INTO "facts" VALUES(1048576,'[["opened","01a232e5a28276ae8525a101326b3863","01a232e5a28276ae8525a1025836425a","assistant","Agent",{"prompt":"go"},1796150239874,null,{"tenant":"a"}],["returned","/m0","01a232e5a29175fd984007e0e776de72","llm","model",1796150239889,1796150239889,{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"ask","input":{"question":"Which?"}}],"stop_reason":"tool_use"}]]');
INSERT INTO "facts" VALUES(1048577,'[["called","/t0.0","01a232e5a294747f8f8a195e6bc16f13","ask","Tool",1796150239892],["ended","01a232e5a28276ae8525a101326b3863","cancelled",1796150239893,"input_required",null,null,null,null,{"suspends:required":1}]]');
INSERT INTO "facts" VALUES(1048578,'[["resumed","01a232e5a29f742491cd58b982ca5f40","01a232e5a28276ae8525a101326b3863",1796150239904],["returned","/t0.0","01a232e5a294747f8f8a195e6bc16f13","ask","Tool",1796150239910,1796150239910,"postgres"]]');
INSERT INTO "facts" VALUES(1048579,'[["returned","/m1","01a232e5a2b073bf9a54383f66fe765d","llm","model",1796150239920,1796150239920,{"role":"assistant","content":[{"type":"text","text":"done"}],"stop_reason":"end_turn"}],["ended","01a232e5a29f742491cd58b982ca5f40","success",1796150239920,"end_turn",null,"m1","reply",null,{"suspends:answered":1}]]');
INSERT INTO "facts" VALUES(2097152,'[["opened","01a232e5a2be7409b3cb89a011a3d242","01a232e5a2c0758aaa2ac5d3928134b9","assistant","Agent",{"prompt":"more"},1796150239936,"01a232e5a29f742491cd58b982ca5f40"],["returned","/m0","01a232e5a2c0758aaa2ac5d48fa99f22","llm","model",1796150239936,1796150239936,{"role":"assistant","content":[{"type":"text","text":"more done"}],"stop_reason":"end_turn"}],["ended","01a232e5a2be7409b3cb89a011a3d242","success",1796150239936,"end_turn",null,"m0","reply"]]');
INSERT INTO "facts" VALUES(3145728,'[["opened","01a232e5a2c3714cbced22d474b3d173","01a232e5a2c3714cbced22d536d5a30f","assistant","Agent",{"prompt":"go"},1796150239939,null,{"tenant":"b"}],["returned","/m0","01a232e5a2c3714cbced22d6be2ec79a","llm","model",1796150239939,1796150239939,{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"ask","input":{"question":"Which?"}}],"stop_reason":"tool_use"}]]');
INSERT INTO "facts" VALUES(3145729,'[["called","/t0.0","01a232e5a2c472e898343c147abff604","ask","Tool",1796150239941],["ended","01a232e5a2c3714cbced22d474b3d173","cancelled",1796150239941,"input_required",null,null,null,null,{"suspends:required":1}]]');
INSERT INTO "facts" VALUES(5242880,'[["opened","01a232e5a2e276af993c5fa873421de4","01a232e5a2e276af993c5fa9e4bb4ec7","boom","Tool",{},1796150239970]]');
INSERT INTO "facts" VALUES(5242881,'[["ended","01a232e5a2e276af993c5fa873421de4","error",1796150239975,null,"no",null,null,{"type":"ValueError","message":"no","traceback":null}]]');
INSERT INTO "facts" VALUES(6291456,'[["opened","01a232e5a2e97257a14676f346257b98","01a232e5a2e97257a14676f452d7532e","worker","Agent",{"prompt":"go"},1796150239977]]');
INSERT INTO "facts" VALUES(6291457,'[["noted","/n","at work"]]');
CREATE TABLE questions (
    id          INTEGER PRIMARY KEY,
    name        TEXT NOT NULL,          -- the interaction id
    kind        TEXT NOT NULL,
    asked_at    INTEGER NOT NULL,
    due_at      INTEGER,
    body        TEXT NOT NULL,          -- its `asked` fact
    settled     TEXT                    -- its `settled` fact; NULL: open. Set once, in the statement that decides a race
);
INSERT INTO "questions" VALUES(1048576,'9f4556cdd286862db10454d666d4db9e','ask_user',1796150239893,NULL,'[["asked","/t0.0/0","9f4556cdd286862db10454d666d4db9e","01a232e5a28276ae8525a101326b3863","assistant.ask","01a232e5a294747f8f8a195e6bc16f13","ask_user","ask",{"question":"Which?"},1796150239893,null,"01a232e5a28276ae8525a1025836425a","Tool","c1"]]','[["settled","9f4556cdd286862db10454d666d4db9e","answered",1796150239904,"postgres","01a232e5a29f742491cd58b982ca5f40",{"sub":"ada","roles":[]}]]');
INSERT INTO "questions" VALUES(3145728,'9f4556cdd286862db10454d666d4db9e','ask_user',1796150239941,NULL,'[["asked","/t0.0/0","9f4556cdd286862db10454d666d4db9e","01a232e5a2c3714cbced22d474b3d173","assistant.ask","01a232e5a2c472e898343c147abff604","ask_user","ask",{"question":"Which?"},1796150239941,null,"01a232e5a2c3714cbced22d536d5a30f","Tool","c1"]]',NULL);
CREATE TABLE runs (
    id          TEXT PRIMARY KEY,
    execution   INTEGER NOT NULL,
    parent      TEXT,                   -- the run that it goes on from; NULL: the execution's first
    status      TEXT,                   -- NULL: running
    reason      TEXT,
    t0          INTEGER NOT NULL,
    t1          INTEGER
) WITHOUT ROWID;
INSERT INTO "runs" VALUES('01a232e5a28276ae8525a101326b3863',1,NULL,'cancelled','input_required',1796150239874,1796150239893);
INSERT INTO "runs" VALUES('01a232e5a29f742491cd58b982ca5f40',1,'01a232e5a28276ae8525a101326b3863','success','end_turn',1796150239904,1796150239920);
INSERT INTO "runs" VALUES('01a232e5a2be7409b3cb89a011a3d242',2,NULL,'success','end_turn',1796150239936,1796150239936);
INSERT INTO "runs" VALUES('01a232e5a2c3714cbced22d474b3d173',3,NULL,'cancelled','input_required',1796150239939,1796150239941);
INSERT INTO "runs" VALUES('01a232e5a2c77113b931e1b325191b84',4,NULL,'erased',NULL,1796150239943,1796150239967);
INSERT INTO "runs" VALUES('01a232e5a2e276af993c5fa873421de4',5,NULL,'error',NULL,1796150239970,1796150239975);
INSERT INTO "runs" VALUES('01a232e5a2e97257a14676f346257b98',6,NULL,NULL,NULL,1796150239977,NULL);
INSERT INTO "runs" VALUES('01a232e5a2ec76a39ebe8a1860bc973d',6,'01a232e5a2e97257a14676f346257b98',NULL,NULL,1796150239980,NULL);
CREATE INDEX executions_due ON executions (due_at) WHERE due_at IS NOT NULL AND parked = 0;
CREATE INDEX executions_held ON executions (lease_until) WHERE holder IS NOT NULL AND parked = 0;
CREATE INDEX runs_by_time ON runs (t0, id);
CREATE INDEX runs_of_execution ON runs (execution) WHERE parent IS NOT NULL;
CREATE INDEX open_questions ON questions (asked_at, id, name) WHERE settled IS NULL;
CREATE INDEX questions_due ON questions (due_at) WHERE settled IS NULL AND due_at IS NOT NULL;
CREATE INDEX settled_questions ON questions (json_extract(settled, '$[0][3]'), id) WHERE settled IS NOT NULL;
CREATE INDEX event_logs_closed ON event_logs (closed_at) WHERE NOT dropped;
COMMIT;
PRAGMA application_id=1414090050;
PRAGMA user_version=1;
