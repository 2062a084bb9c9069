"""Sidecars of Codex: the names that the user gave to threads, and what was typed into the terminal."""

from __future__ import annotations

import msgspec

from turnlog.agents.base import Source
from turnlog.agents.changes import Changes, LeafTitle
from turnlog.agents.codex.sources import INDEX, session_id
from turnlog.agents.jsonl import JsonLines, count_lines


class _Entry(msgspec.Struct):
    id: str | None = None
    thread_name: str | None = None
    session_id: str | None = None
    text: str | None = None


def names_a_thread(entry: _Entry) -> bool:
    """Whether a line of a sidecar names a thread."""
    return bool(entry.id or entry.session_id)


read_entries = JsonLines(_Entry, first_keys=("id", "session_id"), plausible=names_a_thread).read


class CodexSidecarFold:
    """Reads `session_index.jsonl` and `history.jsonl`, which are appended to. The last name of a thread counts.

    The prompts of `history.jsonl` are in the rollouts too, so they are only archived.
    """

    def __init__(self, source: Source, state: bytes | None) -> None:
        self._is_index = source.path.endswith(INDEX)
        self._lines = int(state) if state else 0

    def feed(self, data: bytes, offset: int) -> Changes:
        """See `turnlog.agents.base.Fold.feed`."""
        changes = Changes()
        for entry, *_ in read_entries(data, offset, self._lines + 1, changes):
            if self._is_index and entry.id and entry.thread_name:
                changes.leaf_titles.append(LeafTitle(record_id=session_id(entry.id), title=entry.thread_name))
                changes.counts.events += 1
            else:
                changes.counts.duplicates += 1
        self._lines += count_lines(data)
        return changes

    def state(self) -> bytes:
        """See `turnlog.agents.base.Fold.state`."""
        return str(self._lines).encode()
