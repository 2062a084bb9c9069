-- Blobs of stores that many people push to. A message refers to a blob by its hash; that alone must not show bytes that
-- somebody else has pushed. So a reference is a claim until its owner has sent the bytes.

CREATE TABLE turnlog.blob_holders (
    team_key int NOT NULL, sha256 bytea NOT NULL, owner text COLLATE "C" NOT NULL,
    PRIMARY KEY (team_key, sha256, owner)
);
CREATE TABLE turnlog.blob_claims (
    team_key int NOT NULL, message_key bigint NOT NULL, sha256 bytea NOT NULL, owner text COLLATE "C" NOT NULL,
    size bigint NOT NULL, media_type text COLLATE "C",
    PRIMARY KEY (team_key, message_key, sha256)
);
CREATE INDEX blob_claims_by_blob ON turnlog.blob_claims (team_key, owner, sha256);

-- Whether the bytes are in the store of blobs beside the database.
ALTER TABLE turnlog.blobs ADD outside smallint NOT NULL DEFAULT 0;

CREATE FUNCTION turnlog.drop_blob_claims() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    DELETE FROM turnlog.blob_claims r USING gone g WHERE r.team_key = g.team_key AND r.message_key = g.key;
    RETURN NULL;
END $$;
CREATE TRIGGER drop_blob_claims AFTER DELETE ON turnlog.messages
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION turnlog.drop_blob_claims();

-- Blobs beside the database that no message names any more.
CREATE TABLE turnlog.blob_garbage (
    team_key int NOT NULL, sha256 bytea NOT NULL,
    PRIMARY KEY (team_key, sha256)
);

CREATE FUNCTION turnlog.drop_blob_holders() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO turnlog.blob_garbage (team_key, sha256) SELECT g.team_key, g.sha256 FROM gone g WHERE g.outside = 1
        ON CONFLICT DO NOTHING;
    DELETE FROM turnlog.blob_holders r USING gone g WHERE r.team_key = g.team_key AND r.sha256 = g.sha256;
    RETURN NULL;
END $$;
CREATE TRIGGER drop_blob_holders AFTER DELETE ON turnlog.blobs
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION turnlog.drop_blob_holders();
