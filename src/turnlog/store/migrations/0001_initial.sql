-- The store of one machine: what was read (sources, archive), what it means (sessions, messages, parts, events),
-- and what the user said about it (annotations, tombstones). Times are Unix milliseconds, UTC. Money is nano-dollars.
-- Keys are private to this file; ids (external_id and what is made from it) are the same on every machine.

CREATE TABLE owners (
    key INTEGER PRIMARY KEY,
    user TEXT NOT NULL DEFAULT '', team TEXT NOT NULL DEFAULT '', task TEXT NOT NULL DEFAULT '', machine TEXT NOT NULL DEFAULT '',
    UNIQUE (user, team, task, machine)
) STRICT;
INSERT INTO owners (key) VALUES (1);

CREATE TABLE projects (
    key INTEGER PRIMARY KEY,
    path TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL
) STRICT;

CREATE TABLE models (key INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;

-- Names of the price lists that costs were computed with.
CREATE TABLE price_versions (key INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;

-- What has been read, how far, and the state to go on from.
CREATE TABLE sources (
    key INTEGER PRIMARY KEY,
    agent TEXT NOT NULL,
    path TEXT NOT NULL UNIQUE,
    root TEXT NOT NULL,
    kind TEXT NOT NULL,
    session_id TEXT,
    appendable INTEGER NOT NULL DEFAULT 1,
    size INTEGER NOT NULL DEFAULT 0,          -- as of the last pass: with mtime_ns and inode, "nothing changed"
    mtime_ns INTEGER NOT NULL DEFAULT 0,
    device INTEGER NOT NULL DEFAULT 0,
    inode INTEGER NOT NULL DEFAULT 0,
    generation INTEGER NOT NULL DEFAULT 0,    -- +1 each time the file was rewritten
    cursor INTEGER NOT NULL DEFAULT 0,        -- bytes of this generation that are folded
    head_hash BLOB,                           -- of the first bytes, and of the last before the cursor: the same file?
    tail_hash BLOB,
    state BLOB,                               -- fold state at the cursor, a zstd frame
    parser_version INTEGER NOT NULL DEFAULT 0,
    lines INTEGER NOT NULL DEFAULT 0,
    vanished_at INTEGER,
    problem TEXT,                             -- why it could not be read on the last pass
    read_at INTEGER
) STRICT;
CREATE INDEX sources_by_session ON sources (session_id);

-- The bytes themselves, in zstd frames. A file that was rewritten is a new generation.
CREATE TABLE archive (
    source_key INTEGER NOT NULL REFERENCES sources (key) ON DELETE CASCADE,
    generation INTEGER NOT NULL,
    start INTEGER NOT NULL,
    length INTEGER NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (source_key, generation, start)
) STRICT;

CREATE TABLE generations (
    source_key INTEGER NOT NULL REFERENCES sources (key) ON DELETE CASCADE,
    generation INTEGER NOT NULL,
    size INTEGER NOT NULL DEFAULT 0,
    shared_prefix INTEGER NOT NULL DEFAULT 0, -- bytes that are those of the generation before: not stored again
    mode INTEGER, mtime_ns INTEGER,
    started_at INTEGER NOT NULL,
    PRIMARY KEY (source_key, generation)
) STRICT, WITHOUT ROWID;

CREATE TABLE sessions (
    key INTEGER PRIMARY KEY,
    owner_key INTEGER NOT NULL DEFAULT 1 REFERENCES owners (key),
    agent TEXT NOT NULL,
    external_id TEXT NOT NULL,
    native INTEGER NOT NULL DEFAULT 0,
    project_key INTEGER REFERENCES projects (key),
    title TEXT, title_source TEXT,
    cwd TEXT, git_branch TEXT, git_commit TEXT, agent_version TEXT,
    created_at INTEGER, updated_at INTEGER,
    parent_key INTEGER REFERENCES sessions (key) ON DELETE SET NULL,  -- derived from links, for lists
    relationship TEXT CHECK (relationship IN ('subagent', 'fork', 'continuation')),
    shares INTEGER NOT NULL DEFAULT 0,        -- shares messages with another session: who pays is worked out anew
    relink INTEGER NOT NULL DEFAULT 0,        -- has branches or compactions: fates are worked out anew
    active_leaf TEXT,
    patch_position INTEGER NOT NULL DEFAULT 0,
    turns INTEGER NOT NULL DEFAULT 0,
    messages INTEGER NOT NULL DEFAULT 0, prompts INTEGER NOT NULL DEFAULT 0, steps INTEGER NOT NULL DEFAULT 0,
    tool_calls INTEGER NOT NULL DEFAULT 0, failed_tool_calls INTEGER NOT NULL DEFAULT 0,
    reasoning_parts INTEGER NOT NULL DEFAULT 0, files INTEGER NOT NULL DEFAULT 0, events INTEGER NOT NULL DEFAULT 0,
    calls INTEGER NOT NULL DEFAULT 0, unknown_calls INTEGER NOT NULL DEFAULT 0, unpriced_calls INTEGER NOT NULL DEFAULT 0,
    input INTEGER NOT NULL DEFAULT 0, cache_read INTEGER NOT NULL DEFAULT 0,
    cache_write_5m INTEGER NOT NULL DEFAULT 0, cache_write_1h INTEGER NOT NULL DEFAULT 0, cache_write INTEGER NOT NULL DEFAULT 0,
    output INTEGER NOT NULL DEFAULT 0, reasoning INTEGER NOT NULL DEFAULT 0, tool_prompt INTEGER NOT NULL DEFAULT 0,
    lower_bound INTEGER NOT NULL DEFAULT 0,   -- some call's output is known only as "at least"
    cost INTEGER NOT NULL DEFAULT 0,          -- priced, of the calls this session pays for
    reported_cost INTEGER,                    -- the agent's own total
    titles TEXT, metadata TEXT,
    changed_seq INTEGER NOT NULL DEFAULT 0,
    UNIQUE (owner_key, agent, external_id)
) STRICT;
CREATE INDEX sessions_by_update ON sessions (updated_at DESC);
CREATE INDEX sessions_by_project ON sessions (project_key, updated_at DESC);
CREATE INDEX sessions_by_parent ON sessions (parent_key) WHERE parent_key IS NOT NULL;
CREATE INDEX sessions_by_task ON sessions (owner_key, updated_at DESC);

-- What either side of a relationship said about it.
CREATE TABLE links (
    child_id TEXT NOT NULL, parent_id TEXT NOT NULL, kind TEXT NOT NULL,
    agent TEXT NOT NULL,
    tool_call_id TEXT, message_id TEXT, inferred INTEGER NOT NULL DEFAULT 0, metadata TEXT,
    PRIMARY KEY (child_id, parent_id, kind)
) STRICT, WITHOUT ROWID;
CREATE INDEX links_by_parent ON links (parent_id);

-- A message once, whoever shares it. `body` is a zstd frame of canonical JSON (turnlog.model.Message).
CREATE TABLE messages (
    key INTEGER PRIMARY KEY AUTOINCREMENT,    -- never used twice: a search document of a message that went away finds nothing
    agent TEXT NOT NULL,
    external_id TEXT NOT NULL,
    role TEXT NOT NULL CHECK (role = 'assistant' OR role = 'user' OR role = 'developer' OR role = 'system'),
    origin TEXT,
    model_key INTEGER REFERENCES models (key),
    created_at INTEGER, completed_at INTEGER,
    stop_reason TEXT,
    revision INTEGER NOT NULL DEFAULT 1,
    changed_seq INTEGER NOT NULL,
    has_tool_calls INTEGER NOT NULL DEFAULT 0, has_reasoning INTEGER NOT NULL DEFAULT 0, has_files INTEGER NOT NULL DEFAULT 0,
    text_preview TEXT NOT NULL DEFAULT '',    -- first 200 characters of the text parts
    input INTEGER, cache_read INTEGER, cache_write_5m INTEGER, cache_write_1h INTEGER, cache_write INTEGER,
    output INTEGER, reasoning INTEGER, tool_prompt INTEGER,
    exactness TEXT,
    cost INTEGER, reported_cost INTEGER, price_key INTEGER REFERENCES price_versions (key),
    pays_key INTEGER REFERENCES sessions (key) ON DELETE SET NULL,    -- the one session whose totals it is in
    body_size INTEGER NOT NULL,
    body BLOB NOT NULL,
    UNIQUE (agent, external_id)
) STRICT;
CREATE INDEX messages_by_change ON messages (changed_seq);

-- Where a message stands in a session.
CREATE TABLE memberships (
    session_key INTEGER NOT NULL REFERENCES sessions (key) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    message_key INTEGER NOT NULL REFERENCES messages (key) ON DELETE CASCADE,
    source_key INTEGER REFERENCES sources (key) ON DELETE SET NULL,
    generation INTEGER NOT NULL DEFAULT 0,    -- of the source, that `records` points into
    parent_id TEXT, parent_record TEXT,       -- external_id of the parent, '' for the message whose key is one less
    turn INTEGER, step INTEGER,
    fate TEXT NOT NULL DEFAULT 'active',
    fate_cause TEXT,
    copied INTEGER NOT NULL DEFAULT 0,
    records BLOB,                             -- MessagePack: [[offset, length, what], ...] (agents.base.RecordRef)
    record_ids BLOB,                          -- see store/places.py
    PRIMARY KEY (session_key, position, message_key)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX memberships_by_message ON memberships (message_key, session_key);

-- A thin row a part, for questions about many sessions. Its indexes are in store/indexes.sql.
CREATE TABLE parts (
    message_key INTEGER NOT NULL REFERENCES messages (key) ON DELETE CASCADE,
    sequence INTEGER NOT NULL,
    type TEXT NOT NULL,
    tool_name TEXT, tool_kind TEXT, tool_call_id TEXT, tool_state TEXT,
    exit_code INTEGER,
    path TEXT,                                -- the file a call read or wrote
    media_type TEXT,
    spill TEXT,
    text_size INTEGER NOT NULL DEFAULT 0,     -- characters of text, reasoning or input
    output_size INTEGER NOT NULL DEFAULT 0,
    started_at INTEGER, completed_at INTEGER, duration_ms INTEGER,
    PRIMARY KEY (message_key, sequence)
) STRICT, WITHOUT ROWID;

CREATE TABLE blobs (
    sha256 BLOB PRIMARY KEY,
    size INTEGER NOT NULL,
    media_type TEXT,
    compressed INTEGER NOT NULL,
    data BLOB NOT NULL
) STRICT;

CREATE TABLE blob_uses (
    sha256 BLOB NOT NULL REFERENCES blobs (sha256),
    message_key INTEGER NOT NULL REFERENCES messages (key) ON DELETE CASCADE,
    PRIMARY KEY (message_key, sha256)
) STRICT, WITHOUT ROWID;
CREATE INDEX blob_uses_by_blob ON blob_uses (sha256);

-- Outputs that the agent wrote to files of their own, by name within the session.
CREATE TABLE spills (
    session_id TEXT NOT NULL,
    name TEXT NOT NULL,
    source_key INTEGER NOT NULL REFERENCES sources (key) ON DELETE CASCADE,
    media_type TEXT NOT NULL, size INTEGER NOT NULL,
    PRIMARY KEY (session_id, name)
) STRICT, WITHOUT ROWID;

-- What is not a message. `data` only where it is no record of the archive.
CREATE TABLE events (
    key INTEGER PRIMARY KEY,
    session_key INTEGER NOT NULL REFERENCES sessions (key) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    external_id TEXT NOT NULL,
    type TEXT NOT NULL, kind TEXT,
    known INTEGER NOT NULL DEFAULT 1,
    created_at INTEGER,
    source_key INTEGER REFERENCES sources (key) ON DELETE SET NULL,
    generation INTEGER NOT NULL DEFAULT 0,
    length INTEGER,
    record_id TEXT, parent_id TEXT,
    body BLOB,                                -- zstd frame of the HistoryEvent's JSON, when it says more than its record
    UNIQUE (session_key, position, external_id)
) STRICT;
CREATE INDEX events_by_kind ON events (kind, session_key);

CREATE TABLE diagnostics (
    source_key INTEGER NOT NULL REFERENCES sources (key) ON DELETE CASCADE,
    generation INTEGER NOT NULL,
    offset INTEGER NOT NULL,
    reason TEXT NOT NULL,
    length INTEGER NOT NULL, line INTEGER, json_path TEXT,
    severity TEXT NOT NULL,
    PRIMARY KEY (source_key, generation, offset, reason)
) STRICT, WITHOUT ROWID;

-- Totals by day, kept in the transaction that changes them. `day` is days since 1970-01-01, UTC.
CREATE TABLE usage (
    day INTEGER NOT NULL, model_key INTEGER NOT NULL, session_key INTEGER NOT NULL REFERENCES sessions (key) ON DELETE CASCADE,
    calls INTEGER NOT NULL DEFAULT 0, unknown_calls INTEGER NOT NULL DEFAULT 0, unpriced_calls INTEGER NOT NULL DEFAULT 0,
    input INTEGER NOT NULL DEFAULT 0, cache_read INTEGER NOT NULL DEFAULT 0,
    cache_write_5m INTEGER NOT NULL DEFAULT 0, cache_write_1h INTEGER NOT NULL DEFAULT 0, cache_write INTEGER NOT NULL DEFAULT 0,
    output INTEGER NOT NULL DEFAULT 0, reasoning INTEGER NOT NULL DEFAULT 0, tool_prompt INTEGER NOT NULL DEFAULT 0,
    lower_bound INTEGER NOT NULL DEFAULT 0,
    cost INTEGER NOT NULL DEFAULT 0, reported_cost INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (day, model_key, session_key)
) STRICT, WITHOUT ROWID;
CREATE INDEX usage_by_session ON usage (session_key);

-- One sequence of all that changed, in the order of commits.
CREATE TABLE changes (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    session_key INTEGER,
    kind TEXT NOT NULL,                       -- session | messages | forgotten | spill
    at INTEGER NOT NULL
) STRICT;

-- Not derived: what the user said. Keyed by session id, so that it outlives a rebuild.
CREATE TABLE annotations (
    session_id TEXT PRIMARY KEY,
    title TEXT, starred INTEGER NOT NULL DEFAULT 0, archived INTEGER NOT NULL DEFAULT 0, note TEXT, tags TEXT,
    changed_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE tombstones (
    session_id TEXT PRIMARY KEY,
    forgotten_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE runs (
    key INTEGER PRIMARY KEY,
    external_id TEXT NOT NULL UNIQUE,
    session_key INTEGER REFERENCES sessions (key) ON DELETE SET NULL,
    status TEXT NOT NULL CHECK (status IN ('pending', 'running', 'completed', 'failed', 'cancelled')),
    started_at INTEGER, ended_at INTEGER, body TEXT NOT NULL
) STRICT;

CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
