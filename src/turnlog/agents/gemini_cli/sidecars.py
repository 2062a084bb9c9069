"""The files next to a log: its project, the log of prompts, the session's previous file, spilled outputs.

The log of prompts (`logs.json`) and spilled outputs are separate sources, read by `SidecarFold`. The other
functions answer what the fold of a log must know and the log does not say. Only regular files inside the root are read;
where they are gone, the answer is unknown.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from hashlib import sha256
from pathlib import Path, PurePath

import msgspec
from msgspec import Raw

from turnlog.agents.base import Source, SourceKind, StatelessFold
from turnlog.agents.changes import Changes, Diagnostic, EventChange, Spill
from turnlog.agents.decoding import aware
from turnlog.agents.files import read_regular_file
from turnlog.agents.gemini_cli.fold_context import aware_or_none
from turnlog.agents.gemini_cli.sources import session_id
from turnlog.agents.json_file import locate_items
from turnlog.model import RunMetadataEvent

_LOG_NAME = re.compile(r"session-.+-(?P<id>[0-9a-f]{8})\.jsonl")


class _Projects(msgspec.Struct):
    projects: dict[str, str] = {}


# -- the project and the session of a log


def project_path_of(source: Source) -> str | None:
    """The folder of the project that a log belongs to; None if it is not known.

    A log names its folder at most by a hash. `tmp/<name>/.project_root` has the path, since these folders have names;
    `projects.json` has the paths of all names, and a hash is that of one of these paths.
    """
    root, path = Path(source.root), Path(source.path)
    try:
        name = path.relative_to(root / "tmp").parts[0]
    except (ValueError, IndexError):
        return None
    named = read_regular_file(root / "tmp" / name / ".project_root").decode(errors="replace").strip()
    return named or _path_of_name(read_regular_file(root / "projects.json"), name)


def session_id_from_name(source: Source) -> str | None:
    """The external id of the session of a log without a header; None if it is not known.

    A log loses its header when another terminal in the same folder starts before anything was typed: that deletes logs
    without a prompt, and what follows goes to a new file of the same name (0.61). The name has the beginning of the id,
    and the log of prompts has all of it.
    """
    path = Path(source.path)
    name = _LOG_NAME.fullmatch(path.name)
    if name is None or path.parent.name != "chats":
        return None
    wanted = rb'"sessionId"\s*:\s*"(%b-[^"\\]*)"' % name["id"].encode()
    prompt = re.search(wanted, read_regular_file(path.parent.parent / "logs.json"))
    return None if prompt is None else prompt[1].decode(errors="replace")


def _path_of_name(data: bytes, name: str) -> str | None:
    try:
        known = msgspec.json.decode(data, type=_Projects).projects
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return next((path for path, short in known.items() if name in (short, sha256(path.encode()).hexdigest())), None)


# -- the file that a session's file of JSON continues
#
# 0.20 begins a new recording with the same session id when it shortens the history, by itself or for `/compress`. In
# another minute that is another file, which has neither what came before nor the summary. Only here does a fold read
# another source: ids, turns and what was rewound depend on how the previous file ended. Where it is gone, the session's
# turns begin again. The first `/clear` in a terminal of 0.20 to 0.34 leaves the same two files; only the log of prompts
# says that the second conversation is a new one.


_JSON_NAME = re.compile(r"session-\d{4}-\d\d-\d\dT\d\d-\d\d(?P<id>-[0-9a-f]{8}\.json)")
_CLEAR = "/clear"


class _TypedPrompt(msgspec.Struct, rename="camel"):
    """An entry of the log of prompts."""

    session_id: str = ""
    message: str = ""
    timestamp: datetime | None = None


def previous_file(source: Source) -> Source | None:
    """The last of the files before this one that may be of the same session, judged by their names; None for none."""
    path = Path(source.path)
    name = _JSON_NAME.fullmatch(path.name)
    if name is None or path.parent.name != "chats":
        return None
    try:
        names = _json_files(os.fspath(path.parent), path.parent.stat().st_mtime_ns)
    except OSError:
        return None
    previous = max((found for found in names.get(name["id"], ()) if found < path.name), default=None)
    return None if previous is None else msgspec.structs.replace(source, path=os.fspath(path.with_name(previous)))


@lru_cache(maxsize=4)
def _json_files(folder: str, _changed_at: int) -> Mapping[str, list[str]]:
    """The names of the files of JSON in a folder, by the id and the ending in them; read once for each change of it."""
    found: dict[str, list[str]] = defaultdict(list)
    with os.scandir(folder) as entries:
        for match in filter(None, (_JSON_NAME.fullmatch(entry.name) for entry in entries)):
            found[match["id"]].append(match[0])
    return found


def was_cleared(source: Source, session: str, began: datetime | None) -> bool:
    """Whether the user typed `/clear` before the first prompt of a file.

    Args:
        source: The file.
        session: External id of its session.
        began: The time of its first prompt.
    """
    try:
        typed = msgspec.json.decode(
            read_regular_file(Path(source.path).parent.parent / "logs.json"), type=list[_TypedPrompt]
        )
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False
    if began is None:
        return False
    before = [
        found.message
        for found in typed
        if found.session_id == session and found.timestamp is not None and aware(found.timestamp) <= aware(began)
    ]
    # The last of them is the file's first prompt; commands in front of it count back to the prompt before.
    commands = before[:-1] if before and not before[-1].startswith("/") else before
    for message in reversed(commands):
        if not message.startswith("/") or message == _CLEAR:
            return message == _CLEAR
    return False


# -- sources of their own


_MEDIA_TYPES = {".json": "application/json", ".md": "text/markdown"}


class _Prompt(msgspec.Struct, rename="camel"):
    session_id: str
    message_id: int | str = 0
    timestamp: datetime | None = None


class GeminiSidecarFold(StatelessFold):
    """Reads a file that is rewritten whole each time."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def feed(self, data: bytes, offset: int) -> Changes:
        """See `turnlog.agents.base.Fold.feed`."""
        changes = Changes()
        if self._source.kind is SourceKind.SPILL:
            changes.spills.append(self._spill(len(data)))
            return changes
        try:
            items = msgspec.json.decode(data, type=list[Raw])
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            changes.counts.unreadable = 1
            changes.diagnostics.append(Diagnostic(offset=0, length=len(data), line=1, reason=str(error)))
            return changes
        for raw, position, length in locate_items(items, data, 0):
            _read_prompt(changes, raw, position, length)
        return changes

    def _spill(self, size: int) -> Spill:
        path = PurePath(self._source.path)
        media_type = _MEDIA_TYPES.get(path.suffix.lower(), "text/plain")
        return Spill(
            session_id=self._source.session_id or session_id(""), name=path.name, media_type=media_type, size=size
        )


def _read_prompt(changes: Changes, raw: Raw, position: int, length: int) -> None:
    """Add what somebody typed, including commands, which no log has.

    Its position is the very beginning, because the times of the log decide where a prompt belongs.
    """
    try:
        prompt = msgspec.json.decode(raw, type=_Prompt)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        changes.counts.unreadable += 1
        changes.diagnostics.append(Diagnostic(offset=position, length=length, reason=str(error)))
        return
    session = session_id(prompt.session_id)
    event = RunMetadataEvent(
        id=f"{prompt.session_id}.typed.{prompt.message_id}",
        position=0,
        created_at=aware_or_none(prompt.timestamp),
        kind="logs.json",
        data=Raw(bytes(raw)),
    )
    changes.events.append(EventChange(session_id=session, event=event, record=(position, length)))
    changes.counts.events += 1
