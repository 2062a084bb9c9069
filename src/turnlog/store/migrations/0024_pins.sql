-- Ids of the messages that the user has pinned, as a JSON array.
ALTER TABLE annotations ADD COLUMN pins TEXT;
