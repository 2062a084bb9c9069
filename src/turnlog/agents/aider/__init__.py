"""Aider: where its chat histories are, how they are read, and how it is run (`docs/formats/aider.md`).

What reads its histories is imported when there is something to read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from turnlog.agents.base import Agent, Colour, Detection, Fold, Source
from turnlog.agents.built_in import BUILT_IN
from turnlog.agents.commands import CommandForm, words
from turnlog.agents.files import holds_folder

NAME: Final = "aider"

HISTORY: Final = ".aider.chat.history.md"

_COMMAND = CommandForm(
    program="aider",
    prompt=words("-m --message --msg"),
    model=words("--model"),
    other=words(
        "--edit-format --chat-mode --architect-model --weak-model --editor-model --api-key --openai-api-key --file",
        "--read --config --env-file --message-file --map-tokens --encoding --lint-cmd --test-cmd --commit-prompt",
        "--chat-history-file --input-history-file --llm-history-file --set-env --reasoning-effort --thinking-tokens",
    ),
)
"""Of 0.86.2. A run cannot be resumed by an id: `--restore-chat-history` takes up the whole file of the folder."""


class Aider(Agent):
    """See `turnlog.agents.base.Agent`."""

    name = NAME
    display_name = "Aider"
    colour = Colour(light="#166534", dark="#86efac")
    parser_version = 3
    homes = BUILT_IN[NAME].homes
    command = _COMMAND
    where = "in your projects: name their folders in TURNLOG_AIDER_DIR"

    def roots(self) -> Sequence[Path]:
        """The folders that hold a history, or in which a folder does. No others are searched."""
        found = (home for home in self.home_folders() if holds_folder(home.parent, home.name))
        return [home for home in found if next(iter(self.find_sources(home)), None) is not None]

    def find_sources(self, root: Path) -> Iterator[Source]:
        """The history of a folder, and those of the folders in it."""
        from turnlog.agents.aider.sources import find_sources

        return find_sources(root)

    def detect(self, path: Path, head: bytes) -> Detection:
        """A history begins with the line that begins a run."""
        from turnlog.agents.aider.sources import detect_file

        return detect_file(path, head)

    def fold(self, source: Source, state: bytes | None = None) -> Fold:
        """A fold of a history."""
        from turnlog.agents.aider.fold import AiderFold

        return AiderFold(source, state)

    def structured_result(self, record: bytes, tool_call_id: str) -> msgspec.Raw | None:
        """None: results are texts."""
        return None
