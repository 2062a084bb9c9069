"""Hermes Agent: rows of a database that holds all sessions (`docs/formats/hermes.md`).

What reads the database is imported when there is something to read.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from turnlog.agents.base import Colour, Fold, Source
from turnlog.agents.built_in import BUILT_IN
from turnlog.agents.commands import CommandForm, words
from turnlog.agents.database_agent import DatabaseAgent
from turnlog.agents.files import holds_file, holds_folder

NAME: Final = "hermes"

DATABASE: Final = "state.db"
PROFILES: Final = "profiles"
"""The folder of other profiles, each with its own database."""

_COMMAND = CommandForm(
    program="hermes",
    resume=("--resume",),
    subcommands=(("chat",), ()),
    prompt=words("-q --query"),
    model=words("-m --model"),
    session=words("-r --resume"),
    other=words("--provider --image --toolsets -t --skills -s --source --max-turns -p --profile"),
)
"""Of 0.19.0."""


class Hermes(DatabaseAgent):
    """See `turnlog.agents.database_agent`."""

    name = NAME
    display_name = "Hermes Agent"
    colour = Colour(light="#93640c", dark="#e3c04f")
    parser_version = 2
    homes = BUILT_IN[NAME].homes
    reader = "turnlog.agents.hermes.sources"
    command = _COMMAND

    def roots(self) -> Sequence[Path]:
        """The homes that contain a database."""
        return [home for home in self.home_folders() if holds_file(home, DATABASE) or holds_folder(home, PROFILES)]

    def session_fold(self, source: Source, state: bytes | None) -> Fold:
        """A fold of a session's rows, or of what is known about it."""
        from turnlog.agents.hermes.sources import is_about

        if is_about(source):
            from turnlog.agents.hermes.facts import HermesFactsFold

            return HermesFactsFold(source)
        from turnlog.agents.hermes.fold import HermesFold

        return HermesFold(source, state)

    def structured_result(self, record: bytes, tool_call_id: str) -> msgspec.Raw | None:
        """The object that the text of a result is."""
        from turnlog.agents.hermes.contents import structured_result

        return structured_result(record)
