-- A session that its owner has put into the trash: nobody sees it, and some days later it is forgotten.
ALTER TABLE turnlog.session_owners ADD COLUMN trashed_at bigint;
CREATE INDEX session_owners_in_trash ON turnlog.session_owners (team_key, trashed_at) WHERE trashed_at IS NOT NULL;

-- Which sessions a list leaves out.
CREATE INDEX sessions_without_messages ON turnlog.sessions (team_key, key) WHERE messages = 0;

-- A subagent goes into the trash with its parent, as it is shown with it.
CREATE OR REPLACE FUNCTION turnlog.inherit_readers(team int, child bigint, parent bigint) RETURNS void LANGUAGE sql AS $$
    UPDATE turnlog.session_owners c
    SET visibility = p.visibility, changed_at = p.changed_at, trashed_at = p.trashed_at
    FROM turnlog.session_owners p
    WHERE c.team_key = team AND c.session_key = child AND p.team_key = team AND p.session_key = parent
        AND c.owner_user = p.owner_user
        AND (c.visibility <> p.visibility OR c.trashed_at IS DISTINCT FROM p.trashed_at);
    INSERT INTO turnlog.session_readers (team_key, session_id, reader)
    SELECT team, c.session_id, r.reader
    FROM turnlog.session_owners c
    JOIN turnlog.session_owners p ON p.team_key = c.team_key AND p.owner_user = c.owner_user
    JOIN turnlog.session_readers r ON r.team_key = p.team_key AND r.session_id = p.session_id
    WHERE c.team_key = team AND c.session_key = child AND p.session_key = parent
    ON CONFLICT DO NOTHING;
$$;

-- What is in the trash does not count in the figures of a team.
CREATE OR REPLACE FUNCTION turnlog.count_days(team int, sessions bigint[]) RETURNS void LANGUAGE plpgsql AS $$ BEGIN
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
    JOIN turnlog.session_owners o ON o.team_key = team AND o.session_key = u.session_key AND o.trashed_at IS NULL;
END $$;
CREATE TRIGGER count_days_of_trash AFTER UPDATE OF trashed_at ON turnlog.session_owners FOR EACH ROW
    WHEN (NEW.session_key IS NOT NULL AND (OLD.trashed_at IS NULL) <> (NEW.trashed_at IS NULL))
    EXECUTE FUNCTION turnlog.count_days_of_session('session_key');
