-- Names of tasks. Which sessions belong to one, the row in `owners` says; a task that only sessions name has no row here.
CREATE TABLE tasks (
    id TEXT NOT NULL PRIMARY KEY, name TEXT NOT NULL, user TEXT NOT NULL DEFAULT '', created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
