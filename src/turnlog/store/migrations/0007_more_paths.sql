-- Files that a call touched besides the one in `parts.path`: a patch may change many.
CREATE TABLE more_paths (
    path TEXT NOT NULL,
    message_key INTEGER NOT NULL REFERENCES messages (key) ON DELETE CASCADE,
    sequence INTEGER NOT NULL,                -- of the part
    PRIMARY KEY (path, message_key, sequence)
) STRICT, WITHOUT ROWID;
CREATE INDEX more_paths_by_message ON more_paths (message_key);
