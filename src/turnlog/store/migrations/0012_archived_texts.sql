-- Messages whose bodies name places in the archive of a source: see turnlog/store/archived_texts.py.

CREATE TABLE archived_texts (
    message_key INTEGER NOT NULL REFERENCES messages (key) ON DELETE CASCADE,
    source_key INTEGER NOT NULL,
    PRIMARY KEY (message_key, source_key)
) STRICT, WITHOUT ROWID;
