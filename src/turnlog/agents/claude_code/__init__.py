"""Claude Code: where its logs lie and how they are read. `docs/formats/claude-code.md` has the evidence.

What reads them is imported when there is something to read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from turnlog import paths
from turnlog.agents.base import Detection, Fold, Source, SourceKind
from turnlog.agents.claude_code.command import COMMAND
from turnlog.agents.claude_code.sources import NAME, find_sources
from turnlog.agents.claude_code.turn_signs import TURN_SIGNS
from turnlog.agents.folders import holds_folder


class ClaudeCode:
    """See `turnlog.agents.base.Agent`."""

    name = NAME
    display_name = "Claude Code"
    parser_version = 9
    command = COMMAND
    turn_signs = TURN_SIGNS

    def roots(self) -> Sequence[Path]:
        """The configuration folders that hold logs."""
        return [root for root in paths.claude_roots() if holds_folder(root, "projects")]

    def discover(self, roots: Iterable[Path] | None = None) -> Iterator[Source]:
        """Sessions, subagents, sidecars and spilled outputs below the roots."""
        for root in self.roots() if roots is None else roots:
            yield from find_sources(root)

    def detect(self, path: Path, head: bytes) -> Detection:
        """A log has records with a `sessionId` and a type of Claude Code's, a stream has them with a `session_id`.

        A sidecar is known by its place.
        """
        from turnlog.agents.claude_code.detection import detect_log, detect_stream

        found = detect_log(path, head)
        return found if found.agent is not None else detect_stream(path, head) or found

    def fold(self, source: Source, state: bytes | None = None) -> Fold:
        """A fold of a log, a sidecar, a spilled output or a stream, or what hooks told."""
        if source.kind in (SourceKind.SIDECAR, SourceKind.SPILL):
            from turnlog.agents.claude_code.sidecars import SidecarFold

            return SidecarFold(source)
        if source.kind is SourceKind.HOOKS:
            from turnlog.agents.claude_code.hooks import HOOKS
            from turnlog.agents.hooked import HookFold

            return HookFold(HOOKS, source, state)
        if source.kind is SourceKind.STREAM:
            from turnlog.agents.claude_code.stream import StreamFold

            return StreamFold(source, state)
        from turnlog.agents.claude_code.fold import ClaudeCodeFold

        return ClaudeCodeFold(source, state)

    def structured_result(self, record: bytes, tool_call_id: str) -> msgspec.Raw | None:
        """`toolUseResult` of the record that brought the call's result; None when that record has none."""
        from turnlog.agents.claude_code.tool_results import structured_result

        return structured_result(record, tool_call_id)
