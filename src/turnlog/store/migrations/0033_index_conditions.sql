-- indexes.sql makes them again, with conditions that SQLite computes without a table for every row.
DROP INDEX IF EXISTS messages_typed;
DROP INDEX IF EXISTS parts_by_edit;
