"""The settings of a conversation: its folder, its model and its name."""

from __future__ import annotations

import tomllib
from pathlib import Path, PurePosixPath
from typing import Any, Final

import msgspec

from turnlog.agents.base import Source, StatelessFold
from turnlog.agents.changes import Changes, Diagnostic, SessionChange
from turnlog.agents.decoding import object_of, text_of
from turnlog.agents.gptme import NAME
from turnlog.agents.gptme.sources import session_id
from turnlog.model.session import title_given

_PLACES = (".local/share/gptme", "Library/Application Support/gptme")
"""Where the folder that holds the logs is below a user's home."""


class GptmeSettingsFold(StatelessFold):
    """Reads the settings."""

    def __init__(self, source: Source) -> None:
        """Read the settings of one conversation."""
        self._session_id = source.session_id or session_id("")
        self._root = PurePosixPath(source.root)

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
        folder, name = self._whole(text_of(chat.get("workspace"))), text_of(chat.get("name"))
        facts = {key: chat[key] for key in ("model", "tool_format") if text_of(chat.get(key))}
        change = SessionChange(
            session_id=self._session_id, cwd=folder, project_path=folder, metadata={NAME: facts} if facts else {}
        )
        if name:
            change.titles["generated"] = title_given(name)
        changes.sessions[self._session_id] = change
        return changes

    def _whole(self, folder: str | None) -> str | None:
        """A folder below the user's home, which gptme writes with `~`; as it is where the home is unknown."""
        if folder is None or folder.partition("/")[0] != "~":
            return folder
        homes = [self._root.parents[place.count("/")] for place in _PLACES if self._root.match(place)]
        return str(homes[0] / folder[2:]) if homes else folder


class _HarmlessChat(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: Any = None
    model: Any = None
    tools: Any = None
    tool_format: Any = None
    stream: Any = None
    interactive: bool = True
    no_confirm: bool = False
    max_tokens: Any = None
    context_budget: Any = None
    temperature: Any = None
    top_p: Any = None
    workspace: Any = None


class _HarmlessSettings(msgspec.Struct, forbid_unknown_fields=True):
    """Settings with which gptme asks before it runs something, and runs no server of tools (0.35.1)."""

    chat: _HarmlessChat = _HarmlessChat()
    env: dict[str, Any] = {}


_LARGEST: Final = 1 << 20


def allow_little(path: Path) -> bool:
    """Whether the settings at a path are known to give gptme no rights, and neither commands nor instructions.

    A field that may do so, or that is not known, is taken for one that does.
    """
    try:
        with path.open("rb") as file:
            text = file.read(_LARGEST + 1).decode()
        settings = msgspec.convert(tomllib.loads(text), _HarmlessSettings)
    except (OSError, ValueError, RecursionError, msgspec.MsgspecError):
        return False
    return len(text) <= _LARGEST and settings.chat.interactive and not settings.chat.no_confirm and not settings.env
