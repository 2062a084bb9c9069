-- Where a session has secrets, so that they are not looked for in all of it again (store/sqlite/secret_places.py): positions
-- of messages and of events, and no secret. `places` is MessagePack. A row counts for these rules, and for what has not
-- changed since `until`, a number of the change sequence.
CREATE TABLE IF NOT EXISTS secret_places (
    session_key INTEGER PRIMARY KEY REFERENCES sessions (key) ON DELETE CASCADE,
    rules TEXT NOT NULL, until INTEGER NOT NULL, places BLOB NOT NULL
) STRICT;

-- An import does not check foreign keys.
CREATE TRIGGER IF NOT EXISTS secret_places_of_deleted AFTER DELETE ON sessions BEGIN
    DELETE FROM secret_places WHERE session_key = OLD.key;
END;
