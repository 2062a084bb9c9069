"""The file that a session's file of JSON goes on from.

0.20 begins a recording, with the same session id, when it shortens the history, whether by itself or for `/compress`.
In another minute that is another file, which neither says what came before nor has the summary. The first `/clear` in a
terminal of 0.20 to 0.34 leaves the same two files; only the log of prompts tells that the second conversation is new.

Only here does a fold look at another source: ids, turns and what was rewound hang on how the file before ended. Where
that file is gone, the session's turns begin anew.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from pathlib import Path

import msgspec

from turnlog.agents.base import Source
from turnlog.agents.gemini_cli.projects import read_plain
from turnlog.agents.reading import aware

_WHOLE = re.compile(r"session-\d{4}-\d\d-\d\dT\d\d-\d\d(?P<id>-[0-9a-f]{8}\.json)")
_CLEAR = "/clear"


class _Typed(msgspec.Struct, rename="camel"):
    """What the log of prompts has of one thing that was typed."""

    session_id: str = ""
    message: str = ""
    timestamp: datetime | None = None


def earlier_file(source: Source) -> Source | None:
    """The last of the files before this one that may be of the session, as their names tell."""
    path = Path(source.path)
    name = _WHOLE.fullmatch(path.name)
    if name is None or path.parent.name != "chats":
        return None
    try:
        beside = _named_alike(os.fspath(path.parent), path.parent.stat().st_mtime_ns)
    except OSError:
        return None
    earlier = max((found for found in beside.get(name["id"], ()) if found < path.name), default=None)
    return msgspec.structs.replace(source, path=os.fspath(path.with_name(earlier))) if earlier is not None else None


@lru_cache(maxsize=4)
def _named_alike(folder: str, _changed_at: int) -> Mapping[str, list[str]]:
    """The names of the files of JSON in a folder, as it was when it last changed, by the id and the ending in them."""
    found: dict[str, list[str]] = defaultdict(list)
    with os.scandir(folder) as beside:
        for match in filter(None, (_WHOLE.fullmatch(entry.name) for entry in beside)):
            found[match["id"]].append(match[0])
    return found


def was_cleared(source: Source, session: str, began: datetime | None) -> bool:
    """Whether the user typed `/clear` before the prompt with which a file of this session began at that time."""
    try:
        typed = msgspec.json.decode(read_plain(Path(source.path).parent.parent / "logs.json"), type=list[_Typed])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False
    if began is None:
        return False
    before = [
        found.message
        for found in typed
        if found.session_id == session and found.timestamp is not None and aware(found.timestamp) <= aware(began)
    ]
    commands = before[:-1] if before and not before[-1].startswith("/") else before
    for message in reversed(commands):
        if not message.startswith("/") or message == _CLEAR:
            return message == _CLEAR
    return False
