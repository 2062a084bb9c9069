"""The status of a session in words: those of the page, from the state that the store's records show."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from turnlog.cli import formatting
from turnlog.store.session_state import status_of

if TYPE_CHECKING:
    from turnlog.store.session_state import SessionState

_WAITING: Final = {"approval": "Waiting for permission", "question": "Waiting for an answer"}


def status(state: SessionState | None, *, timed: bool = True) -> str:
    """`Running`, `Waiting for permission`, `Done`, `Idle since 2026-11-21 14:02`; only `Idle` if not `timed`."""
    match state:
        case None:
            return formatting.UNKNOWN
        case _ if state.state == "waiting":
            return _WAITING[state.evidence]
        case _ if state.state == "done":
            return status_of(state).capitalize()
        case _ if state.state == "quiet" and not timed:
            return "Idle"
        case _ if state.state == "quiet":
            return f"Idle since {formatting.moment(state.since)}" if state.since else "Idle for a long time"
        case _:
            return state.state.capitalize()
