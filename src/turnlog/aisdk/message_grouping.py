"""Which messages of a history make one UI message together: decided from roles and ids alone, message by message.

A store pages by these rules without reading a body, and the conversion follows them, so a page never cuts a UI
message in two.
"""

from __future__ import annotations

import re

from turnlog.aisdk.options import View

_STEP_OF = re.compile(r"(.+)~\d+", re.DOTALL)
"""The id of a step that came from a UI message: `<its id>~<number>` (`step_id`)."""


def step_id(ui_message_id: str, number: int) -> str:
    """The id of one model call of an assistant UI message; numbers count from 1."""
    return f"{ui_message_id}~{number}"


def ui_message_id(message_id: str) -> str | None:
    """The UI message that a step came from; None for a message of an agent."""
    found = _STEP_OF.fullmatch(message_id)
    return None if found is None else found[1]


class MessageGrouping:
    """Decides for each message of a history, in order, whether a UI message begins with it."""

    def __init__(self, view: View) -> None:
        """Follow the options of a view."""
        self._view = view
        self._open: str | None = None
        """The role whose UI message is open; `developer` while it holds only our own data parts."""
        self._source: str | None = None

    def includes(self, role: str) -> bool:
        """Whether messages of a role are shown at all."""
        return role != "developer" or self._view.developer != "omit"

    def starts_ui_message(self, role: str, message_id: str) -> bool:
        """Whether the next message, which is shown, begins a UI message."""
        if role == "developer" and self._view.developer == "data":
            starts = self._open is None
            self._open = self._open or "developer"
            return starts
        source = ui_message_id(message_id) if role == "assistant" else None
        starts = not self._joins(role, source)
        self._open, self._source = role, source
        return starts

    def _joins(self, role: str, source: str | None) -> bool:
        if self._open == "developer" and self._view.developer == "data":
            return True
        return self._view.merge_steps and self._open == role == "assistant" and self._source == source
