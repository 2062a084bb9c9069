"""Where Kimi Code's logs are, and whether a file is one of them.

A session is a folder with the facts about it (`state.json`) and one log for each of its agents: that of `main` is the
session's, all others are subagents'.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from turnlog.agents.base import Detection, Source, SourceKind
from turnlog.agents.changes import Changes
from turnlog.agents.files import entries, is_file, is_folder
from turnlog.agents.jsonl import whole_lines
from turnlog.agents.kimi import KIMI_CODE
from turnlog.agents.kimi.records import LINES, RECORD_KINDS

INDEX = "session_index.jsonl"

_LOG, _FACTS, _SESSIONS, _AGENTS, MAIN = "wire.jsonl", "state.json", "sessions", "agents", "main"

_SESSION = re.compile(r"ses(?:sion)?_[^/]+")
"""`ses_<id>` is a session that was copied from Kimi CLI."""


def session_id(external: str, agent: str = KIMI_CODE) -> str:
    """The id of a session in the model. A `/` of the external id, which would separate parts of a path, becomes `_`."""
    return f"{agent}:{external.replace('/', '_')}"


def external_id(session: str, agent: str) -> str:
    """The external id of an agent's session: that of the session, and of a subagent its own name behind it."""
    return session if agent == MAIN else f"{session}.{agent}"


def find_sources(root: Path) -> Iterator[Source]:
    """Every log below `root` and the facts about its session, in the order of their names, and the index."""
    for project in filter(is_folder, entries(os.fspath(root / _SESSIONS))):
        for session in filter(is_folder, entries(project.path)):
            if _SESSION.fullmatch(session.name):
                yield from _files_of(session, root, project.name)
    for entry in entries(os.fspath(root)):
        if entry.name == INDEX and is_file(entry):
            yield _index(entry.path)


def _index(path: str) -> Source:
    root = os.fspath(Path(path).parent)
    return Source(agent=KIMI_CODE, path=path, root=root, kind=SourceKind.SIDECAR, appendable=True)


def _files_of(session: os.DirEntry[str], root: Path, project: str) -> Iterator[Source]:
    for entry in entries(session.path):
        if is_file(entry) and entry.name == _FACTS:
            yield _source(entry.path, root, SourceKind.SIDECAR, session.name, project)
        elif is_folder(entry) and entry.name == _AGENTS:
            for agent in filter(is_folder, entries(entry.path)):
                for file in entries(agent.path):
                    if is_file(file) and file.name == _LOG:
                        yield _log_source(file.path, root, session.name, agent.name, project)


def source_of(path: Path) -> Source | None:
    """The source at `path`, judged by its folders and name; None if it cannot be Kimi Code's. Nothing is opened."""
    place = path.absolute()
    if path.name == INDEX:
        return _index(os.fspath(place))
    names = [folder.name for folder in place.parents]
    if path.name == _LOG and names[1:2] == [_AGENTS] and names[4:5] == [_SESSIONS] and _SESSION.fullmatch(names[2]):
        return _log_source(os.fspath(place), place.parents[5], names[2], names[0], names[3])
    if path.name == _FACTS and names[2:3] == [_SESSIONS] and _SESSION.fullmatch(names[0]):
        return _source(os.fspath(place), place.parents[3], SourceKind.SIDECAR, names[0], names[1])
    return None


def _log_source(path: str, root: Path, session: str, agent: str, project: str | None) -> Source:
    kind = SourceKind.SESSION if agent == MAIN else SourceKind.SUBAGENT
    return _source(path, root, kind, external_id(session, agent), project)


def _source(path: str, root: Path, kind: SourceKind, external: str, project: str | None) -> Source:
    return Source(
        agent=KIMI_CODE,
        path=path,
        root=os.fspath(root),
        kind=kind,
        session_id=session_id(external),
        project=project,
        appendable=kind is not SourceKind.SIDECAR,
    )


# -- whether a file is a log


def detect_log(path: Path, head: bytes) -> Detection:
    """Judge a file by its path and its beginning `head`. The first record has the version of the protocol."""
    source = source_of(path)
    if path.name == INDEX and b'"sessionId"' not in head:
        return Detection(reason="no line names a session of Kimi Code")
    if source is not None and source.kind is SourceKind.SIDECAR:
        return Detection(agent=KIMI_CODE, source=source)
    records = [record for record, *_ in LINES.read(whole_lines(head), 0, 1, Changes())]
    # Kimi CLI's log begins with a record `metadata`, too.
    if not any(record.type in RECORD_KINDS and record.type != "metadata" for record in records):
        return Detection(reason="no record of a known kind" if records else "no line is a JSON object")
    version = next((record.protocol_version for record in records if record.protocol_version), None)
    agent = next((record.agent_id for record in records if record.agent_id), MAIN)
    return Detection(agent=KIMI_CODE, version=f"wire {version or 1}", source=source or _loose(path, agent))


def _loose(path: Path, agent: str) -> Source:
    """A log in any other folder. No record names its session, so the name of its folder or its own name does."""
    absolute = path.absolute()
    session = absolute.parent.name if absolute.name == _LOG else absolute.stem
    return _log_source(os.fspath(absolute), absolute.parent, session or "wire", agent, None)
