"""The change feed: finished rows of a store, in batches, for another store that takes them.

`values` is a batch, `reading` makes one from what has changed, `taking` writes one. Both are written in the SQL of
SQLite and run on every engine. Taking the same batch again changes nothing.
"""
