"""Sidecars of Codex: the names that the user gave to threads, what was typed into the terminal, and imports."""

from __future__ import annotations

from pathlib import PureWindowsPath

import msgspec

from turnlog.agents.base import Source
from turnlog.agents.changes import Changes, LeafTitle, Link
from turnlog.agents.codex.sources import INDEX, session_id
from turnlog.agents.jsonl import JsonLines, count_lines
from turnlog.agents.sidecars import SidecarFold


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


class _Import(msgspec.Struct):
    source_path: str | None = None
    imported_thread_id: str | None = None


class _Imports(msgspec.Struct):
    records: list[_Import] = []


class CodexImportsFold(SidecarFold[_Imports]):
    """Reads `external_agent_session_imports.json`: which thread continues which session of another agent."""

    kind = _Imports
    salvages = True

    def add_facts(self, facts: _Imports, size: int, changes: Changes) -> None:
        """See `SidecarFold.add_facts`."""
        for record in facts.records:
            origin = _origin_of(record.source_path or "")
            if origin is not None and record.imported_thread_id:
                thread = session_id(record.imported_thread_id)
                changes.links.append(Link(kind="continuation", parent_session_id=origin, child_session_id=thread))


_IMPORTED_FROM = (("agent-transcripts", "cursor"), ("projects", "claude-code"))
"""A folder above every log of an agent that Codex imports from, and the agent. The file is named after the session."""


def _origin_of(path: str) -> str | None:
    """The session of an imported log, by its path; None if it is no log of an agent that is known."""
    # Windows separates folders by `\\` or `/`.
    place = PureWindowsPath(path)
    agent = next((agent for folder, agent in _IMPORTED_FROM if folder in place.parts[:-1]), None)
    return None if agent is None or place.suffix != ".jsonl" else f"{agent}:{place.stem}"
