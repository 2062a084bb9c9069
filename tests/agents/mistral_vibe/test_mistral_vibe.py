"""Mistral Vibe's sessions become what the script and the requests say that happened (R-C1)."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path
from typing import Any

import msgspec
import pytest

from support.claude_files import Gathered, gather
from support.format_page import FormatPage, named
from turnlog.agents import agent, detect, fold_bytes
from turnlog.agents.base import RowAgent, Source, SourceKind
from turnlog.agents.changes import Changes
from turnlog.agents.commands import resume_command
from turnlog.agents.mistral_vibe.fold import TOTAL
from turnlog.agents.mistral_vibe.old_records import ROLES, OldMessage
from turnlog.agents.mistral_vibe.rows import ANSWER, KINDS, SESSION, VibeRow
from turnlog.model import (
    CompactionEvent,
    ErrorEvent,
    Fate,
    InterruptEvent,
    Message,
    Origin,
    ReasoningPart,
    RewindEvent,
    TextPart,
    ToolCallPart,
    ToolKind,
)
from turnlog.store import open_store
from turnlog.store.base import SessionFilter, Store
from turnlog.sync.syncer import sync

DATA = Path(__file__).parents[2] / "data" / "mistral_vibe"
FOUND = agent("mistral-vibe")
assert isinstance(FOUND, RowAgent)
AGENT: RowAgent = FOUND
CASES = sorted(str(case.relative_to(DATA)) for case in DATA.glob("*/*") if case.is_dir())
TOUR = "mistral-vibe:eeb84330-7379-5208-3f12-00daf3cce345"


def sources(case: str) -> list[Source]:
    return list(AGENT.discover([DATA / case]))


def log_of(source: Source) -> bytes:
    return b"".join(AGENT.read_rows(source, ()).lines) if AGENT.holds_rows(source) else Path(source.path).read_bytes()


def recorded(case: str) -> Gathered:
    return gather(*(fold_bytes(AGENT, source, log_of(source)) for source in sources(case)))


def script(name: str, queue: str = "main") -> list[dict[str, Any]]:
    return json.loads((DATA / "3.0.2" / f"{name}.script.json").read_text())[queue]


def answers(found: Gathered, session: str | None = None) -> list[Message]:
    """The answers in their order, of one session or of all."""
    placed = sorted(found.placements.items(), key=lambda item: item[1].position)
    messages = [found.messages[identity] for (owner, identity), _ in placed if session in (None, owner)]
    return [message for message in messages if message.role == "assistant"]


def calls_of(found: Gathered) -> dict[str, ToolCallPart]:
    parts = (part for message in found.messages.values() for part in message.parts)
    return {part.tool_call_id: part for part in parts if isinstance(part, ToolCallPart)}


def blocks(message: Message) -> Iterator[tuple[str, Any]]:
    for part in message.parts:
        if isinstance(part, ReasoningPart):
            yield "thinking", part.text
        elif isinstance(part, TextPart):
            yield "text", part.text
        elif isinstance(part, ToolCallPart) and part.parent_tool_call_id is None:
            yield "tool", (part.tool_name, part.tool_call_id, part.input_value())


def wanted(turns: list[dict[str, Any]]) -> list[list[tuple[str, Any]]]:
    return [
        [
            (each["type"], (each["name"], each["id"], each["input"]) if "name" in each else each["text"])
            for each in turn["blocks"]
        ]
        for turn in turns
    ]


def stored(case: str, folder: Path) -> Store:
    sync(folder / "store.db", roots=[DATA / case], agents=[AGENT])
    return open_store(folder / "store.db")


# -- what the model said, and what came of it


@pytest.mark.parametrize(
    ("case", "names"), [("tour", ("main",)), ("resumed", ("main", "resume")), ("errors", ("err",))]
)
def test_a_run_has_the_parts_of_the_script_in_their_order(case: str, names: tuple[str, ...]) -> None:
    """R-C5, R-K1: also where the journal of the first turn is gone, and of a call that no entry shows."""
    found = answers(recorded(f"3.0.2/{case}"))
    assert [list(blocks(message)) for message in found] == wanted([turn for name in names for turn in script(name)])


def test_a_recorded_rewind_takes_back_one_answer_that_still_counts(tmp_path: Path) -> None:
    """R-C5: the store of Vibe no longer has what was taken back, but the tokens of the session do."""
    turns = script("rewind")
    found = recorded("3.0.2/rewound")
    assert [list(blocks(message)) for message in answers(found)] == [wanted(turns)[0], wanted(turns)[2]]
    [event] = [change.event for change in found.events.values() if isinstance(change.event, RewindEvent)]
    assert event.to_message_id == answers(found)[0].id
    with stored("3.0.2/rewound", tmp_path) as store:
        [session] = store.sessions(SessionFilter()).items
    used = session.usage.usage
    assert used is not None
    assert (used.input, used.cache_read, used.output) == tuple(
        sum(turn["usage"][name] for turn in turns) for name in ("in", "cached", "out")
    )


@pytest.mark.parametrize(("case", "name"), [("tour", "main"), ("errors", "err")])
def test_calls_have_the_tokens_of_the_script_while_their_journal_is_there(case: str, name: str) -> None:
    """The cached tokens are not in the input; the program does not tell thoughts apart."""
    used = [message.usage for message in answers(recorded(f"3.0.2/{case}"))]
    assert [(one.input, one.cache_read, one.output, one.reasoning) for one in used if one is not None] == [
        (turn["usage"]["in"], turn["usage"]["cached"], turn["usage"]["out"], None) for turn in script(name)
    ]


@pytest.mark.parametrize("is_seen_before", [False, True])
def test_the_program_counts_no_answer_that_it_discards(*, is_seen_before: bool) -> None:
    """One that is too long, after which 3.0.2 asks again: its tokens are beside those that the program counts.

    An earlier sync may have seen the answer before the program discarded it.
    """
    [source] = sources("3.0.2/stopped")
    cut = VibeRow(
        row=ANSWER,
        id="cut",
        entries=[{"type": "message", "outcome": {"type": "discarded", "cause": "retry"}}],
        usage={"input_tokens": 540, "cached_input_tokens": 40, "output_tokens": 14},
        finish="length",
    )
    counted = {"inputTokens": 962, "cachedInputTokens": 61, "outputTokens": 37}
    end = VibeRow(row=SESSION, id="session", facts={"session": {"tokenUsage": counted}})
    before = msgspec.structs.replace(cut, entries=[{"type": "message"}])
    rows = [before, cut, end] if is_seen_before else [cut, end]
    found = gather(fold_bytes(AGENT, source, b"".join(msgspec.json.encode(row) + b"\n" for row in rows)))
    [message], [session] = answers(found), found.sessions.values()
    used = [message.usage, session.totals[TOTAL].usage]
    assert [(one.input, one.cache_read, one.output) for one in used if one is not None] == [
        (500, 40, 14),
        (901, 61, 37),
    ]


def test_tokens_of_calls_whose_journal_is_gone_are_a_total_of_the_session(tmp_path: Path) -> None:
    with stored("3.0.2/resumed", tmp_path) as store:
        usage = store.session(TOUR).usage
        known = [placed.message.usage for placed in store.messages(TOUR) if placed.message.role == "assistant"]
    turns = [*script("main"), *script("resume")]
    assert [one is None for one in known] == [True, True, True, True, False]
    assert (usage.usage.input, usage.usage.cache_read, usage.usage.output) == tuple(
        sum(turn["usage"][name] for turn in turns) for name in ("in", "cached", "out")
    )
    assert usage.usage.exactness == "estimated"


def test_what_was_seen_before_the_journal_was_deleted_stays(tmp_path: Path) -> None:
    """One store that syncs within the first turn, after it and after the second one has all tokens of all calls."""
    root = tmp_path / ".vibe"
    for case in ("running", "tour", "resumed"):
        shutil.rmtree(root, ignore_errors=True)
        shutil.copytree(DATA / "3.0.2" / case, root)
        sync(tmp_path / "store.db", roots=[root], agents=[AGENT])
    with open_store(tmp_path / "store.db") as store:
        placed = list(store.messages(TOUR))
        usage = store.session(TOUR).usage
        restored = {file.path.name: file.path.read_bytes() for file in store.restore(TOUR, tmp_path / "restored")}
    turns = [*script("main"), *script("resume")]
    used = [each.message.usage for each in placed if each.message.role == "assistant"]
    assert [one.input for one in used if one is not None] == [turn["usage"]["in"] for turn in turns]
    assert usage.usage.exactness == "exact"
    assert [list(blocks(each.message)) for each in placed if each.message.role == "assistant"] == wanted(turns)
    # The files are those of the last sync, without the journal that is gone.
    assert "0000000000000001.jsonl" not in restored
    assert restored["CURRENT"] == next(root.rglob("CURRENT")).read_bytes()


@pytest.mark.parametrize("order", list(permutations(("running", "tour", "resumed"))), ids="-".join)
def test_tokens_count_once_in_any_order_of_states(order: tuple[str, ...], tmp_path: Path) -> None:
    """A copy of a home may bring a journal after what was written later, and an older state after a newer one."""
    for case in order:
        shutil.rmtree(tmp_path / ".vibe", ignore_errors=True)
        shutil.copytree(DATA / "3.0.2" / case, tmp_path / ".vibe")
        sync(tmp_path / "store.db", roots=[tmp_path / ".vibe"], agents=[AGENT])
    with open_store(tmp_path / "store.db") as store:
        session = store.session(TOUR)
    turns = [*script("main"), *script("resume")]
    assert (session.usage.usage.input, session.usage.usage.cache_read, session.usage.usage.output) == tuple(
        sum(turn["usage"][name] for turn in turns) for name in ("in", "cached", "out")
    )
    assert (session.usage.usage.exactness, session.totals) == ("exact", ())


@pytest.mark.parametrize("case", ["resumed", "compaction"])
def test_a_journal_that_arrives_last_takes_its_calls_out_of_the_estimate(case: str, tmp_path: Path) -> None:
    home, store_path = tmp_path / ".vibe", tmp_path / "store.db"
    shutil.copytree(DATA / "3.0.2" / case, home)
    sync(tmp_path / "whole.db", roots=[home], agents=[AGENT])
    journals = {path: path.read_bytes() for path in home.rglob("journal/*.jsonl")}
    for path in journals:
        path.unlink()
    for path, content in [(None, b""), *sorted(journals.items(), reverse=True)]:
        if path is not None:
            path.write_bytes(content)
        sync(store_path, roots=[home], agents=[AGENT])
    with open_store(store_path) as late, open_store(tmp_path / "whole.db") as whole:
        sessions = [session.id for session in whole.sessions(SessionFilter()).items]
        assert sessions
        for name in sessions:
            assert (late.session(name).usage, late.session(name).totals) == (
                whole.session(name).usage, whole.session(name).totals,
            )  # fmt: skip


def test_a_turn_that_runs_has_its_calls_and_no_end() -> None:
    found = recorded("3.0.2/running")
    assert [list(blocks(message)) for message in answers(found)] == wanted(script("main")[:3])
    assert {name: len(call.results) for name, call in calls_of(found).items()} == {
        "call_read1": 1,
        "call_fail1": 1,
        "call_par1": 0,
        "call_par2": 0,
    }
    kinds = [getattr(change.event, "kind", "") for change in found.events.values()]
    assert kinds == ["turn_started"]


@pytest.mark.parametrize("answer", [0, 1, 2])
@pytest.mark.parametrize("further", [0, 1])
def test_an_answer_is_read_though_its_program_was_killed(answer: int, further: int, tmp_path: Path) -> None:
    """The journal ends with the answer, or with what the program thinks of it."""
    home = tmp_path / "home"
    shutil.copytree(DATA / "3.0.2/running", home)
    [journal] = home.rglob("journal/*.jsonl")
    lines = journal.read_bytes().splitlines(keepends=True)
    ends = [number for number, line in enumerate(lines, 1) if b'"completion_succeeded"' in line and is_result(line)]
    journal.write_bytes(b"".join(lines[: ends[answer] + further]))
    found = gather(*(fold_bytes(AGENT, source, log_of(source)) for source in AGENT.discover([home])))
    assert [list(blocks(message)) for message in answers(found)] == wanted(script("main")[: answer + 1])
    assert all(message.usage is not None for message in answers(found))
    whole = answers(recorded("3.0.2/running"))
    assert [message.id for message in answers(found)] == [message.id for message in whole[: answer + 1]]


def test_calls_match_in_a_session_first_read_in_a_later_turn(tmp_path: Path) -> None:
    """The context ends with the newest generation, the entries go on in the journal."""
    home = tmp_path / "home"
    shutil.copytree(DATA / "3.0.2/resumed", home)
    [current], [journal] = home.rglob("CURRENT"), [one for one in home.rglob("journal/*") if one.stat().st_size]
    generations = sorted((current.parent / "generations").iterdir())
    current.write_text(json.dumps(json.loads(current.read_text()) | {"generation": generations[-2].name}))
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:4]))
    found = gather(*(fold_bytes(AGENT, source, log_of(source)) for source in AGENT.discover([home])))
    assert [list(blocks(message)) for message in answers(found)] == wanted(script("main"))


@pytest.mark.parametrize(
    ("session", "count"),
    [
        pytest.param("6692e446-6585-523b-56ee-8e010dc81f98", 0, id="a call that waits runs"),
        pytest.param("6692e446-6585-523b-56ee-8e010dc81f98", 7, id="a call that waited ended since the context"),
        pytest.param("child-e38c5f817ae3afa374023650", 5, id="the model was asked before the journal begins"),
    ],
)
def test_calls_match_in_a_session_first_read_while_it_runs(session: str, count: int, tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(DATA / "3.0.2/subagent", home)
    whole = gather(*(fold_bytes(AGENT, source, log_of(source)) for source in AGENT.discover([home])))
    [folder] = home.rglob(session)
    current, [journal] = folder / "CURRENT", [one for one in folder.rglob("journal/*") if one.stat().st_size]
    generations = sorted((folder / "generations").iterdir())
    current.write_text(json.dumps(json.loads(current.read_text()) | {"generation": generations[-2].name}))
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:count]))
    found = gather(*(fold_bytes(AGENT, source, log_of(source)) for source in AGENT.discover([home])))
    assert calls_of(found).keys() == calls_of(whole).keys()


def is_result(line: bytes) -> bool:
    return json.loads(line)["type"] == "action_result"


def test_results_are_what_the_next_request_sent() -> None:
    """R-C8: in their order, each with its exit code."""
    sent = {
        message["tool_call_id"]: json.loads(message["content"])
        for message in json.loads((DATA / "3.0.2/request.json").read_text())["messages"]
        if message["role"] == "tool"
    }
    found = calls_of(recorded("3.0.2/resumed"))
    assert list(found) == list(sent)
    [source] = sources("3.0.2/resumed")
    for name, call in found.items():
        [result] = call.results
        answered = sent[name]
        text = answered.get("content", answered.get("stdout", "") + answered.get("stderr", ""))
        assert (result.output_text, result.exit_code) == (text, answered.get("returncode"))
        assert result.status == ("error" if answered.get("returncode") else "success")
        lines = [line for line in log_of(source).splitlines() if b'"row":"answer"' in line]
        structured = [found for line in lines if (found := AGENT.structured_result(line, name)) is not None]
        assert [json.loads(bytes(each)) for each in structured] == [answered]


def test_failures_have_their_words() -> None:
    found = calls_of(recorded("3.0.2/errors"))
    assert {name: (call.results[0].status, call.results[0].error_text) for name, call in found.items()} == {
        "call_gone1": ("error", "File not found at: /home/dev/work/gone.txt"),
        "call_edit1": ("success", None),
        "call_write1": ("success", None),
        "call_none1": ("error", 'unsupported top-level tool "nonsense"'),
    }
    assert found["call_edit1"].kind is ToolKind.EDIT


def test_a_stopped_command_is_aborted_and_a_stopped_answer_keeps_its_words() -> None:
    command = recorded("3.0.2/interrupted")
    assert calls_of(command)["call_long1"].results[0].status == "aborted"
    found = recorded("3.0.2/stopped")
    [message] = answers(found)
    assert (list(blocks(message)), message.stop_reason, message.usage) == (
        [("text", "Half an answer that hangs.")],
        "aborted",
        None,
    )
    for each in (command, found):
        assert [change for change in each.events.values() if isinstance(change.event, InterruptEvent)]


@pytest.mark.parametrize("cause", ["failure", "retry"])
def test_an_answer_discarded_by_the_program_is_not_interrupted(cause: str) -> None:
    """3.0.2 does so where a stream breaks, or an answer is too long."""
    [source] = sources("3.0.2/stopped")
    log = log_of(source).replace(b'"cause":"interrupt"', b'"cause":"%s"' % cause.encode())
    found = gather(fold_bytes(AGENT, source, log))
    [message] = answers(found)
    assert (list(blocks(message)), message.stop_reason) == ([("text", "Half an answer that hangs.")], None)
    during = [change.event.during for change in found.events.values() if isinstance(change.event, InterruptEvent)]
    # The recorded turn itself was interrupted.
    assert during == [None]


def test_a_refused_request_is_one_error_with_its_status() -> None:
    found = recorded("3.0.2/failed")
    [error] = [change.event for change in found.events.values() if isinstance(change.event, ErrorEvent)]
    assert (error.status, error.kind) == (400, "model_stream_failed")
    assert "mock bad request" in error.error_text
    assert answers(found) == []


def test_a_subagent_is_a_session_that_a_call_within_a_program_started(tmp_path: Path) -> None:
    """R-C10: both sides name the call; that of the model ran the program."""
    found = recorded("3.0.2/subagent")
    [link] = found.links.values()
    call = calls_of(found)[link.tool_call_id or ""]
    assert (call.kind, call.parent_tool_call_id, link.inferred) == (ToolKind.SUBAGENT, "call_ts1", False)
    parent, child = answers(found, link.parent_session_id), answers(found, link.child_session_id)
    assert [list(blocks(message)) for message in parent] == wanted(script("sub"))
    assert [list(blocks(message)) for message in child] == wanted(script("sub", "sub"))
    with stored("3.0.2/subagent", tmp_path) as store:
        [session] = store.sessions(SessionFilter()).items
        [inner] = store.children(session.id)
        # Some calls are in the totals only, which exclude those of the other session.
        used = [session.usage.usage, inner.usage.usage]
        assert [(each.input, each.cache_read, each.output) for each in used] == [(2850, 1000, 82), (1100, 400, 40)]
        first = next(iter(store.messages(inner.id)))
    assert first.message.origin is Origin.SUBAGENT_PROMPT


def test_a_compaction_takes_the_messages_before_it_out_of_the_context(tmp_path: Path) -> None:
    """Its summary is known while its journal is there, its tokens count in the total."""
    with stored("3.0.2/compaction", tmp_path) as store:
        [session] = store.sessions(SessionFilter()).items
        placed = list(store.messages(session.id))
        [event] = [event for event in store.events(session.id) if isinstance(event, CompactionEvent)]
    assert event.trigger == "automatic"
    fates = {
        each.membership.fate
        for each in placed
        if each.message.created_at and event.created_at and each.message.created_at < event.created_at
    }
    assert fates == {Fate.COMPACTED}
    turns = script("comp")
    assert session.usage.usage.input == sum(turn["usage"]["in"] for turn in turns)
    said = [list(blocks(each.message)) for each in placed if each.message.role == "assistant"]
    told = wanted([turn for number, turn in enumerate(turns) if number != 1])
    # The model's id of a call before the compaction is in none of the files that are left.
    effect = "effect-e8642025-f450-5afe-bf1c-5615e262b796"
    assert said == [[told[0][0], ("tool", ("file_system.bash", effect, {"command": "echo big"}))], *told[1:]]


# -- versions before


def test_2_26_keeps_sessions_in_the_same_way() -> None:
    found = recorded("2.26.1/resumed")
    names = [[name for name, *_ in blocks(message)] for message in answers(found)]
    assert names == [[each["type"] for each in turn["blocks"]] for turn in [*script("main"), *script("resume")]]


def test_2_8_logs_messages_and_counts_tokens_of_sessions(tmp_path: Path) -> None:
    """A resume is a new session that repeats the messages; each has its own totals, with cached tokens in them."""
    with stored("2.8.0/resumed", tmp_path) as store:
        sessions = sorted(store.sessions(SessionFilter()).items, key=lambda session: session.id)
        assert [session.usage.usage.input for session in sessions] == [9600, 3200]
        first, second = (list(store.messages(session.id)) for session in sessions)
        assert [each.message.id for each in first] == [each.message.id for each in second][: len(first)]
        assert [session.git_branch for session in sessions] == ["main", "main"]
    calls = calls_of(recorded("2.8.0/resumed"))
    assert list(calls) == ["call_read1", "call_fail1", "call_par1", "call_par2"]


def test_2_8_has_results_with_their_exit_codes(tmp_path: Path) -> None:
    with stored("2.8.0/resumed", tmp_path) as store:
        [session] = [one for one in store.sessions(SessionFilter()).items if one.id.endswith("6a0822ac")]
        parts = [part for placed in store.messages(session.id) for part in placed.message.parts]
    results = [
        (p.tool_call_id, p.results[0].status, p.results[0].exit_code) for p in parts if isinstance(p, ToolCallPart)
    ]
    assert results == [
        ("call_read1", "error", None),
        ("call_fail1", "error", 3),
        ("call_par1", "success", 0),
        ("call_par2", "success", 0),
    ]


def test_2_8_has_subagents_below_their_parent(tmp_path: Path) -> None:
    with stored("2.8.0/subagent", tmp_path) as store:
        [session] = store.sessions(SessionFilter()).items
        [child] = store.children(session.id)
        assert (session.usage.usage.input, child.usage.usage.input) == (2800, 1500)
        assert child.relationships[0].parent_tool_call_id == "call_task1"


# -- every record, any split, every byte


@pytest.mark.parametrize("case", CASES)
def test_every_record_is_accounted_for_and_any_split_equals_the_whole(case: str) -> None:
    """R-S34: also where a fold is put away and taken up again."""
    for source in sources(case):
        data = log_of(source)
        if not source.appendable:
            continue
        whole = gather(AGENT.fold(source).feed(data, 0))
        pieces: list[Changes] = []
        state, offset = None, 0
        for line in data.splitlines(keepends=True):
            fold = AGENT.fold(source, state)
            pieces.append(fold.feed(line, offset))
            state, offset = fold.state(), offset + len(line)
        apart = gather(*pieces)
        assert apart.as_json() == whole.as_json()
        assert apart.counts.total == data.count(b"\n")
        assert [each for each in whole.diagnostics if each.severity == "error"] == []
        assert all(getattr(change.event, "known", True) for change in whole.events.values())


@pytest.mark.parametrize("case", CASES)
def test_an_archived_home_is_restored_byte_for_byte(case: str, tmp_path: Path) -> None:
    """R-S1"""
    restored: dict[str, bytes] = {}
    with stored(case, tmp_path) as store:
        for session in store.sessions(SessionFilter(subagents=True)).items:
            for file in store.restore(session.id, tmp_path / "restored"):
                # A folder of files is one source; a log is one by itself.
                name = file.path if file.source.endswith("CURRENT") else Path(file.source)
                restored[str(name).partition("logs/session/")[2]] = file.path.read_bytes()
    files = [path for path in (DATA / case).rglob("*") if path.is_file()]
    assert restored == {str(path).partition("logs/session/")[2]: path.read_bytes() for path in files}


def test_a_byte_that_is_no_text_is_restored(tmp_path: Path) -> None:
    root = tmp_path / ".vibe"
    shutil.copytree(DATA / "3.0.2/tour", root)
    [current] = root.rglob("CURRENT")
    (current.parent / "chunks" / "odd.json").write_bytes(b"\xff\x00")
    sync(tmp_path / "store.db", roots=[root], agents=[AGENT])
    with open_store(tmp_path / "store.db") as store:
        [odd] = [file.path for file in store.restore(TOUR, tmp_path / "restored") if file.path.name == "odd.json"]
    assert odd.read_bytes() == b"\xff\x00"


def test_a_session_whose_generation_is_gone_is_reported(tmp_path: Path) -> None:
    root = tmp_path / ".vibe"
    shutil.copytree(DATA / "3.0.2/tour", root)
    for manifest in root.rglob("manifest.json"):
        manifest.unlink()
    summary = sync(tmp_path / "store.db", roots=[root], agents=[AGENT])
    assert summary.problems


@pytest.mark.parametrize("name", ["CURRENT", "generations/*/manifest.json", "generations/*/checkpoint*.json"])
def test_a_damaged_file_of_a_session_is_named(name: str, tmp_path: Path) -> None:
    root = tmp_path / ".vibe"
    shutil.copytree(DATA / "3.0.2/tour", root)
    folder = Path(next(AGENT.find_sources(root)).path).parent
    for damaged in folder.glob(name):
        damaged.write_bytes(b"{")
    [problem] = sync(tmp_path / "store.db", roots=[root], agents=[AGENT]).problems
    words, place = problem.reason.split(": ")
    assert words == "a file of the newest generation is missing or damaged"
    assert (folder / place) in folder.glob(name)


# -- finding them


def test_a_session_is_known_by_its_generation_and_a_log_by_its_messages(tmp_path: Path) -> None:
    """R-S21"""
    for case in CASES:
        for source in sources(case):
            found = detect(Path(source.path))
            assert found.agent == "mistral-vibe"
            assert found.source is not None
            assert found.source.session_id == source.session_id
            assert found.source.root == source.root
            if source.kind is not SourceKind.SIDECAR:
                assert found.version == {"2.8.0": "2", "2.26.1": "1.8", "3.0.2": "1.9"}[case.partition("/")[0]]


def test_a_variable_names_the_home(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(DATA / "3.0.2/tour", home / "moved")
    monkeypatch.setenv("VIBE_HOME", str(home / "moved"))
    assert list(AGENT.roots()) == [home / "moved"]


def test_a_session_is_resumed_by_its_id() -> None:
    assert AGENT.command is not None
    assert resume_command(AGENT.command, "4ba798bb") == ["vibe", "--resume", "4ba798bb"]


def test_the_page_names_what_is_read() -> None:
    """R-S23, R-C3"""
    page = FormatPage("mistral-vibe")
    assert {name for row, *_ in page.rows("## Rows") for name in named(row)} == KINDS
    assert {named(role)[0] for role, *_ in page.rows("### Messages of 2.8")} == ROLES
    fields = [name for cell, _ in page.rows("### Fields of 2.8") for name in named(cell)]
    assert sorted(fields) == sorted(name for name in OldMessage.__struct_encode_fields__ if name)
