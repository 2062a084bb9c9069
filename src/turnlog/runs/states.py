"""What sessions are doing, from their records and from the processes that turnlog started."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from itertools import islice

from turnlog.model import Session
from turnlog.platforms.processes import ProcessIdentity, is_alive
from turnlog.store.base import Store
from turnlog.store.choices import SessionStatus
from turnlog.store.session_state import RunEvidence, SessionState, session_state, status_of
from turnlog.store.values import Page, Run


def session_states(store: Store, session_ids: Iterable[str], now: datetime | None = None) -> dict[str, SessionState]:
    """The state of each stored session at `now` (by default the current time), by its id."""
    wanted = list(session_ids)
    at = now or datetime.now(UTC)
    runs = store.newest_runs(wanted)
    return {
        session_id: session_state(facts, _evidence(runs.get(session_id)), at)
        for session_id, facts in store.turn_facts(wanted).items()
    }


def sessions_of_status(
    list_sessions: Callable[[int, str | None], Page[Session]],
    states_of: Callable[[list[str]], Mapping[str, SessionState]],
    status: SessionStatus,
    limit: int,
    cursor: str | None = None,
) -> Page[Session]:
    """A page of those sessions of a list that have a status; how many there are is not counted.

    The store does not know what a session is doing, so the whole list is read until there are enough.

    Args:
        list_sessions: Returns so many sessions behind a cursor.
        states_of: Returns the states of sessions by their ids.
        status: What they are doing.
        limit: At most so many are returned.
        cursor: Of the list, where it goes on.
    """
    found: list[Session] = []
    while True:
        page = list_sessions(_READ_AT_ONCE, cursor)
        states = states_of([session.id for session in page.items])
        places = (
            place
            for place, session in enumerate(page.items)
            if (state := states.get(session.id)) is not None and status_of(state) == status
        )
        wanted = list(islice(places, limit - len(found)))
        found += [page.items[place] for place in wanted]
        if len(found) == limit and wanted[-1] + 1 < len(page.items):
            # A cursor is behind the last session of its page.
            return Page(tuple(found), list_sessions(wanted[-1] + 1, cursor).next_cursor)
        if len(found) == limit or page.next_cursor is None:
            return Page(tuple(found), page.next_cursor)
        cursor = page.next_cursor


_READ_AT_ONCE = 200


def _evidence(run: Run | None) -> RunEvidence | None:
    if run is None:
        return None
    if run.is_finished:
        return RunEvidence(is_alive=False, ended_at=run.ended_at, exit_code=run.exit_code)
    # The watching process lives as long as the run: without it the run is dead too, though no row says so.
    owner = None if run.pid is None else ProcessIdentity(run.pid, run.boot_id, run.process_start)
    return RunEvidence(is_alive=owner is not None and is_alive(owner))
