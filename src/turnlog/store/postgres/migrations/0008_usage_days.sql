-- What sessions with owners used, by day (of UTC) and model: team figures are sums of these rows, which know whose the
-- session is without a look at it. Triggers keep them as `usage` is, in the transaction that changes it.

CREATE TABLE turnlog.usage_days (
    team_key int NOT NULL,
    -- As in `usage`; -1 for all models together.
    model_key bigint NOT NULL,
    day bigint NOT NULL, session_key bigint NOT NULL,
    -- The last day before on which the session used this model: without such a day in a span of time, the session is
    -- counted with this row.
    day_before bigint,
    owner_user text COLLATE "C" NOT NULL,
    -- None at the level `metrics`: there, a project is a hash that each machine makes in its own way.
    project_key bigint,
    calls bigint NOT NULL, unknown_calls bigint NOT NULL, unpriced_calls bigint NOT NULL, tokens bigint NOT NULL,
    output bigint NOT NULL, cost bigint NOT NULL,
    PRIMARY KEY (team_key, model_key, day, session_key)
);
CREATE INDEX usage_days_by_session ON turnlog.usage_days (team_key, session_key);

CREATE FUNCTION turnlog.count_days(team int, sessions bigint[]) RETURNS void LANGUAGE plpgsql AS $$ BEGIN
    DELETE FROM turnlog.usage_days d WHERE d.team_key = team AND d.session_key = ANY (sessions);
    INSERT INTO turnlog.usage_days
    SELECT team, u.model_key, u.day, u.session_key,
        lag(u.day) OVER (PARTITION BY u.session_key, u.model_key ORDER BY u.day),
        o.owner_user, CASE WHEN o.level <> 'metrics' THEN s.project_key END,
        u.calls, u.unknown_calls, u.unpriced_calls, u.tokens, u.output, u.cost
    FROM (
        SELECT u.session_key, u.quarter_hour / 96 AS day,
            CASE WHEN grouping(u.model_key) = 1 THEN -1 ELSE u.model_key END AS model_key,
            sum(u.calls) AS calls, sum(u.unknown_calls) AS unknown_calls, sum(u.unpriced_calls) AS unpriced_calls,
            sum(u.input + u.cache_read + u.cache_write_5m + u.cache_write_1h + u.cache_write + u.output + u.reasoning
                + u.tool_prompt) AS tokens,
            sum(u.output) AS output, sum(u.cost) AS cost
        FROM turnlog.usage u WHERE u.team_key = team AND u.session_key = ANY (sessions)
        GROUP BY GROUPING SETS (
            (u.session_key, u.quarter_hour / 96, u.model_key), (u.session_key, u.quarter_hour / 96)
        )
    ) u
    JOIN turnlog.sessions s ON s.team_key = team AND s.key = u.session_key
    JOIN turnlog.session_owners o ON o.team_key = team AND o.session_key = u.session_key;
END $$;

-- A statement changes rows of one team.
CREATE FUNCTION turnlog.count_touched_days() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    PERFORM turnlog.count_days(t.team_key, array_agg(DISTINCT t.session_key)) FROM touched t GROUP BY t.team_key;
    RETURN NULL;
END $$;
CREATE TRIGGER count_inserted_days AFTER INSERT ON turnlog.usage
    REFERENCING NEW TABLE AS touched FOR EACH STATEMENT EXECUTE FUNCTION turnlog.count_touched_days();
CREATE TRIGGER count_deleted_days AFTER DELETE ON turnlog.usage
    REFERENCING OLD TABLE AS touched FOR EACH STATEMENT EXECUTE FUNCTION turnlog.count_touched_days();

CREATE FUNCTION turnlog.count_updated_days() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    PERFORM turnlog.count_days(t.team_key, array_agg(DISTINCT t.session_key))
    FROM (SELECT team_key, session_key FROM old_rows UNION SELECT team_key, session_key FROM new_rows) t
    GROUP BY t.team_key;
    RETURN NULL;
END $$;
CREATE TRIGGER count_updated_days AFTER UPDATE ON turnlog.usage
    REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION turnlog.count_updated_days();

-- Another owner, upload level or project of a session that is counted.
CREATE FUNCTION turnlog.count_days_of_session() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    PERFORM turnlog.count_days(NEW.team_key, ARRAY[to_jsonb(NEW) ->> TG_ARGV[0]]::bigint[]);
    RETURN NULL;
END $$;
CREATE TRIGGER count_days_of_new_owner AFTER INSERT ON turnlog.session_owners FOR EACH ROW
    WHEN (NEW.session_key IS NOT NULL) EXECUTE FUNCTION turnlog.count_days_of_session('session_key');
CREATE TRIGGER count_days_of_owner AFTER UPDATE OF owner_user, level ON turnlog.session_owners FOR EACH ROW
    WHEN (NEW.session_key IS NOT NULL AND (OLD.owner_user <> NEW.owner_user
        OR (OLD.level = 'metrics') <> (NEW.level = 'metrics')))
    EXECUTE FUNCTION turnlog.count_days_of_session('session_key');
CREATE TRIGGER count_days_of_project AFTER UPDATE OF project_key ON turnlog.sessions FOR EACH ROW
    WHEN (OLD.project_key IS DISTINCT FROM NEW.project_key)
    EXECUTE FUNCTION turnlog.count_days_of_session('key');

SELECT turnlog.count_days(u.team_key, array_agg(DISTINCT u.session_key)) FROM turnlog.usage u GROUP BY u.team_key;
