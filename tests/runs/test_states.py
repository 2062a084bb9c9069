"""Lists of sessions with one status, which the store does not know."""

from __future__ import annotations

import pytest

from turnlog.model import Session
from turnlog.runs.states import sessions_of_status
from turnlog.store.choices import SessionStatus
from turnlog.store.session_state import SessionState
from turnlog.store.values import Page

STATES = {
    "running": SessionState("running", "open-turn"),
    "done": SessionState("done", "answer"),
    "stopped": SessionState("done", "interrupt"),
    "idle": SessionState("quiet", "silence"),
}

# Of 1,000 sessions: every third is done, every seventh was stopped, the last one is running.
NAMES = ["done" if place % 3 == 0 else "stopped" if place % 7 == 0 else "idle" for place in range(999)] + ["running"]


def list_sessions(limit: int, cursor: str | None) -> Page[Session]:
    start = int(cursor or 0)
    end = min(start + limit, len(NAMES))
    items = tuple(Session(id=f"demo:{place}", agent="demo", external_id=str(place)) for place in range(start, end))
    return Page(items, None if end == len(NAMES) else str(end))


def states_of(session_ids: list[str]) -> dict[str, SessionState]:
    return {id: STATES[NAMES[int(id.removeprefix("demo:"))]] for id in session_ids}


@pytest.mark.parametrize("limit", [1, 7, 100, 2000])
@pytest.mark.parametrize("status", ["done", "stopped", "idle", "running", "waiting"])
def test_the_pages_of_a_status_have_each_of_its_sessions_once(status: SessionStatus, limit: int) -> None:
    found: list[int] = []
    cursor = None
    while True:
        page = sessions_of_status(list_sessions, states_of, status, limit, cursor)
        found += [int(session.external_id) for session in page.items]
        cursor = page.next_cursor
        if cursor is None:
            break
        assert len(page.items) == limit
    assert found == [place for place, name in enumerate(NAMES) if name == status]
