-- Files get the person in front, and not the machine alone: programs that push with a person's token are no machine, and
-- two people had one file of one path. What both wrote before stays as it is: nobody knows whose it is.
UPDATE turnlog.sources s SET path = m.user_id || '/' || s.path, root = m.user_id || '/' || s.root
FROM turnlog.machines m WHERE m.team_key = s.team_key AND left(s.path, length(m.id) + 1) = m.id || ':';

UPDATE turnlog.sources s SET path = o.user_id || '/' || s.path, root = o.user_id || '/' || s.root
FROM (
    SELECT x.team_key, x.source_key, min(o.owner_user) AS user_id
    FROM (
        SELECT team_key, source_key, session_key FROM turnlog.memberships
        UNION SELECT team_key, source_key, session_key FROM turnlog.streams
        UNION SELECT team_key, source_key, session_key FROM turnlog.events
    ) x
    JOIN turnlog.session_owners o ON o.team_key = x.team_key AND o.session_key = x.session_key
    GROUP BY x.team_key, x.source_key HAVING count(DISTINCT o.owner_user) = 1
) o
WHERE o.team_key = s.team_key AND o.source_key = s.key AND left(s.path, 8) = 'browser:';

-- Whether a text is JSON, as in SQLite. Before version 16, PostgreSQL has no test that ends without an error.
CREATE FUNCTION turnlog.json_valid(document text) RETURNS smallint LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN
    IF document IS NULL THEN
        RETURN 0;
    END IF;
    PERFORM count(*) FROM turnlog.json_each(document);
    RETURN 1;
EXCEPTION WHEN OTHERS THEN
    RETURN 0;
END $$;
