"""Hooks: events that an agent reports the moment they happen, before its log has them.

`send` is the program that agents start; it imports nothing, so that it starts at once. `settings` installs it in an
agent's settings and removes it. Where these are, and what the events mean, is in the agent's package (`Agent.hooks`,
`turnlog.agents.hook_events`).
"""
