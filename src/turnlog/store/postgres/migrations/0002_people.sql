-- People of a hub, whose the sessions are, and who may read them. Stores of one user leave these tables empty.

ALTER TABLE turnlog.teams ADD COLUMN name text COLLATE "C" NOT NULL DEFAULT '';
-- Rows of team figures that are made of fewer people are added up into one.
ALTER TABLE turnlog.teams ADD COLUMN smallest_group int NOT NULL DEFAULT 5;

-- A person may be in several teams, and signs in before a team is known: these tables are of no team.
CREATE TABLE turnlog.users (
    id text COLLATE "C" NOT NULL PRIMARY KEY, name text COLLATE "C" NOT NULL, email text COLLATE "C",
    created_at bigint NOT NULL
);

-- Who signs in elsewhere is known by provider and subject, never by an address of mail.
CREATE TABLE turnlog.identities (
    provider text COLLATE "C" NOT NULL, subject text COLLATE "C" NOT NULL, user_id text COLLATE "C" NOT NULL,
    PRIMARY KEY (provider, subject)
);

-- Everything that a secret proves: tokens of people and machines, browsers that are signed in, invitations, links to
-- sessions, codes of devices, and sign-ins under way. Only the SHA-256 of the secret is kept.
CREATE TABLE turnlog.secrets (
    hash bytea NOT NULL PRIMARY KEY, id text COLLATE "C" NOT NULL UNIQUE,
    kind text COLLATE "C" NOT NULL
    CHECK (kind IN ('personal', 'machine', 'browser', 'invitation', 'link', 'device', 'attempt')),
    team_key int, user_id text COLLATE "C", machine text COLLATE "C", session_id text COLLATE "C",
    role text COLLATE "C", scopes text COLLATE "C" NOT NULL DEFAULT '', name text COLLATE "C" NOT NULL DEFAULT '',
    data text COLLATE "C", created_at bigint NOT NULL, expires_at bigint, used_at bigint, ended_at bigint
);
CREATE INDEX secrets_by_team ON turnlog.secrets (team_key, kind, user_id);
CREATE INDEX secrets_by_user ON turnlog.secrets (user_id, kind);

CREATE TABLE turnlog.members (
    team_key int NOT NULL, user_id text COLLATE "C" NOT NULL,
    role text COLLATE "C" NOT NULL CHECK (role IN ('owner', 'admin', 'member', 'viewer')),
    joined_at bigint NOT NULL, left_at bigint,
    PRIMARY KEY (team_key, user_id)
);

CREATE TABLE turnlog.machines (
    team_key int NOT NULL, id text COLLATE "C" NOT NULL, user_id text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL, platform text COLLATE "C" NOT NULL DEFAULT '', created_at bigint NOT NULL,
    seen_at bigint, ended_at bigint,
    PRIMARY KEY (team_key, id)
);
CREATE INDEX machines_by_user ON turnlog.machines (team_key, user_id);

-- Whose a session is, and who may read it. A session without a row here is shown to nobody. `session_key` follows the
-- row in `sessions`; a subagent's visibility follows its parent's.
CREATE TABLE turnlog.session_owners (
    team_key int NOT NULL, session_id text COLLATE "C" NOT NULL, session_key bigint,
    owner_user text COLLATE "C" NOT NULL, machine text COLLATE "C",
    level text COLLATE "C" NOT NULL DEFAULT 'full' CHECK (level IN ('none', 'metrics', 'redacted', 'full')),
    visibility text COLLATE "C" NOT NULL DEFAULT 'private'
    CHECK (visibility IN ('private', 'people', 'team', 'link')),
    changed_at bigint NOT NULL DEFAULT (extract(epoch FROM now()) * 1000)::bigint,
    PRIMARY KEY (team_key, session_id)
);
CREATE INDEX session_owners_by_key ON turnlog.session_owners (team_key, session_key);
CREATE INDEX session_owners_by_owner ON turnlog.session_owners (team_key, owner_user);

-- People, and links, that a session is shown to. A reader is the id of a person, or `link:` and the id of a link.
CREATE TABLE turnlog.session_readers (
    team_key int NOT NULL, session_id text COLLATE "C" NOT NULL, reader text COLLATE "C" NOT NULL,
    PRIMARY KEY (team_key, session_id, reader)
);
CREATE INDEX session_readers_by_reader ON turnlog.session_readers (team_key, reader);

-- What people did and read. Reads of one minute are one row. `owner_user` is whose the thing is.
CREATE TABLE turnlog.audit (
    team_key int NOT NULL, minute bigint NOT NULL, actor text COLLATE "C" NOT NULL, action text COLLATE "C" NOT NULL,
    subject text COLLATE "C" NOT NULL, owner_user text COLLATE "C" NOT NULL, detail text COLLATE "C",
    times bigint NOT NULL DEFAULT 1, last_at bigint NOT NULL,
    PRIMARY KEY (team_key, minute, actor, action, subject, owner_user)
);
CREATE INDEX audit_by_owner ON turnlog.audit (team_key, owner_user, minute);

-- A subagent is shown to those who are shown its parent, where both are of one person.
CREATE FUNCTION turnlog.inherit_readers(team int, child bigint, parent bigint) RETURNS void LANGUAGE sql AS $$
    UPDATE turnlog.session_owners c SET visibility = p.visibility, changed_at = p.changed_at
    FROM turnlog.session_owners p
    WHERE c.team_key = team AND c.session_key = child AND p.team_key = team AND p.session_key = parent
        AND c.owner_user = p.owner_user AND c.visibility <> p.visibility;
    INSERT INTO turnlog.session_readers (team_key, session_id, reader)
    SELECT team, c.session_id, r.reader
    FROM turnlog.session_owners c
    JOIN turnlog.session_owners p ON p.team_key = c.team_key AND p.owner_user = c.owner_user
    JOIN turnlog.session_readers r ON r.team_key = p.team_key AND r.session_id = p.session_id
    WHERE c.team_key = team AND c.session_key = child AND p.session_key = parent
    ON CONFLICT DO NOTHING;
$$;

CREATE FUNCTION turnlog.before_session_owners() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    SELECT s.key INTO NEW.session_key FROM turnlog.sessions s
    WHERE s.team_key = NEW.team_key AND s.agent = split_part(NEW.session_id, ':', 1)
        AND s.external_id = substr(NEW.session_id, position(':' IN NEW.session_id) + 1);
    RETURN NEW;
END $$;
CREATE TRIGGER before_session_owners BEFORE INSERT ON turnlog.session_owners
    FOR EACH ROW EXECUTE FUNCTION turnlog.before_session_owners();

CREATE FUNCTION turnlog.after_session_owners() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    PERFORM turnlog.inherit_readers(s.team_key, s.key, s.parent_key) FROM turnlog.sessions s
    WHERE s.team_key = NEW.team_key AND s.key = NEW.session_key AND s.relationship = 'subagent'
        AND s.parent_key IS NOT NULL;
    RETURN NULL;
END $$;
CREATE TRIGGER after_session_owners AFTER INSERT ON turnlog.session_owners
    FOR EACH ROW EXECUTE FUNCTION turnlog.after_session_owners();

CREATE FUNCTION turnlog.own_session() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF TG_OP = 'INSERT' THEN
        UPDATE turnlog.session_owners o SET session_key = NEW.key
        WHERE o.team_key = NEW.team_key AND o.session_id = NEW.agent || ':' || NEW.external_id;
    END IF;
    IF NEW.relationship = 'subagent' AND NEW.parent_key IS NOT NULL THEN
        PERFORM turnlog.inherit_readers(NEW.team_key, NEW.key, NEW.parent_key);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER own_session AFTER INSERT OR UPDATE OF parent_key, relationship ON turnlog.sessions
    FOR EACH ROW EXECUTE FUNCTION turnlog.own_session();

-- The owner stays known: nobody else can take the id.
CREATE FUNCTION turnlog.disown_sessions() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    UPDATE turnlog.session_owners o SET session_key = NULL FROM gone g
    WHERE o.team_key = g.team_key AND o.session_key = g.key;
    RETURN NULL;
END $$;
CREATE TRIGGER disown_sessions AFTER DELETE ON turnlog.sessions
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION turnlog.disown_sessions();
