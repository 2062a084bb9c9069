-- What was started through turnlog. Nothing ever wrote to the table of this name that was here before.
DROP TABLE runs;

-- Not derived from logs: a session is named by its id, so that a rebuild leaves the row as it is.
CREATE TABLE runs (
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    origin TEXT NOT NULL CHECK (origin IN ('command', 'runtime', 'import')),
    status TEXT NOT NULL CHECK (status IN ('pending', 'running', 'completed', 'failed', 'cancelled')),
    agent TEXT,
    session_id TEXT,
    command TEXT,                             -- JSON: the program and its arguments
    cwd TEXT,
    prompt TEXT, model TEXT, system_prompt TEXT,
    created_at INTEGER NOT NULL, started_at INTEGER, ended_at INTEGER,
    exit_code INTEGER,                        -- negative: the signal that ended it
    error TEXT,
    result TEXT,
    log_path TEXT,
    log_problem TEXT,                         -- why it is not linked to its log
    usage TEXT,                               -- JSON: turnlog.model.Usage
    cost INTEGER,
    tool_calls INTEGER,
    pid INTEGER, boot_id TEXT, process_start TEXT, -- of the process that watches over it
    metadata TEXT
) STRICT;
CREATE INDEX runs_by_creation ON runs (created_at DESC);
CREATE INDEX runs_by_session ON runs (session_id) WHERE session_id IS NOT NULL;
CREATE INDEX runs_that_go_on ON runs (status) WHERE status IN ('pending', 'running');
