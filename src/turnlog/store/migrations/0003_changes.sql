-- What a stream of changes tells of messages and events that are there already, by number of the change sequence.

-- 0: as it was when its message was new.
ALTER TABLE memberships ADD COLUMN changed_seq INTEGER NOT NULL DEFAULT 0;
CREATE INDEX memberships_by_change ON memberships (changed_seq) WHERE changed_seq > 0;

ALTER TABLE events ADD COLUMN changed_seq INTEGER NOT NULL DEFAULT 0;
