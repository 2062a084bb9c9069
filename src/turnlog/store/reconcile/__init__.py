"""What holds when sources describe the same thing: one session twice, one message in two, a call and its subagent.

`merge` makes one reading of two. `precedence` says which source holds, `lesser_sources` supersedes the others. `forks`
and `lineage` are about messages that sessions share, `calls` about subagents and unfinished calls, `fates` and `titles`
about a session as a whole. `passes` is the order of all this.
"""
