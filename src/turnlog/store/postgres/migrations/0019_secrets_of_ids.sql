-- What a person's machines hash ids with where these leave hashed. It is drawn when it is first asked for, and nobody else
-- is shown it: members know the ids of people and teams, and could guess what was hashed with them alone.
CREATE TABLE turnlog.id_secrets (
    team_key int NOT NULL, user_id text COLLATE "C" NOT NULL, secret text COLLATE "C" NOT NULL,
    PRIMARY KEY (team_key, user_id)
);
