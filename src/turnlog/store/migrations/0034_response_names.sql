-- What messages are called that do not have the id of their provider's response, because it gave that id to several
-- responses (store/writing/response_names.py). Nearly always empty.
CREATE TABLE IF NOT EXISTS response_names (
    session_id TEXT NOT NULL, external_id TEXT NOT NULL, name TEXT NOT NULL,
    PRIMARY KEY (session_id, external_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS response_names_by_id ON response_names (external_id);
