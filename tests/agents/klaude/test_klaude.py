"""klaude-code's logs of 1.9, 2.0 and 2.43, and what each kind of record becomes."""

from __future__ import annotations

import json
import random
import shutil
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from support.claude_files import gather
from support.exact_json import exact
from support.klaude_files import (
    AGENT,
    DATA,
    SESSION,
    SESSION_ID,
    answer,
    call,
    fold,
    lines,
    log_source,
    read,
    record,
    result,
    said,
    sources,
    text,
    user,
)
from support.plain_store import read_home
from turnlog.agents import detect, fold_bytes
from turnlog.agents.base import Source, SourceKind
from turnlog.agents.changes import Changes, LeafTitle, LineCounts
from turnlog.agents.klaude.records import RECORD_KINDS
from turnlog.logs import read_session
from turnlog.model import (
    CompactionEvent,
    ErrorEvent,
    Fate,
    FilePart,
    InterruptEvent,
    Origin,
    ReasoningPart,
    RecordEvent,
    RewindEvent,
    TextPart,
    ToolCallPart,
    ToolState,
    UnknownPart,
    Usage,
)
from turnlog.store import open_store
from turnlog.store.base import SessionFilter
from turnlog.store.connection import connect
from turnlog.store.sqlite.forget import forget_for_good
from turnlog.store.sqlite.restore import restore_files
from turnlog.sync.syncer import sync

VERSIONS = ["1.9.0", "1.9.0-run", "2.0.0", "2.43.0", "2.43.0-run"]
"""Written after the classes of these versions, or by the program itself (`run`)."""
CHILD = "7a2b0b7c1d6b4a4e8a51f1c2d3e4f502"
FORK = "9c1d0b7c1d6b4a4e8a51f1c2d3e4f503"

each_version = pytest.mark.parametrize("version", VERSIONS)


def logs(version: str) -> list[Source]:
    return [source for source in sources(version) if source.kind is SourceKind.SESSION]


def log(version: str, session: str) -> Source:
    return next(source for source in logs(version) if session in source.path)


# -- recorded logs


@each_version
def test_every_line_is_accounted_for_and_known(version: str) -> None:
    """R-S34, R-K7"""
    for source in logs(version):
        data = Path(source.path).read_bytes()
        gathered = gather(fold_bytes(AGENT, source, data))
        counted = sum(getattr(gathered.counts, name) for name in LineCounts.__struct_fields__)
        assert counted == data.count(b"\n")
        assert gathered.counts.unreadable == 0
        assert gathered.diagnostics == []
        events = [change.event for change in gathered.events.values()]
        assert [event.kind for event in events if isinstance(event, RecordEvent) and not event.known] == []
        parts = [part for message in gathered.messages.values() for part in message.parts]
        assert [part for part in parts if isinstance(part, UnknownPart)] == []


@each_version
def test_every_call_has_its_result(version: str) -> None:
    """R-S16"""
    for source in logs(version):
        gathered = read([source])
        assert [call.tool_call_id for call in gathered.calls() if len(call.results) != 1] == []
        assert gathered.late == []


@each_version
def test_any_split_gives_the_same_changes(version: str) -> None:
    """R-K11"""
    for source in logs(version):
        data = Path(source.path).read_bytes()
        whole = AGENT.fold(source)
        expected = gather(whole.feed(data, 0)).as_json()
        for size in (1, random.Random(3).randint(2, 6)):
            rows = data.splitlines(keepends=True)
            state, offset, found = None, 0, list[Changes]()
            for start in range(0, len(rows), size):
                piece = b"".join(rows[start : start + size])
                opened = AGENT.fold(source, state)
                found.append(opened.feed(piece, offset))
                state, offset = opened.state(), offset + len(piece)
            assert state == whole.state()
            assert gather(*found).as_json() == expected


@each_version
def test_the_agent_is_detected_by_the_content(version: str, tmp_path: Path) -> None:
    """R-S21: also under another name."""
    for source in logs(version):
        found = detect(Path(source.path))
        assert (found.agent, found.version, found.source) == ("klaude", f"{version[0]}.x", source)
        copy = tmp_path / "copy.jsonl"
        copy.write_bytes(Path(source.path).read_bytes())
        assert detect(copy).agent == "klaude"


def test_an_answer_in_pieces_is_one_message() -> None:
    """R-K4: up to 1.9 thought, signature, text, calls and usage were a record each."""
    (session,) = logs("1.9.0")
    first, second = [m for m in read([session]).messages.values() if m.role == "assistant"]
    assert [part.type for part in first.parts] == ["reasoning", "text", "tool-call", "tool-call"]
    assert first.usage == Usage(input=400, cache_read=600, cache_write=0, output=60, reasoning=30)
    assert first.model == "gpt-5.2"
    thought = first.parts[0]
    assert isinstance(thought, ReasoningPart)
    assert thought.provider is not None
    assert thought.provider.opaque == {"format": "openai-responses-v1", "signature": "ZW5j"}
    assert [part.type for part in second.parts] == ["text"]
    assert second.usage is None


def test_an_answer_of_1_9_has_the_model_of_its_task() -> None:
    """R-C22: where its own records name none, and also where its task was killed."""
    (session,) = logs("1.9.0-run")
    answers = [m for m in read([session]).messages.values() if m.role == "assistant"]
    assert [answer.model for answer in answers] == ["claude-sonnet-4-5"] * 3
    marks = [answer.metadata.get("klaude", {}).get("model_from") for answer in answers]
    assert marks == [None, "TaskMetadataItem", "TaskMetadataItem"]
    task = {"usage": {"input_tokens": 1}, "model_name": "b"}
    found = fold(
        record("UserMessageItem", content="one"),
        record("AssistantMessageItem", content="killed", response_id="r1"),
        record("UserMessageItem", content="two"),
        record("AssistantMessageItem", content="done", response_id="r2"),
        record("TaskMetadataItem", main_agent=task),
    )
    assert [m.model for m in found.messages.values() if m.role == "assistant"] == [None, "b"]


def test_a_session_as_klaude_wrote_it() -> None:
    """R-K2, R-K5: roles, origins, turns and steps."""
    gathered = read([log("2.43.0", SESSION)])
    rows = [(m.role, m.origin, gathered.place(m.id).turn, gathered.place(m.id).step) for m in said(gathered)]
    assert [row for row in rows if row[0] in ("user", "assistant")] == [
        ("user", Origin.PROMPT, 1, None),
        ("assistant", None, 1, 1),
        ("assistant", None, 1, 2),
        ("assistant", None, 1, 3),
        ("user", Origin.PROMPT, 2, None),
        ("assistant", None, 2, 1),
        ("user", Origin.PROMPT, 3, None),
        ("user", Origin.PROMPT, 4, None),
        ("assistant", None, 4, 1),
    ]
    assert rows[0][:2] == ("system", Origin.HARNESS)
    stops = [m.stop_reason for m in said(gathered) if m.role == "assistant"]
    assert stops == ["tool_use", "tool_use", "stop", "aborted", "tool_use"]
    assert gathered.sessions[SESSION_ID].reported_cost == pytest.approx(2 * 0.0047)


def test_what_became_of_each_line() -> None:
    """What was compacted, retracted and kept, by line numbers as klaude-code counts them."""
    history = read_session(Path(log("2.43.0", SESSION).path))
    fates = [
        (place.fate, next((part.text for part in message.parts if isinstance(part, TextPart)), ""))
        for message, place in zip(history.messages, history.memberships, strict=True)
    ]
    assert [words for fate, words in fates if fate is Fate.RETRACTED] == ["Oops, wrong window"]
    kept = [words for fate, words in fates if fate is Fate.ACTIVE]
    assert kept[0] == "What is in this picture?"
    assert len([fate for fate, _ in fates if fate is Fate.COMPACTED]) == 7
    (event,) = [event for event in history.events if isinstance(event, CompactionEvent)]
    assert event.tokens_before == 2600
    assert len([event for event in history.events if isinstance(event, InterruptEvent)]) == 2


def test_an_old_rewind_leaves_a_branch() -> None:
    (source,) = logs("2.0.0")
    history = read_session(Path(source.path))
    rewound = [place.turn for place in history.memberships if place.fate is Fate.REWOUND]
    assert rewound == [1, 2, 2, 2, 2]
    (event,) = [event for event in history.events if isinstance(event, RewindEvent)]
    assert event.to_message_id in {message.id for message in history.messages}


def test_a_fork_shares_its_messages_and_does_not_pay_again(tmp_path: Path) -> None:
    """R-C5, R-C13"""
    read_home(tmp_path / "store.db", DATA / "2.43.0", AGENT)
    with open_store(tmp_path / "store.db") as store:
        found = {session.external_id: session for session in store.sessions(SessionFilter(subagents=True)).items}
    assert set(found) == {SESSION, CHILD, FORK}
    assert found[SESSION].usage.calls == 5
    assert found[FORK].usage.calls == 1
    kinds = {relation.kind: relation.parent_session_id for relation in found[FORK].relationships}
    assert kinds == {"fork": SESSION_ID}
    assert found[SESSION].cwd == "/home/dev/project"
    assert found[CHILD].title == "Find callers"


def test_a_subagent_is_linked_to_its_call() -> None:
    """R-S43"""
    found = read([log("2.43.0", SESSION), *(source for source in sources("2.43.0") if CHILD in source.path)])
    (link,) = found.links.values()
    assert (link.parent_session_id, link.child_session_id) == (SESSION_ID, f"klaude:{CHILD}")
    assert link.tool_call_id == "toolu_3"


# -- each kind


def test_parts_keep_their_order_and_kind() -> None:
    """R-K1"""
    gathered = fold(
        user("u", "see", source=None),
        answer(
            "a",
            {"type": "thinking_text", "text": "hm", "model_id": "m", "duration_s": 0.5},
            {"type": "thinking_signature", "signature": "s1", "model_id": "m"},
            text("so"),
            {"type": "thinking_signature", "signature": "s2"},
            call("c", '{"a": 1.50}'),
            {"type": "image_file", "file_path": "/tmp/x.png", "mime_type": "image/png", "sha256": "5f"},
            {"type": "image_url", "url": "https://example.org/x.png"},
            {"type": "novelty", "data": 1},
        ),
    )
    parts = gathered.messages["a"].parts
    assert [part.type for part in parts] == ["reasoning", "text", "reasoning", "tool-call", "file", "file", "unknown"]


def test_a_signature_belongs_to_the_thought_before_it() -> None:
    """R-K6: and stands alone where there is none, shown by nobody."""
    thinking = {"type": "thinking_text", "text": "hm", "model_id": "m"}
    signs = [{"type": "thinking_signature", "signature": name, "model_id": "m"} for name in ("s1", "s2")]
    parts = fold(answer("a", thinking, *signs)).messages["a"].parts
    thoughts = [(p.text, p.provider.opaque["signature"]) for p in parts if isinstance(p, ReasoningPart) and p.provider]
    assert thoughts == [("hm", "s1"), ("", "s2")]


def test_a_signature_may_come_before_its_thought() -> None:
    """R-K5: recorded; 1.9.0 with Anthropic's interface."""
    (source,) = logs("1.9.0-run")
    first = next(message for message in read([source]).messages.values() if message.role == "assistant")
    thought, said, shell = first.parts
    assert isinstance(thought, ReasoningPart)
    assert thought.text == "I look."
    assert thought.provider is not None
    assert str(thought.provider.opaque["signature"]).startswith("bW9jay1z")
    assert isinstance(said, TextPart)
    assert isinstance(shell, ToolCallPart)


def test_each_thought_has_its_own_signature_whichever_comes_first() -> None:
    def proof(signature: str, form: str | None) -> dict[str, Any]:
        return record("ReasoningEncryptedItem", response_id="r", encrypted_content=signature, format=form)

    def thought(words: str) -> dict[str, Any]:
        return record("ReasoningTextItem", response_id="r", content=words)

    before = [proof("s1", None), thought("one"), proof("s2", None), thought("two")]
    behind = [thought("one"), proof("s1", "f"), thought("two"), proof("s2", "f")]
    for logged in (before, behind):
        (message,) = fold(*logged).messages.values()
        signed = [(part.text, part.provider) for part in message.parts if isinstance(part, ReasoningPart)]
        assert [(text, provider and provider.opaque["signature"]) for text, provider in signed] == [
            ("one", "s1"),
            ("two", "s2"),
        ]


@pytest.mark.parametrize("arguments", ["", "{broken", "*** Begin Patch"])
def test_arguments_that_are_no_json_stay_as_they_are(arguments: str) -> None:
    """R-K15"""
    (found,) = fold(answer("a", call("c", arguments))).calls()
    assert found.input_text == arguments


@pytest.mark.parametrize("arguments", ['{"a":1.50}', "[1,2]", "{}"])
def test_arguments_keep_their_exact_json(arguments: str) -> None:
    """R-K1"""
    (found,) = fold(answer("a", call("c", arguments))).calls()
    assert exact(found.input) == arguments.encode()


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ("success", ToolState.OUTPUT_AVAILABLE),
        ("error", ToolState.OUTPUT_ERROR),
        ("aborted", ToolState.ABORTED),
    ],
)
def test_a_result_is_a_success_an_error_or_aborted(status: str, state: ToolState) -> None:
    """R-K5, R-K9"""
    (found,) = fold(answer("a", call("c")), result("c", status, "out")).calls()
    assert found.state is state
    assert found.results[0].output_text == "out"


def test_text_among_the_parts_of_a_result_is_kept_with_a_note() -> None:
    """R-K3"""
    gathered = fold(answer("a", call("c")), result("c", parts=[text("more")]))
    assert gathered.calls()[0].results[0].output_text == "ok\nmore"
    assert [found.severity for found in gathered.diagnostics] == ["note"]


def test_a_result_has_its_structured_result() -> None:
    extra = {"type": "multi", "items": [{"type": "bash", "exit_code": 3}, {"type": "session_id", "session_id": "kid"}]}
    line = result("c", ui_extra=extra)
    gathered = fold(answer("a", call("c")), line)
    assert gathered.calls()[0].results[0].exit_code == 3
    assert [link.child_session_id for link in gathered.links.values()] == ["klaude:kid"]
    found = AGENT.structured_result(json.dumps(line).encode(), "c")
    assert found is not None
    assert json.loads(bytes(found)) == extra


def test_tokens_are_disjoint() -> None:
    """R-K28: input counts what was cached and written, output the reasoning; nothing but zeros is unknown."""
    usage = {"input_tokens": 1000, "cached_tokens": 600, "cache_write_tokens": 100, "output_tokens": 90}
    spent = {
        **usage,
        "reasoning_tokens": 30,
        "input_cost": 0.25,
        "output_cost": 0.5,
        "model_name": "m",
        "provider": "p",
    }
    found = fold(answer("a", text("x"), usage=spent, stop_reason="stop")).messages["a"]
    assert found.usage == Usage(input=300, cache_read=600, cache_write=100, output=60, reasoning=30)
    assert found.cost is not None
    assert (str(found.cost.amount), found.cost.kind) == ("0.75", "reported")
    assert fold(answer("b", usage={"input_tokens": 0, "output_tokens": 0})).messages["b"].usage is None


@pytest.mark.parametrize(
    ("source", "words", "origin"),
    [
        (None, "hi", Origin.PROMPT),
        ("user", "hi", Origin.PROMPT),
        ("bash_mode", "$ ls", Origin.SHELL_OUTPUT),
        ("shell_completion", "done", Origin.NOTIFICATION),
        ("task_completion", "done", Origin.NOTIFICATION),
        ("peer_message", "hello", Origin.NOTIFICATION),
        (None, "The previous model response was empty, likely due to a network issue.", Origin.HARNESS),
        (None, "<system-reminder>You are a newly spawned agent with context.</system-reminder>", Origin.HARNESS),
    ],
)
def test_only_a_person_begins_a_turn(source: str | None, words: str, origin: Origin) -> None:
    """R-K12"""
    gathered = fold(user("u", words, source=source))
    assert gathered.messages["u"].origin is origin
    assert gathered.place("u").turn == (1 if origin is Origin.PROMPT else None)


def test_errors_and_interrupts_are_events() -> None:
    """R-K7"""
    gathered = fold(user("u", "hi"), record("StreamErrorItem", error="503"), record("InterruptEntry"))
    error, interrupt = [change.event for change in gathered.events.values()]
    assert isinstance(error, ErrorEvent)
    assert error.error_text == "503"
    assert isinstance(interrupt, InterruptEvent)
    assert interrupt.message_id == "u"


@pytest.mark.parametrize("kind", ["ToolCallStartItem", "AssistantMessageDelta", "ReasoningTextDelta", "StartItem"])
def test_pieces_of_a_stream_are_no_messages(kind: str) -> None:
    """R-K8"""
    gathered = fold(record(kind, content="part", response_id="r", call_id="c", name="Bash"))
    assert gathered.messages == {}
    assert gathered.counts.events == 1


def test_images_inside_and_beside_the_log() -> None:
    inline = {"type": "image_url", "url": "data:image/png;base64,aGk="}
    file = {"type": "image_file", "file_path": "/home/dev/x.png", "mime_type": "image/png", "sha256": "5f"}
    one, two = fold(answer("u", inline, file)).messages["u"].parts
    assert isinstance(one, FilePart)
    assert (one.data, one.media_type) == (b"hi", "image/png")
    assert isinstance(two, FilePart)
    assert (two.url, two.filename) == ("file:///home/dev/x.png", "x.png")


def test_retractions_without_a_line_go_by_the_text() -> None:
    gathered = fold(user("u", "one"), user("v", "two"), record("RetractEntry", retracted_text="two"))
    assert [gathered.place(name).fate for name in ("u", "v")] == [Fate.ACTIVE, Fate.RETRACTED]
    other = fold(user("u", "one"), user("v", "two"), record("RetractEntry", retracted_text="one"))
    assert {other.place(name).fate for name in ("u", "v")} == {Fate.ACTIVE}
    assert [found.severity for found in other.diagnostics] == ["note"]


def test_a_rewind_without_its_checkpoint_leaves_no_branch() -> None:
    gathered = fold(user("u", "one"), record("RewindEntry", checkpoint_id=4, note="n", rationale="r"))
    assert gathered.sessions[SESSION_ID].has_branches is False
    assert len(gathered.events) == 1


def test_what_a_rewind_says_is_a_message() -> None:
    """R-K7, R-K22: klaude-code puts it into the model's context, also where the checkpoint is not there."""
    rewind = record("RewindEntry", checkpoint_id=0, note="It was a dead end", rationale="Too deep")
    checkpoint = record("DeveloperMessage", id="d", parts=[text("<system-reminder>Checkpoint 0</system-reminder>")])
    for records in ([user("u", "one"), rewind], [user("u", "one"), checkpoint, answer("a", text("no")), rewind]):
        gathered = fold(*records, answer("b", text("yes")))
        (reminder,) = [message for message in gathered.messages.values() if message.id.endswith(".reminder")]
        assert (reminder.role, reminder.origin) == ("developer", Origin.HARNESS)
        (part,) = reminder.parts
        assert isinstance(part, TextPart)
        assert "Rationale: Too deep. Summary: It was a dead end." in part.text
        parent = "u" if len(records) == 2 else "d"
        assert gathered.place(reminder.id).parent_id == parent
        assert gathered.place("b").parent_id == reminder.id


@pytest.mark.parametrize("pieces", ["at once", "line by line"])
def test_what_left_the_branch_names_its_cause(tmp_path: Path, pieces: str) -> None:
    """In memory and in a store, however the log was read."""
    checkpoint = record("DeveloperMessage", id="d", parts=[text("<system-reminder>Checkpoint 0</system-reminder>")])
    records = [
        user("u", "one"),
        user("v", "two"),
        record("RetractEntry", retracted_text="two", retracted_line=1),
        checkpoint,
        answer("a", text("no")),
        record("RewindEntry", checkpoint_id=0, note="n", rationale="r"),
        answer("b", text("yes")),
    ]
    path = tmp_path / f"home/projects/p/sessions/{SESSION}/events.jsonl"
    path.parent.mkdir(parents=True)
    for count in [len(records)] if pieces == "at once" else range(1, len(records) + 1):
        path.write_bytes(lines(*records[:count]))
        read_home(tmp_path / "store.db", tmp_path / "home", AGENT)
    history = read_session(path)
    with open_store(tmp_path / "store.db") as store:
        stored = {placed.message.id: placed.membership for placed in store.messages(SESSION_ID)}
    alone = {place.message_id: place for place in history.memberships}
    (retraction,) = [event for event in history.events if isinstance(event, RecordEvent)]
    reminder = next(identity for identity in alone if identity.endswith(".reminder"))
    for places in (alone, stored):
        causes = {identity: (place.fate, place.fate_cause) for identity, place in places.items() if place.fate_cause}
        assert causes == {"v": (Fate.RETRACTED, retraction.id), "a": (Fate.REWOUND, reminder)}


# -- damage and places

DAMAGED = [
    b"{torn",
    b"null",
    b"[]",
    b'{"type": "UserMessage"}',
    b'{"type": "UserMessage", "data": 7}',
    b'{"type": "AssistantMessage", "data": {"parts": [7, {"type": 3}], "usage": {"input_tokens": "x"}}}',
    b'{"type": "ToolResultMessage", "data": {"ui_extra": [1], "parts": 3}}',
    b'{"type": "CompactionEntry", "data": {"first_kept_line": -5}}',
    b'{"type": "RetractEntry", "data": {}}',
    b'{"type": "Novelty", "data": {"a": 1}}',
    b'{"type": "DeveloperMessage", "data": {"ui_extra": {"items": null}, "parts": null}}',
]


@pytest.mark.parametrize("damaged", DAMAGED)
def test_a_bad_line_never_stops_the_rest(damaged: bytes) -> None:
    """R-K11"""
    good = [user("u", "hi"), answer("a", call("c"))]
    gathered = fold(good[0], damaged, *good[1:], result("c"))
    assert {"u", "a"} <= set(gathered.messages)
    assert len(gathered.calls()[0].results) == 1
    told = len(gathered.diagnostics) + len(gathered.events) + len(gathered.messages) + len(gathered.late)
    assert told > 2


def test_a_cost_that_cannot_be_one_is_none() -> None:
    usage = {"input_tokens": 5, "output_tokens": 2, "input_cost": -0.5, "output_cost": 0.25}
    gathered = fold(record("AssistantMessage", id="a", parts=[], usage=usage))
    cost = gathered.messages["a"].cost
    assert cost is not None
    assert cost.amount == Decimal("0.25")
    assert [found.json_path for found in gathered.diagnostics] == ["$.data.usage.input_cost"]


def test_an_invalid_time_and_bytes_that_are_not_utf8_become_diagnostics() -> None:
    """R-S34"""
    sound = record("UserMessage", id="u", parts=[{"type": "text", "text": "caf#"}], created_at="2026-11-21T10:00:00")
    damaged = json.dumps(sound).encode().replace(b"#", b"\xe9").replace(b"2026-11-21T10:00:00", b"yesterday")
    gathered = fold(damaged)
    assert [(told.json_path, told.severity) for told in gathered.diagnostics] == [
        (None, "note"),
        ("$.data.created_at", "error"),
    ]
    assert set(gathered.messages) == {"u"}


def test_a_bad_line_keeps_its_number() -> None:
    """Later records count lines, those that cannot be read too."""
    mark = record("CompactionEntry", summary="s", first_kept_index=9, first_kept_line=2)
    gathered = fold(user("u", "one"), b"{torn", user("v", "two"), mark)
    (event,) = [change.event for change in gathered.events.values() if isinstance(change.event, CompactionEvent)]
    assert event.kept_message_ids == ("v",)


def test_facts_beside_the_log(tmp_path: Path) -> None:
    """R-C6"""
    source = next(source for source in sources("2.43.0") if source.kind is SourceKind.SIDECAR)
    facts = {"work_dir": "/srv", "title": "T", "name": "N", "created_at": 1795255200.5, "archived": True}
    changes = fold_bytes(AGENT, source, json.dumps(facts).encode())
    (change,) = changes.sessions.values()
    assert change.project_path == "/srv"
    assert change.titles == {"generated": "T"}
    assert changes.leaf_titles == [LeafTitle(record_id=change.session_id, title="N")]
    assert change.metadata == {"klaude": {"archived": True}}
    assert fold_bytes(AGENT, source, b"{").counts.unreadable == 1


def test_where_its_files_lie(home: Path) -> None:
    """R-C2"""
    assert AGENT.home_folders() == (home / ".klaude",)
    assert AGENT.roots() == []
    session = home / f".klaude/projects/home-dev-project/sessions/{SESSION}"
    (session / "images").mkdir(parents=True)
    (session / "shell_tasks").mkdir()
    (session / "background_tasks").mkdir()
    for name in (
        "events.jsonl",
        "meta.json",
        "images/5f.png",
        "meta.77.tmp",
        "shell_tasks/b1.json",
        "shell_tasks/b1.log",
        "background_tasks/a1.json",
    ):
        (session / name).write_bytes(lines(user("u", "hi")))
    (home / ".klaude/klaude-config.yaml").write_text("api_key: secret")
    (session.parent / "away").symlink_to(session)
    found = {Path(source.path).name: (source.kind, source.appendable) for source in AGENT.discover()}
    assert found == {
        "events.jsonl": (SourceKind.SESSION, True),
        "meta.json": (SourceKind.SIDECAR, False),
        "5f.png": (SourceKind.SPILL, False),
        "b1.json": (SourceKind.SIDECAR, False),
        "b1.log": (SourceKind.SPILL, True),
        "a1.json": (SourceKind.SIDECAR, False),
    }
    assert [detect(Path(source.path)).source for source in AGENT.discover()] == list(AGENT.discover())


AGENTS, BACKGROUND = "01e9cfed8f74478b825b060f26163050", "3935b386418e4c6c9d647fa73544ed3f"
"""Sessions that 2.43.0 wrote: of two subagents, and of an output too large, a shell in the background and a picture."""


def test_a_run_reads_as_it_was_scripted(tmp_path: Path) -> None:
    """R-K4, R-C10: recorded; subagents run in the background, and report later."""
    store = tmp_path / "store.db"
    sync(store, roots=[DATA / "2.43.0-run"], agents=[AGENT])
    with open_store(store) as opened:
        tokens = {
            session.external_id[:4]: (session.usage.calls, session.usage.usage.input, session.usage.usage.output)
            for session in opened.sessions(SessionFilter(subagents=True)).items
        }
        assert tokens == {
            "01e9": (5, 500, 256),
            "46eb": (2, 200, 67),
            "2e42": (2, 200, 71),
            "3935": (4, 400, 170),
            "89a3": (2, 200, 93),
        }
        assert {child.external_id[:4] for child in opened.children(f"klaude:{AGENTS}")} == {"46eb", "2e42"}
        killed = [item.message for item in opened.messages("klaude:89a3fa4d252d4409946c77ac45d0995a")]
        assert [part.state for message in killed for part in message.parts if isinstance(part, ToolCallPart)] == [
            ToolState.ABORTED
        ]
        assert [item.message.origin for item in opened.messages(f"klaude:{AGENTS}")].count(Origin.NOTIFICATION) == 2


def test_what_tasks_left_is_kept_given_back_and_forgotten(tmp_path: Path) -> None:
    """R-C13: recorded; read while the shell prints, and when it has ended in the middle of a line."""
    home, store, session = tmp_path / ".klaude", tmp_path / "data" / "store.db", f"klaude:{BACKGROUND}"
    shutil.copytree(DATA / "2.43.0-run", home)
    (log,) = home.rglob("5ff52900ed2945239c1bdcf78dfdc182.log")
    log.write_bytes(b"bgstart\n")
    sync(store, roots=[home], agents=[AGENT])
    log.write_bytes(b"bgstart\nbgend")
    assert sync(store, roots=[home], agents=[AGENT]).changed == 1
    folder = home / "projects" / "home-dev-work" / "sessions" / BACKGROUND
    written = {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    with open_store(store) as opened:
        assert opened.spill(session, log.name) == b"bgstart\nbgend"
        assert not opened.diagnostics().items
    with closing(connect(store)) as connection:
        found = restore_files(connection, session, tmp_path / "back")
    assert {file.source: file.path.read_bytes() for file in found} == written
    assert set(forget_for_good(store, session).files) == set(written)


def test_every_kind_is_read_without_a_word_in_it() -> None:
    """R-K7: whatever a record lacks, it is a message, a result, or an event."""
    for kind in RECORD_KINDS:
        changes: Changes = fold_bytes(AGENT, log_source(), lines({"type": kind, "data": {}}))
        counts: dict[str, Any] = {name: getattr(changes.counts, name) for name in LineCounts.__struct_fields__}
        assert sum(counts.values()) == 1, kind
        assert counts["unreadable"] == 0, kind


def test_a_recap_is_a_message_beside_the_conversation() -> None:
    gathered = fold(
        user("1", "Hello"), record("AwaySummaryEntry", text="While you were away: nothing."), answer("2", text("Hi"))
    )
    (recap,) = (message for message in gathered.messages.values() if message.role == "developer")
    assert [part.text for part in recap.parts if isinstance(part, TextPart)] == ["While you were away: nothing."]
    assert gathered.place(recap.id).fate is Fate.SIDECAR
    assert recap.id not in {place.parent_id for place in gathered.placements.values()}
