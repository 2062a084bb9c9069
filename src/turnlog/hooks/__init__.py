"""Hooks: what an agent tells the moment it happens, before its log has it.

`send` is what the agents start: it stands alone, so that it starts at once. `settings` puts it into an agent's own
settings and takes it out again. What a hook's event means is known to the agent's module (`turnlog.agents`).
"""
