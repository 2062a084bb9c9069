-- Indexes that only questions need, not writing: a first import drops them and makes them at its end, which takes a
-- third of the time of keeping them. Every opening for writing makes those that are missing, but not while such an
-- import runs.

CREATE INDEX IF NOT EXISTS messages_by_role ON messages (role, created_at);
CREATE INDEX IF NOT EXISTS messages_with_tools ON messages (created_at) WHERE has_tool_calls = 1;
CREATE INDEX IF NOT EXISTS parts_by_tool ON parts (tool_name, tool_state, started_at) WHERE tool_name IS NOT NULL;
CREATE INDEX IF NOT EXISTS parts_by_call ON parts (tool_call_id) WHERE tool_call_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS parts_by_path ON parts (path) WHERE path IS NOT NULL;
CREATE INDEX IF NOT EXISTS parts_by_spill ON parts (spill) WHERE spill IS NOT NULL;
CREATE INDEX IF NOT EXISTS parts_by_type ON parts (type) WHERE type NOT IN ('text', 'tool-call');
CREATE INDEX IF NOT EXISTS events_by_change ON events (changed_seq) WHERE changed_seq > 0;
