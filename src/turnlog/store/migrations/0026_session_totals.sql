-- Tokens that an agent counts for whole sessions only. `sessions.totals` has them as JSON by id, as logs say; `usage` has
-- them in rows of their own, so that they can be taken out again (store/reconcile/totals.py). `covered_calls` are calls
-- without tokens of their own in a session with totals; they are not among `unknown_calls`.
ALTER TABLE sessions ADD COLUMN totals TEXT;
ALTER TABLE sessions ADD COLUMN covered_calls INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN session_totals INTEGER NOT NULL DEFAULT 0;

CREATE TABLE usage_with_totals (
    quarter_hour INTEGER NOT NULL, model_key INTEGER NOT NULL, session_key INTEGER NOT NULL REFERENCES sessions (key) ON DELETE CASCADE,
    is_total INTEGER NOT NULL DEFAULT 0,
    calls INTEGER NOT NULL DEFAULT 0, unknown_calls INTEGER NOT NULL DEFAULT 0, unpriced_calls INTEGER NOT NULL DEFAULT 0,
    input INTEGER NOT NULL DEFAULT 0, cache_read INTEGER NOT NULL DEFAULT 0,
    cache_write_5m INTEGER NOT NULL DEFAULT 0, cache_write_1h INTEGER NOT NULL DEFAULT 0, cache_write INTEGER NOT NULL DEFAULT 0,
    output INTEGER NOT NULL DEFAULT 0, reasoning INTEGER NOT NULL DEFAULT 0, tool_prompt INTEGER NOT NULL DEFAULT 0,
    lower_bound INTEGER NOT NULL DEFAULT 0,
    cost INTEGER NOT NULL DEFAULT 0, reported_cost INTEGER NOT NULL DEFAULT 0,
    covered_calls INTEGER NOT NULL DEFAULT 0, session_totals INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (quarter_hour, model_key, session_key, is_total)
) STRICT, WITHOUT ROWID;

INSERT INTO usage_with_totals (quarter_hour, model_key, session_key, calls, unknown_calls, unpriced_calls,
    input, cache_read, cache_write_5m, cache_write_1h, cache_write, output, reasoning, tool_prompt,
    lower_bound, cost, reported_cost)
SELECT quarter_hour, model_key, session_key, calls, unknown_calls, unpriced_calls,
    input, cache_read, cache_write_5m, cache_write_1h, cache_write, output, reasoning, tool_prompt,
    lower_bound, cost, reported_cost FROM usage;

DROP TABLE usage;
ALTER TABLE usage_with_totals RENAME TO usage;
CREATE INDEX usage_by_session ON usage (session_key);
