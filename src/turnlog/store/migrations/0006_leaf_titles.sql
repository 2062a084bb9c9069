-- Titles that one file gives to the conversation of another: of the session whose newest record is `record_id`.
CREATE TABLE leaf_titles (
    agent TEXT NOT NULL,
    record_id TEXT NOT NULL,
    source_key INTEGER NOT NULL REFERENCES sources (key) ON DELETE CASCADE,
    title TEXT NOT NULL,
    PRIMARY KEY (agent, record_id, source_key)
) STRICT, WITHOUT ROWID;
CREATE INDEX leaf_titles_by_source ON leaf_titles (source_key);
