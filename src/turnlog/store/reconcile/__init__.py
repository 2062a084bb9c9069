"""What holds when sources describe the same thing: one session twice, one message in two, a call and its subagent.

`merge` makes one reading of two. `precedence` says which source holds, and `streams`, `hook_events` and `chat_answers`
supersede the lesser ones. `forks` and `lineage` are about messages that sessions share, `subagents` and
`unfinished_calls` about calls, `fates` and `titles` about a session as a whole. `passes` is the order of all this.
"""
