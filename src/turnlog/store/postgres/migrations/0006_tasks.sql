-- Names of tasks. Which sessions belong to one, the row in `owners` says; a task that only sessions name has no row here.
CREATE TABLE turnlog.tasks (
    team_key int NOT NULL, id text COLLATE "C" NOT NULL, name text COLLATE "C" NOT NULL,
    "user" text COLLATE "C" NOT NULL DEFAULT '', created_at bigint NOT NULL,
    PRIMARY KEY (team_key, id)
);
