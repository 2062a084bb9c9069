-- Indexes that only questions need, not writing: a first import drops them and makes them at its end, which takes a
-- third of the time of keeping them. Every opening for writing makes those that are missing, but not while such an
-- import runs.
--
-- Conditions list no more than two values in an IN: for three, SQLite makes a table of them anew for every row.

CREATE INDEX IF NOT EXISTS messages_by_role ON messages (role, created_at);
-- Covers what a person typed, by time.
CREATE INDEX IF NOT EXISTS messages_typed ON messages (created_at, billed_key, origin)
    WHERE origin = 'prompt' OR origin = 'command' OR origin = 'shell';
-- Model calls that failed, by time.
CREATE INDEX IF NOT EXISTS messages_failed ON messages (created_at, billed_key) WHERE stop_reason = 'error';
-- Model calls whose tokens are estimated: few agents have any.
CREATE INDEX IF NOT EXISTS messages_estimated ON messages (exactness, billed_key) WHERE exactness = 'estimated';
CREATE INDEX IF NOT EXISTS messages_with_tools ON messages (created_at) WHERE has_tool_calls = 1;
-- Covers counts and times of all calls, by tool.
CREATE INDEX IF NOT EXISTS parts_by_tool ON parts (tool_name, tool_state, started_at, tool_kind, duration_ms)
    WHERE tool_name IS NOT NULL;
-- The longest and the median call of a command.
CREATE INDEX IF NOT EXISTS parts_by_command ON parts (tool_kind, command, duration_ms, started_at)
    WHERE tool_kind = 'execute';
CREATE INDEX IF NOT EXISTS parts_by_call ON parts (tool_call_id) WHERE tool_call_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS parts_by_path ON parts (path, tool_kind, tool_state) WHERE path IS NOT NULL;
-- The last edit of a file. Most parts have no path, and so need no more to be left out.
CREATE INDEX IF NOT EXISTS parts_by_edit ON parts (path, started_at)
    WHERE path IS NOT NULL AND (tool_kind = 'edit' OR tool_kind = 'delete' OR tool_kind = 'move')
    AND tool_state <> 'output-error' AND tool_state <> 'output-denied' AND tool_state <> 'aborted';
CREATE INDEX IF NOT EXISTS parts_by_spill ON parts (spill) WHERE spill IS NOT NULL;
CREATE INDEX IF NOT EXISTS parts_by_type ON parts (type) WHERE type NOT IN ('text', 'tool-call');
CREATE INDEX IF NOT EXISTS events_by_type ON events (type, created_at)
    WHERE type NOT IN ('record', 'run-metadata');
CREATE INDEX IF NOT EXISTS events_by_change ON events (changed_seq) WHERE changed_seq > 0;
-- Forgetting and rewritten logs look for everything that one file said; so does SQLite when a source is deleted.
CREATE INDEX IF NOT EXISTS memberships_by_source ON memberships (source_key, session_key) WHERE source_key IS NOT NULL;
CREATE INDEX IF NOT EXISTS events_by_source ON events (source_key) WHERE source_key IS NOT NULL;
CREATE INDEX IF NOT EXISTS streams_by_source ON streams (source_key);
-- Every written file is compared with the homes of agents that keep sessions as rows.
CREATE INDEX IF NOT EXISTS sources_by_root ON sources (agent, root);
-- Covers what every pass compares with the files. The rows hold the states of folds as well, and are ten times as large.
CREATE INDEX IF NOT EXISTS sources_as_read ON sources (problem, vanished_at, path, size, mtime_ns, device, inode);
CREATE INDEX IF NOT EXISTS diagnostics_by_severity ON diagnostics (severity);
-- SQLite looks for these when a session is forgotten: messages that were billed to it, and texts kept in its files only.
CREATE INDEX IF NOT EXISTS messages_by_billed ON messages (billed_key) WHERE billed_key IS NOT NULL;
CREATE INDEX IF NOT EXISTS archived_texts_by_source ON archived_texts (source_key);
-- Covers how many sessions a project has, and when it was last used.
CREATE INDEX IF NOT EXISTS sessions_of_projects ON sessions (project_key, relationship, updated_at);
-- Which of them a list leaves out (sqlite/sessions.py).
CREATE INDEX IF NOT EXISTS sessions_without_messages ON sessions (key) WHERE messages = 0;
-- Totals of a session are deleted when it is forgotten, and read when it is pushed.
CREATE INDEX IF NOT EXISTS call_totals_by_session ON call_totals (session_key);
CREATE INDEX IF NOT EXISTS edit_totals_by_session ON edit_totals (session_key);
-- A project is deleted when no session is in its folder, which SQLite looks for too.
CREATE INDEX IF NOT EXISTS sessions_by_folder ON sessions (folder_key) WHERE folder_key IS NOT NULL;
-- Sessions whose cost only their agent knows: few agents report one for calls that have no price.
CREATE INDEX IF NOT EXISTS sessions_with_own_cost ON sessions (key) WHERE reported_cost IS NOT NULL AND cost = 0;
