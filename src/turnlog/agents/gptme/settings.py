"""The settings of a conversation: its folder, its model and its name."""

from __future__ import annotations

import tomllib

from turnlog.agents.base import Source, StatelessFold
from turnlog.agents.changes import Changes, Diagnostic, SessionChange
from turnlog.agents.decoding import object_of, text_of
from turnlog.agents.gptme import NAME
from turnlog.agents.gptme.sources import session_id
from turnlog.model.session import title_given


class GptmeSettingsFold(StatelessFold):
    """Reads the settings."""

    def __init__(self, source: Source) -> None:
        """Read the settings of one conversation."""
        self._session_id = source.session_id or session_id("")

    def feed(self, data: bytes, offset: int) -> Changes:
        """See `turnlog.agents.base.Fold.feed`."""
        changes = Changes()
        try:
            chat = object_of(tomllib.loads(data.decode()).get("chat"))
        except (ValueError, RecursionError) as error:
            changes.counts.unreadable = 1
            changes.diagnostics.append(Diagnostic(offset=0, length=len(data), line=1, reason=str(error)))
            return changes
        changes.counts.events = 1
        folder, name = text_of(chat.get("workspace")), text_of(chat.get("name"))
        facts = {key: chat[key] for key in ("model", "tool_format") if text_of(chat.get(key))}
        change = SessionChange(
            session_id=self._session_id, cwd=folder, project_path=folder, metadata={NAME: facts} if facts else {}
        )
        if name:
            change.titles["generated"] = title_given(name)
        changes.sessions[self._session_id] = change
        return changes
