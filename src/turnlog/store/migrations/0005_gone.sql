-- What left a session (its messages are kept elsewhere, or are told anew), by number of the change sequence, for who
-- follows it. Old entries are dropped.
CREATE TABLE gone (
    seq INTEGER NOT NULL,
    session_key INTEGER NOT NULL,
    is_event INTEGER NOT NULL,
    position INTEGER NOT NULL,
    id TEXT NOT NULL,
    PRIMARY KEY (seq, session_key, is_event, position, id)
) STRICT, WITHOUT ROWID;
