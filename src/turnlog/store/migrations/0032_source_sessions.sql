-- Which sessions a file describes whose path does not say so, as that of an import: it may only repeat what other files
-- say, and then nothing else leads from a session to it (store/sqlite/copies.py). Files that an earlier version read have
-- an empty id until somebody asks.
CREATE TABLE source_sessions (
    session_id TEXT NOT NULL, source_key INTEGER NOT NULL REFERENCES sources (key) ON DELETE CASCADE,
    PRIMARY KEY (session_id, source_key)
) STRICT, WITHOUT ROWID;

INSERT INTO source_sessions
SELECT '', key FROM sources WHERE session_id IS NULL AND kind IN ('session', 'subagent', 'stream');
