"""The files next to a session's messages: the manifest with the facts about it, and what a compaction left.

The manifest is a separate source, read by `ClineSidecarFold`. What a compaction left belongs between two messages, so
the fold of the messages looks it up.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Raw

from turnlog.agents.base import Source, SourceKind
from turnlog.agents.changes import Changes, Link, SessionChange
from turnlog.agents.cline import NAME
from turnlog.agents.cline.sources import session_id, source_of
from turnlog.agents.decoding import aware, branch_of
from turnlog.agents.files import entries, read_regular_file
from turnlog.agents.jsonl import UNREADABLE
from turnlog.agents.sidecars import SidecarFold


class _Git(msgspec.Struct):
    branch: str | None = None


class _Fork(msgspec.Struct, rename="camel"):
    forked_from_session_id: str | None = None


class _Metadata(msgspec.Struct, rename="camel"):
    title: str | None = None
    git: _Git | None = None
    fork: _Fork | None = None


class _Manifest(msgspec.Struct):
    source: str | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    exit_code: int | None = None
    status: str | None = None
    cwd: str | None = None
    workspace_root: str | None = None
    metadata: _Metadata | None = None


class ClineSidecarFold(SidecarFold[_Manifest]):
    """Reads the manifest of a session."""

    kind = _Manifest
    salvages = True

    def feed(self, data: bytes, offset: int) -> Changes:
        """See `turnlog.agents.base.Fold.feed`."""
        if not self._source.path.endswith(".compaction.json"):
            return super().feed(data, offset)
        changes = Changes()
        # The fold of the messages reads it: only there is its place known.
        changes.counts.duplicates = 1
        return changes

    def add_facts(self, facts: _Manifest, size: int, changes: Changes) -> None:
        """See `SidecarFold.add_facts`."""
        session = self._source.session_id or ""
        changes.sessions[session] = _facts_of(facts, session)
        fork = facts.metadata.fork if facts.metadata is not None else None
        if fork is not None and fork.forked_from_session_id:
            # A fork's messages are copies with the same ids, which no record says.
            parent = session_id(fork.forked_from_session_id)
            changes.links.append(Link(kind="fork", parent_session_id=parent, child_session_id=session))
        # A subagent's messages look up the same. They may have been read while the manifest was damaged.
        for child in _subagents_beside(Path(self._source.path)):
            folder, branch = _place_in(facts)
            changes.sessions[child] = SessionChange(
                session_id=child, cwd=folder, project_path=folder, git_branch=branch
            )


def _subagents_beside(manifest: Path) -> Iterator[str]:
    """The ids of the subagents whose messages are in the folder of a manifest."""
    for file in entries(os.fspath(manifest.parent)):
        source = source_of(Path(file.path))
        if source is not None and source.kind is SourceKind.SUBAGENT and source.session_id:
            yield source.session_id


def _facts_of(manifest: _Manifest, session: str) -> SessionChange:
    facts: dict[str, Any] = {"status": manifest.status, "exit_code": manifest.exit_code, "source": manifest.source}
    known = {name: value for name, value in facts.items() if value is not None}
    metadata = manifest.metadata or _Metadata()
    change = SessionChange(
        session_id=session,
        cwd=manifest.cwd,
        project_path=manifest.workspace_root or manifest.cwd,
        git_branch=_place_in(manifest)[1],
        first_at=None if manifest.started_at is None else aware(manifest.started_at),
        last_at=None if manifest.ended_at is None else aware(manifest.ended_at),
        metadata={NAME: known} if known else {},
    )
    if metadata.title:
        # Cline writes the first prompt here itself, so that it need not be the user's title.
        change.titles["generated"] = metadata.title
    return change


class ClineCompaction(msgspec.Struct):
    """What the model reads instead of the messages up to one of them."""

    updated_at: datetime | None = None
    source_last_message_key: str | None = None
    messages: list[Raw] = []

    @property
    def after(self) -> str | None:
        """Id of the last message that was compacted."""
        return (self.source_last_message_key or "").removeprefix("id:") or None


def compaction_of(source: Source) -> ClineCompaction | None:
    """What the newest compaction of a session left; None if there was none, or its file is gone."""
    path = Path(source.path)
    try:
        return msgspec.json.decode(
            read_regular_file(path.with_name(path.name.replace(".messages.json", ".compaction.json"))),
            type=ClineCompaction,
        )
    except UNREADABLE:
        return None


def place_of(source: Source) -> tuple[str | None, str | None]:
    """The folder and the branch of a session or subagent, by the manifest next to its messages; None if it is gone."""
    folder = Path(source.path).parent
    try:
        manifest = msgspec.json.decode(read_regular_file(folder / f"{folder.name}.json"), type=_Manifest)
    except UNREADABLE:
        return None, None
    return _place_in(manifest)


def _place_in(manifest: _Manifest) -> tuple[str | None, str | None]:
    git = manifest.metadata.git if manifest.metadata is not None else None
    return manifest.cwd, branch_of(git.branch) if git is not None else None
