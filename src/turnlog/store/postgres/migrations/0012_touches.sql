-- Which files messages touched, under their whole paths. Lists of files are sums of these rows: the paths of all calls
-- were read for one, and of each message the sessions that it is in. Triggers keep them as what they are made of, in
-- the transaction that changes it, whatever is written first.

CREATE TABLE turnlog.touches (
    team_key int NOT NULL, message_key bigint NOT NULL,
    -- As the call has it.
    path text COLLATE "C" NOT NULL,
    -- NULL for a message of several sessions: to which one it counts depends on who asks.
    session_key bigint,
    -- The path, resolved with the folder of that session.
    file text COLLATE "C",
    calls bigint NOT NULL, edits bigint NOT NULL, last_at bigint,
    PRIMARY KEY (team_key, message_key, path)
);
CREATE INDEX touches_of_shared ON turnlog.touches (team_key, message_key) WHERE session_key IS NULL;

-- As `resolve_path` of turnlog/store/rows.py.
CREATE FUNCTION turnlog.resolve_path(path text, folder text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$ DECLARE
    whole text := path;
    pieces text[] := '{}';
    piece text;
    root text;
BEGIN
    IF path LIKE '/%' THEN
        IF path !~ '/\.|//|/$' THEN RETURN path; END IF;
    ELSIF path ~ '^(~|[A-Za-z]:[\\/]|\\\\)' THEN
        RETURN path;
    ELSIF folder <> '' THEN
        whole := CASE WHEN folder LIKE '%/' THEN folder ELSE folder || '/' END || path;
    END IF;
    -- Two slashes at the beginning, and no more, are not one.
    root := CASE WHEN whole LIKE '//%' AND whole NOT LIKE '///%' THEN '//' WHEN whole LIKE '/%' THEN '/' ELSE '' END;
    FOREACH piece IN ARRAY string_to_array(whole, '/') LOOP
        IF piece IN ('', '.') THEN CONTINUE; END IF;
        IF piece <> '..' OR (root = '' AND cardinality(pieces) = 0) OR pieces[cardinality(pieces)] = '..' THEN
            pieces := pieces || piece;
        ELSE
            pieces := trim_array(pieces, least(1, cardinality(pieces)));
        END IF;
    END LOOP;
    whole := root || array_to_string(pieces, '/');
    RETURN CASE WHEN whole = '' THEN '.' ELSE whole END;
END $$;

-- What is beside a key is added up for it, which the planner cannot turn into a join: of tables that were just filled it
-- believes that to read them whole is cheaper. Planned each time, because a plan that was made while they were empty
-- takes any index that begins with the team, and connections keep it.
CREATE FUNCTION turnlog.count_touches(team int, keys bigint[]) RETURNS void LANGUAGE plpgsql
SET plan_cache_mode = force_custom_plan AS $$ BEGIN
    DELETE FROM turnlog.touches t WHERE t.team_key = team AND t.message_key = ANY (keys);
    INSERT INTO turnlog.touches
    SELECT team, t.key, t.path, o.session_key,
        turnlog.resolve_path(
            t.path, (SELECT s.cwd FROM turnlog.sessions s WHERE s.team_key = team AND s.key = o.session_key)
        ),
        t.calls, t.edits, greatest(t.started_at, CASE WHEN t.has_untimed THEN m.created_at END)
    FROM unnest(keys) k (key)
    CROSS JOIN LATERAL (
        SELECT max(m.key) AS key, max(m.created_at) AS created_at FROM turnlog.messages m
        WHERE m.team_key = team AND m.key = k.key
    ) m
    CROSS JOIN LATERAL (
        SELECT p.message_key AS key, coalesce(x.path, p.path) AS path, count(*) AS calls,
            max(p.started_at) AS started_at, bool_or(p.started_at IS NULL) AS has_untimed,
            count(*) FILTER (WHERE p.tool_kind IN ('edit', 'delete', 'move')
                AND p.tool_state NOT IN ('output-error', 'output-denied', 'aborted')) AS edits
        FROM turnlog.parts p CROSS JOIN LATERAL (
            SELECT NULL AS path WHERE p.path IS NOT NULL
            UNION ALL SELECT x.path FROM turnlog.more_paths x
            WHERE x.team_key = team AND x.message_key = m.key AND x.sequence = p.sequence
        ) x
        WHERE p.team_key = team AND p.message_key = m.key
        GROUP BY 1, 2
    ) t
    CROSS JOIN LATERAL (
        SELECT count(*) AS places, CASE WHEN count(*) = 1 THEN min(x.session_key) END AS session_key
        FROM turnlog.memberships x WHERE x.team_key = team AND x.message_key = t.key
    ) o
    WHERE o.places > 0
    ON CONFLICT (team_key, message_key, path) DO UPDATE SET session_key = excluded.session_key, file = excluded.file,
        calls = excluded.calls, edits = excluded.edits, last_at = excluded.last_at;
END $$;

-- A statement changes rows of one team.
CREATE FUNCTION turnlog.count_touches_of_rows() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    PERFORM turnlog.count_touches(t.team_key, array_agg(DISTINCT t.message_key)) FROM rows t GROUP BY t.team_key;
    RETURN NULL;
END $$;
CREATE FUNCTION turnlog.count_touches_of_calls() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    PERFORM turnlog.count_touches(t.team_key, array_agg(DISTINCT t.message_key)) FROM rows t
    WHERE t.path IS NOT NULL GROUP BY t.team_key;
    RETURN NULL;
END $$;
CREATE FUNCTION turnlog.count_touches_of_messages() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    PERFORM turnlog.count_touches(t.team_key, array_agg(t.key)) FROM rows t
    WHERE t.has_tool_calls = 1 GROUP BY t.team_key;
    RETURN NULL;
END $$;
CREATE FUNCTION turnlog.count_touches_of_message() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    PERFORM turnlog.count_touches(NEW.team_key, ARRAY[NEW.key]);
    RETURN NULL;
END $$;
CREATE FUNCTION turnlog.count_touches_of_sessions() RETURNS trigger LANGUAGE plpgsql
SET plan_cache_mode = force_custom_plan AS $$ BEGIN
    PERFORM turnlog.count_touches(t.team_key, array_agg(x.message_key)) FROM rows t
    JOIN turnlog.memberships x ON x.team_key = t.team_key AND x.session_key = t.key GROUP BY t.team_key;
    RETURN NULL;
END $$;
CREATE FUNCTION turnlog.count_touches_of_session() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    PERFORM turnlog.count_touches(NEW.team_key, array_agg(x.message_key)) FROM turnlog.memberships x
    WHERE x.team_key = NEW.team_key AND x.session_key = NEW.key;
    RETURN NULL;
END $$;
CREATE TRIGGER count_touches_of_new AFTER INSERT ON turnlog.parts
    REFERENCING NEW TABLE AS rows FOR EACH STATEMENT EXECUTE FUNCTION turnlog.count_touches_of_calls();
CREATE TRIGGER count_touches_of_gone AFTER DELETE ON turnlog.parts
    REFERENCING OLD TABLE AS rows FOR EACH STATEMENT EXECUTE FUNCTION turnlog.count_touches_of_calls();
CREATE TRIGGER count_touches_of_new AFTER INSERT ON turnlog.more_paths
    REFERENCING NEW TABLE AS rows FOR EACH STATEMENT EXECUTE FUNCTION turnlog.count_touches_of_rows();
CREATE TRIGGER count_touches_of_gone AFTER DELETE ON turnlog.more_paths
    REFERENCING OLD TABLE AS rows FOR EACH STATEMENT EXECUTE FUNCTION turnlog.count_touches_of_rows();
CREATE TRIGGER count_touches_of_new AFTER INSERT ON turnlog.memberships
    REFERENCING NEW TABLE AS rows FOR EACH STATEMENT EXECUTE FUNCTION turnlog.count_touches_of_rows();
CREATE TRIGGER count_touches_of_gone AFTER DELETE ON turnlog.memberships
    REFERENCING OLD TABLE AS rows FOR EACH STATEMENT EXECUTE FUNCTION turnlog.count_touches_of_rows();
CREATE TRIGGER count_touches_of_new AFTER INSERT ON turnlog.messages
    REFERENCING NEW TABLE AS rows FOR EACH STATEMENT EXECUTE FUNCTION turnlog.count_touches_of_messages();
CREATE TRIGGER count_touches_of_time AFTER UPDATE OF created_at ON turnlog.messages FOR EACH ROW
    WHEN (OLD.created_at IS DISTINCT FROM NEW.created_at) EXECUTE FUNCTION turnlog.count_touches_of_message();
CREATE TRIGGER count_touches_of_new AFTER INSERT ON turnlog.sessions
    REFERENCING NEW TABLE AS rows FOR EACH STATEMENT EXECUTE FUNCTION turnlog.count_touches_of_sessions();
CREATE TRIGGER count_touches_of_folder AFTER UPDATE OF cwd ON turnlog.sessions FOR EACH ROW
    WHEN (OLD.cwd IS DISTINCT FROM NEW.cwd) EXECUTE FUNCTION turnlog.count_touches_of_session();

SELECT turnlog.count_touches(p.team_key, array_agg(DISTINCT p.message_key)) FROM turnlog.parts p
WHERE p.path IS NOT NULL GROUP BY p.team_key;
