"""Runs: agents that were started through turnlog, from their first row to the session in their log.

`turnlog run` and the runtimes of `turnlog.chat` start them. Rows are `turnlog.store.values`.
"""
