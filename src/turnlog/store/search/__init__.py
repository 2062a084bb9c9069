"""Full-text search in a second, disposable SQLite file next to the store.

`base` has the values. `searcher` answers queries, using `query` and `snippets`. `indexer` follows the store's change
sequence and forgets sessions, using `documents`, `blocks` and `batch`; `follower` runs one in a second process. The
store never depends on the index: it may lag, be deleted or be damaged, and hits are checked against the store before
they are shown.
"""
