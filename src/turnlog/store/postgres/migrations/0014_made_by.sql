-- The token with which somebody made a token, an invitation or a link: they end with it.
ALTER TABLE turnlog.secrets ADD COLUMN made_by text COLLATE "C";
CREATE INDEX secrets_by_maker ON turnlog.secrets (made_by) WHERE made_by IS NOT NULL;
