"""Full-text search: a second, disposable SQLite file beside the store.

`base` has the values. `searcher` answers queries, with `query` and `snippets`. `indexer` follows the store's change
sequence and forgets, with `documents`, `blocks` and `batch`; `follower` runs one in a second process. The store itself
never depends on this file: it may lag, be deleted or be damaged, and every hit is joined back to the store before it is
shown.
"""
