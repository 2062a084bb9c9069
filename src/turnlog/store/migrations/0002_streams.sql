-- What agents printed while they ran, kept by the user, counts only for sessions that have no log of their own.

-- Which sessions such a source tells of.
CREATE TABLE streams (
    session_key INTEGER NOT NULL REFERENCES sessions (key) ON DELETE CASCADE,
    source_key INTEGER NOT NULL REFERENCES sources (key) ON DELETE CASCADE,
    PRIMARY KEY (session_key, source_key)
) STRICT, WITHOUT ROWID;

-- Memberships that only a stream told of, in sessions that have a log of their own: kept, and part of nothing.
CREATE TABLE superseded (
    session_key INTEGER NOT NULL REFERENCES sessions (key) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    message_key INTEGER NOT NULL REFERENCES messages (key) ON DELETE CASCADE,
    source_key INTEGER REFERENCES sources (key) ON DELETE SET NULL,
    generation INTEGER NOT NULL DEFAULT 0,
    parent_id TEXT,
    turn INTEGER, step INTEGER,
    fate_cause TEXT,                          -- path of the log
    records BLOB,
    PRIMARY KEY (message_key, session_key)
) STRICT, WITHOUT ROWID;
CREATE INDEX superseded_by_session ON superseded (session_key);
