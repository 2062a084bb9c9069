-- Rules of a team, and who has agreed to the one that shows more of what they push.

ALTER TABLE turnlog.teams ADD COLUMN highest_level text COLLATE "C" NOT NULL DEFAULT 'full'
    CHECK (highest_level IN ('metrics', 'redacted', 'full'));
ALTER TABLE turnlog.teams ADD COLUMN new_visibility text COLLATE "C" NOT NULL DEFAULT 'private'
    CHECK (new_visibility IN ('private', 'team'));
ALTER TABLE turnlog.teams ADD COLUMN visibility_changed_at bigint NOT NULL DEFAULT 0;
ALTER TABLE turnlog.teams ADD COLUMN retention_days int CHECK (retention_days > 0);
ALTER TABLE turnlog.members ADD COLUMN agreed_at bigint;

CREATE INDEX sessions_by_age ON turnlog.sessions (team_key, updated_at);

-- A new session is shown to the team only if that is the rule, and its owner has agreed to it since.
CREATE OR REPLACE FUNCTION turnlog.before_session_owners() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    SELECT s.key INTO NEW.session_key FROM turnlog.sessions s
    WHERE s.team_key = NEW.team_key AND s.agent = split_part(NEW.session_id, ':', 1)
        AND s.external_id = substr(NEW.session_id, position(':' IN NEW.session_id) + 1);
    IF NEW.visibility = 'private' AND EXISTS (
        SELECT 1 FROM turnlog.teams t JOIN turnlog.members m ON m.team_key = t.team_key
        WHERE t.team_key = NEW.team_key AND t.new_visibility = 'team' AND m.user_id = NEW.owner_user
            AND m.left_at IS NULL AND m.agreed_at >= t.visibility_changed_at
    ) THEN
        NEW.visibility := 'team';
    END IF;
    RETURN NEW;
END $$;
