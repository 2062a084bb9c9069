-- Model calls whose tokens are estimated: few agents have any, and every report asks.
CREATE INDEX messages_estimated ON turnlog.messages (team_key, billed_key) WHERE exactness = 'estimated';
