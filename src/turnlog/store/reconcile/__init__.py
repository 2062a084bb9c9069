"""What happens when sources describe the same thing: a session twice, a message twice, a call and its subagent.

`merge` joins two readings. `precedence` says which source wins, and `lesser_sources` supersedes the others. `forks` and
`lineage` handle messages that sessions share, `calls` subagents and unfinished calls, `fates` and `titles` a session as
a whole. `passes` runs all of this in order.
"""
