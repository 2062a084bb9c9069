-- Columns are named as what they hold: the session that is billed for a message; that a session has branches or
-- compactions, so that fates are worked out over the tree of its records; and the position of its newest facts.

ALTER TABLE messages RENAME COLUMN pays_key TO billed_key;
ALTER TABLE sessions RENAME COLUMN relink TO has_branches;
ALTER TABLE sessions RENAME COLUMN patch_position TO facts_position;
