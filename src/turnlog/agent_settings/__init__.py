"""Changes of the settings of agents that can be shown before they are made, and undone.

`changes` has the plan of a change and the journal that says how to undo it. `jsonc` edits JSON with comments.
"""
