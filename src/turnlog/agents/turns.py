"""What an agent's events say of its turns: that one begins or ends, that somebody is asked, that all is over.

Messages say most of it, whoever wrote them; an agent's table names the events of its log that say more.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final, Literal, Protocol, TypeAlias, runtime_checkable

from turnlog.agents.base import Agent
from turnlog.errors import TurnlogError

TurnSign: TypeAlias = Literal["start", "end", "asks", "closed"]
"""`start`: a turn begins, and its end will be told. `end`: the turn is over. `asks`: somebody must allow something.
`closed`: the agent itself has ended."""


@runtime_checkable
class TurnAgent(Agent, Protocol):
    """An agent whose log tells of turns by events of these kinds (of `RunMetadataEvent` and `RecordEvent`)."""

    turn_signs: Mapping[str, TurnSign]


HOOK_SIGNS: Final[Mapping[str, TurnSign]] = {
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
"""Of hooks, the same for every agent (docs/how-to/hooks.md)."""


def turn_signs(agent: object) -> Mapping[str, TurnSign]:
    """Kinds of events -> what they say, for an agent of which nothing else needs to be known."""
    return {**HOOK_SIGNS, **(agent.turn_signs if isinstance(agent, TurnAgent) else {})}


@cache
def turn_signs_of(name: str) -> Mapping[str, TurnSign]:
    """The same by the agent's name; what hooks say where nobody knows the agent."""
    # Agents are found through the entry points of all installed packages: only where they are wanted.
    from turnlog import agents

    try:
        return turn_signs(agents.agent(name))
    except TurnlogError:
        return HOOK_SIGNS


def log_tells_turns(name: str) -> bool:
    """Whether the log of the agent of that name has events that say when a turn ends."""
    return any(sign == "end" and kind not in HOOK_SIGNS for kind, sign in turn_signs_of(name).items())
