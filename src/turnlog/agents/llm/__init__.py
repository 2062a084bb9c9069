"""llm, Simon Willison's program: where its database is, and how it is read (`docs/formats/llm.md`).

What reads the database is imported when there is something to read.
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

NAME: Final = "llm"

DATABASE: Final = "logs.db"

_COMMAND = CommandForm(
    program="llm",
    subcommands=(("prompt",), ("chat",), ()),
    resume=("chat", "--cid"),
    prompted=("--cid", "{session}"),
    model=words("-m --model"),
    system_prompt=words("-s --system"),
    session=words("--cid --conversation"),
    other=words(
        "-a --attachment -T --tool --functions --cl --chain-limit -o --option --schema --schema-multi -f --fragment",
        "--sf --system-fragment -t --template --key --save -q --query -d --database",
    ),
)
"""Of 0.36."""


class Llm(DatabaseAgent):
    """See `turnlog.agents.database_agent`."""

    name = NAME
    display_name = "llm"
    colour = Colour(light="#226a66", dark="#5eead4")
    parser_version = 1
    homes = BUILT_IN[NAME].homes
    reader = "turnlog.agents.llm.sources"
    command = _COMMAND

    def roots(self) -> Sequence[Path]:
        """The homes that contain a database."""
        return [home for home in self.home_folders() if holds_file(home, DATABASE)]

    def session_fold(self, source: Source, state: bytes | None) -> Fold:
        """A fold of a conversation's rows, or of what is known about it."""
        if source.kind is SourceKind.SIDECAR:
            from turnlog.agents.llm.facts import LlmFactsFold

            return LlmFactsFold(source)
        from turnlog.agents.llm.fold import LlmFold

        return LlmFold(source, state)

    def structured_result(self, record: bytes, tool_call_id: str) -> msgspec.Raw | None:
        """None: results are texts."""
        return None
