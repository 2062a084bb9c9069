-- Of most events the columns say all but the record's own JSON: see turnlog/store/stored_events.py.

ALTER TABLE events ADD COLUMN data BLOB;
