"""Runs: agents that are started through turnlog, from their first row to the session that their log tells of.

Who starts them is elsewhere: `turnlog run`, and the runtimes of `turnlog.chat`. Rows are `turnlog.store.runs`.
"""
