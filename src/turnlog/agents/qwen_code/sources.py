"""Where Qwen Code's files are, and whether a file is one of them.

Logs, subagents with the facts next to them, and files of JSON of old versions. Folders are listed, nothing is opened,
and no symbolic link is followed. A root is the folder `.qwen`, or the one that `QWEN_RUNTIME_DIR` names.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePath

from msgspec import Raw

from turnlog.agents.base import Detection, Source, SourceKind
from turnlog.agents.changes import Changes
from turnlog.agents.files import entries, folder_below, folders, is_file
from turnlog.agents.jsonl import whole_lines
from turnlog.agents.qwen_code import NAME
from turnlog.agents.qwen_code.records import LINES, TYPES, QwenRecord

_LOG = re.compile(r"(?P<id>[0-9A-Za-z-]+)\.jsonl")
_JSON_LOG = re.compile(r"session-.+\.json")
_SUBAGENT = re.compile(r"agent-(?P<id>.+?)(?P<ending>\.jsonl|\.meta\.json)")


def session_id(external: str) -> str:
    """The id of a session in the model. A `/` of the external id, which would separate parts of a path, becomes `_`."""
    return f"{NAME}:{external.replace('/', '_')}"


def find_sources(root: Path) -> Iterator[Source]:
    """Every file of Qwen Code below `root`, in the order of their names."""
    for project in folders(os.fspath(root / "projects")):
        chats = f"{project.path}{os.sep}chats"
        # `/archive` moves a log to its own folder.
        for folder in (chats, f"{chats}{os.sep}archive"):
            yield from _files(folder, root)
        for session in folders(f"{project.path}{os.sep}subagents"):
            yield from _files(session.path, root)
    for project in folders(os.fspath(root / "tmp")):
        yield from _files(f"{project.path}{os.sep}chats", root)


def _files(folder: str, root: Path) -> Iterator[Source]:
    for entry in filter(is_file, entries(folder)):
        found = _source_in(entry.path, root)
        if found is not None:
            yield found


def source_of(path: Path) -> Source | None:
    """The source at `path`, judged by its folders and name; None if it cannot be Qwen Code's. Nothing is opened."""
    place = path.absolute()
    above = next((folder for folder in place.parents if folder.name in ("projects", "tmp")), None)
    return None if above is None else _source_in(os.fspath(place), above.parent)


def _source_in(path: str, root: Path) -> Source | None:
    name, parents = PurePath(path).name, [folder.name for folder in PurePath(path).parents]
    subagent = _SUBAGENT.fullmatch(name)
    if parents[1:2] == ["subagents"] and parents[3:4] == ["projects"] and subagent is not None:
        is_log = subagent["ending"] == ".jsonl"
        external = f"{parents[0]}.{subagent['id']}"
        return _source(path, root, SourceKind.SUBAGENT if is_log else SourceKind.SIDECAR, external, appendable=is_log)
    chats = parents[1:] if parents[0] == "archive" else parents
    log = _LOG.fullmatch(name)
    if chats[0] == "chats" and chats[2:3] == ["projects"] and log is not None:
        return _source(path, root, SourceKind.SESSION, log["id"], appendable=True)
    if parents[0] == "chats" and parents[2:3] == ["tmp"] and _JSON_LOG.fullmatch(name):
        return _source(path, root, SourceKind.SESSION, None, appendable=False)
    return None


def _source(path: str, root: Path, kind: SourceKind, external: str | None, *, appendable: bool) -> Source:
    return Source(
        agent=NAME,
        path=path,
        root=os.fspath(root),
        kind=kind,
        session_id=None if external is None else session_id(external),
        project=folder_below(path, root, "projects") or folder_below(path, root, "tmp"),
        appendable=appendable,
    )


# -- whether a file is Qwen Code's


_EDGE = rb"(?:[\s\x00]|\xef\xbb\xbf)*"
_JSON_HEADER = re.compile(_EDGE + rb'\{\s*"sessionId"\s*:\s*"[^"]*"\s*,\s*"projectHash"')
_ANSWER = re.compile(rb'"type"\s*:\s*"qwen"')
"""The type of an answer in files of JSON, where Gemini CLI's have `gemini`."""


def detect_log(path: Path, head: bytes) -> Detection:
    """Judge a file by its beginning `head`; the file is not opened."""
    source = source_of(path)
    if source is not None and source.kind is SourceKind.SIDECAR:
        return Detection(agent=NAME, source=source)
    if _JSON_HEADER.match(head):
        # A file without an answer looks like Gemini CLI's; then only its path shows whose it is.
        if _ANSWER.search(head) or (source is not None and PurePath(source.root).name == ".qwen"):
            return Detection(agent=NAME, version="JSON", source=source or _loose(path, appendable=False))
        return Detection(reason="no answer of type qwen")
    records = [record for record, *_ in LINES.read(whole_lines(head), 0, 1, Changes())]
    ours = [record for record in records if is_ours(record)]
    if not ours:
        return Detection(reason="no record with Gemini's parts or a systemPayload" if records else "no line is JSON")
    version = next((record.version for record in ours if record.version), "JSONL")
    kind = SourceKind.SUBAGENT if ours[0].is_sidechain else SourceKind.SESSION
    return Detection(agent=NAME, version=version, source=source or _loose(path, kind=kind, appendable=True))


def is_ours(record: QwenRecord) -> bool:
    """Whether a record is Qwen Code's: Claude Code has the same envelope, but another content."""
    if record.type not in TYPES or record.session_id is None:
        return False
    has_parts = record.message is not None and isinstance(record.message.parts, Raw)
    return has_parts or isinstance(record.system_payload, Raw)


def _loose(path: Path, *, kind: SourceKind = SourceKind.SESSION, appendable: bool) -> Source:
    """A log in any other folder: its records name its session."""
    absolute = path.absolute()
    return Source(agent=NAME, path=str(absolute), root=str(absolute.parent), kind=kind, appendable=appendable)
