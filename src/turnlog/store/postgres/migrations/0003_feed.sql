-- Rows of many people in one team, digests of what was taken, and who is told of changes.

-- Messages with one id may be of several people: each has a row of their own, and nobody writes over another's. The
-- owner comes last, so that a message is still found by its id alone.
ALTER TABLE turnlog.messages ADD owner text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE turnlog.messages DROP CONSTRAINT messages_team_key_agent_external_id_key;
ALTER TABLE turnlog.messages ADD UNIQUE (team_key, agent, external_id, owner);

-- The store that pushed the session last.
ALTER TABLE turnlog.session_owners ADD store text COLLATE "C" NOT NULL DEFAULT '';

-- A row that is taken again and has the same digest is not written again.
CREATE TABLE turnlog.message_digests (
    team_key int NOT NULL, message_key bigint NOT NULL, digest bigint NOT NULL,
    PRIMARY KEY (team_key, message_key)
);
CREATE TABLE turnlog.session_digests (
    team_key int NOT NULL, session_key bigint NOT NULL, digest bigint NOT NULL,
    PRIMARY KEY (team_key, session_key)
);

CREATE FUNCTION turnlog.drop_message_digests() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    DELETE FROM turnlog.message_digests r USING gone g WHERE r.team_key = g.team_key AND r.message_key = g.key;
    RETURN NULL;
END $$;
CREATE TRIGGER drop_message_digests AFTER DELETE ON turnlog.messages
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION turnlog.drop_message_digests();

CREATE FUNCTION turnlog.drop_session_digests() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    DELETE FROM turnlog.session_digests r USING gone g WHERE r.team_key = g.team_key AND r.session_key = g.key;
    RETURN NULL;
END $$;
CREATE TRIGGER drop_session_digests AFTER DELETE ON turnlog.sessions
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION turnlog.drop_session_digests();

-- Every change wakes whoever listens, when it is committed. What they are told names the team, and nothing of the change.
CREATE FUNCTION turnlog.tell_change() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    PERFORM pg_notify('turnlog', NEW.team_key::text);
    RETURN NULL;
END $$;
CREATE TRIGGER tell_change AFTER INSERT ON turnlog.changes FOR EACH ROW EXECUTE FUNCTION turnlog.tell_change();
