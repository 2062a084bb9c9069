"""Gemini CLI's files: where they are, where the positions of a log begin, and whether a file is one of them.

Files are logs of three generations, subagents, spilled outputs, the log of prompts.

Folders are listed, nothing is opened, and no symbolic link is followed, so nothing outside the root is ever named.
A root is the folder `.gemini`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path, PurePath

from turnlog.agents.base import HOOKED_FROM, Detection, Source, SourceKind
from turnlog.agents.changes import Changes
from turnlog.agents.files import entries, folder_below, is_file, is_folder
from turnlog.agents.gemini_cli import NAME
from turnlog.agents.gemini_cli.records import LINES, MESSAGE_TYPES, GeminiRecord
from turnlog.agents.jsonl import whole_lines

# -- finding files


_LOG = re.compile(r"session-.+\.(?:json|jsonl|jsonl\.unreadable-\d+)")

_SUBAGENT = re.compile(r"(?P<id>.+)\.jsonl?")

_OUTPUTS = re.compile(r"session-(?P<id>.+)")


def find_sources(root: Path) -> Iterator[Source]:
    """Every file of Gemini CLI below `root`, in the order of their names."""
    for project in entries(os.fspath(root / "tmp")):
        if not is_folder(project):
            continue
        for entry in entries(project.path):
            if is_file(entry) and entry.name == "logs.json":
                yield _source(entry.path, root, SourceKind.SIDECAR)
            elif is_folder(entry) and entry.name == "chats":
                yield from _chats(entry.path, root)
            elif is_folder(entry) and entry.name == "tool-outputs":
                yield from _outputs(entry.path, root)


def _chats(folder: str, root: Path) -> Iterator[Source]:
    for entry in entries(folder):
        if is_folder(entry):
            for log in filter(is_file, entries(entry.path)):
                if _SUBAGENT.fullmatch(log.name):
                    yield _subagent(log.path, root)
        elif is_file(entry) and _LOG.fullmatch(entry.name):
            yield _log(entry.path, root)


def _outputs(folder: str, root: Path) -> Iterator[Source]:
    for session in filter(is_folder, entries(folder)):
        match = _OUTPUTS.fullmatch(session.name)
        if match is not None:
            for output in filter(is_file, entries(session.path)):
                yield _source(output.path, root, SourceKind.SPILL, match["id"])


def source_of(path: Path) -> Source | None:
    """The source at `path`, judged by its folder and name; None if it cannot be Gemini CLI's. Nothing is opened."""
    absolute = path.absolute()
    parents = [folder.name for folder in absolute.parents]
    root = next((folder.parent for folder in absolute.parents if folder.name == "tmp"), absolute.parent)
    name = os.fspath(absolute)
    outputs = _OUTPUTS.fullmatch(parents[0])
    if outputs is not None and parents[1:2] == ["tool-outputs"]:
        return _source(name, root, SourceKind.SPILL, outputs["id"])
    if path.name == "logs.json":
        return _source(name, root, SourceKind.SIDECAR)
    if parents[1:2] == ["chats"] and _SUBAGENT.fullmatch(path.name):
        return _subagent(name, root)
    return _log(name, root) if _LOG.fullmatch(path.name) else None


def _log(path: str, root: Path) -> Source:
    return _source(path, root, SourceKind.SESSION, appendable=not path.endswith(".json"))


def _subagent(path: str, root: Path) -> Source:
    name = PurePath(path)
    return _source(path, root, SourceKind.SUBAGENT, name.stem, appendable=name.suffix != ".json")


def _source(
    path: str, root: Path, kind: SourceKind, external: str | None = None, *, appendable: bool = False
) -> Source:
    return Source(
        agent=NAME,
        path=path,
        root=os.fspath(root),
        kind=kind,
        session_id=session_id(external) if external is not None else None,
        project=folder_below(path, root, "tmp"),
        appendable=appendable,
    )


def session_id(external: str) -> str:
    """The id of a session in the model. A `/` of the external id, which would separate parts of a path, becomes `_`."""
    return f"{NAME}:{external.replace('/', '_')}"


def parent_of(source: Source) -> str | None:
    """External id of the session that started a subagent: the name of the folder that contains its log."""
    folder = PurePath(source.path).parent
    is_subagent = source.kind is SourceKind.SUBAGENT and folder.parent.name == "chats"
    return folder.name if is_subagent else None


# -- positions


_MINUTE = re.compile(r"session-(?P<minute>\d{4}-\d\d-\d\dT\d\d-\d\d)-")

_FIRST_MINUTE = datetime(2025, 1, 1, tzinfo=UTC)
"""Before the first version that kept logs."""

_POSITIONS_PER_MINUTE = 1 << 28
"""The positions of a larger file reach into those of the next minutes."""

_LAST_MINUTE = (HOOKED_FROM >> 28) - 16
"""In the year 2056; later ones count as this, since greater positions are those of hook events."""


def base_position(source: Source) -> int:
    """Where the positions of a log begin: after those of all logs whose name has an earlier minute (in UTC).

    Positions are byte offsets from here on. A session may have several files, which must not share positions: in a
    terminal of 0.20 to 0.34 `/clear` begins one with the old id.
    """
    match = _MINUTE.match(PurePath(source.path).name)
    try:
        began = datetime.strptime(f"{match['minute']}+0000", "%Y-%m-%dT%H-%M%z") if match else _FIRST_MINUTE
    except ValueError:
        return 0
    minute = int((began - _FIRST_MINUTE).total_seconds()) // 60
    return min(max(minute, 0), _LAST_MINUTE) * _POSITIONS_PER_MINUTE


# -- whether a file is Gemini CLI's: no record has a version, so a detection names the log's shape


_EDGE = rb"(?:[\s\x00]|\xef\xbb\xbf)*"
"""Bytes before a file of JSON that a crash or an editor leaves. The fold skips them, too."""

_JSON_LOG = re.compile(_EDGE + rb'\{\s*"sessionId"\s*:\s*"[^"]*"\s*,\s*"projectHash"')

_ANSWER = re.compile(rb'"type"\s*:\s*"gemini"')
"""The type of an answer. Without one, a file of JSON may as well be that of a fork of the program."""

_PROMPT_LOG = re.compile(_EDGE + rb'\[\s*\{\s*"sessionId"\s*:\s*"[^"]*"\s*,\s*"messageId"\s*:')


def detect_log(path: Path, head: bytes) -> Detection:
    """Judge a file by its beginning `head`; the file is not opened.

    A log begins with a header that has a `sessionId` and a `projectHash`. A log that lost its header is recognised by
    its folder and name.
    """
    source = source_of(path)
    if source is not None and source.kind is SourceKind.SPILL:
        return Detection(agent=NAME, source=source)
    if _PROMPT_LOG.match(head):
        return Detection(agent=NAME, version="logs.json", source=source or _prompt_log_source(path))
    records = [record for record, *_ in LINES.read(whole_lines(head), 0, 1, Changes())]
    header = next((record for record in records if _is_header(record)), None)
    if header is not None and (header.messages is None or len(records) > 1):
        return Detection(agent=NAME, version="JSONL", source=_log_source(source, path, header.kind, appendable=True))
    if header is not None or _JSON_LOG.match(head):
        kind = header.kind if header is not None else None
        log = _log_source(source, path, kind, appendable=False)
        return Detection(agent=NAME, is_certain=_ANSWER.search(head) is not None, version="JSON", source=log)
    if source is not None and source.appendable and any(map(_is_message, records)):
        return Detection(agent=NAME, version="JSONL", source=source)
    return Detection(reason="no header with a sessionId and a projectHash" if records else "no line is a JSON object")


def _is_header(record: GeminiRecord) -> bool:
    return record.session_id is not None and record.project_hash is not None


def _is_message(record: GeminiRecord) -> bool:
    return record.type in MESSAGE_TYPES and record.id is not None and record.timestamp is not None


def _log_source(source: Source | None, path: Path, kind: str | None, *, appendable: bool) -> Source:
    """The source by its folder and name; for a log in any other folder, by what its header says."""
    if source is not None and source.kind is not SourceKind.SIDECAR:
        return source
    absolute = path.absolute()
    return Source(
        agent=NAME,
        path=str(absolute),
        root=str(absolute.parent),
        kind=SourceKind.SUBAGENT if kind == "subagent" else SourceKind.SESSION,
        appendable=appendable,
    )


def _prompt_log_source(path: Path) -> Source:
    absolute = path.absolute()
    return Source(agent=NAME, path=str(absolute), root=str(absolute.parent), kind=SourceKind.SIDECAR, appendable=False)
