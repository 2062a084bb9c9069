"""Files beside the logs: the log of prompts, and spilled outputs."""

from __future__ import annotations

from datetime import datetime
from pathlib import PurePath

import msgspec
from msgspec import Raw

from turnlog.agents.base import Source, SourceKind
from turnlog.agents.changes import Changes, Diagnostic, EventChange, Spill
from turnlog.agents.gemini_cli.calls import places_of
from turnlog.agents.gemini_cli.reading import aware_or_none
from turnlog.agents.gemini_cli.sources import session_id
from turnlog.model import RunMetadataEvent

_MEDIA_TYPES = {".json": "application/json", ".md": "text/markdown"}


class _Prompt(msgspec.Struct, rename="camel"):
    session_id: str
    message_id: int | str = 0
    timestamp: datetime | None = None


class SidecarFold:
    """Reads a file that is rewritten whole each time. It remembers nothing."""

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
        for raw, position, length in places_of(items, data, 0):
            _read_prompt(changes, raw, position, length)
        return changes

    def state(self) -> bytes:
        """See `turnlog.agents.base.Fold.state`."""
        return b""

    def _spill(self, size: int) -> Spill:
        path = PurePath(self._source.path)
        media_type = _MEDIA_TYPES.get(path.suffix.lower(), "text/plain")
        return Spill(
            session_id=self._source.session_id or session_id(""), name=path.name, media_type=media_type, size=size
        )


def _read_prompt(changes: Changes, raw: Raw, position: int, length: int) -> None:
    """What somebody typed, commands included that no log has. Stands before the log, which tells when it was said."""
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
