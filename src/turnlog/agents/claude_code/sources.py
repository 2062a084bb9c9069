"""Where Claude Code's files are, and the small ones that are read as a whole.

Sessions, subagents in three layouts, sidecars (a subagent's `meta.json`, a title, the files of a workflow), spilled
outputs. Folders are listed, nothing is opened, and no symbolic link is followed, so nothing outside the root is ever
named.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path, PurePath

import msgspec

from turnlog.agents.base import Source, SourceKind, StatelessFold
from turnlog.agents.changes import (
    RUN,
    Changes,
    Diagnostic,
    Link,
    SessionChange,
    Spill,
)
from turnlog.agents.claude_code import NAME
from turnlog.agents.files import folder_below, folders, is_file, is_folder, unread_entries


def session_id(external: str) -> str:
    """The id of a session. `/` separates nothing in it."""
    return f"{NAME}:{external.replace('/', '_')}"


# -- where files are

_AGENT_FILE = re.compile(r"agent-(?P<id>[^/]+?)\.(?P<ending>jsonl|meta\.json)")

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")

_MOST_NESTED = 8
"""Levels of folders below `subagents` that are searched; workflows use two."""

TITLE = "custom-title.json"

_JOURNAL = "journal.jsonl"
"""Name of the journal of a workflow's run, in the folder of its subagents."""


def find_sources(root: Path) -> Iterator[Source]:
    """Every file of Claude Code below its configuration folder `root`, in the order of their names."""
    # A path object costs more than the rest of what is done for each file.
    home = os.fspath(root)
    for project in folders(os.fspath(root / "projects")):
        for entry in unread_entries(project.path):
            if is_file(entry):
                yield from _matching(entry, source_in_project, home)
            elif is_folder(entry):
                yield from _session_folder(entry, home)


def _session_folder(folder: os.DirEntry[str], root: str) -> Iterator[Source]:
    for entry in unread_entries(folder.path):
        if is_file(entry):
            yield from _matching(entry, source_in_session_folder, root)
        # 2.1 and later; 2.0 has the files next to the session, up to 1.0 they are in its log.
        elif is_folder(entry) and entry.name == "subagents":
            yield from _subagents(entry.path, folder.name, root, _MOST_NESTED)
        elif is_folder(entry) and entry.name == "tool-results":
            for output in filter(is_file, unread_entries(entry.path)):
                yield _source(output.path, root, SourceKind.SPILL, folder.name)
        elif is_folder(entry) and entry.name == "workflows":
            yield from _workflows(entry.path, folder.name, root)


def _workflows(folder: str, session: str, root: str) -> Iterator[Source]:
    for entry in unread_entries(folder):
        if is_file(entry):
            yield _source(entry.path, root, SourceKind.SIDECAR, session)
        elif is_folder(entry) and entry.name == "scripts":
            for script in filter(is_file, unread_entries(entry.path)):
                yield _source(script.path, root, SourceKind.SIDECAR, session)


def _subagents(folder: str, parent: str, root: str, depth: int) -> Iterator[Source]:
    for entry in unread_entries(folder):
        if is_file(entry):
            found = subagent_source(entry.path, parent, root)
            if found:
                yield found
        elif depth and is_folder(entry):
            yield from _subagents(entry.path, parent, root, depth - 1)


def source_of(path: Path, root: Path | None = None) -> Source | None:
    """What the file at `path` is by its place and name; None if it is not Claude Code's. It is not opened."""
    absolute = path.absolute()
    # A file that the user names may be in a copy of a home: any folder that contains `projects`.
    above = root or next((folder.parent for folder in absolute.parents if folder.name == "projects"), absolute.parent)
    home = os.fspath(above)
    parents = [folder.name for folder in absolute.parents]
    if "subagents" in parents[:_MOST_NESTED]:
        return subagent_source(os.fspath(absolute), parents[parents.index("subagents") + 1], home)
    place = os.fspath(absolute)
    if parents[0] == "tool-results":
        return _source(place, home, SourceKind.SPILL, parents[1])
    of_workflows = parents[1:] if parents[0] == "scripts" else parents
    if of_workflows[0] == "workflows" and _UUID.fullmatch(of_workflows[1]):
        return _source(place, home, SourceKind.SIDECAR, of_workflows[1])
    found = source_in_session_folder(place, home) or source_in_project(place, home)
    if found is not None and "projects" not in parents and not _UUID.fullmatch(absolute.stem):
        # Copied elsewhere under another name: only the records name the session.
        return msgspec.structs.replace(found, session_id=None)
    return found


def source_in_project(path: str, root: str) -> Source | None:
    """The source of a file in a project's folder: a session, or a subagent of 2.0.x, whose records name its session."""
    stem, dot, ending = path.rpartition(os.sep)[2].rpartition(".")
    if not dot or ending != "jsonl":
        return None
    # 2.0.x. The file's name has the agent's id and not the session's.
    if stem.startswith("agent-"):
        return _source(path, root, SourceKind.SUBAGENT, None)
    return _source(path, root, SourceKind.SESSION, stem)


def source_in_session_folder(path: str, root: str) -> Source | None:
    """The source of a file in a session's folder, which is its title; None for any other file."""
    above, _, name = path.rpartition(os.sep)
    return _source(path, root, SourceKind.SIDECAR, above.rpartition(os.sep)[2]) if name == TITLE else None


def subagent_source(path: str, parent: str, root: str) -> Source | None:
    """The source of a file below the `subagents` folder of the session `parent`; None if it is not one."""
    match = _AGENT_FILE.fullmatch(path.rpartition(os.sep)[2])
    if match is None:
        is_journal = path.endswith(f"{os.sep}{_JOURNAL}") and run_in(path) is not None
        return _source(path, root, SourceKind.SIDECAR, parent) if is_journal else None
    kind = SourceKind.SUBAGENT if match["ending"] == "jsonl" else SourceKind.SIDECAR
    return _source(path, root, kind, f"{parent}.{match['id']}")


def is_obeyed(path: str) -> bool:
    """Whether Claude Code would run a file of a session's folder, or read it as instructions, judged by its place."""
    folder, name = PurePath(path).parent.name, PurePath(path).name
    if folder == "tool-results":
        return name.startswith(".") or name.lower() in _INSTRUCTIONS
    return folder == "scripts" or (folder == "workflows" and _RUN_FILE.fullmatch(name) is None)


_INSTRUCTIONS = frozenset({"agents.md", "claude.md", "claude.local.md"})

_RUN_FILE = re.compile(r"[\w-]+\.json")
"""What a run of a workflow was; its script is another file."""


def agent_id_in(path: str) -> str | None:
    """The subagent's id in a file's name; None if there is none."""
    match = _AGENT_FILE.fullmatch(PurePath(path).name)
    return match["id"] if match else None


def run_in(path: str) -> str | None:
    """The id of the workflow's run in the path of a subagent or journal; None if it belongs to none."""
    parts = PurePath(path).parts
    return parts[-2] if len(parts) > 2 and parts[-3] == "workflows" else None


def _source(path: str, root: str, kind: SourceKind, external: str | None) -> Source:
    return Source(
        agent=NAME,
        path=path,
        root=root,
        kind=kind,
        session_id=session_id(external) if external is not None else None,
        project=folder_below(path, root, "projects"),
        appendable=kind in (SourceKind.SESSION, SourceKind.SUBAGENT),
    )


def _matching(entry: os.DirEntry[str], rule: Callable[[str, str], Source | None], root: str) -> Iterator[Source]:
    found = rule(entry.path, root)
    if found:
        yield found


# -- small files, which are read as a whole

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


class ClaudeSidecarFold(StatelessFold):
    """Reads a file that is rewritten as a whole."""

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

    def _spill(self, session: str, size: int) -> Spill:
        path = PurePath(self._source.path)
        media_type = _MEDIA_TYPES.get(path.suffix.lower(), "application/octet-stream")
        return Spill(session_id=session, name=path.name, media_type=media_type, size=size)


class _Meta(msgspec.Struct, rename="camel"):
    agent_type: str | None = None
    description: str | None = None
    tool_use_id: str | None = None
    parent_agent_id: str | None = None
    spawn_depth: int | None = None
    model: str | None = None


class _Title(msgspec.Struct, rename="camel"):
    custom_title: str | None = None


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
    # `spawnDepth` is known since 2.1.200, `parentAgentId` since 2.1.231.
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
