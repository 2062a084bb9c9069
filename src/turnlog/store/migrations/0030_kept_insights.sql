-- What insights of sessions are made of that have been quiet for some days (store/sqlite/kept_insights.py): a report adds
-- what the others have. `division` names the clocks and the periods that a row is divided by.

CREATE TABLE kept_insights (division TEXT PRIMARY KEY, sums BLOB NOT NULL, sessions INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE kept_sessions (session_key INTEGER PRIMARY KEY) STRICT;

-- Whoever writes anything of a session writes the number of the change in `sessions` too; what else may change alone, as
-- projects are merged and sessions linked, is compared.
CREATE TRIGGER kept_session_updated AFTER UPDATE ON sessions
    WHEN (NEW.changed_seq <> OLD.changed_seq OR NEW.project_key IS NOT OLD.project_key OR NEW.cwd IS NOT OLD.cwd
        OR NEW.relationship IS NOT OLD.relationship OR NEW.shares <> OLD.shares OR NEW.calls <> OLD.calls
        OR NEW.cost <> OLD.cost OR NEW.prompts <> OLD.prompts OR NEW.steps <> OLD.steps
        OR NEW.agent <> OLD.agent OR NEW.external_id <> OLD.external_id)
    AND EXISTS (SELECT 1 FROM kept_sessions WHERE session_key = OLD.key) BEGIN
    DELETE FROM kept_insights;
    DELETE FROM kept_sessions;
END;
CREATE TRIGGER kept_session_deleted AFTER DELETE ON sessions
    WHEN EXISTS (SELECT 1 FROM kept_sessions WHERE session_key = OLD.key) BEGIN
    DELETE FROM kept_insights;
    DELETE FROM kept_sessions;
END;
