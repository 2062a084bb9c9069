-- Bodies lie beside the messages, neighbours together: see turnlog/store/frames.py.

CREATE TABLE frames (
    key INTEGER PRIMARY KEY,                  -- of the first message in it; of a body that stands alone the negative one
    data BLOB NOT NULL                        -- zstd frames of canonical JSON: turnlog.model.Message, joined by commas
) STRICT;

INSERT INTO frames (key, data) SELECT -key, body FROM messages ORDER BY key DESC;

ALTER TABLE messages ADD COLUMN frame_key INTEGER NOT NULL DEFAULT 0;
ALTER TABLE messages ADD COLUMN frame_start INTEGER NOT NULL DEFAULT 0;    -- bytes of the data
ALTER TABLE messages ADD COLUMN frame_size INTEGER NOT NULL DEFAULT 0;
ALTER TABLE messages ADD COLUMN body_start INTEGER NOT NULL DEFAULT 0;    -- in the JSON of the frame; body_size bytes

UPDATE messages SET frame_key = -key, frame_size = length(body);

ALTER TABLE messages DROP COLUMN body;
