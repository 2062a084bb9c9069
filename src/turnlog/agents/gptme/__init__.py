"""gptme: where its logs are, how they are read, and how it is run (`docs/formats/gptme.md`).

What reads its logs is imported when there is something to read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from turnlog import paths
from turnlog.agents.base import Agent, Colour, Detection, Fold, Source, SourceKind
from turnlog.agents.built_in import BUILT_IN
from turnlog.agents.commands import CommandForm, words

NAME: Final = "gptme"

LOGS: Final = "logs"

LOG: Final = "conversation.jsonl"

SETTINGS: Final = "config.toml"

(_LOGS,) = BUILT_IN[NAME].variables
"""The variable with the folder of logs itself."""

_COMMAND = CommandForm(
    program="gptme",
    resume=("--name",),
    model=words("-m --model"),
    session=words("--name"),
    system_prompt=words("--system"),
    other=words("-w --workspace -t --tools --tool-format --agent-path --context"),
)
"""Of 0.35.1."""


class Gptme(Agent):
    """See `turnlog.agents.base.Agent`."""

    name = NAME
    display_name = "gptme"
    colour = Colour(light="#4d7c0f", dark="#bef264")
    parser_version = 4
    homes = BUILT_IN[NAME].homes
    log_folders = (LOGS,)
    command = _COMMAND

    def home_folders(self) -> Sequence[Path]:
        """The folder that holds the folder of logs that is named, or else the platform's."""
        moved = paths.file_named_by(_LOGS, paths.home())
        return [moved.parent] if moved is not None and moved.name == LOGS else super().home_folders()

    def find_sources(self, root: Path) -> Iterator[Source]:
        """Each conversation and its settings."""
        from turnlog.agents.gptme.sources import find_sources

        return find_sources(root)

    def detect(self, path: Path, head: bytes) -> Detection:
        """A log's messages have a role, a content and a time without a zone, in this order."""
        from turnlog.agents.gptme.sources import detect_file

        return detect_file(path, head)

    def fold(self, source: Source, state: bytes | None = None) -> Fold:
        """A fold of a log, or of a conversation's settings."""
        if source.kind is SourceKind.SIDECAR:
            from turnlog.agents.gptme.settings import GptmeSettingsFold

            return GptmeSettingsFold(source)
        from turnlog.agents.gptme.fold import GptmeFold

        return GptmeFold(source, state)

    def obeys(self, source: Source) -> bool:
        """Settings of a conversation, unless they are known to allow little."""
        if source.kind is not SourceKind.SIDECAR:
            return False
        from turnlog.agents.gptme.settings import allow_little

        return not allow_little(Path(source.path))

    def structured_result(self, record: bytes, tool_call_id: str) -> msgspec.Raw | None:
        """None: results are texts."""
        return None
