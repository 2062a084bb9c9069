-- The folder that a session's own log names. The project follows from it: a subagent without a folder of its own
-- belongs to its parent's.

ALTER TABLE sessions ADD COLUMN folder_key INTEGER REFERENCES projects (key);

UPDATE sessions SET folder_key = project_key;

UPDATE sessions SET project_key = (
    WITH RECURSIVE above (key, depth) AS (
        SELECT sessions.key, 0
        UNION
        SELECT s.parent_key, depth + 1 FROM above JOIN sessions s USING (key)
        WHERE s.folder_key IS NULL AND s.relationship = 'subagent' AND s.parent_key IS NOT NULL AND depth < 100
    )
    SELECT s.folder_key FROM above JOIN sessions s USING (key) WHERE s.folder_key IS NOT NULL ORDER BY depth LIMIT 1
)
WHERE folder_key IS NULL AND relationship = 'subagent';

-- Search marks the messages of these sessions anew.
INSERT INTO changes (session_key, kind, at)
SELECT key, 'session', CAST(unixepoch() AS INTEGER) * 1000 FROM sessions
WHERE folder_key IS NULL AND project_key IS NOT NULL;

-- What git calls a checkout without a branch.
UPDATE sessions SET git_branch = NULL WHERE git_branch = 'HEAD';

-- The repository that a folder is a git worktree of; the folder itself if it is none; NULL until it is looked at, which
-- the next transaction does. `worktree` is the name of the worktree.
ALTER TABLE projects ADD COLUMN repository_key INTEGER REFERENCES projects (key);
ALTER TABLE projects ADD COLUMN worktree TEXT;
