"""A store with a history that has one of everything, and the command to look at it with."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.cli_runner import Command, call
from support.plain_agent import PlainAgent
from support.plain_history import write_history
from support.plain_store import read_home
from turnlog import agents, paths
from turnlog.agents.base import Agent


@pytest.fixture
def run() -> Command:
    """Call the command with these arguments; its output is no terminal's."""
    return call


@pytest.fixture
def logs(home: Path) -> Path:
    """The home of the plain agent, with three sessions."""
    folder = home / "plain"
    folder.mkdir()
    write_history(folder)
    return folder


@pytest.fixture
def store(logs: Path) -> Path:
    """The user's own store, with these logs in it."""
    path = paths.database_path()
    read_home(path, logs)
    return path


@pytest.fixture
def plain_agent(logs: Path, monkeypatch: pytest.MonkeyPatch) -> PlainAgent:
    """The plain agent as the only one that is installed."""
    agent = PlainAgent(logs)

    def registered() -> list[Agent]:
        return [agent]

    monkeypatch.setattr(agents, "agents", registered)
    monkeypatch.setattr(agents, "agents_here", registered)
    return agent
