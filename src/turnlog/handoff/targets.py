"""The agents that a session can be handed to, and whether they are installed here."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

from turnlog import agents
from turnlog.agents.base import Agent
from turnlog.errors import HandoffError
from turnlog.paths import find_program

if TYPE_CHECKING:
    from turnlog.agents.handoffs import HandoffWriter


class Target(NamedTuple):
    """An agent that a session can be handed to."""

    name: str
    display_name: str
    is_installed: bool
    """Whether its program is found here."""


def targets() -> list[Target]:
    """The agents that sessions can be handed to, those that are installed first."""
    found = [_target(agent) for agent in agents.agents() if agent.handoff is not None]
    return sorted(found, key=lambda target: (not target.is_installed, target.name))


def _target(agent: Agent) -> Target:
    program = agent.command.program if agent.command else None
    return Target(agent.name, agent.display_name, program is not None and find_program(program) is not None)


def target_agent(name: str) -> Agent:
    """The agent of this name. Raises HandoffError if no session can be handed to it."""
    agent = agents.agent(name)
    if agent.handoff is None:
        others = ", ".join(sorted(target.name for target in targets()))
        raise HandoffError(f"no session can be handed to {agent.display_name}: there are {others}")
    return agent


def writer_of(agent: Agent) -> HandoffWriter:
    """What writes sessions for an agent that has a writer."""
    return cast("HandoffWriter", agents.load_target(agent.handoff or ""))


def home_of(agent: Agent) -> Path:
    """The home to write to: the first with logs, or the first that is configured."""
    return next(iter([*agent.roots(), *agent.home_folders()]))
