from datetime import UTC, datetime

from turnlog.runs.recording import ended, new_run, started


def test_a_run_has_ended_when_its_process_had_and_not_when_that_is_written_down() -> None:
    """R-S35."""
    at = datetime(2027, 1, 2, 3, 4, 5, 678_901, tzinfo=UTC)
    assert ended(started(new_run("command")), 0, at=at).ended_at == at.replace(microsecond=678_000)
