-- Totals of tool calls and edits, which reports add up instead of reading every call. Every write updates them, as it
-- does `usage`: they hold the calls of messages that are billed to a session. `quarter_hour` is that of the start.
-- Texts that a call does not have are empty. The keys begin with what reports group by.

CREATE TABLE call_totals (
    tool_name TEXT NOT NULL, tool_kind TEXT NOT NULL, command TEXT NOT NULL, model_key INTEGER NOT NULL,
    quarter_hour INTEGER NOT NULL, session_key INTEGER NOT NULL,
    calls INTEGER NOT NULL, failed INTEGER NOT NULL, denied INTEGER NOT NULL, aborted INTEGER NOT NULL, open INTEGER NOT NULL,
    duration_ms INTEGER NOT NULL, unknown_durations INTEGER NOT NULL,
    PRIMARY KEY (tool_name, tool_kind, command, model_key, quarter_hour, session_key)
) STRICT, WITHOUT ROWID;

CREATE TABLE edit_totals (
    path TEXT NOT NULL, session_key INTEGER NOT NULL, quarter_hour INTEGER NOT NULL,
    edits INTEGER NOT NULL,
    PRIMARY KEY (path, session_key, quarter_hour)
) STRICT, WITHOUT ROWID;

INSERT INTO call_totals
SELECT p.tool_name, coalesce(p.tool_kind, ''), coalesce(p.command, ''), coalesce(m.model_key, 0),
    CASE WHEN p.started_at IS NULL THEN 0 ELSE (p.started_at - ((p.started_at % 900000) + 900000) % 900000) / 900000 END,
    m.billed_key, count(*), sum(p.tool_state = 'output-error'), sum(p.tool_state = 'output-denied'), sum(p.tool_state = 'aborted'),
    sum(p.tool_state NOT IN ('output-available', 'output-error', 'output-denied', 'aborted')),
    coalesce(sum(p.duration_ms), 0), sum(p.duration_ms IS NULL)
FROM parts p JOIN messages m ON m.key = p.message_key
WHERE p.tool_name IS NOT NULL AND m.billed_key IS NOT NULL
GROUP BY 1, 2, 3, 4, 5, 6;

INSERT INTO edit_totals
SELECT t.path, m.billed_key,
    CASE WHEN p.started_at IS NULL THEN 0 ELSE (p.started_at - ((p.started_at % 900000) + 900000) % 900000) / 900000 END,
    count(*)
FROM (SELECT path, message_key, sequence FROM parts WHERE path IS NOT NULL
    UNION ALL SELECT path, message_key, sequence FROM more_paths) t
JOIN parts p ON p.message_key = t.message_key AND p.sequence = t.sequence JOIN messages m ON m.key = p.message_key
WHERE p.tool_kind IN ('edit', 'delete', 'move') AND p.tool_state NOT IN ('output-error', 'output-denied', 'aborted')
    AND m.billed_key IS NOT NULL
GROUP BY 1, 2, 3;

-- indexes.sql makes it again without the command, which has an index of its own.
DROP INDEX IF EXISTS parts_by_tool;
