-- When sessions of several days were active, so that a report reads a row of each and not the times of all its messages
-- (store/sqlite/active_time.py). `quarter_hours` is JSON: [quarter hour since 1970, milliseconds, next quarter hour, ...].
-- A row counts while the session has this number of its last change; whoever adds a session up again replaces it.
CREATE TABLE kept_activity (
    session_key INTEGER PRIMARY KEY REFERENCES sessions (key) ON DELETE CASCADE,
    changed_seq INTEGER NOT NULL, quarter_hours TEXT NOT NULL
) STRICT;
