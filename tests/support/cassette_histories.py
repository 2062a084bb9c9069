"""A small session with everything that a cassette has to keep, and ways to record sessions."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

from support.provider_messages import assistant, call, developer, result, thinking, user
from support.recorded_sessions import recorded_history
from turnlog.cassette.recording import Recorded, RecordedSession, record
from turnlog.errors import ConversionError
from turnlog.logs import SessionHistory
from turnlog.model import Fate, HistoryEvent, Membership, Message, Session, Usage

DATA = Path(__file__).parents[1] / "data"
SESSION = "plain:3f2a"

CONVERSATION = [
    user("Fix  the bug", id="u1"),
    developer("It is Monday.", id="d1"),
    assistant(
        thinking("Let me see.", "anthropic", signature="c2ln"),
        "I look at it, and at all that stands around it.",
        call("c1", result("a.py\nb.py"), input={"command": "ls"}),
        call("c2", result("boom", status="error"), input={"command": "cat x", "lines": [1, 2.5, None]}),
        id="a1",
        stop_reason="tool_use",
        usage=Usage(input=10, cache_read=5, cache_write=2, output=7, reasoning=3),
    ),
    assistant("Found it.", call("c3", input={"command": "sleep"}), id="a2"),
    user("Go on", id="u2"),
    assistant("Done: ünï.", id="a3", stop_reason="stop"),
]


def placed(messages: Sequence[Message], **fates: Fate) -> list[tuple[Message, Membership]]:
    """The messages, one behind the other; `fates` by message id."""
    return [
        (
            message,
            Membership(
                session_id=SESSION, message_id=message.id, position=10 * place, fate=fates.get(message.id, Fate.ACTIVE)
            ),
        )
        for place, message in enumerate(messages)
    ]


def history(messages: Sequence[Message], events: Sequence[HistoryEvent] = (), **fates: Fate) -> RecordedSession:
    session = Session(id=SESSION, agent="plain", external_id="3f2a", title="Repair")
    return RecordedSession(session, placed(messages, **fates), events)


def recorded(*messages: Message, events: Sequence[HistoryEvent] = (), **fates: Fate) -> Recorded:
    """The cassette of a session of these messages."""
    return record([history(messages or CONVERSATION, events, **fates)])


@cache
def recorded_logs() -> dict[str, Recorded]:
    """The cassettes of recorded logs of every agent, subagents included."""
    found: dict[str, Recorded] = {}
    kinds = ("*/scenarios", "*/streams", "klaude/versions")
    for path in sorted([path for kind in kinds for path in DATA.glob(f"{kind}/**/*.jsonl")]):
        read = recorded_history(path) if path.stat().st_size else None
        with suppress(ConversionError):
            found[str(path.relative_to(DATA))] = record([] if read is None else map(_history, _family(read)))
    return found


def _family(session: SessionHistory) -> list[SessionHistory]:
    return [session, *[each for child in session.children for each in _family(child)]]


def _history(session: SessionHistory) -> RecordedSession:
    places = {place.message_id: place for place in session.memberships}
    return RecordedSession(
        session.session, [(message, places[message.id]) for message in session.messages], session.events
    )
