-- Sums of `usage` by day, so that a report of a large store reads a row a day, and not one a quarter of an hour and
-- session. `day` is a day since 1970 on clocks that are `shift` quarter hours ahead of UTC. A day is here as a whole or
-- not at all: what changes it deletes it, and whoever adds it up next puts it back (store/sqlite/days.py). It is here
-- three times, with a row for each model (`level` 1), for each project (2), and for each of all four (0). What a level
-- does not tell apart is empty or 0, as is an unknown project.

CREATE TABLE usage_by_day (
    level INTEGER NOT NULL, shift INTEGER NOT NULL, day INTEGER NOT NULL,
    model_key INTEGER NOT NULL, project_key INTEGER NOT NULL, owner_key INTEGER NOT NULL, agent TEXT NOT NULL,
    calls INTEGER NOT NULL, unknown_calls INTEGER NOT NULL, covered_calls INTEGER NOT NULL,
    session_totals INTEGER NOT NULL, unpriced_calls INTEGER NOT NULL, lower_bound INTEGER NOT NULL,
    input INTEGER NOT NULL, cache_read INTEGER NOT NULL,
    cache_write_5m INTEGER NOT NULL, cache_write_1h INTEGER NOT NULL, cache_write INTEGER NOT NULL,
    output INTEGER NOT NULL, reasoning INTEGER NOT NULL, tool_prompt INTEGER NOT NULL,
    cost INTEGER NOT NULL, reported_cost INTEGER NOT NULL,
    PRIMARY KEY (level, shift, day, model_key, project_key, owner_key, agent)
) STRICT, WITHOUT ROWID;
CREATE INDEX days_of_usage ON usage_by_day (day);

-- The division of SQLite rounds towards zero, and a time may lie before 1970.
CREATE TRIGGER usage_by_day_inserted AFTER INSERT ON usage BEGIN
    DELETE FROM usage_by_day WHERE day BETWEEN NEW.quarter_hour / 96 - 2 AND NEW.quarter_hour / 96 + 1
        AND NEW.quarter_hour + shift >= day * 96 AND NEW.quarter_hour + shift < day * 96 + 96;
END;
CREATE TRIGGER usage_by_day_updated AFTER UPDATE ON usage BEGIN
    DELETE FROM usage_by_day WHERE day BETWEEN OLD.quarter_hour / 96 - 2 AND OLD.quarter_hour / 96 + 1
        AND OLD.quarter_hour + shift >= day * 96 AND OLD.quarter_hour + shift < day * 96 + 96;
    DELETE FROM usage_by_day WHERE NEW.quarter_hour <> OLD.quarter_hour
        AND day BETWEEN NEW.quarter_hour / 96 - 2 AND NEW.quarter_hour / 96 + 1
        AND NEW.quarter_hour + shift >= day * 96 AND NEW.quarter_hour + shift < day * 96 + 96;
END;
CREATE TRIGGER usage_by_day_deleted AFTER DELETE ON usage BEGIN
    DELETE FROM usage_by_day WHERE day BETWEEN OLD.quarter_hour / 96 - 2 AND OLD.quarter_hour / 96 + 1
        AND OLD.quarter_hour + shift >= day * 96 AND OLD.quarter_hour + shift < day * 96 + 96;
END;
CREATE TRIGGER usage_by_day_of_session AFTER UPDATE OF agent, project_key, owner_key ON sessions
    WHEN OLD.agent <> NEW.agent OR OLD.project_key IS NOT NEW.project_key OR OLD.owner_key <> NEW.owner_key BEGIN
    DELETE FROM usage_by_day WHERE day BETWEEN (SELECT min(quarter_hour) / 96 - 2 FROM usage WHERE session_key = NEW.key)
        AND (SELECT max(quarter_hour) / 96 + 1 FROM usage WHERE session_key = NEW.key);
END;
