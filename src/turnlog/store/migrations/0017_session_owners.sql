-- A session is known by its agent and the agent's id of it. Whose it is may change.
CREATE UNIQUE INDEX sessions_by_id ON sessions (agent, external_id);

CREATE INDEX owners_by_team ON owners (team);
CREATE INDEX owners_by_task ON owners (task);
