"""What sessions are doing, from their records and from the processes that turnlog started."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from turnlog.runs.lifecycle import ProcessIdentity, is_alive
from turnlog.store.base import Store
from turnlog.store.session_state import RunEvidence, SessionState, session_state
from turnlog.store.values import Run


def session_states(store: Store, session_ids: Iterable[str], now: datetime | None = None) -> dict[str, SessionState]:
    """The state of each stored session at `now` (by default the current time), by its id."""
    wanted = list(session_ids)
    at = now or datetime.now(UTC)
    runs = store.newest_runs(wanted)
    return {
        session_id: session_state(facts, _evidence(runs.get(session_id)), at)
        for session_id, facts in store.turn_facts(wanted).items()
    }


def _evidence(run: Run | None) -> RunEvidence | None:
    if run is None:
        return None
    if run.is_finished:
        return RunEvidence(is_alive=False, ended_at=run.ended_at, exit_code=run.exit_code)
    # The watching process lives as long as the run: without it the run is dead too, though no row says so.
    owner = None if run.pid is None else ProcessIdentity(run.pid, run.boot_id, run.process_start)
    return RunEvidence(is_alive=owner is not None and is_alive(owner))
