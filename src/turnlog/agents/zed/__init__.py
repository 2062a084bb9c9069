"""Zed's own agent: where its threads are, and how they are read (`docs/formats/zed.md`).

What reads the threads is imported when there is something to read.
"""

from __future__ import annotations

from typing import Final

import msgspec

from turnlog.agents.base import Colour, Fold, Source
from turnlog.agents.built_in import BUILT_IN
from turnlog.agents.database_agent import DatabaseAgent

NAME: Final = "zed"

THREADS_FOLDER: Final = "threads"

DATABASE: Final = "threads.db"


class Zed(DatabaseAgent):
    """See `turnlog.agents.database_agent`."""

    name = NAME
    display_name = "Zed"
    colour = Colour(light="#5862e1", dark="#9cbff8")
    parser_version = 4
    homes = BUILT_IN[NAME].homes
    reader = "turnlog.agents.zed.sources"
    log_folders = (THREADS_FOLDER,)

    def session_fold(self, source: Source, state: bytes | None) -> Fold:
        """A fold of a thread."""
        from turnlog.agents.zed.fold import ZedFold

        return ZedFold(source, state)

    def structured_result(self, record: bytes, tool_call_id: str) -> msgspec.Raw | None:
        """What a tool returned beside the text for the model, if it is an object."""
        from turnlog.agents.zed.contents import structured_result

        return structured_result(record, tool_call_id)
