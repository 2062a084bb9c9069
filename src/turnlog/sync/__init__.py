"""From agents' logs to the store.

`syncer` makes one pass, `reader` reads what is new in one source (in an open file: `log_file`), `watcher` follows
files while agents write them, `importing` takes a file from elsewhere, `rebuild` reads the archive again.
"""
