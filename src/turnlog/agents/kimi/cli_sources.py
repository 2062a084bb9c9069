"""Where Kimi CLI's logs are, whether a file is one of them, and what is said of a session beside its log.

A session is a folder with the log (`wire.jsonl`), the model's context (`context.jsonl`, which is rewritten), facts
(`state.json`), and a folder for each subagent with its own log. `kimi.json` in the home names the folders of all.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from hashlib import md5
from pathlib import Path
from typing import Any

import msgspec

from turnlog.agents.base import Detection, Source, SourceKind
from turnlog.agents.changes import Changes, SessionChange
from turnlog.agents.files import entries, holds_log, is_file, is_folder, read_regular_file
from turnlog.agents.jsonl import UNREADABLE, count_lines, whole_lines
from turnlog.agents.kimi import KIMI_CLI
from turnlog.agents.kimi.cli_records import CLI_LINES, CLI_RECORD_KINDS
from turnlog.agents.kimi.sources import session_id
from turnlog.agents.sidecars import SidecarFold

_LOG, _FACTS, _SUBAGENT_FACTS, _SESSIONS, _SUBAGENTS = "wire.jsonl", "state.json", "meta.json", "sessions", "subagents"

_FOLDERS = "kimi.json"
"""The folders in which sessions ran, of a whole home."""

_CONTEXT = re.compile(r"context(?:_\d+)?\.jsonl")
"""The model's context, and what it was before a compaction or a rewind."""

_SESSION = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def find_cli_sources(root: Path) -> Iterator[Source]:
    """Every file below `root` that is read or archived, in the order of their names."""
    if holds_log(root, _FOLDERS):
        yield _folders_at(root)
    for project in filter(is_folder, entries(os.fspath(root / _SESSIONS))):
        for session in filter(is_folder, entries(project.path)):
            for entry in entries(session.path):
                if is_file(entry):
                    yield from _source_at(entry.path, root, session.name, None, project.name)
                elif is_folder(entry) and entry.name == _SUBAGENTS:
                    for agent in filter(is_folder, entries(entry.path)):
                        files = list(filter(is_file, entries(agent.path)))
                        # Grok Build has such folders, too, with `meta.json` alone.
                        if all(file.name != _LOG for file in files):
                            continue
                        for file in files:
                            yield from _source_at(file.path, root, session.name, agent.name, project.name)


def _folders_at(root: Path) -> Source:
    path = os.fspath(root / _FOLDERS)
    return Source(agent=KIMI_CLI, path=path, root=os.fspath(root), kind=SourceKind.SIDECAR, appendable=False)


def _source_at(path: str, root: Path, session: str, agent: str | None, project: str | None) -> Iterator[Source]:
    name = Path(path).name
    external = session if agent is None else f"{session}.{agent}"
    if name == _LOG:
        kind = SourceKind.SESSION if agent is None else SourceKind.SUBAGENT
    elif _CONTEXT.fullmatch(name) or name == (_FACTS if agent is None else _SUBAGENT_FACTS):
        kind = SourceKind.SIDECAR
    else:
        return
    yield Source(
        agent=KIMI_CLI,
        path=path,
        root=os.fspath(root),
        kind=kind,
        session_id=session_id(external, KIMI_CLI),
        project=project,
        appendable=kind is not SourceKind.SIDECAR,
    )


def cli_source_of(path: Path) -> Source | None:
    """The source at `path`, judged by its folders and name; None if it cannot be Kimi CLI's. Nothing is opened."""
    place = path.absolute()
    if place.name == _FOLDERS:
        return _folders_at(place.parent)
    names = [folder.name for folder in place.parents]
    if names[2:3] == [_SESSIONS] and _SESSION.fullmatch(names[0]):
        return next(_source_at(os.fspath(place), place.parents[3], names[0], None, names[1]), None)
    if names[1:2] == [_SUBAGENTS] and names[4:5] == [_SESSIONS] and _SESSION.fullmatch(names[2]):
        return next(_source_at(os.fspath(place), place.parents[5], names[2], names[0], names[3]), None)
    return None


def detect_cli_log(path: Path, head: bytes) -> Detection:
    """Judge a file by its path and its beginning `head`. The first record has the version of the protocol."""
    source = cli_source_of(path)
    if path.name == _FOLDERS and b'"work_dirs"' not in head:
        return Detection(reason="no folders of sessions")
    if source is not None and source.kind is SourceKind.SIDECAR:
        return Detection(agent=KIMI_CLI, source=source)
    records = [record for record, *_ in CLI_LINES.read(whole_lines(head), 0, 1, Changes())]
    if not any(record.message is not None and record.kind in CLI_RECORD_KINDS for record in records):
        return Detection(reason="no record of a known kind" if records else "no line is a JSON object")
    version = next((record.protocol_version for record in records if record.protocol_version), None)
    return Detection(agent=KIMI_CLI, version=f"wire {version or 1}", source=source or _loose(path))


def _loose(path: Path) -> Source:
    """A log in any other folder. No record names its session, so the name of its folder or its own name does."""
    absolute = path.absolute()
    session = absolute.parent.name if absolute.name == _LOG else absolute.stem
    return Source(
        agent=KIMI_CLI,
        path=os.fspath(absolute),
        root=os.fspath(absolute.parent),
        session_id=session_id(session or "wire", KIMI_CLI),
    )


# -- the folder of a session


class _WorkDir(msgspec.Struct):
    path: str = ""


class _Metadata(msgspec.Struct):
    work_dirs: list[_WorkDir] = []


def cli_folder_of(source: Source) -> str | None:
    """The folder of a session: the one in `kimi.json` whose hash is the name of the folder of the log."""
    try:
        found = msgspec.json.decode(read_regular_file(Path(source.root) / "kimi.json"), type=_Metadata)
    except UNREADABLE:
        return None
    return _folder_of(source, found)


def _folder_of(source: Source, known: _Metadata) -> str | None:
    wanted = (source.project or "").rpartition("_")[2]
    paths = [each.path for each in known.work_dirs]
    return next((path for path in paths if md5(path.encode(), usedforsecurity=False).hexdigest() == wanted), None)


class CliFoldersFold(SidecarFold[_Metadata]):
    """Reads `kimi.json`. The fold of a log looks its folder up there, but may have been without it."""

    kind = _Metadata

    def add_facts(self, facts: _Metadata, size: int, changes: Changes) -> None:
        """See `SidecarFold.add_facts`."""
        for source in find_cli_sources(Path(self._source.root)):
            folder = _folder_of(source, facts)
            if folder is not None and source.session_id is not None:
                changes.sessions[source.session_id] = SessionChange(
                    session_id=source.session_id, cwd=folder, project_path=folder
                )


# -- the files next to a log


class _LaunchSpec(msgspec.Struct):
    effective_model: str | None = None


class _Facts(msgspec.Struct):
    custom_title: str | None = None
    archived: bool | None = None
    subagent_type: str | None = None
    description: str | None = None
    status: str | None = None
    launch_spec: _LaunchSpec | None = None


class CliSidecarFold(SidecarFold[_Facts]):
    """Reads the facts of one session, or its context."""

    kind = _Facts
    salvages = True

    def feed(self, data: bytes, offset: int) -> Changes:
        """See `turnlog.agents.base.Fold.feed`."""
        if not _CONTEXT.fullmatch(Path(self._source.path).name):
            return super().feed(data, offset)
        changes = Changes()
        # It repeats what the log has, as the model reads it.
        changes.counts.duplicates = count_lines(data)
        return changes

    def add_facts(self, facts: _Facts, size: int, changes: Changes) -> None:
        """See `SidecarFold.add_facts`."""
        _read_facts(facts, self._source.session_id or "", changes)


def _read_facts(facts: _Facts, session: str, changes: Changes) -> None:
    known: dict[str, Any] = {"agent_type": facts.subagent_type, "status": facts.status}
    known = {name: value for name, value in known.items() if value is not None}
    if facts.archived:
        known["archived"] = True
    change = SessionChange(session_id=session, metadata={KIMI_CLI: known} if known else {})
    title = facts.custom_title or facts.description
    if title:
        # Kimi CLI writes the first prompt here itself, so that it need not be the user's title.
        change.titles["generated"] = title
    changes.sessions[session] = change


def model_of_cli_subagent(source: Source) -> str | None:
    """The model of a subagent, by the facts next to its log: no record names one. None if they do not either."""
    if source.kind is not SourceKind.SUBAGENT:
        return None
    try:
        facts = msgspec.json.decode(read_regular_file(Path(source.path).with_name(_SUBAGENT_FACTS)), type=_Facts)
    except UNREADABLE:
        return None
    return facts.launch_spec.effective_model if facts.launch_spec is not None else None


class _Approval(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    yolo: bool = False
    afk: bool = False
    auto_approve_actions: list[str] = []


class _HarmlessFacts(msgspec.Struct, forbid_unknown_fields=True):
    """Facts about a session that has no more rights than any other (1.52.0)."""

    version: Any = None
    approval: _Approval = _Approval()
    additional_dirs: list[str] = []
    custom_title: Any = None
    title_generated: Any = None
    title_generate_attempts: Any = None
    plan_mode: Any = None
    plan_session_id: Any = None
    plan_slug: Any = None
    wire_mtime: Any = None
    archived: Any = None
    archived_at: Any = None
    auto_archive_exempt: Any = None
    todos: Any = None


def give_rights(path: Path) -> bool:
    """Whether the file at a path may let Kimi CLI do something in a session without asking.

    A field that is not known is taken for one that does.
    """
    if path.name != _FACTS:
        return False
    try:
        facts = msgspec.json.decode(read_regular_file(path), type=_HarmlessFacts)
    except UNREADABLE:
        return True
    approval = facts.approval
    return approval.yolo or approval.afk or bool(approval.auto_approve_actions or facts.additional_dirs)
