-- A part is of a kind that the model knows, if only as "unknown".

CREATE TABLE checked_parts (
    message_key INTEGER NOT NULL REFERENCES messages (key) ON DELETE CASCADE,
    sequence INTEGER NOT NULL,
    -- The common ones first, and no IN: SQLite would fill a table with its list for every row.
    type TEXT NOT NULL CHECK (type = 'tool-call' OR type = 'text' OR type = 'reasoning' OR type = 'file'
        OR type = 'source-url' OR type = 'source-document' OR type = 'data' OR type = 'unknown'),
    tool_name TEXT, tool_kind TEXT, tool_call_id TEXT, tool_state TEXT,
    exit_code INTEGER,
    path TEXT,                                -- the file a call read or wrote
    media_type TEXT,
    spill TEXT,
    text_size INTEGER NOT NULL DEFAULT 0,     -- characters of text, reasoning or input
    output_size INTEGER NOT NULL DEFAULT 0,
    started_at INTEGER, completed_at INTEGER, duration_ms INTEGER,
    PRIMARY KEY (message_key, sequence)
) STRICT, WITHOUT ROWID;

INSERT INTO checked_parts SELECT message_key, sequence, type, tool_name, tool_kind, tool_call_id, tool_state, exit_code,
    path, media_type, spill, text_size, output_size, started_at, completed_at, duration_ms FROM parts;

DROP TABLE parts;

ALTER TABLE checked_parts RENAME TO parts;
