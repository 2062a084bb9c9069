"""Who may read what a push shows more of."""

from __future__ import annotations

from pathlib import Path

from support.toy_store import ToyStore
from turnlog.hub.machine.levels import Levels
from turnlog.hub.machine.raising import Readers, raised_sessions, readers_of
from turnlog.hub.machine.state import MachineState, Sent
from turnlog.hub.readers import SharedSession, SharedSessions


def test_only_sessions_that_were_sent_at_a_lower_level_show_more(tmp_path: Path) -> None:
    with ToyStore(tmp_path) as toy:
        for name in ("a", "b", "c"):
            toy.add(
                f"{name}.log",
                b'{"kind":"text","id":"%b","message":"%b","role":"user","text":"x"}\n' % (b"u" * 2, name.encode()),
            )
    with MachineState(toy.path) as state:
        state.note_sent({"toy:a": Sent("toy:a", "redacted"), "toy:b": Sent("toy:b", "full")}, ())
        assert raised_sessions(toy.path, state, Levels("redacted", {})) == {}
        assert list(raised_sessions(toy.path, state, Levels("full", {}))) == ["toy:a"]


def test_readers_are_those_of_each_session_also_under_a_new_id() -> None:
    items = [
        SharedSession(id="toy:a~u-0123456789abcdef", visibility="people", people=["Ben", "Zoe"]),
        SharedSession(id="toy:b", visibility="team", people=[]),
        SharedSession(id="toy:c", visibility="link", people=[]),
        SharedSession(id="toy:0123", visibility="team", people=[]),
    ]
    raised = {
        "toy:a": Sent("toy:a~u-0123456789abcdef", "redacted"),
        "toy:b": Sent("toy:b", "redacted"),
        "toy:c": Sent("toy:c", "redacted"),
        "toy:d": Sent("toy:d", "redacted"),
        "toy:e": Sent("toy:0123", "metrics"),
        "toy:f": Sent("toy:f", "none"),
    }
    assert set(readers_of(raised, SharedSessions(items=items, new_sessions="private"))) == {
        Readers("Ben, Zoe", 1),
        Readers("everybody in the team", 1),
        Readers("whoever has a link", 1),
    }
    assert readers_of(raised, SharedSessions(items=items, new_sessions="team"))[0] == Readers(
        "everybody in the team", 3
    )
    # Who could read a session before it was taken back may read it again.
    again = {"toy:a": Sent("toy:4567", "metrics"), "toy:b": Sent("toy:b", "none")}
    assert set(readers_of(again, SharedSessions(items=items, new_sessions="private"))) == {
        Readers("Ben, Zoe", 1),
        Readers("everybody in the team", 1),
    }
    assert readers_of({"toy:d": raised["toy:d"]}, SharedSessions(items=items, new_sessions="team")) == []
