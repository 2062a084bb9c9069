"""Goose: where its sessions are, how they are read, and how its program is run (`docs/formats/goose.md`).

What reads the sessions is imported when there is something to read.
"""

from __future__ import annotations

from typing import Final

import msgspec

from turnlog.agents.base import Colour, Fold, Source
from turnlog.agents.built_in import BUILT_IN
from turnlog.agents.commands import CommandForm, words
from turnlog.agents.database_agent import DatabaseAgent

NAME: Final = "goose"

_COMMAND: Final = CommandForm(
    program="goose",
    subcommands=(("run",), ("session",), ("s",), ()),
    resume=("session", "--resume", "--session-id"),
    prompted=("run", "--resume", "--session-id", "{session}", "-i", "-"),
    prompt=words("-t --text"),
    model=words("--model"),
    system_prompt=words("--system"),
    session=words("--session-id"),
    other=words(
        "-i --instructions --recipe --params --sub-recipe -n --name --path --max-tool-repetitions --max-turns",
        "--container --with-extension --with-streamable-http-extension --with-builtin --output-format --provider",
    ),
    branch=r"-\d{6}",
)
"""Of 1.52.0."""


class Goose(DatabaseAgent):
    """See `turnlog.agents.database_agent`."""

    name = NAME
    display_name = "Goose"
    colour = Colour(light="#57606a", dark="#c9d1d9")
    parser_version = 3
    homes = BUILT_IN[NAME].homes
    reader = "turnlog.agents.goose.sources"
    log_folders = ("sessions", "data/sessions")
    command = _COMMAND

    def session_fold(self, source: Source, state: bytes | None) -> Fold:
        """A fold of a session's rows, of what is known about it, or of a file of an older version."""
        from turnlog.agents.goose.sources import make_fold

        return make_fold(source, state)

    def structured_result(self, record: bytes, tool_call_id: str) -> msgspec.Raw | None:
        """The object that a tool returns beside its texts."""
        from turnlog.agents.goose.contents import structured_result

        return structured_result(record, tool_call_id)

    def holds_rows(self, source: Source) -> bool:
        """See `RowAgent.holds_rows`."""
        from turnlog.agents.goose.sources import holds_rows

        return holds_rows(source)
