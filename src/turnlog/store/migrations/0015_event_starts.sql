-- The byte of its file at which an event's record begins, where that is not its position: an agent whose sessions go
-- on in several files sets the positions of one behind those of another.

ALTER TABLE events ADD COLUMN start INTEGER;
