"""Crush: where its sessions are, how they are read, and how its program is run (`docs/formats/crush.md`).

What reads the sessions is imported when there is something to read.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from turnlog.agents.base import Colour, Fold, Source, SourceKind
from turnlog.agents.built_in import BUILT_IN
from turnlog.agents.commands import CommandForm, words
from turnlog.agents.database_agent import DatabaseAgent
from turnlog.agents.files import holds_file

NAME: Final = "crush"

DATABASE: Final = "crush.db"

_COMMAND: Final = CommandForm(
    program="crush",
    packages=("@charmland/crush",),
    subcommands=(("run",), ()),
    resume=("--session",),
    prompted=("run", "--session", "{session}"),
    joins_words=True,
    model=words("-m --model"),
    session=words("-s --session"),
    other=words("-c --cwd -D --data-dir -H --host --channels --small-model"),
)
"""Of the source, August 2026."""


class Crush(DatabaseAgent):
    """See `turnlog.agents.database_agent`."""

    name = NAME
    display_name = "Crush"
    colour = Colour(light="#b5179e", dark="#f8a3e5")
    parser_version = 2
    homes = BUILT_IN[NAME].homes
    reader = "turnlog.agents.crush.sources"
    command = _COMMAND

    def home_folders(self) -> Sequence[Path]:
        """The folder of the user's data, and those of the projects that it lists."""
        from turnlog.agents.crush.projects import project_folders

        own = super().home_folders()
        return tuple(dict.fromkeys([*own, *project_folders(own)]))

    def roots(self) -> Sequence[Path]:
        """The folders that contain a database."""
        return [home for home in self.home_folders() if holds_file(home, DATABASE)]

    def session_fold(self, source: Source, state: bytes | None) -> Fold:
        """A fold of a session's messages, or of what is known about it."""
        if source.kind is SourceKind.SIDECAR:
            from turnlog.agents.crush.facts import CrushFactsFold

            return CrushFactsFold(source)
        from turnlog.agents.crush.fold import CrushFold

        return CrushFold(source, state)

    def structured_result(self, record: bytes, tool_call_id: str) -> msgspec.Raw | None:
        """What a tool says about its result beside the text."""
        from turnlog.agents.crush.contents import structured_result

        return structured_result(record, tool_call_id)
