"""Where Copilot CLI's files are: a folder per session with its log, facts about it, a plan and checkpoints.

Folders are listed, nothing is opened, and no symbolic link is followed. A root is the folder `.copilot`. Up to 0.0.34x
a session was a single file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from turnlog.agents.base import Detection, Source, SourceKind
from turnlog.agents.changes import Changes
from turnlog.agents.copilot_cli import LOGS, NAME
from turnlog.agents.copilot_cli.record_kinds import RECORD_KINDS
from turnlog.agents.copilot_cli.records import DATA, LINES, CopilotData, CopilotRecord
from turnlog.agents.decoding import clean_json
from turnlog.agents.files import entries, is_file, is_folder
from turnlog.agents.jsonl import whole_lines

WORKSPACE = "workspace.yaml"
_LOG = "events.jsonl"
_KINDS = {_LOG: SourceKind.SESSION, WORKSPACE: SourceKind.SIDECAR, "plan.md": SourceKind.SIDECAR}
_CHECKPOINTS = "checkpoints"
"""The folder of a session's summaries."""


def session_id(external: str) -> str:
    """The id of a session in the model. A `/` of the external id, which would separate parts of a path, becomes `_`."""
    return f"{NAME}:{external.replace('/', '_')}"


def find_sources(root: Path) -> Iterator[Source]:
    """Every file of Copilot CLI below `root` that is read or archived, in the order of their names."""
    for session in entries(os.fspath(root / LOGS)):
        if is_file(session) and session.name.endswith(".jsonl"):
            yield _source(session.path, root, SourceKind.SESSION, session.name.removesuffix(".jsonl"))
        elif is_folder(session):
            yield from _files_of(session, root)


def _files_of(session: os.DirEntry[str], root: Path) -> Iterator[Source]:
    for entry in entries(session.path):
        if is_file(entry) and entry.name in _KINDS:
            yield _source(entry.path, root, _KINDS[entry.name], session.name)
        elif is_folder(entry) and entry.name == _CHECKPOINTS:
            for file in filter(is_file, entries(entry.path)):
                yield _source(file.path, root, SourceKind.SIDECAR, session.name)


def source_of(path: Path) -> Source | None:
    """The source at `path`, judged by its folder and name; None if it cannot be Copilot CLI's. Nothing is opened."""
    place = path.absolute()
    parents = [folder.name for folder in place.parents]
    if LOGS not in parents:
        return None
    depth = parents.index(LOGS)
    root = place.parents[depth].parent
    if depth == 0 and path.suffix == ".jsonl":
        return _source(os.fspath(place), root, SourceKind.SESSION, path.stem)
    if depth == 1 and path.name in _KINDS:
        return _source(os.fspath(place), root, _KINDS[path.name], parents[0])
    if depth == 2 and parents[0] == _CHECKPOINTS:
        return _source(os.fspath(place), root, SourceKind.SIDECAR, parents[1])
    return None


def _source(path: str, root: Path, kind: SourceKind, external: str) -> Source:
    return Source(
        agent=NAME,
        path=path,
        root=os.fspath(root),
        kind=kind,
        session_id=session_id(external),
        appendable=kind is SourceKind.SESSION,
    )


# -- whether a file is a log


def detect_log(path: Path, head: bytes) -> Detection:
    """Judge a file by its path and its beginning `head`. The first record names the session and the version."""
    source = source_of(path)
    if source is not None and source.kind is SourceKind.SIDECAR:
        return Detection(agent=NAME, source=source)
    records = [(record, json) for record, json, *_ in LINES.read(whole_lines(head), 0, 1, Changes())]
    if not any(_is_own(record, json) for record, json in records):
        return Detection(reason="no record of a known kind with data and an id" if records else "no JSON object")
    facts = [_data(record) for record, _ in records if record.type == "session.start"]
    version = next((data.copilot_version for data in facts if data.copilot_version), None)
    named = next((data.session_id for data in facts if data.session_id), None)
    return Detection(agent=NAME, version=version or "1", source=source or _log_source(path, named))


def _is_own(record: CopilotRecord, json: bytes) -> bool:
    # Other programs also name records `user.message`. None of those that are read also chains its records.
    return record.type in RECORD_KINDS and record.id is not None and b'"parentId"' in json and b'"data"' in json


def _data(record: CopilotRecord) -> CopilotData:
    found = DATA.decode(clean_json(bytes(record.data))) if not isinstance(record.data, msgspec.UnsetType) else "none"
    return CopilotData() if isinstance(found, str) else found.record


def _log_source(path: Path, named: str | None) -> Source:
    """A log in any other folder: its first record names the session, otherwise its folder or its own name does."""
    absolute = path.absolute()
    external = named or (absolute.parent.name if absolute.name == _LOG else absolute.stem)
    return _source(os.fspath(absolute), absolute.parent, SourceKind.SESSION, external or "events")
