-- Sessions whose cost only their agent knows: few agents report one for calls that have no price, and every report asks.
CREATE INDEX sessions_with_own_cost ON turnlog.sessions (team_key, key) WHERE reported_cost IS NOT NULL AND cost = 0;
