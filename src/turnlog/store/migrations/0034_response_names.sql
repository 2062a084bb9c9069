-- What a session's message is called whose id another session's message has, because a provider gave it to several
-- responses (store/writing/response_names.py). Nearly always empty.
CREATE TABLE response_names (
    session_id TEXT NOT NULL, external_id TEXT NOT NULL, name TEXT NOT NULL,
    PRIMARY KEY (session_id, external_id)
) STRICT, WITHOUT ROWID;
