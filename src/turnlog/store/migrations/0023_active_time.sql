-- Milliseconds between the messages of a session, without gaps of more than ten minutes, and the ends of the last
-- stretch without such a gap (store/reconcile/activity.py).
ALTER TABLE sessions ADD COLUMN active_ms INTEGER;
ALTER TABLE sessions ADD COLUMN active_since INTEGER;
ALTER TABLE sessions ADD COLUMN active_until INTEGER;

UPDATE sessions SET (active_ms, active_since, active_until) = (
    SELECT sum(iif(gap <= 600000, gap, 0)), coalesce(max(iif(gap > 600000, at, NULL)), min(at)), max(at) FROM (
        SELECT at, at - lag(at, 1, at) OVER (ORDER BY at) AS gap FROM (
            SELECT m.created_at AS at FROM memberships p CROSS JOIN messages m ON m.key = p.message_key
            WHERE p.session_key = sessions.key AND p.copied = 0 AND m.created_at IS NOT NULL
        )
    )
);
