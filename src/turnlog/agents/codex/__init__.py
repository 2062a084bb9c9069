"""Codex: where its logs lie and how they are read. `docs/formats/codex.md` has the evidence.

What reads them is imported when there is something to read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from turnlog import paths
from turnlog.agents.base import Detection, Fold, Source, SourceKind
from turnlog.agents.codex.command import COMMAND
from turnlog.agents.codex.sources import FOLDERS, NAME, find_sources
from turnlog.agents.codex.turn_signs import TURN_SIGNS
from turnlog.agents.folders import holds_folder


class Codex:
    """See `turnlog.agents.base.Agent`."""

    name = NAME
    display_name = "Codex"
    parser_version = 16
    command = COMMAND
    turn_signs = TURN_SIGNS

    def roots(self) -> Sequence[Path]:
        """The homes that hold logs."""
        return [root for root in paths.codex_roots() if holds_folder(root, *FOLDERS)]

    def discover(self, roots: Iterable[Path] | None = None) -> Iterator[Source]:
        """Rollouts and sidecars below the roots."""
        for root in self.roots() if roots is None else roots:
            yield from find_sources(root)

    def detect(self, path: Path, head: bytes) -> Detection:
        """A log has records of known types with a payload, or of 2025 the items themselves behind an id.

        A stream names a thread that starts, or has known items.
        """
        from turnlog.agents.codex.detection import detect_log
        from turnlog.agents.codex.stream import EXEC_JSON
        from turnlog.agents.printed_fold import detect_printed

        found = detect_log(path, head)
        return found if found.agent is not None else detect_printed(EXEC_JSON, path, head) or found

    def fold(self, source: Source, state: bytes | None = None) -> Fold:
        """A fold of a rollout, a sidecar or a stream, or what hooks told."""
        if source.kind is SourceKind.HOOKS:
            from turnlog.agents.codex.hooks import HOOKS
            from turnlog.agents.hooked import HookFold

            return HookFold(HOOKS, source, state)
        if source.kind is SourceKind.STREAM:
            from turnlog.agents.codex.stream import EXEC_JSON
            from turnlog.agents.printed_fold import PrintedFold

            return PrintedFold(EXEC_JSON, state)
        if source.kind is SourceKind.SIDECAR:
            from turnlog.agents.codex.sidecars import SidecarFold

            return SidecarFold(source, state)
        from turnlog.agents.codex.fold import CodexFold

        return CodexFold(source, state)

    def structured_result(self, record: bytes, tool_call_id: str) -> msgspec.Raw | None:
        """The item, or the event, that told of a call's outcome besides its output."""
        from turnlog.agents.codex.stream_records import exec_structured_result
        from turnlog.agents.codex.tool_results import structured_result

        return structured_result(record, tool_call_id) or exec_structured_result(record, tool_call_id)
