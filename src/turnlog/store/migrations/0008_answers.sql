-- Native messages that an agent's own log tells of as well; not derived from logs.
CREATE TABLE answers (
    message_id TEXT PRIMARY KEY,
    session_id TEXT NOT NULL,                 -- the native session
    log_id TEXT NOT NULL,                     -- the agent's session
    run_id TEXT                               -- the run that made it: while it goes on, the log is behind
) STRICT, WITHOUT ROWID;
CREATE INDEX answers_by_session ON answers (session_id);
CREATE INDEX answers_by_log ON answers (log_id);

ALTER TABLE superseded ADD COLUMN fate TEXT;  -- of a native message, which its own session still shows
