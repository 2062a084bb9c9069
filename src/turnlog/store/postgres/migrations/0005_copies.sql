-- Copies of a session on several machines of a person, where each has what the other lacks: which session of which store
-- is stored under another id, as a fork.
CREATE TABLE turnlog.session_copies (
    team_key int NOT NULL, store text COLLATE "C" NOT NULL, session_id text COLLATE "C" NOT NULL,
    stored_as text COLLATE "C" NOT NULL,
    PRIMARY KEY (team_key, store, session_id)
);
