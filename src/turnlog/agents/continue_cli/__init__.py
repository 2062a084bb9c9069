"""Continue: where its sessions are, how they are read, and how its program is run (`docs/formats/continue.md`).

What reads its sessions is imported when there is something to read.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from turnlog.agents.base import Agent, Colour, Detection, Fold, Source, SourceKind
from turnlog.agents.built_in import BUILT_IN
from turnlog.agents.commands import CommandForm, words

NAME: Final = "continue"

SESSIONS: Final = "sessions"

LIST: Final = "sessions.json"
"""The file with the time of each session."""

_COMMAND = CommandForm(
    program="cn",
    packages=("@continuedev/cli",),
    resume=("--fork",),
    model=words("--model"),
    session=words("--fork"),
    other=words("--config --org --rule --mcp --prompt --agent --allow --ask --exclude --format --id"),
)
"""Of 1.5.47. `--resume` takes up the newest session alone, so another one is continued as a fork."""


class Continue(Agent):
    """See `turnlog.agents.base.Agent`."""

    name = NAME
    display_name = "Continue"
    colour = Colour(light="#be185d", dark="#f4acc7")
    parser_version = 1
    homes = BUILT_IN[NAME].homes
    log_folders = (SESSIONS,)
    command = _COMMAND

    def find_sources(self, root: Path) -> Iterator[Source]:
        """Each session, and the list of all."""
        from turnlog.agents.continue_cli.sources import find_sources

        return find_sources(root)

    def detect(self, path: Path, head: bytes) -> Detection:
        """A session begins with its id, its title and its folder."""
        from turnlog.agents.continue_cli.sources import detect_file

        return detect_file(path, head)

    def fold(self, source: Source, state: bytes | None = None) -> Fold:
        """A fold of a session, or of the list of all."""
        if source.kind is SourceKind.SIDECAR:
            from turnlog.agents.continue_cli.sidecars import ContinueListFold

            return ContinueListFold()
        from turnlog.agents.continue_cli.fold import ContinueFold

        return ContinueFold(source)

    def structured_result(self, record: bytes, tool_call_id: str) -> msgspec.Raw | None:
        """None: results are texts."""
        return None
