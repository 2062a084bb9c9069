"""Which records and events begin and end a turn, ask the user, or say that the agent has ended.

Messages say most of it, whoever wrote them; an agent's table names the events of its log that say more.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final, Literal, TypeAlias

from turnlog.errors import TurnlogError

TurnMarker: TypeAlias = Literal["start", "end", "asks", "closed"]
"""`start`: a turn begins, and a marker of its end follows. `end`: the turn is over. `asks`: a permission is wanted.
`closed`: the agent itself has ended."""


HOOK_MARKERS: Final[Mapping[str, TurnMarker]] = {
    "hook:Stop": "end",
    "hook:StopFailure": "end",
    "hook:SubagentStop": "end",
    "hook:AfterAgent": "end",
    "hook:idle": "end",
    "hook:PermissionRequest": "asks",
    "hook:permission": "asks",
    "hook:Notification/agent_needs_input": "asks",
    "hook:Notification/elicitation_dialog": "asks",
    "hook:Notification/permission_prompt": "asks",
    "hook:Notification/ToolPermission": "asks",
    "hook:Notification/idle_prompt": "end",
    "hook:SessionEnd": "closed",
}
"""Of hook events, the same for every agent (docs/how-to/hooks.md)."""


@cache
def turn_markers(agent: str) -> Mapping[str, TurnMarker]:
    """Kinds of events -> what they say, for the agent of that name; those of hooks alone where it is not installed."""
    # Agents are found through the entry points of all installed packages: only where they are wanted.
    from turnlog import agents

    try:
        return {**HOOK_MARKERS, **agents.agent(agent).turn_markers}
    except TurnlogError:
        return HOOK_MARKERS


def log_marks_turns(agent: str) -> bool:
    """Whether the log of the agent of that name has events that say when a turn ends."""
    return any(marker == "end" and kind not in HOOK_MARKERS for kind, marker in turn_markers(agent).items())
