-- Totals by quarter hour instead of by day: every zone's hours, days, weeks and months are made of whole ones.
-- `quarter_hour` is quarter hours since 1970-01-01, UTC; 0 for calls of an unknown time.

CREATE TABLE usage_by_quarter_hour (
    quarter_hour INTEGER NOT NULL, model_key INTEGER NOT NULL, session_key INTEGER NOT NULL REFERENCES sessions (key) ON DELETE CASCADE,
    calls INTEGER NOT NULL DEFAULT 0, unknown_calls INTEGER NOT NULL DEFAULT 0, unpriced_calls INTEGER NOT NULL DEFAULT 0,
    input INTEGER NOT NULL DEFAULT 0, cache_read INTEGER NOT NULL DEFAULT 0,
    cache_write_5m INTEGER NOT NULL DEFAULT 0, cache_write_1h INTEGER NOT NULL DEFAULT 0, cache_write INTEGER NOT NULL DEFAULT 0,
    output INTEGER NOT NULL DEFAULT 0, reasoning INTEGER NOT NULL DEFAULT 0, tool_prompt INTEGER NOT NULL DEFAULT 0,
    lower_bound INTEGER NOT NULL DEFAULT 0,
    cost INTEGER NOT NULL DEFAULT 0, reported_cost INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (quarter_hour, model_key, session_key)
) STRICT, WITHOUT ROWID;

-- No column of a message says that its call failed. A failed call has mostly no tokens and was in no total, so calls
-- without tokens are taken only where the day had some.
WITH calls AS (
    SELECT m.*, coalesce(m.model_key, 0) AS model,
        CASE WHEN m.created_at IS NULL THEN 0 ELSE (m.created_at - ((m.created_at % 900000) + 900000) % 900000) / 900000 END AS at,
        CASE WHEN m.created_at IS NULL THEN 0 ELSE (m.created_at - ((m.created_at % 86400000) + 86400000) % 86400000) / 86400000 END AS day,
        coalesce(m.input, m.cache_read, m.cache_write_5m, m.cache_write_1h, m.cache_write, m.output, m.reasoning, m.tool_prompt) IS NULL AS unknown
    FROM messages m WHERE m.role = 'assistant' AND m.billed_key IS NOT NULL
        AND coalesce(m.origin, '') NOT IN ('harness', 'notification')
)
INSERT INTO usage_by_quarter_hour
SELECT c.at, c.model, c.billed_key, count(*), sum(c.unknown), sum(NOT c.unknown AND c.cost IS NULL),
    coalesce(sum(c.input), 0), coalesce(sum(c.cache_read), 0),
    coalesce(sum(c.cache_write_5m), 0), coalesce(sum(c.cache_write_1h), 0), coalesce(sum(c.cache_write), 0),
    coalesce(sum(c.output), 0), coalesce(sum(c.reasoning), 0), coalesce(sum(c.tool_prompt), 0),
    sum(NOT c.unknown AND c.exactness IS 'lower_bound'),
    coalesce(sum(c.cost), 0), coalesce(sum(c.reported_cost), 0)
FROM calls c JOIN usage u ON u.day = c.day AND u.model_key = c.model AND u.session_key = c.billed_key
WHERE NOT c.unknown OR u.unknown_calls > 0
GROUP BY c.at, c.model, c.billed_key;

-- Where that does not add up to the day, the day's total is put as a whole at the day's first call.
CREATE TEMP TABLE wrong_days AS
SELECT u.day, u.model_key, u.session_key, min(q.quarter_hour) AS first
FROM usage u LEFT JOIN usage_by_quarter_hour q
    ON q.session_key = u.session_key AND q.model_key = u.model_key AND q.quarter_hour BETWEEN u.day * 96 AND u.day * 96 + 95
GROUP BY u.day, u.model_key, u.session_key
HAVING (u.calls, u.unknown_calls, u.unpriced_calls, u.input, u.cache_read, u.cache_write_5m, u.cache_write_1h,
        u.cache_write, u.output, u.reasoning, u.tool_prompt, u.lower_bound, u.cost, u.reported_cost)
    IS NOT (sum(q.calls), sum(q.unknown_calls), sum(q.unpriced_calls), sum(q.input), sum(q.cache_read),
        sum(q.cache_write_5m), sum(q.cache_write_1h), sum(q.cache_write), sum(q.output), sum(q.reasoning),
        sum(q.tool_prompt), sum(q.lower_bound), sum(q.cost), sum(q.reported_cost));

DELETE FROM usage_by_quarter_hour
WHERE (quarter_hour, model_key, session_key) IN (
    SELECT q.quarter_hour, q.model_key, q.session_key FROM usage_by_quarter_hour q JOIN wrong_days w
    ON w.session_key = q.session_key AND w.model_key = q.model_key AND q.quarter_hour BETWEEN w.day * 96 AND w.day * 96 + 95
);

INSERT INTO usage_by_quarter_hour
SELECT coalesce(w.first, u.day * 96), u.model_key, u.session_key, u.calls, u.unknown_calls, u.unpriced_calls,
    u.input, u.cache_read, u.cache_write_5m, u.cache_write_1h, u.cache_write, u.output, u.reasoning, u.tool_prompt,
    u.lower_bound, u.cost, u.reported_cost
FROM usage u JOIN wrong_days w ON w.day = u.day AND w.model_key = u.model_key AND w.session_key = u.session_key;

DROP TABLE wrong_days;
DROP TABLE usage;
ALTER TABLE usage_by_quarter_hour RENAME TO usage;
CREATE INDEX usage_by_session ON usage (session_key);
