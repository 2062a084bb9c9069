"""Histories that were handed over, as plain values in which an original and its continuation are equal.

`said` is what a plan was to carry, `stored` what the store has of the session that was written.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from turnlog.handoff import HandoffPlan
from turnlog.model import FilePart, Message, TextPart, ToolCallPart
from turnlog.store.base import Store

Said = list[tuple[str, list[Any]]]


def said(plan: HandoffPlan) -> Said:
    return [_plain(message) for message in plan.conversation.messages]


def stored(store: Store, session_id: str) -> Said:
    """The messages of a session that were handed over, in order."""
    placed = store.messages(session_id)
    return [_plain(each.message) for each in placed if not each.membership.is_billed]


def own_messages(store: Store, session_id: str) -> list[Message]:
    """The messages that the session has beside those."""
    return [each.message for each in store.messages(session_id) if each.membership.is_billed]


def _plain(message: Message) -> tuple[str, list[Any]]:
    role = "assistant" if message.role == "assistant" else "user"
    return role, [_plain_part(part) for part in message.parts]


def _plain_part(part: Any) -> Any:
    if isinstance(part, TextPart):
        return part.text
    if isinstance(part, FilePart):
        return part.media_type, part.data
    assert isinstance(part, ToolCallPart)
    given = part.input_text if part.input_text is not None else msgspec.json.decode(part.input or b"{}")
    content = [_plain_part(each) for result in part.results for each in result.content]
    return part.tool_name, given, [result.status for result in part.results], content


def programs(folder: Path, *names: str) -> Path:
    """A folder with programs of these names, which do nothing."""
    folder.mkdir(exist_ok=True)
    for name in names:
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    return folder
