"""Full-text search: a second, disposable SQLite file beside the store.

`base` has the values, `searcher` answers queries (`query`, `snippets`), `indexer` follows the store's change sequence
and forgets (`batch`, `blocks`, `documents`), `follower` runs an indexer in a second process. The store itself never depends on this file: it may lag, be deleted or
be damaged, and every hit is joined back to the store before it is shown.
"""
