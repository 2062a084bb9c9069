"""Gemini CLI: where its logs lie and how they are read. `docs/formats/gemini-cli.md` has the evidence.

What reads them is imported when there is something to read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from turnlog import paths
from turnlog.agents.base import Detection, Fold, Source, SourceKind
from turnlog.agents.folders import holds_folder
from turnlog.agents.gemini_cli.command import COMMAND
from turnlog.agents.gemini_cli.sources import NAME, find_sources


class GeminiCli:
    """See `turnlog.agents.base.Agent`."""

    name = NAME
    display_name = "Gemini CLI"
    parser_version = 12
    command = COMMAND

    def roots(self) -> Sequence[Path]:
        """The `.gemini` folders that hold logs."""
        return [root for root in paths.gemini_roots() if holds_folder(root, "tmp")]

    def discover(self, roots: Iterable[Path] | None = None) -> Iterator[Source]:
        """Logs, subagents, spilled outputs and the log of prompts below the roots."""
        for root in self.roots() if roots is None else roots:
            yield from find_sources(root)

    def detect(self, path: Path, head: bytes) -> Detection:
        """A log has a header with a `sessionId` and a `projectHash`, a stream an `init` with a `session_id`."""
        from turnlog.agents.gemini_cli.detection import detect_log
        from turnlog.agents.gemini_cli.stream import STREAM_JSON
        from turnlog.agents.printed_fold import detect_printed

        found = detect_log(path, head)
        return found if found.agent is not None else detect_printed(STREAM_JSON, path, head) or found

    def fold(self, source: Source, state: bytes | None = None) -> Fold:
        """A fold of a log, the log of prompts, a spilled output or a stream, or what hooks told."""
        if source.kind in (SourceKind.SIDECAR, SourceKind.SPILL):
            from turnlog.agents.gemini_cli.sidecars import SidecarFold

            return SidecarFold(source)
        if source.kind is SourceKind.HOOKS:
            from turnlog.agents.gemini_cli.hooks import HOOKS
            from turnlog.agents.hooked import HookFold

            return HookFold(HOOKS, source, state)
        if source.kind is SourceKind.STREAM:
            from turnlog.agents.gemini_cli.stream import STREAM_JSON
            from turnlog.agents.printed_fold import PrintedFold

            return PrintedFold(STREAM_JSON, state)
        from turnlog.agents.gemini_cli.fold import GeminiCliFold

        return GeminiCliFold(source, state)

    def structured_result(self, record: bytes, tool_call_id: str) -> msgspec.Raw | None:
        """`resultDisplay` of the call, from the record that brought its result."""
        from turnlog.agents.gemini_cli.calls import structured_result

        return structured_result(record, tool_call_id)
