"""Amp: where the threads are that older versions kept, how they are read, and how its program is run.

`docs/formats/amp.md` describes them. What reads them is imported when there is something to read.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from turnlog.agents.base import Agent, Colour, Detection, Fold, Source
from turnlog.agents.built_in import BUILT_IN
from turnlog.agents.commands import CommandForm, words

NAME: Final = "amp"

THREADS: Final = "threads"

_CONTINUE: Final = (("threads", "continue"), ("thread", "continue"), ("t", "continue"), ("t", "c"))

_COMMAND: Final = CommandForm(
    program="amp",
    packages=("@ampcode/cli", "@sourcegraph/amp"),
    subcommands=(*_CONTINUE, ()),
    resumes=frozenset(_CONTINUE),
    resume=("threads", "continue"),
    prompt=words("-x --execute"),
    other=words("-m --mode --visibility --mcp-config --settings-file --log-level --log-file --toolbox"),
)
"""Of the manual, 2026."""


class Amp(Agent):
    """See `turnlog.agents.base.Agent`."""

    name = NAME
    display_name = "Amp"
    colour = Colour(light="#cc3143", dark="#fdba74")
    parser_version = 2
    homes = BUILT_IN[NAME].homes
    log_folders = (THREADS,)
    command = _COMMAND

    def find_sources(self, root: Path) -> Iterator[Source]:
        """Each thread."""
        from turnlog.agents.amp.sources import find_sources

        return find_sources(root)

    def detect(self, path: Path, head: bytes) -> Detection:
        """A thread begins with its version, its id and its time."""
        from turnlog.agents.amp.sources import detect_file

        return detect_file(path, head)

    def fold(self, source: Source, state: bytes | None = None) -> Fold:
        """A fold of a thread."""
        from turnlog.agents.amp.fold import AmpFold

        return AmpFold(source)

    def structured_result(self, record: bytes, tool_call_id: str) -> msgspec.Raw | None:
        """What a tool returned, as an object."""
        from turnlog.agents.amp.contents import structured_result

        return structured_result(record, tool_call_id)
