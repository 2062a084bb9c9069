"""What patches of the list make of its messages: nothing is lost, and the active branch is known."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.claude_files import gather
from support.gemini_files import (
    AGENT,
    DATA,
    SESSION,
    SESSION_ID,
    answer,
    call,
    checkpoint,
    header,
    lines,
    log_source,
    response,
    tokens,
    user,
)
from turnlog.agents import fold_bytes
from turnlog.logs import SessionHistory, read_session
from turnlog.model import CompactionEvent, Fate, Origin, RewindEvent, TextPart

CONTEXT = user("ctx", "<session_context> here")
FIRST = [CONTEXT, user("u1", "one"), answer("g1", "a", tokens=tokens(input=5)), user("u2", "two"), answer("g2", "b")]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    folder = tmp_path / "tmp/shop/chats"
    folder.mkdir(parents=True)
    return folder / "session-2026-11-21T10-00-11111111.jsonl"


def read(log: Path, *records: object) -> SessionHistory:
    log.write_bytes(lines(header(), *records))
    return read_session(log)


def fates(history: SessionHistory) -> dict[str, Fate]:
    return {place.message_id.rpartition(":")[2]: place.fate for place in history.memberships}


def test_a_resume_that_repeats_everything_changes_nothing(log: Path) -> None:
    bare = [CONTEXT, user("u1", "one"), answer("g1", [{"text": "a"}]), user("u2", "two"), answer("g2", [{"text": "b"}])]
    resumed = [header(), checkpoint(CONTEXT), {"$set": {"sessionId": SESSION}}, checkpoint(*bare), user("u3", "three")]
    history = read(log, *FIRST, *resumed)
    assert set(fates(history).values()) == {Fate.ACTIVE}
    assert list(fates(history)) == ["ctx", "u1", "g1", "u2", "g2", "u3"]
    assert history.session.usage.usage.input == 5


def test_a_resume_that_was_cut_off_leaves_the_conversation(log: Path) -> None:
    assert set(fates(read(log, *FIRST, header(), checkpoint(CONTEXT))).values()) == {Fate.ACTIVE}


def test_a_rewind_leaves_a_branch(log: Path) -> None:
    """R-S19: what was rewound is kept, with its place."""
    history = read(log, *FIRST, {"$rewindTo": "u2"}, user("u3", "other"), answer("g3", "c"))
    assert fates(history) == {
        "ctx": Fate.ACTIVE,
        "u1": Fate.ACTIVE,
        "g1": Fate.ACTIVE,
        "u2": Fate.REWOUND,
        "g2": Fate.REWOUND,
        "u3": Fate.ACTIVE,
        "g3": Fate.ACTIVE,
    }
    (event,) = [event for event in history.events if isinstance(event, RewindEvent)]
    assert event.to_message_id == f"{SESSION}:gemini:g1"
    causes = {place.fate_cause for place in history.memberships if place.fate is Fate.REWOUND}
    assert causes == {f"{SESSION}:user:u3"}


def test_a_rewind_to_a_message_that_is_not_there_goes_to_the_start(log: Path) -> None:
    assert set(fates(read(log, *FIRST, {"$rewindTo": "nowhere"})).values()) == {Fate.REWOUND}


def test_a_prompt_that_a_checkpoint_takes_back_is_kept(log: Path) -> None:
    history = read(log, *FIRST, user("u3", "bad"), checkpoint(*FIRST))
    assert fates(history)["u3"] is Fate.REWOUND
    assert [fate for name, fate in fates(history).items() if name != "u3"] == [Fate.ACTIVE] * 5


def test_the_only_prompt_of_a_session_may_be_rewound(log: Path) -> None:
    assert fates(read(log, CONTEXT, user("u1", "bad"), checkpoint(CONTEXT))) == {
        "ctx": Fate.ACTIVE,
        "u1": Fate.REWOUND,
    }


def compaction() -> list[object]:
    running = answer("g3", toolCalls=[call("c1")], tokens=tokens(input=9))
    bare = {"functionCall": {"id": "c1", "name": "glob", "args": {"pattern": "*"}}}
    return [
        *FIRST,
        user("u3", "three"),
        running,
        checkpoint(
            CONTEXT,
            user("s", "<state_snapshot>all of it</state_snapshot>"),
            answer("ack", [{"text": "Got it. Thanks for the additional context!"}], model=None),
            user("u3-copy", "three"),
            answer("g3-copy", [bare], model=None),
        ),
        user("r", [response("c1")]),
        answer("g4", "d", tokens=tokens(input=2)),
    ]


def test_a_compaction_keeps_what_it_summed_up_and_doubles_nothing(log: Path) -> None:
    """What stays in the context is written under new ids: it is the same messages."""
    history = read(log, *compaction())
    assert fates(history) == {
        "ctx": Fate.ACTIVE,
        "u1": Fate.COMPACTED,
        "g1": Fate.COMPACTED,
        "u2": Fate.COMPACTED,
        "g2": Fate.COMPACTED,
        "u3": Fate.ACTIVE,
        "g3": Fate.ACTIVE,
        "s": Fate.ACTIVE,
        "ack": Fate.ACTIVE,
        "g4": Fate.ACTIVE,
    }
    (event,) = [event for event in history.events if isinstance(event, CompactionEvent)]
    assert event.summary_message_id == f"{SESSION}:user:s"
    assert [found.rpartition(":")[2] for found in event.kept_message_ids] == ["ctx", "u3", "g3"]
    origins = {message.id.rpartition(":")[2]: message.origin for message in history.messages}
    assert (origins["s"], origins["ack"]) == (Origin.COMPACTION, Origin.HARNESS)
    assert (history.session.usage.usage.input, history.session.counts.tool_calls) == (16, 1)
    assert [place.turn for place in history.memberships] == [None, 1, 1, 2, 2, 3, 3, 3, 3, 3]


def test_prompts_that_a_compaction_joins_are_still_the_same(log: Path) -> None:
    """A prompt without an answer and the one behind it are one message in the list that a compaction writes."""
    joined = user("u34", [{"text": "three"}, {"text": "four"}])
    summed_up = [
        CONTEXT,
        user("s", "<state_snapshot>all of it</state_snapshot>"),
        answer("ack", [{"text": "Got it. Thanks for the additional context!"}], model=None),
        joined,
        answer("g4-copy", "d", model=None),
    ]
    history = read(
        log,
        *FIRST,
        user("u3", "three"),
        user("u4", "four"),
        answer("g4", "d"),
        checkpoint(*summed_up),
        checkpoint(*summed_up),
    )
    assert "u34" not in fates(history)
    assert [fates(history)[name] for name in ("u1", "u2", "u3", "u4", "g4")] == [
        *(Fate.COMPACTED, Fate.COMPACTED, Fate.ACTIVE, Fate.ACTIVE, Fate.ACTIVE),
    ]
    assert max(place.turn or 0 for place in history.memberships) == 4


def test_a_resume_after_a_compaction_knows_the_copies(log: Path) -> None:
    bare = {"functionCall": {"id": "c1", "name": "glob", "args": {"pattern": "*"}}}
    again = checkpoint(
        CONTEXT,
        user("s", "<state_snapshot>all of it</state_snapshot>"),
        answer("ack", [{"text": "Got it. Thanks for the additional context!"}]),
        user("u3-copy", "three"),
        answer("g3-copy", [bare]),
        user("r", [response("c1")]),
        answer("g4", [{"text": "d"}]),
    )
    history = read(log, *compaction(), header(), checkpoint(CONTEXT), again, user("u4", "four"))
    assert len(history.messages) == 11
    assert [name for name, fate in fates(history).items() if fate is Fate.COMPACTED] == ["u1", "g1", "u2", "g2"]
    assert fates(history)["u4"] is Fate.ACTIVE


def test_another_session_in_the_same_file_is_its_own(log: Path) -> None:
    other = "22222222-2222-4222-8222-222222222222"
    log.write_bytes(lines(header(), user("u1", "one"), header(other), user("u1", "else")))
    history = read_session(log)
    assert history.session.id == SESSION_ID
    assert [message.id for message in history.messages] == [f"{SESSION}:user:u1"]


def test_what_comes_before_the_first_name_is_a_session_of_its_own() -> None:
    """Its header was lost with its line, so the session that is named later tells its whole list itself."""
    records = [*FIRST, header(), checkpoint(*FIRST), user("u3", "three")]
    gathered = gather(fold_bytes(AGENT, log_source(), lines(*records)))
    unnamed = "gemini-cli:session-2026-11-21T10-00-a"
    assert {key: change.active_leaf for key, change in gathered.sessions.items()} == {
        unnamed: f"{unnamed.removeprefix('gemini-cli:')}:gemini:g2",
        SESSION_ID: f"{SESSION}:user:u3",
    }
    assert [len(gathered.in_order(session)) for session in (unnamed, SESSION_ID)] == [5, 6]


def again(key: str, *texts: str) -> dict[str, object]:
    """A prompt as it is written back: with the context before it."""
    return user(key, [{"text": "<session_context> changed"}, *({"text": text} for text in texts)])


def test_a_recorded_rewind_leaves_what_the_next_request_did_not_have() -> None:
    """`/rewind` of 0.61 names the record of results: the calls stay, the answer behind them goes."""
    (path,) = (DATA / "versions" / "0.61.0-rewound").rglob("*.jsonl")
    history = read_session(path)
    said = {
        "".join(part.text for part in message.parts if isinstance(part, TextPart)): place.fate
        for message, place in zip(history.messages[1:], history.memberships[1:], strict=True)
    }
    assert said == {
        "Three at once": Fate.ACTIVE,
        "": Fate.ACTIVE,
        "All three.": Fate.REWOUND,
        "Behind the rewind": Fate.ACTIVE,
        "Rewound.": Fate.ACTIVE,
        "Last": Fate.ACTIVE,
        "Last.": Fate.ACTIVE,
        "Headless": Fate.ACTIVE,
        "Headless.": Fate.ACTIVE,
    }
    (rewind,) = (event for event in history.events if isinstance(event, RewindEvent))
    assert rewind.to_message_id == history.messages[2].id


def test_a_history_written_back_after_a_refusal_is_unchanged(log: Path) -> None:
    """Recorded with 0.61: the refused call and its prompt leave the list, and nothing is told twice."""
    recorded = DATA / "versions" / "0.61.0-refused" / "tmp" / "work" / "chats"
    (path,) = recorded.iterdir()
    history = read_session(path)
    said = [
        (
            "".join(part.text for part in message.parts if isinstance(part, TextPart)),
            str(place.fate),
            place.turn,
            place.step,
        )
        for message, place in zip(history.messages[1:], history.memberships[1:], strict=True)
    ]
    assert said == [
        ("Edit it", "active", 1, None),
        ("I edit.", "active", 1, 1),
        ("Edited.", "active", 1, 2),
        ("Deny this", "rewound", 2, None),
        ("", "rewound", 2, 1),
        ("After save", "active", 3, None),
        ("After save.", "active", 3, 1),
    ]
    assert (history.session.usage.calls, history.session.usage.unknown_calls) == (4, 0)


def test_what_is_written_back_is_known_in_its_order(log: Path) -> None:
    copies = [
        again("n1", "one"),
        answer("n2", [{"text": "a"}]),
        user("n3", [{"text": "two"}]),
        answer("n4", [{"text": "b"}]),
    ]
    same = [CONTEXT, user("u1", "one"), answer("g1", "a"), user("u2", "two"), answer("g2", "b"), user("u3", "two")]
    history = read(
        log, *same, answer("g3", "", toolCalls=[call("c", None)]), *copies, checkpoint(*copies), user("u4", "x")
    )
    assert list(fates(history)) == ["ctx", "u1", "g1", "u2", "g2", "u3", "g3", "u4"]
    assert [key for key, fate in fates(history).items() if fate is Fate.REWOUND] == ["u3", "g3"]


def test_a_fetched_conversation_replaces_the_present_one(log: Path) -> None:
    """As `/chat resume` of 0.61 writes it; a list that is torn off before its checkpoint counts as well."""
    copies = [again("n1", "other"), answer("n2", [{"text": "b"}], tokens=None)]
    history = read(log, *FIRST, *copies, checkpoint(*copies), user("u3", "on"))
    assert {key for key, fate in fates(history).items() if fate is Fate.ACTIVE} == {"n1", "n2", "u3"}
    assert {key for key, fate in fates(history).items() if fate is Fate.REWOUND} == {"ctx", "u1", "g1", "u2", "g2"}
    assert fates(read(log, *FIRST, *copies)) == {key: fate for key, fate in fates(history).items() if key != "u3"}
