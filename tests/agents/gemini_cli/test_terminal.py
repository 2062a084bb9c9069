"""Recorded in a terminal: Escape while a tool runs, a no, fetched conversations, two terminals in one folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.claude_files import calls_of
from support.gemini_files import DATA, answer, call, checkpoint, header, lines, response, sources, tokens, user
from turnlog.agents import detect
from turnlog.logs import SessionHistory, read_session
from turnlog.model import CompactionEvent, Fate, InterruptEvent, Origin, RecordEvent, TextPart, ToolState

VERSIONS = DATA / "versions"


def log(version: str, name: str) -> SessionHistory:
    (path,) = (VERSIONS / version / "tmp/work/chats").glob(name)
    return read_session(path)


def answers(history: SessionHistory) -> list[tuple[int | None, int | None, str, list[tuple[str, ToolState]]]]:
    """Turn, step, words, and the commands with their states, of each answer."""
    return [
        (
            place.turn,
            place.step,
            "".join(part.text for part in message.parts if isinstance(part, TextPart)),
            [(found.input_value()["command"], found.state) for found in calls_of(message)],
        )
        for message, place in zip(history.messages, history.memberships, strict=True)
        if message.role == "assistant"
    ]


def test_calls_that_escape_cut_off_are_those_of_their_answer() -> None:
    """R-C5: one request is one step, its calls in the order of the request, whatever was logged first."""
    done, aborted = ToolState.OUTPUT_AVAILABLE, ToolState.ABORTED
    history = log("0.61.0-cut-off", "session-2026-11-22T10-55-*.jsonl")
    assert answers(history) == [
        (1, 1, "Ready G0.", []),
        (2, 1, "I sleep.", [("echo quick", done), ("echo started; sleep 30", aborted)]),
        (3, 1, "After, G1.", []),
        (4, 1, "", [("echo x; sleep 25", aborted)]),
        (5, 1, "No words before, G2.", []),
        (6, 1, "Resumed, G3.", []),
    ]
    assert {place.fate for place in history.memberships} == {Fate.ACTIVE}
    assert (history.session.usage.calls, history.session.usage.unknown_calls) == (6, 0)
    assert history.session.usage.usage.input == 577


def cut_off(*between: object, words: str = "I sleep.", **fields: object) -> list[object]:
    return [
        header(),
        user("u1", "sleep"),
        answer("g1", words, tokens=tokens(input=5)),
        *between,
        answer("g2", "", toolCalls=[call("c1")], model=None, **fields),
    ]


def read(tmp_path: Path, *records: object) -> SessionHistory:
    folder = tmp_path / "tmp/shop/chats"
    folder.mkdir(parents=True)
    path = folder / "session-2026-11-21T10-00-11111111.jsonl"
    path.write_bytes(lines(*records))
    return read_session(path)


NOTICE = {"id": "n", "timestamp": "2026-11-21T10:00:03.000Z", "type": "info", "content": "Request cancelled."}


def test_calls_behind_a_notice_join_the_answer_before_it(tmp_path: Path) -> None:
    history = read(tmp_path, *cut_off(NOTICE))
    (found,) = [message for message in history.messages if message.role == "assistant"]
    assert [part.type for part in found.parts] == ["text", "tool-call"]


@pytest.mark.parametrize(
    "records",
    [
        cut_off(NOTICE, user("u2", "and now")),
        cut_off(NOTICE, tokens=tokens(input=6)),
        cut_off(NOTICE, thoughts=[{"subject": "Now", "description": "this"}]),
        cut_off(answer("g1", "I sleep.", tokens=tokens(input=5), toolCalls=[call("c0")]), NOTICE),
    ],
    ids=["prompt", "tokens", "thought", "calls"],
)
def test_calls_of_another_request_are_an_answer_of_their_own(tmp_path: Path, records: list[object]) -> None:
    history = read(tmp_path, *records)
    assert [message.role for message in history.messages].count("assistant") == 2


def test_what_was_cut_off_is_known_when_it_is_written_again(tmp_path: Path) -> None:
    """A compaction and a refused question write it under new ids, words and calls in one."""
    content = [{"text": "I sleep."}, {"functionCall": {"id": "c1", "name": "glob", "args": {"pattern": "*"}}}]
    context = user("ctx", "<session_context> here")
    summed_up = checkpoint(
        context,
        user("s", "<state_snapshot>all of it</state_snapshot>"),
        answer("ack", [{"text": "Got it. Thanks for the additional context!"}], model=None),
        user("u1-copy", "sleep"),
        answer("g1-copy", content, model=None),
        user("r-copy", [response("c1")]),
    )
    first = [user("u0", "hello"), answer("g0", "hello", tokens=tokens(input=5))]
    start, *rest = cut_off(NOTICE)
    history = read(tmp_path, start, context, *first, *rest, user("r", [response("c1")]), summed_up)
    fates = {place.message_id.rpartition(":")[2]: place.fate for place in history.memberships}
    assert (fates["u0"], fates["u1"], fates["g1"]) == (Fate.COMPACTED, Fate.ACTIVE, Fate.ACTIVE)
    assert "g1-copy" not in fates


def test_a_no_in_the_terminal_is_a_refusal() -> None:
    """R-S16: Escape at the question says no; Escape while the call runs aborts it."""
    history = log("0.61.0-refused", "*.jsonl")
    states = [found.state for message in history.messages for found in calls_of(message)]
    assert states == [ToolState.OUTPUT_AVAILABLE, ToolState.OUTPUT_DENIED]


def test_a_log_without_its_header_is_named_by_the_log_of_prompts() -> None:
    """A second terminal has cleared it away before the first prompt: what came later stands in a file without one."""
    history = log("0.61.0-two-terminals", "*-c4878f81.jsonl")
    assert history.session.external_id == "c4878f81-d218-48ee-92fa-c5014dabbd35"
    assert history.session.title == "I am LEFT"
    other = log("0.61.0-two-terminals", "*-754ccee0.jsonl")
    assert other.session.external_id == "754ccee0-0a29-47c3-867e-0ead3e30ed62"
    assert [len(found.messages) for found in (history, other)] == [5, 6]


def test_a_log_without_header_and_prompts_is_named_by_its_file(tmp_path: Path) -> None:
    (path,) = (VERSIONS / "0.61.0-two-terminals/tmp/work/chats").glob("*-c4878f81.jsonl")
    chats = tmp_path / "tmp/work/chats"
    chats.mkdir(parents=True)
    (chats / path.name).write_bytes(path.read_bytes())
    assert read_session(chats / path.name).session.external_id == path.stem
    assert detect(chats / path.name).agent == "gemini-cli"


def test_a_call_of_a_killed_subagent_is_one_though_its_copy_has_no_id() -> None:
    """0.61 lists what a subagent has done when it is stopped; there its calls have no ids."""
    (source,) = [found for found in sources("subagents", "0.61.0") if "d7165f8d" in found.path]
    history = read_session(source.path)
    assert [found.state for message in history.messages for found in calls_of(message)] == [ToolState.OUTPUT_AVAILABLE]


def test_the_placeholder_of_an_interrupted_answer_is_no_message() -> None:
    """0.61 puts it into the history that a refused question makes it write anew; the refused prompt is gone."""
    history = log("0.61.0-put-back", "*T11-07-*.jsonl")
    assert [(turn, step, words) for turn, step, words, _ in answers(history)] == [
        (1, 1, "Ready N0."),
        (2, 1, "I sleep."),
        (3, 1, "After, N1."),
        (4, 1, "May I?"),
        (5, 1, "No then, N2."),
        (6, 1, "N3."),
    ]
    fates = [place.fate for place in history.memberships if place.turn == 4]
    assert fates == [Fate.REWOUND, Fate.REWOUND]
    assert {place.fate for place in history.memberships if place.turn != 4} == {Fate.ACTIVE}
    (placeholder,) = [found for found in history.events if isinstance(found, RecordEvent) and found.kind == "gemini"]
    assert placeholder.known


def test_a_conversation_that_chat_resume_fetches_is_the_one_that_was_saved() -> None:
    """0.47 writes all of it again under new ids, the context by itself; what was said since the save has left."""
    history = log("0.47.0-fetched", "*.jsonl")
    prompts = [
        ("".join(part.text for part in message.parts if isinstance(part, TextPart)), place.fate)
        for message, place in zip(history.messages, history.memberships, strict=True)
        if message.role == "user"
    ]
    assert prompts == [
        ("Say one", Fate.ACTIVE),
        ("Say two", Fate.ACTIVE),
        ("Say three", Fate.REWOUND),
        ("Say four", Fate.ACTIVE),
        ("Say five", Fate.REWOUND),
        ("Say six", Fate.ACTIVE),
    ]
    assert [found.state for message in history.messages for found in calls_of(message)] == [ToolState.OUTPUT_AVAILABLE]
    assert (history.session.usage.calls, history.session.usage.unknown_calls) == (7, 0)


def test_what_differs_in_a_fetched_conversation_follows_what_is_the_same(tmp_path: Path) -> None:
    context = user("ctx", "<session_context> here")
    said = [user("u1", "one"), answer("g1", "a", tokens=tokens(input=5)), user("u2", "two")]
    fetched = [
        user("ctx-copy", "<session_context> here"),
        user("u1-copy", "one"),
        answer("g1-copy", "a", tokens=None),
        user("v2", "another"),
        answer("w2", "c", tokens=None),
    ]
    history = read(tmp_path, header(), context, *said, *fetched, checkpoint(*fetched), user("v3", "three"))
    fates = {place.message_id.rpartition(":")[2]: place.fate for place in history.memberships}
    assert {name for name, fate in fates.items() if fate is Fate.REWOUND} == {"u2"}
    parents = {place.message_id.rpartition(":")[2]: place.parent_id for place in history.memberships}
    assert [(parents[name] or "").rpartition(":")[2] for name in ("v2", "w2", "v3")] == ["g1", "v2", "w2"]


@pytest.mark.parametrize(
    ("records", "during"),
    [
        ([user("u", "hi"), NOTICE], "answer"),
        ([*cut_off()[1:3], NOTICE], "tool"),
        ([*cut_off()[1:3], answer("g1", "I sleep.", toolCalls=[call("c1", status="cancelled")]), NOTICE], "tool"),
        ([*cut_off()[1:3], answer("g1", "I sleep.", toolCalls=[call("c1")]), NOTICE], "answer"),
    ],
    ids=["prompt", "running", "cancelled", "result"],
)
def test_what_was_going_on_when_the_user_pressed_escape(tmp_path: Path, records: list[object], during: str) -> None:
    """The notice is the same; an answer is logged when it is whole, and its calls when they have ended."""
    history = read(tmp_path, header(), *records)
    (event,) = [event for event in history.events if isinstance(event, InterruptEvent)]
    assert event.during == during


def test_what_is_the_same_behind_a_difference_is_known_too(tmp_path: Path) -> None:
    """One message that cannot be told again costs itself alone."""
    context = user("ctx", "<session_context> here")
    said = [user("u1", "one"), answer("g1", "a", tokens=tokens(input=5)), user("u2", "two"), answer("g2", "b")]
    fetched = [
        user("ctx-copy", "<session_context> here"),
        user("u1-copy", "one"),
        answer("other", "not a", tokens=None),
        user("u2-copy", "two"),
        answer("g2-copy", "b", tokens=None),
    ]
    history = read(tmp_path, header(), context, *said, *fetched, checkpoint(*fetched))
    names = [place.message_id.rpartition(":")[2] for place in history.memberships]
    assert names == ["ctx", "u1", "g1", "u2", "g2", "other"]


def test_the_answer_to_a_second_summary_is_not_that_to_the_first() -> None:
    """The CLI answers each in the same words: the model is told the newest summary, then its answer, then the rest."""
    history = log("0.61.0-compacted-twice", "session-2026-11-22T13-55-*.jsonl")
    texts = [
        "".join(part.text for part in message.parts if isinstance(part, TextPart))
        for message, place in zip(history.messages, history.memberships, strict=True)
        if place.fate is Fate.ACTIVE and message.origin is not Origin.PROMPT
    ]
    assert [text[:17] for text in texts] == [
        "<session_context>",
        "<state_snapshot><",
        "Got it. Thanks fo",
        "Seven O7.",
        "Eight O8.",
    ]
    first, second = [event for event in history.events if isinstance(event, CompactionEvent)]
    assert [len(event.kept_message_ids) for event in (first, second)] == [5, 1]
