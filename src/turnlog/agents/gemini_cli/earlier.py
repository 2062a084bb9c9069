"""The file that a session's file of JSON goes on from.

0.20 begins a recording, with the same session id, when it shortens the history, whether by itself or for `/compress`.
In another minute that is another file, which neither says what came before nor has the summary. The first `/clear` in a
terminal of 0.20 to 0.34 leaves the same two files; only the log of prompts tells that the second conversation is new.
"""

from __future__ import annotations

import os
import re
from datetime import datetime
from pathlib import Path

import msgspec

from turnlog.agents.base import Source
from turnlog.agents.folders import entries, is_file
from turnlog.agents.gemini_cli.projects import read_small
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
    beside = entries(os.fspath(path.parent))
    earlier = [
        found for found in beside if found.name < path.name and found.name.endswith(name["id"]) and is_file(found)
    ]
    return msgspec.structs.replace(source, path=earlier[-1].path) if earlier else None


def was_cleared(source: Source, session: str, began: datetime | None) -> bool:
    """Whether the user typed `/clear` before the prompt with which a file of this session began at that time."""
    try:
        typed = msgspec.json.decode(read_small(Path(source.path).parent.parent / "logs.json"), type=list[_Typed])
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
