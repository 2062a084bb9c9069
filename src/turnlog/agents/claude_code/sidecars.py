"""Sidecars: a subagent's `meta.json`, a title, a spilled output, the files of a workflow."""

from __future__ import annotations

from pathlib import PurePath

import msgspec

from turnlog.agents.base import Source, SourceKind
from turnlog.agents.changes import (
    RUN,
    Changes,
    Diagnostic,
    Link,
    SessionChange,
    Spill,
)
from turnlog.agents.claude_code.sources import NAME, TITLE, run_in, session_id

_MEDIA_TYPES = {
    ".gif": "image/gif",
    ".html": "text/html",
    ".jpeg": "image/jpeg",
    ".jpg": "image/jpeg",
    ".json": "application/json",
    ".md": "text/markdown",
    ".mp3": "audio/mpeg",
    ".pdf": "application/pdf",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain",
    ".wav": "audio/wav",
    ".webp": "image/webp",
}
"""A table of our own, because `mimetypes` depends on the machine."""


class _Meta(msgspec.Struct, rename="camel"):
    agent_type: str | None = None
    description: str | None = None
    tool_use_id: str | None = None
    parent_agent_id: str | None = None
    spawn_depth: int | None = None
    model: str | None = None


class _Title(msgspec.Struct, rename="camel"):
    custom_title: str | None = None


class SidecarFold:
    """Reads a file that is rewritten as a whole. It keeps no state."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def feed(self, data: bytes, offset: int) -> Changes:
        """See `turnlog.agents.base.Fold.feed`."""
        changes = Changes()
        session = self._source.session_id or session_id("")
        if self._source.kind is SourceKind.SPILL:
            changes.spills.append(self._spill(session, len(data)))
            return changes
        try:
            if self._source.path.endswith(".meta.json"):
                _read_meta(msgspec.json.decode(data, type=_Meta), session, run_in(self._source.path), changes)
            elif self._source.path.endswith(TITLE):
                _read_title(msgspec.json.decode(data, type=_Title), session, changes)
            # Otherwise a workflow's script, journal or summary, which is only archived.
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            changes.counts.unreadable = 1
            changes.diagnostics.append(Diagnostic(offset=0, length=len(data), line=1, reason=str(error)))
        else:
            changes.counts.events = 1
        return changes

    def state(self) -> bytes:
        """See `turnlog.agents.base.Fold.state`."""
        return b""

    def _spill(self, session: str, size: int) -> Spill:
        path = PurePath(self._source.path)
        media_type = _MEDIA_TYPES.get(path.suffix.lower(), "application/octet-stream")
        return Spill(session_id=session, name=path.name, media_type=media_type, size=size)


def _read_meta(meta: _Meta, child: str, run: str | None, changes: Changes) -> None:
    facts = {
        "agent_type": meta.agent_type,
        "description": meta.description,
        "spawn_depth": meta.spawn_depth,
        "model": meta.model,
        RUN: run,
    }
    known = {name: value for name, value in facts.items() if value is not None}
    metadata = {NAME: known} if known else {}
    change = changes.sessions[child] = SessionChange(session_id=child, metadata=metadata)
    if meta.description:
        change.titles["generated"] = meta.description
    parent = child.partition(".")[0]
    if meta.parent_agent_id is not None:
        parent = f"{parent}.{meta.parent_agent_id}"
    # A subagent of a subagent is in the same folder. Before 2.1.231 its file names the call that started it, but not
    # the session of that call, so another source may know the parent better.
    nested = meta.parent_agent_id is None and (meta.spawn_depth or 1) > 1
    changes.links.append(
        Link(
            kind="subagent",
            parent_session_id=parent,
            child_session_id=child,
            tool_call_id=meta.tool_use_id,
            inferred=nested or meta.tool_use_id is None,
            metadata=metadata,
        )
    )


def _read_title(title: _Title, session: str, changes: Changes) -> None:
    if title.custom_title:
        changes.sessions[session] = SessionChange(session_id=session, titles={"custom": title.custom_title})
