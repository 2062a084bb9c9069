"""This machine's side of a hub: who it is there, what leaves it, and how that gets there.

`state` keeps the connection and the upload levels, `leaving` makes of a batch what may leave, `client` speaks to the
hub, `pusher` brings everything there, `following` does so while agents run.
"""
