-- Indexes that only questions need, not writing: a first import drops them and makes them at its end, which takes a
-- third of the time of keeping them. Every opening for writing makes those that are missing, but not while such an
-- import runs.

CREATE INDEX IF NOT EXISTS messages_by_role ON messages (role, created_at);
CREATE INDEX IF NOT EXISTS messages_with_tools ON messages (created_at) WHERE has_tool_calls = 1;
-- Covers counts and times of all calls, by tool and by command.
CREATE INDEX IF NOT EXISTS parts_by_tool ON parts (tool_name, tool_state, started_at, tool_kind, duration_ms, command)
    WHERE tool_name IS NOT NULL;
CREATE INDEX IF NOT EXISTS parts_by_call ON parts (tool_call_id) WHERE tool_call_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS parts_by_path ON parts (path, tool_kind, tool_state) WHERE path IS NOT NULL;
CREATE INDEX IF NOT EXISTS parts_by_spill ON parts (spill) WHERE spill IS NOT NULL;
CREATE INDEX IF NOT EXISTS parts_by_type ON parts (type) WHERE type NOT IN ('text', 'tool-call');
CREATE INDEX IF NOT EXISTS events_by_type ON events (type, created_at)
    WHERE type NOT IN ('record', 'run-metadata');
CREATE INDEX IF NOT EXISTS events_by_change ON events (changed_seq) WHERE changed_seq > 0;
