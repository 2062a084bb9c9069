"""pi's logs of 0.27.9, 0.73.1 and 0.87.1 against their scripts and requests, and what each kind of record becomes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Generator
from contextlib import closing, contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from support.exact_json import exact
from support.pi_files import (
    DATA,
    SESSION,
    answer,
    call,
    fold,
    header,
    log_source,
    record,
    requests,
    result,
    said,
    script,
    user,
)
from turnlog.agents import agent, agents, detect, find_sources
from turnlog.agents.changes import LineCounts
from turnlog.agents.pi import Pi
from turnlog.model import (
    CompactionEvent,
    ErrorEvent,
    Fate,
    FilePart,
    InterruptEvent,
    Message,
    Origin,
    ReasoningPart,
    RecordEvent,
    RewindEvent,
    TextPart,
    ToolCallPart,
    ToolState,
    Usage,
)
from turnlog.store import open_store
from turnlog.store.base import SessionFilter, Store
from turnlog.store.connection import connect
from turnlog.store.sqlite.restore import restore_files
from turnlog.sync.syncer import sync

PI = agent("pi")
BASIC = ("0.87.1", "0.73.1")
CASES = ("0.27.9/basic", "0.27.9/migrated", "0.73.1/basic", "0.73.1/tour", "0.87.1/basic", "0.87.1/tour")

each_case = pytest.mark.parametrize("case", CASES)
each_version = pytest.mark.parametrize("version", BASIC)


@contextmanager
def synced(home: Path, folder: Path) -> Generator[Store]:
    sync(folder / "store.db", roots=[home], agents=[PI])
    with open_store(folder / "store.db") as store:
        yield store


def messages_of(store: Store, session_id: str, *fates: Fate) -> list[Message]:
    wanted = fates or tuple(Fate)
    return [found.message for found in store.messages(session_id) if found.membership.fate in wanted]


def text(message: Message) -> str:
    return "".join(part.text for part in message.parts if isinstance(part, TextPart))


def log_of(case: str, name: str = "") -> Path:
    return next(path for path in sorted((DATA / "pi" / case).rglob("*.jsonl")) if name in path.name)


def scripted_usage(turn: dict[str, Any]) -> tuple[int, int, int, int]:
    usage = turn.get("usage", {"in": 100, "out": 20})
    reasoning = usage.get("reasoning", 0)
    return usage["in"], usage.get("cached", 0), usage["out"] - reasoning, reasoning


def counted(message: Message) -> tuple[int, ...]:
    assert message.usage is not None
    return tuple(
        count or 0
        for count in (message.usage.input, message.usage.cache_read, message.usage.output, message.usage.reasoning)
    )


# -- recorded logs


@each_version
def test_answers_are_those_of_the_script(version: str, tmp_path: Path) -> None:
    """R-C5, R-K1: order, texts, thoughts, calls and tokens."""
    steps = script("pi", version, "basic")
    turns = [*steps["01main"], *steps["02resume"]]
    with synced(DATA / "pi" / version / "basic", tmp_path) as store:
        parent, fork = sorted(store.sessions(SessionFilter()).items, key=lambda found: found.external_id)
        answers = [message for message in messages_of(store, parent.id) if message.role == "assistant"]
        # 0.73.1 does not tell the reasoning apart from the output.
        wanted = [scripted_usage(turn) for turn in turns]
        told = [(*usage[:2], usage[2] + usage[3], 0) for usage in wanted] if version == "0.73.1" else wanted
        assert [counted(message) for message in answers] == told
        for message, turn in zip(answers, turns, strict=True):
            blocks = [(block["type"], block.get("text") or block["id"]) for block in turn["blocks"]]
            kinds = {"reasoning": "thinking", "tool-call": "tool"}
            made = [
                (kinds.get(part.type, part.type), part.tool_call_id if isinstance(part, ToolCallPart) else part.text)
                for part in message.parts
                if isinstance(part, TextPart | ReasoningPart | ToolCallPart)
            ]
            assert made == blocks
        # The fork repeats the parent's records: only its own call is billed to it.
        assert [relation.kind for relation in fork.relationships] == ["fork"]
        assert fork.usage.calls == 1
        assert (fork.usage.usage.input, fork.usage.usage.cache_read, fork.usage.usage.output) == (1700, 1500, 15)
        assert parent.usage.calls == 5
        assert parent.reported_cost is not None
        assert parent.reported_cost.amount == pytest.approx(Decimal("0.00808"))
        shared = {message.id for message in messages_of(store, parent.id)}
        assert shared < {message.id for message in messages_of(store, fork.id)}


@each_version
def test_calls_end_as_the_tools_did(version: str, tmp_path: Path) -> None:
    """R-K9"""
    with synced(DATA / "pi" / version / "basic", tmp_path) as store:
        calls = {
            part.tool_call_id: part
            for session in store.sessions(SessionFilter()).items
            for message in messages_of(store, session.id)
            for part in message.parts
            if isinstance(part, ToolCallPart)
        }
    assert {name: found.state for name, found in calls.items()} == {
        "call_read1": ToolState.OUTPUT_AVAILABLE,
        "call_fail1": ToolState.OUTPUT_ERROR,
        "call_par1": ToolState.OUTPUT_AVAILABLE,
        "call_par2": ToolState.OUTPUT_AVAILABLE,
    }
    assert calls["call_fail1"].results[0].exit_code == 3
    assert calls["call_read1"].output_text == "alpha\nbeta\ngamma\n"
    assert [calls[f"call_par{number}"].output_text for number in (1, 2)] == ["one\n", "two\n"]


def sent(message: dict[str, Any]) -> tuple[str, str]:
    return message["role"], message["text"].partition("…[")[0]


@pytest.mark.parametrize(("case", "step"), [("0.87.1/basic", "02resume"), ("0.27.9/basic", "02resume")])
def test_the_conversation_is_what_the_model_was_sent(case: str, step: str, tmp_path: Path) -> None:
    """The last request of a run has the prompts, answers and results that stand in the history before its answer."""
    request = requests("pi", *case.split("/"))[step][-1]["messages"]
    with synced(DATA / "pi" / case, tmp_path) as store:
        session = min(store.sessions(SessionFilter()).items, key=lambda found: found.external_id)
        *history, last = [m for m in messages_of(store, session.id) if m.role in ("user", "assistant")]
    assert last.role == "assistant"
    told: list[tuple[str, str]] = []
    for message in history:
        told.append((message.role, text(message)))
        calls = [part for part in message.parts if isinstance(part, ToolCallPart)]
        told += [("tool", found.output_text) for found in calls]
    assert told == [sent(message) for message in request if message["role"] not in ("system", "developer")]


def test_rewinds_and_compaction_leave_what_the_model_received(tmp_path: Path) -> None:
    """R-K10, R-K11: fates of the tour agree with the last request of the run."""
    request = requests("pi", "0.87.1", "tour")["01rpc"][-1]["messages"]
    with synced(DATA / "pi" / "0.87.1" / "tour", tmp_path) as store:
        [session] = store.sessions(SessionFilter()).items
        active = [m for m in messages_of(store, session.id, Fate.ACTIVE) if m.role != "system"]
        gone = [text(m) for m in messages_of(store, session.id, Fate.REWOUND)]
        compacted = [text(m) for m in messages_of(store, session.id, Fate.COMPACTED)]
    assert {"Second question", "Second done.", "Remember: the list", "Second question, asked again"} <= set(gone)
    assert {"What is this?", "First done."} <= set(compacted)
    sent_texts = "\n".join(message["text"] for message in request)
    # pi does not send answers that failed or were stopped.
    answered = [m for m in active[:-1] if m.stop_reason not in ("error", "aborted")]
    assert [text(m) for m in answered if text(m) not in sent_texts] == []
    asked = [text(m) for m in active if m.origin in (Origin.PROMPT, Origin.SHELL)]
    assert asked == [m["text"] for m in request if m["role"] == "user"][-len(asked) :]
    assert [told for told in (*gone, *compacted) if told and told in sent_texts] == []


def test_the_tour_has_what_happened(tmp_path: Path) -> None:
    """R-S43: rewinds, a compaction, interruptions of an answer and of a command, a failed request, side calls."""
    with synced(DATA / "pi" / "0.87.1" / "tour", tmp_path) as store:
        [session] = store.sessions(SessionFilter()).items
        events = [event for event in store.history(session.id) if not hasattr(event, "message")]
        messages = messages_of(store, session.id)
        calls = {p.tool_call_id: p for m in messages for p in m.parts if isinstance(p, ToolCallPart)}
        side = messages_of(store, session.id, Fate.SIDECAR)
    assert session.title == "A red dot"
    assert [event.during for event in events if isinstance(event, InterruptEvent)] == ["answer", "tool"]
    [compaction] = [event for event in events if isinstance(event, CompactionEvent)]
    assert compaction.tokens_before == 2919
    assert len([event for event in events if isinstance(event, RewindEvent)]) == 2
    assert {event.kind for event in events if isinstance(event, RecordEvent)} == {"label", "custom/my-state"}
    assert calls["call_s1"].state is ToolState.ABORTED
    assert calls["call_r1"].state is ToolState.OUTPUT_ERROR
    assert [part.media_type for m in messages for part in m.parts if isinstance(part, FilePart)] == ["image/png"]
    [shell] = [m for m in messages if m.origin is Origin.SHELL]
    assert text(shell) == "Ran `echo hello; exit 4`\n```\nhello\n\n```\n\nCommand exited with code 4"
    failed = [m.error.text for m in messages if m.error is not None]
    assert failed[-1].startswith("400: ")
    # The summaries are model calls of their own, which no message of the conversation is.
    turns = [*script("pi", "0.87.1", "tour")["01rpc"]["main"], *[{"usage": {"in": 500, "out": 50}}] * 2]
    wanted = [scripted_usage(turn) for turn in turns if not turn.get("hang") and "error" not in turn]
    assert [counted(m) for m in side] == [(500, 0, 50, 0)] * 2
    assert [(m.model, m.metadata["pi"]["model_is_inferred"]) for m in side] == [("mock-model", True)] * 2
    assert session.usage.usage.input == sum(usage[0] for usage in wanted)
    assert session.usage.usage.output == sum(usage[2] for usage in wanted)
    # An answer that was stopped has zeros, which say nothing.
    assert session.usage.unknown_calls == 1


def test_ids_stay_when_pi_writes_a_log_of_version_1_anew(tmp_path: Path) -> None:
    """pi adds ids to all records of an old log when it opens it; the messages are still the same."""
    home = tmp_path / "home"
    shutil.copytree(DATA / "pi" / "0.27.9" / "basic", home)
    with synced(home, tmp_path) as store:
        [session] = store.sessions(SessionFilter()).items
        before = [message.id for message in messages_of(store, session.id)]
    assert len(before) == 7
    for log in (DATA / "pi" / "0.27.9" / "migrated" / "sessions" / "--home-dev-work--").iterdir():
        shutil.copy(log, home / "sessions" / "--home-dev-work--" / log.name)
    with synced(home, tmp_path) as store:
        found = {session.id: session for session in store.sessions(SessionFilter()).items}
        [fork] = [other for name, other in found.items() if name != session.id]
        after = messages_of(store, session.id)
        assert [message.id for message in after][:7] == before
        assert messages_of(store, session.id, Fate.SUPERSEDED) == []
        assert found[session.id].usage.calls == 6
        # The fork's header names the file of its parent, whose name has another id than the parent's own header.
        assert [(relation.kind, relation.parent_session_id) for relation in fork.relationships] == [
            ("fork", session.id)
        ]
        assert fork.usage.calls == 2


@each_case
def test_every_record_is_accounted_for_in_any_pieces(case: str) -> None:
    """R-S34"""
    for source in PI.discover([DATA / "pi" / case]):
        data = Path(source.path).read_bytes()
        whole = PI.fold(source)
        changes = whole.feed(data, 0)
        assert sum(getattr(changes.counts, name) for name in LineCounts.__struct_fields__) == data.count(b"\n")
        assert changes.diagnostics == []
        assert [e.event for e in changes.events if isinstance(e.event, RecordEvent) and not e.event.known] == []
        state, offset = None, 0
        for line in data.splitlines(keepends=True):
            piece = PI.fold(source, state)
            piece.feed(line, offset)
            state, offset = piece.state(), offset + len(line)
        assert state == whole.state()


@each_case
def test_restored_logs_have_the_same_bytes(case: str, tmp_path: Path) -> None:
    """R-S40"""
    home = DATA / "pi" / case
    with synced(home, tmp_path) as store:
        names = [session.id for session in store.sessions(SessionFilter(subagents=True)).items]
    with closing(connect(tmp_path / "store.db", checked=False)) as connection:
        for name in names:
            restore_files(connection, name, tmp_path / "restored")
    wanted = {path.relative_to(home): path.read_bytes() for path in home.rglob("*.jsonl")}
    restored = tmp_path / "restored"
    found = {path.relative_to(restored): path.read_bytes() for path in restored.rglob("*.jsonl")}
    assert found == wanted


# -- where logs are


def test_the_environment_names_the_home_and_the_folder_of_sessions(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-C2"""
    logs = DATA / "pi" / "0.87.1" / "basic" / "sessions"
    shutil.copytree(logs, home / ".pi/agent/sessions")
    assert len(list(PI.discover())) == 2
    shutil.copytree(logs, tmp_path / "moved/sessions")
    monkeypatch.setenv("PI_CODING_AGENT_DIR", str(tmp_path / "moved"))
    assert {source.root for source in PI.discover()} == {str(tmp_path / "moved")}
    monkeypatch.setenv("PI_CODING_AGENT_SESSION_DIR", str(tmp_path / "flat"))
    shutil.copytree(logs / "--home-dev-work--", tmp_path / "flat")
    (tmp_path / "flat/notes.jsonl").write_text("{}\n")
    assert len(list(PI.discover())) == 4


def test_an_imported_log_keeps_its_session(tmp_path: Path) -> None:
    copy = tmp_path / "0a1b2c.jsonl"
    shutil.copy(log_of("0.87.1/basic"), copy)
    found = detect(copy)
    assert (found.agent, found.version) == ("pi", "3")
    assert found.source is not None
    assert found.source.session_id == f"pi:{SESSION}"
    assert detect(log_of("0.27.9/basic")).version == "1"


def test_a_file_of_anybody_else_is_not_a_log(tmp_path: Path) -> None:
    other = tmp_path / "other.jsonl"
    other.write_text('{"type":"session"}\n{"type":"message","message":{"role":"user"}}\n')
    assert detect(other).agent is None


# -- records


def test_usage_is_disjoint_and_zeros_are_unknown() -> None:
    """R-C5: reasoning is inside the output, what is written for an hour inside what is written."""
    usage = {"input": 10, "output": 30, "cacheRead": 5, "cacheWrite": 8, "cacheWrite1h": 3, "reasoning": 12}
    zeros = dict.fromkeys(usage, 0)
    gathered = fold(header(), user("q", 1), answer(2, usage=usage), answer(3, usage=zeros), answer(4))
    first, second, third = [m for m in gathered.messages.values() if m.role == "assistant"]
    assert first.usage == Usage(input=10, cache_read=5, cache_write_5m=5, cache_write_1h=3, output=18, reasoning=12)
    assert second.usage is None
    assert third.usage is None


def test_signatures_go_back_to_the_api_that_made_them() -> None:
    """R-K6"""
    thought = {"type": "thinking", "thinking": "hm"}
    item = json.dumps({"type": "reasoning", "id": "rs_1", "encrypted_content": "xyz", "summary": []})
    made = {
        "anthropic-messages": ("sig", {"signature": "sig"}),
        "openai-completions": ("reasoning_content", {"reasoning_field": "reasoning_content"}),
        "openai-responses": (item, {"id": "rs_1", "encrypted_content": "xyz"}),
    }
    for api, (signature, opaque) in made.items():
        gathered = fold(header(), answer(1, {**thought, "thinkingSignature": signature}, api=api))
        [part] = next(iter(gathered.messages.values())).parts
        assert isinstance(part, ReasoningPart)
        assert part.provider is not None
        assert part.provider.opaque == opaque
    hidden = {"type": "thinking", "thinking": "", "thinkingSignature": "sealed", "redacted": True}
    [part] = next(iter(fold(header(), answer(1, hidden)).messages.values())).parts
    assert isinstance(part, ReasoningPart)
    assert part.redacted
    assert part.provider is not None
    assert part.provider.opaque == {"data": "sealed"}


def test_arguments_keep_their_exact_json() -> None:
    """R-K1"""
    line = answer(1, call("c", "read", path="a.txt"))
    exactly = json.dumps(line, separators=(",", ":")).replace('"a.txt"', "1.50").encode()
    [found] = fold(header(), exactly).calls()
    assert exact(found.input) == b'{"path":1.50}'


@pytest.mark.parametrize(("words", "status"), [('429: {"type":"x"}', 429), ("400 No.", 400), ("terminated", None)])
def test_the_words_of_an_error_may_begin_with_its_status(words: str, status: int | None) -> None:
    """As 0.87.1 and 1.6.0 write them."""
    found = fold(header(), user("Hi", 1), answer(2, stopReason="error", errorMessage=words))
    assert [message.error.status for message in found.messages.values() if message.error] == [status]


def test_a_result_says_how_long_its_tool_ran() -> None:
    """Since 1.6.0 beside its details."""
    found = fold(header(), user("Hi", 1), answer(2, call("c")), result("c", 3, durationMs=78))
    parts = [part for message in found.messages.values() for part in message.parts]
    assert [part.results[0].duration_ms for part in parts if isinstance(part, ToolCallPart)] == [78]


def test_a_result_has_the_details_of_its_tool() -> None:
    logged = result("c", 2, details={"diff": "+1 two"})
    found = PI.structured_result(json.dumps(logged).encode(), "c")
    assert found is not None
    assert json.loads(bytes(found)) == {"diff": "+1 two"}
    assert PI.structured_result(json.dumps(result("c", 2)).encode(), "c") is None


def test_calls_beside_the_conversation_are_counted() -> None:
    """Keeping a cache warm, and what a tool asked a model itself, is paid for too."""
    usage = {"input": 1, "output": 2, "cacheRead": 50, "cacheWrite": 0, "cost": {"total": 0.5}}
    gathered = fold(
        header(),
        user("q", 1),
        answer(2, call("c")),
        result("c", 3, usage=usage),
        {**record("usage", 4, provider="anthropic", model="claude", usage=usage), "kind": "cache_warm"},
        user("again", 5),
    )
    side = [m for m in gathered.messages.values() if gathered.place(m.id).fate is Fate.SIDECAR]
    assert [m.metadata["pi"]["call"] for m in side] == ["bash", "cache_warm"]
    assert [m.cost and m.cost.amount for m in side] == [Decimal("0.5")] * 2
    again = next(m for m in gathered.messages.values() if text(m) == "again")
    assert gathered.place(again.id).parent_id == next(m.id for m in gathered.messages.values() if m.role == "assistant")
    assert not [event for event in gathered.events.values() if isinstance(event.event, RewindEvent)]


def test_a_prompt_at_the_beginning_again_is_a_rewind() -> None:
    gathered = fold(header(), user("one", 1, None), answer(2), user("other", 3, None))
    [rewind] = [event.event for event in gathered.events.values() if isinstance(event.event, RewindEvent)]
    assert rewind.to_message_id is None
    [change] = gathered.sessions.values()
    assert change.has_branches
    assert change.active_leaf == next(m.id for m in gathered.messages.values() if text(m) == "other")


def test_a_compaction_that_names_itself_keeps_nothing() -> None:
    gathered = fold(
        header(), user("one", 1), answer(2), record("compaction", 3, summary="s", firstKeptEntryId="00000003")
    )
    [event] = [each.event for each in gathered.events.values() if isinstance(each.event, CompactionEvent)]
    assert event.kept_message_ids == ()
    assert gathered.diagnostics == []


def test_a_compaction_of_version_1_names_a_record_by_its_number() -> None:
    def old(kind: str, number: int, **fields: Any) -> dict[str, Any]:
        return {"type": kind, "timestamp": f"2025-11-22T20:00:0{number}.000Z", **fields}

    prompt = {"role": "user", "content": "one"}
    reply = {"role": "assistant", "content": [{"type": "text", "text": "two"}]}
    gathered = fold(
        {"type": "session", "id": SESSION, "timestamp": "2025-11-22T20:00:00.000Z", "cwd": "/w"},
        old("message", 1, message=prompt),
        old("message", 2, message=reply),
        old("compaction", 3, summary="s", firstKeptEntryIndex=2, tokensBefore=9),
    )
    [event] = [each.event for each in gathered.events.values() if isinstance(each.event, CompactionEvent)]
    [kept] = [m.id for m in gathered.messages.values() if m.role == "assistant"]
    assert event.kept_message_ids == (kept,)


def test_a_session_that_begins_anew_continues_its_parent() -> None:
    parent = f"C:\\Users\\dev\\.pi\\agent\\sessions\\--w--\\2026-11-22T20-22-21-355Z_{SESSION[:-1]}9.jsonl"
    for began, kind in (("2026-11-22T19:00:00.000Z", "continuation"), ("2026-11-22T21:00:00.000Z", "fork")):
        gathered = fold(header(timestamp=began, parentSession=parent), user("one", 1))
        [link] = gathered.links.values()
        assert (link.kind, link.parent_session_id, link.inferred) == (kind, f"pi:{SESSION[:-1]}9", False)
        assert [place.copied for place in gathered.placements.values()] == [kind == "fork"]


def test_a_subagent_of_oh_my_pi_is_a_log_in_the_folder_of_its_session(tmp_path: Path) -> None:
    """Its path names it, and the result of the call; what it used is not counted again in its parent."""
    home = tmp_path / ".omp" / "agent"
    shutil.copytree(DATA / "pi" / "handwritten-oh-my-pi", home)
    sync(tmp_path / "store.db", roots=[home], agents=[agent("oh-my-pi")])
    with open_store(tmp_path / "store.db") as store:
        child, parent = sorted(
            store.sessions(SessionFilter(subagents=True)).items,
            key=lambda found: len(found.relationships),
            reverse=True,
        )
        [relation] = child.relationships
        assert (relation.kind, relation.parent_session_id) == ("subagent", parent.id)
        assert relation.parent_tool_call_id == "call_t"
        assert child.external_id == f"{parent.external_id}.Scout"
        assert [m.origin for m in messages_of(store, child.id)] == [Origin.SUBAGENT_PROMPT, None]
        assert (parent.title, parent.title_source) == ("The list", "generated")
        assert parent.usage.usage.input == 900 + 950 + 960 + 200 + 40


def test_one_program_of_the_family_reads_each_home(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-C2: the homes look the same."""
    places = {"pi": ".pi", "oh-my-pi": ".omp", "prime-agent": ".prime", "omo": ".omo", "stepcode": ".stepcode"}
    logs = DATA / "pi" / "0.87.1" / "basic" / "sessions"
    roots = [tmp_path / "copies" / place / "agent" for place in places.values()]
    for root in roots:
        shutil.copytree(logs, root / "sessions")
    for name in places:
        assert {Path(source.path).parents[2] for source in agent(name).discover(roots)} == {
            tmp_path / "copies" / places[name] / "agent"
        }
    shutil.copytree(logs, tmp_path / "moved" / "sessions")
    assert [source.agent for source in PI.discover([tmp_path / "moved"])] == ["pi", "pi"]
    assert list(agent("omo").discover([tmp_path / "moved"])) == []
    monkeypatch.setenv("OMO_CODING_AGENT_DIR", str(tmp_path / "moved"))
    assert [source.root for source in agent("omo").discover()] == [str(tmp_path / "moved")] * 2


@pytest.mark.parametrize(
    "log",
    [
        {"type": "user", "sessionId": SESSION, "uuid": "u", "message": {"role": "user", "content": "one"}},
        {"type": "session_meta", "payload": {"id": SESSION}},
        {"sessionId": SESSION, "projectHash": "x", "kind": "main"},
    ],
    ids=["claude-code", "codex", "gemini-cli"],
)
def test_a_bare_folder_of_another_agent_has_no_logs_of_the_family(log: dict[str, Any], tmp_path: Path) -> None:
    """R-S21: only the content tells logs apart that are named by nothing but an id."""
    nested = tmp_path / "project" / SESSION / "subagents"
    nested.mkdir(parents=True)
    for path in (tmp_path / f"{SESSION}.jsonl", tmp_path / "project" / f"{SESSION}.jsonl", nested / "agent-a1.jsonl"):
        path.write_text(json.dumps(log) + "\n")
    found = find_sources(agents(), [tmp_path, tmp_path / "project"])
    assert [source.path for program, source in found if isinstance(program, Pi)] == []


def test_a_bare_folder_may_hold_logs_named_by_an_id(tmp_path: Path) -> None:
    """R-C2: prime-agent's names have no time."""
    (tmp_path / f"{SESSION}.jsonl").write_text("".join(json.dumps(each) + "\n" for each in (header(), user("one", 1))))
    (tmp_path / f"{SESSION[:-1]}9.jsonl").write_text("{}\n")
    assert [source.session_id for source in PI.discover([tmp_path])] == [f"pi:{SESSION}"]


def test_a_child_of_prime_agent_is_a_subagent() -> None:
    above = f"/home/dev/.prime/agent/sessions/{SESSION[:-1]}9.jsonl"
    gathered = fold(header(rlmDepth=1, parentSession=above), user("one", 1), source=log_source("prime-agent"))
    assert [(link.kind, link.parent_session_id) for link in gathered.links.values()] == [
        ("subagent", f"prime-agent:{SESSION[:-1]}9")
    ]


@pytest.mark.parametrize("name", ["oh-my-pi", "prime-agent", "omo", "stepcode"])
def test_the_folder_says_which_program_of_the_family_wrote_a_log(name: str, tmp_path: Path) -> None:
    """R-S21: their records are the same."""
    folder = {"oh-my-pi": ".omp", "prime-agent": ".prime", "omo": ".omo", "stepcode": ".stepcode"}[name]
    log = tmp_path / folder / "agent/sessions/--w--" / log_of("0.87.1/basic").name
    log.parent.mkdir(parents=True)
    shutil.copy(log_of("0.87.1/basic"), log)
    assert detect(log).agent == name
    assert [source.session_id for source in agent(name).discover([tmp_path / folder / "agent"])] == [
        f"{name}:{SESSION}"
    ]


@pytest.mark.parametrize(
    ("name", "records"),
    [
        ("oh-my-pi", [header(titleSource="auto")]),
        ("oh-my-pi", [header(), user("one", 1), record("mode_change", 2, mode="plan")]),
        ("prime-agent", [header(rlmDepth=0)]),
        ("prime-agent", [header(), user("one", 1), record("git_state", 2)]),
        ("omo", [header(parentSession=f"/home/dev/.omo/agent/sessions/--w--/{SESSION}.jsonl")]),
        ("stepcode", [header(parentSession=f"/home/dev/.stepcode/agent/sessions/--w--/{SESSION}.jsonl")]),
        ("pi", [header(), user("one", 1)]),
    ],
)
def test_a_copied_log_is_of_the_program_that_its_content_names(
    name: str, records: list[dict[str, Any]], tmp_path: Path
) -> None:
    copy = tmp_path / "copy.jsonl"
    copy.write_text("".join(json.dumps(each) + "\n" for each in records))
    found = detect(copy)
    assert (found.agent, found.source and found.source.session_id) == (name, f"{name}:{SESSION}")


def test_what_is_not_known_is_kept_and_marked() -> None:
    """R-C3, R-C11"""
    gathered = fold(
        header(),
        user("q", 1),
        record("novelty", 2, data=1),
        said("oracle", 3, content="x"),
        {**user("again", 4), "mood": "good"},
    )
    unknown = [event.event for event in gathered.events.values() if isinstance(event.event, RecordEvent)]
    assert [(event.kind, event.known) for event in unknown] == [("novelty", False), ("message/oracle", False)]
    again = next(m for m in gathered.messages.values() if text(m) == "again")
    assert again.metadata["pi"]["other_fields"] == {"mood": "good"}
    assert gathered.place(again.id).parent_id is not None


def test_a_damaged_line_changes_nothing_else() -> None:
    gathered = fold(header(), user("q", 1), b'{"type":"message","id":"000', answer(3))
    assert [m.role for m in gathered.in_order(f"pi:{SESSION}")] == ["user", "assistant"]
    assert gathered.counts.unreadable == 1
    assert not [event for event in gathered.events.values() if isinstance(event.event, RewindEvent)]
    assert not [event for event in gathered.events.values() if isinstance(event.event, ErrorEvent)]
    assert log_source().session_id == f"pi:{SESSION}"
