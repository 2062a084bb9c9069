"""An invented agent: the description by which turnlog knows it.

Every command that lists the agents imports this module. What reads logs is imported when there is something to read.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from turnlog.agents.base import Agent, Colour, Detection, Fold, Source
from turnlog.agents.commands import CommandForm, words
from turnlog.paths import Folders

NAME = "example-agent"

SESSIONS = "sessions"
"""The folder of logs in a home."""


class ExampleAgent(Agent):
    """See `turnlog.agents.base.Agent`."""

    name = NAME
    display_name = "Example Agent"
    colour = Colour(light="#1c7c3c", dark="#7fdc9f")
    parser_version = 1
    homes = Folders(("~/.example-agent",), variable="EXAMPLE_AGENT_HOME")
    log_folders = (SESSIONS,)
    command = CommandForm(
        program="example-agent", resume=("--session",), session=words("--session"), model=words("--model")
    )

    def find_sources(self, root: Path) -> Iterator[Source]:
        """Every log below a home."""
        from turnlog_example_agent.reader import find_sources

        return find_sources(root)

    def detect(self, path: Path, head: bytes) -> Detection:
        """A log's first record has a session and a known type."""
        from turnlog_example_agent.reader import detect

        return detect(path, head)

    def fold(self, source: Source, state: bytes | None = None) -> Fold:
        """A fold of a log."""
        from turnlog_example_agent.reader import ExampleFold

        return ExampleFold(source, state)

    def structured_result(self, record: bytes, tool_call_id: str) -> msgspec.Raw | None:
        """None: results are texts."""
        return None
