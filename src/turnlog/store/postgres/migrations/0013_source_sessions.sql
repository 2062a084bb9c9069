-- Which sessions a file describes whose path does not say so: see turnlog/store/migrations/0032_source_sessions.sql. A
-- hub folds no file when it comes, so every such file has an empty id until somebody forgets a session.
CREATE TABLE turnlog.source_sessions (
    team_key int NOT NULL, session_id text COLLATE "C" NOT NULL, source_key bigint NOT NULL,
    PRIMARY KEY (team_key, session_id, source_key)
);
CREATE INDEX source_sessions_by_source ON turnlog.source_sessions (team_key, source_key);

CREATE FUNCTION turnlog.note_source() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO turnlog.source_sessions VALUES (NEW.team_key, '', NEW.key) ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
CREATE TRIGGER note_source AFTER INSERT OR UPDATE OF size, generation ON turnlog.sources FOR EACH ROW
    WHEN (NEW.session_id IS NULL AND NEW.kind IN ('session', 'subagent', 'stream'))
    EXECUTE FUNCTION turnlog.note_source();

CREATE FUNCTION turnlog.drop_source_sessions() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    DELETE FROM turnlog.source_sessions r USING gone g WHERE r.team_key = g.team_key AND r.source_key = g.key;
    RETURN NULL;
END $$;
CREATE TRIGGER drop_source_sessions AFTER DELETE ON turnlog.sources
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION turnlog.drop_source_sessions();

INSERT INTO turnlog.source_sessions
SELECT team_key, '', key FROM turnlog.sources WHERE session_id IS NULL AND kind IN ('session', 'subagent', 'stream');
