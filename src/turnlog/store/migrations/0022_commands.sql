-- The program and subcommand that a call runs (store/commands.py). NULL for other calls, and for those that an earlier
-- version read until their session is rebuilt.
ALTER TABLE parts ADD COLUMN command TEXT;

-- indexes.sql makes them again, with the columns that counts of tools, commands and files need.
DROP INDEX IF EXISTS parts_by_tool;
DROP INDEX IF EXISTS parts_by_path;
