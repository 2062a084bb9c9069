"""Where the conversations are, and whether a file is one of them.

A conversation is a file of JSON, or since 1.109 a log of the changes to it. Both may be written anew, so both are read
whole.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

import msgspec

from turnlog.agents.base import Detection, Source
from turnlog.agents.copilot_chat import NAME
from turnlog.agents.files import entries, folders, is_file, read_regular_file
from turnlog.agents.jsonl import UNREADABLE

_WORKSPACES: Final = "workspaceStorage"
_SESSIONS: Final = "chatSessions"
_EMPTY_WINDOWS: Final = ("emptyWindowChatSessions", "transferredChatSessions")
_ENDINGS: Final = (".jsonl", ".json")
"""The first one holds the conversation, if there are both: VS Code keeps the older file."""

_SNAPSHOT = re.compile(rb'"requests"\s*:\s*\[')
_FIELDS = (b'"responderUsername"', b'"requesterUsername"', b'"creationDate"')
"""Fields of a conversation that other programs do not have; two of them must be there."""
_LOG = re.compile(rb'\A\s*\{\s*"kind"\s*:\s*0\s*,\s*"v"\s*:\s*\{')
_SESSION = re.compile(rb'"sessionId"\s*:\s*"(?P<id>[^"\\]+)"')
_VERSION = re.compile(rb'"version"\s*:\s*(?P<version>\d+)')


def session_id(external: str) -> str:
    """The id of a session in the model. A `/` of the external id, which would separate parts of a path, becomes `_`."""
    return f"{NAME}:{external.replace('/', '_')}"


def find_sources(root: Path) -> Iterator[Source]:
    """Every conversation below a folder of a user's data."""
    for workspace in folders(os.fspath(root / _WORKSPACES)):
        yield from _sessions_in(Path(workspace.path, _SESSIONS), root, workspace.name)
    for name in _EMPTY_WINDOWS:
        yield from _sessions_in(root / "globalStorage" / name, root, None)


def _sessions_in(folder: Path, root: Path, project: str | None) -> Iterator[Source]:
    names = {entry.name for entry in filter(is_file, entries(os.fspath(folder)))}
    for path in (folder / name for name in sorted(names)):
        is_older = path.suffix == _ENDINGS[1] and path.with_suffix(_ENDINGS[0]).name in names
        if path.suffix in _ENDINGS and not is_older:
            yield _source(path, root, project, path.stem)


def _source(path: Path, root: Path, project: str | None, external: str) -> Source:
    return Source(
        agent=NAME,
        path=os.fspath(path),
        root=os.fspath(root),
        session_id=session_id(external),
        project=project,
        appendable=False,
    )


def detect_file(path: Path, head: bytes) -> Detection:
    """Judge a file by its beginning `head`."""
    is_log = _LOG.match(head) is not None
    if not is_log and not (head.lstrip().startswith(b"{") and _SNAPSHOT.search(head)):
        return Detection(reason="neither requests nor a log of changes")
    if sum(field in head for field in _FIELDS) < 1 + (not is_log):
        return Detection(reason="no fields of a conversation of VS Code")
    absolute = path.absolute()
    named, version = _SESSION.search(head), _VERSION.search(head)
    external = named["id"].decode(errors="replace") if named is not None else absolute.stem
    is_in_place = absolute.parent.name == _SESSIONS
    root = absolute.parents[3] if is_in_place and len(absolute.parents) > 3 else absolute.parent
    return Detection(
        agent=NAME,
        version=version["version"].decode() if version is not None else "1",
        source=_source(absolute, root, absolute.parents[1].name if is_in_place else None, external),
    )


# -- the workspace of a conversation


class _Workspace(msgspec.Struct):
    folder: str | None = None
    workspace: str | None = None


def workspace_of(path: Path) -> str | None:
    """The folder, or the file of several folders, that a conversation belongs to; None if it has none."""
    if path.parent.name != _SESSIONS:
        return None
    try:
        found = msgspec.json.decode(read_regular_file(path.parents[1] / "workspace.json"), type=_Workspace)
    except UNREADABLE:
        return None
    return path_of(found.folder or found.workspace)


def path_of(address: str | None) -> str | None:
    """The path in a `file:` address, also of a folder on another machine; None if it is no address."""
    try:
        parts = urlsplit(address or "")
    except ValueError:
        return None
    path = unquote(parts.path)
    if not parts.scheme or not path:
        return None
    # `file:///c%3A/work` is a folder of Windows.
    return path[1:] if re.match(r"/[A-Za-z]:", path) else path
