"""Kimi Code's logs become what the script and the requests say that happened (R-C1)."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from support.claude_files import Gathered, gather
from turnlog.agents import agent, detect, fold_bytes
from turnlog.agents.base import Source
from turnlog.model import (
    CompactionEvent,
    ErrorEvent,
    Fate,
    FilePart,
    HistoryEvent,
    InterruptEvent,
    Message,
    Origin,
    ReasoningPart,
    RewindEvent,
    Session,
    TextPart,
    ToolCallPart,
)
from turnlog.store import open_store
from turnlog.store.base import Store
from turnlog.sync.syncer import sync

DATA = Path(__file__).parents[2] / "data" / "kimi"
KIMI = agent("kimi-code")
TOURS = ("0.20.0/tour", "0.43.1/tour", "2.1.0/tour")
CASES = sorted(str(folder.relative_to(DATA)) for folder in DATA.glob("*/*") if folder.is_dir())


def sources(case: str) -> list[Source]:
    return list(KIMI.discover([DATA / case]))


def read(found: Iterable[Source]) -> Gathered:
    return gather(*(fold_bytes(KIMI, source, Path(source.path).read_bytes()) for source in found))


def fold(*records: Any) -> Gathered:
    """What a log with these records brings."""
    path = "/home/dev/.kimi-code/sessions/wd_work_1/session_1/agents/main/wire.jsonl"
    source = Source(agent="kimi-code", path=path, root="/home/dev/.kimi-code", session_id="kimi-code:session_1")
    return gather(fold_bytes(KIMI, source, b"".join(json.dumps(record).encode() + b"\n" for record in records)))


def prompt(number: int, text: str, **origin: str) -> dict[str, Any]:
    message = {"role": "user", "content": [{"type": "text", "text": text}], "id": f"msg_{number}", "toolCalls": []}
    return {
        "type": "context.append_message",
        "message": message | {"origin": {"kind": "user"} | origin},
        "time": number,
    }


def event(kind: str, at: int, **fields: Any) -> dict[str, Any]:
    return {"type": "context.append_loop_event", "event": {"type": kind, **fields}, "time": at}


def script(*names: str) -> list[dict[str, Any]]:
    return [turn for name in names for turn in json.loads((DATA / f"2.1.0/{name}.script.json").read_text())["main"]]


def tour(case: str) -> Gathered:
    """The session that was resumed."""
    return read(source for source in sources(case) if b"notes.txt and" in Path(source.path).read_bytes())


def events_of(found: Gathered) -> list[HistoryEvent]:
    return [change.event for change in found.events.values()]


def answers(found: Gathered) -> list[Message]:
    """Answers of the conversation, without those outside of it."""
    sidecars = {key[1] for key, place in found.placements.items() if place.fate is Fate.SIDECAR}
    return [each for each in found.messages.values() if each.role == "assistant" and each.id not in sidecars]


def calls(found: Gathered) -> dict[str, ToolCallPart]:
    parts = (part for message in found.messages.values() for part in message.parts)
    return {part.tool_call_id: part for part in parts if isinstance(part, ToolCallPart)}


def blocks(message: Message) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for part in message.parts:
        if isinstance(part, ReasoningPart):
            found.append(("thinking", part.text))
        elif isinstance(part, TextPart):
            found.append(("text", part.text))
        elif isinstance(part, ToolCallPart):
            found.append(("tool", (part.tool_name, part.tool_call_id)))
    return found


# -- the tour


@pytest.mark.parametrize("case", TOURS)
def test_a_tour_has_the_parts_and_tokens_of_the_script_in_their_order(case: str) -> None:
    """R-C5, R-K1: three copies of the tokens of a call count once."""
    found, wanted = tour(case), script("main", "resume")
    assert [blocks(message) for message in answers(found)] == [
        [
            (block["type"], (block["name"], block["id"]) if "name" in block else block["text"])
            for block in turn["blocks"]
        ]
        for turn in wanted
    ]
    usage = [message.usage for message in found.messages.values() if message.usage is not None]
    assert [(one.input, one.cache_read, one.output, one.reasoning) for one in usage] == [
        (turn["usage"]["in"], turn["usage"]["cached"], turn["usage"]["out"], None) for turn in wanted
    ]


def test_a_tour_is_what_the_last_request_held() -> None:
    """Each message, call and result that was sent, in its order; what the program adds to outputs is not in the log."""
    request = json.loads((DATA / "2.1.0/request.json").read_text())["messages"]
    found = tour("2.1.0/tour")
    told = [(message.role, text_of(message)) for message in found.messages.values()][:-1]
    roles = {"developer": "user"}
    sent = [(each["role"], each["content"] or "") for each in request if each["role"] != "tool"]
    assert [(roles.get(role, role), text) for role, text in told] == sent
    outputs = {each["tool_call_id"]: each["content"] for each in request if each["role"] == "tool"}
    assert list(outputs) == list(calls(found))
    assert all(call.output_text in outputs[name] for name, call in calls(found).items())


def text_of(message: Message) -> str:
    return "".join(part.text for part in message.parts if isinstance(part, TextPart))


@pytest.mark.parametrize("case", TOURS)
def test_a_failed_command_has_its_exit_code(case: str) -> None:
    """R-C8"""
    [result] = calls(tour(case))["call_fail1"].results
    assert (result.status, result.exit_code) == ("error", 3)
    assert "No such file" in (result.error_text or "")


def test_each_tour_knows_its_folder_and_model() -> None:
    found = {case: tour(case) for case in TOURS}
    assert {next(iter(each.sessions.values())).cwd for each in found.values()} == {"/home/dev/work"}
    # 0.20 has only the user's name for the model.
    models = [{message.model for message in answers(each)} for each in found.values()]
    assert models == [{"mock"}, {"mock-model"}, {"mock-model"}]


@pytest.mark.parametrize("case", CASES)
def test_every_record_is_accounted_for_and_known(case: str) -> None:
    """R-S34, R-C3"""
    for source in sources(case):
        data = Path(source.path).read_bytes()
        changes = fold_bytes(KIMI, source, data)
        assert changes.counts.total == (data.count(b"\n") if source.appendable else 1)
        assert changes.diagnostics == []
        assert [change.event for change in changes.events if getattr(change.event, "known", True) is False] == []


@pytest.mark.parametrize("case", CASES)
def test_line_by_line_gives_what_the_whole_gives(case: str) -> None:
    for source in (source for source in sources(case) if source.appendable):
        data, state, offset, pieces = Path(source.path).read_bytes(), None, 0, list[Any]()
        for line in data.splitlines(keepends=True):
            reader = KIMI.fold(source, state)
            pieces.append(reader.feed(line, offset))
            state, offset = reader.state(), offset + len(line)
        assert gather(*pieces).as_json() == gather(fold_bytes(KIMI, source, data)).as_json()


def test_a_log_is_known_by_its_records(tmp_path: Path) -> None:
    """R-S21"""
    [log, *_] = [source for source in sources("0.20.0/tour") if source.appendable]
    moved = Path(shutil.copy(log.path, tmp_path / "moved.jsonl"))
    found = detect(moved)
    assert (found.agent, found.version) == ("kimi-code", "wire 1.4")


# -- what else happens


def test_a_subagent_is_a_session_that_its_call_names() -> None:
    """R-C10"""
    found = read(sources("2.1.0/tour"))
    [link] = found.links.values()
    [spawn] = [call for call in calls(found).values() if call.tool_name == "Agent"]
    assert (link.kind, link.tool_call_id, link.inferred) == ("subagent", spawn.tool_call_id, False)
    inside = [found.messages[key[1]] for key in found.placements if key[0] == link.child_session_id]
    assert [each.origin for each in inside if each.role in ("user", "assistant")] == [
        Origin.SUBAGENT_PROMPT,
        None,
        None,
    ]
    # The parent's log repeats the tokens of the subagent, which count in its own.
    assert sum(each.usage.input or 0 for each in found.messages.values() if each.usage is not None) == 7100 + 400


def test_tools_that_fail_and_files_that_are_edited() -> None:
    found = calls(read(sources("2.1.0/errors")))
    assert {name: call.results[0].status for name, call in found.items()} == {
        "call_gone1": "error",
        "call_none1": "error",
        "call_edit1": "success",
        "call_write1": "success",
        "call_img1": "success",
    }
    [image] = [part for part in found["call_img1"].results[0].content if isinstance(part, FilePart)]
    assert (image.media_type, (image.data or b"")[:4]) == ("image/png", b"\x89PNG")


def test_a_refused_request_is_the_error_of_its_answer() -> None:
    [error] = [each.error for each in read(sources("2.1.0/errors")).messages.values() if each.error is not None]
    assert (error.text, error.status) == ("400 bad request here", 400)


def test_an_interrupted_step_has_its_tokens_though_its_end_has_none() -> None:
    found = read(sources("2.1.0/interrupt"))
    step = next(each for each in answers(found) if "call_slow1" in str(each.parts))
    assert step.stop_reason == "aborted"
    assert step.usage is not None
    assert (step.usage.input, step.usage.output) == (100, 20)
    assert calls(found)["call_slow1"].results[0].status == "aborted"
    assert calls(found)["call_kill1"].results == ()
    assert sorted(each.during or "" for each in events_of(found) if isinstance(each, InterruptEvent)) == [
        "answer",
        "tool",
    ]


def test_a_compaction_keeps_prompts_and_its_call_is_no_message() -> None:
    found = read(sources("2.1.0/compaction"))
    [compaction] = [each for each in events_of(found) if isinstance(each, CompactionEvent)]
    kept = [text_of(found.messages[name]) for name in compaction.kept_message_ids]
    assert kept[1:] == ["Remember the word heron.", "Which word?"]
    assert found.messages[compaction.kept_message_ids[0]].role == "system"
    [side] = [found.messages[key[1]] for key, place in found.placements.items() if place.fate is Fate.SIDECAR]
    assert (side.metadata, side.model) == ({"kimi-code": {"side_call": "compaction"}}, "mock-model")
    assert side.usage is not None
    assert (side.usage.input, side.usage.output) == (1000, 30)


def test_a_second_count_of_one_step_is_a_call_of_its_own() -> None:
    """R-C5: it is not lost, and not taken for a copy."""
    tokens = {"inputOther": 10, "output": 2, "inputCacheRead": 0, "inputCacheCreation": 0}
    usage = {"type": "usage.record", "model": "m", "usageScope": "turn", "time": 3}
    more = tokens | {"output": 3}
    found = fold(
        prompt(1, "Hi"),
        event("step.begin", 2, uuid="u1"),
        usage | {"usage": tokens},
        usage | {"usage": more},
        event("step.end", 4, uuid="u1", usage=tokens, finishReason="end_turn"),
    )
    counted = [each.usage.output for each in found.messages.values() if each.usage is not None]
    assert sorted(count or 0 for count in counted) == [2, 3]


@pytest.mark.parametrize("case", CASES)
def test_any_line_that_is_there_twice_counts_its_tokens_once(case: str) -> None:
    for source in sources(case):
        lines = Path(source.path).read_bytes().splitlines(keepends=True)
        if not source.path.endswith("wire.jsonl"):
            continue
        whole = tokens_of(gather(fold_bytes(KIMI, source, b"".join(lines))))
        for number, line in enumerate(lines):
            if b"usage" in line:
                doubled = b"".join([*lines[: number + 1], *lines[number:]])
                assert tokens_of(gather(fold_bytes(KIMI, source, doubled))) == whole


def tokens_of(found: Gathered) -> tuple[int, int]:
    used = [message.usage for message in found.messages.values() if message.usage is not None]
    return sum(usage.input or 0 for usage in used), sum(usage.output or 0 for usage in used)


def test_prompts_that_were_taken_back_leave_the_branch() -> None:
    found = fold(
        prompt(1, "One"),
        event("step.begin", 2, uuid="u1"),
        prompt(3, "Two"),
        event("step.begin", 4, uuid="u2"),
        {"type": "context.undo", "count": 1, "time": 5},
        prompt(6, "Three"),
    )
    [rewind] = [each for each in events_of(found) if isinstance(each, RewindEvent)]
    assert rewind.to_message_id == "u1"
    parents = {key[1]: place.parent_id for key, place in found.placements.items()}
    assert (parents["msg_3"], parents["msg_6"]) == ("u1", "u1")
    assert found.sessions["kimi-code:session_1"].active_leaf == "msg_6"


def test_records_that_repeat_an_undo_are_known() -> None:
    """As 2.1.0 logs one: the new branch, the undo, and what it has undone."""
    switched = {"type": "agent.switched", "branch": "b1", "reason": "undo", "turns": 1, "time": 3}
    undone = {"type": "context.undone", "turns": 1, "fromTurnId": 1, "time": 3}
    found = fold(prompt(1, "One"), prompt(2, "Two"), switched, {"type": "context.undo", "count": 1, "time": 3}, undone)
    assert [each for each in events_of(found) if getattr(each, "known", True) is False] == []
    assert [each.to_message_id for each in events_of(found) if isinstance(each, RewindEvent)] == ["msg_1"]


def compaction(at: int, kept: int) -> dict[str, Any]:
    return {"type": "context.apply_compaction", "summary": "S", "keptUserMessageCount": kept, "time": at}


def test_a_second_compaction_may_keep_prompts_from_before_the_first() -> None:
    found = fold(prompt(1, "One"), prompt(2, "Two"), compaction(3, 2), prompt(4, "Three"), compaction(5, 2))
    kept = [each.kept_message_ids for each in events_of(found) if isinstance(each, CompactionEvent)]
    assert kept == [("msg_1", "msg_2"), ("msg_2", "msg_4")]


def test_an_undo_goes_back_no_further_than_the_newest_compaction() -> None:
    found = fold(prompt(1, "One"), compaction(2, 1), prompt(3, "Two"), {"type": "context.undo", "count": 2, "time": 4})
    [rewind] = [each for each in events_of(found) if isinstance(each, RewindEvent)]
    [summary] = [each.id for each in found.messages.values() if each.origin is Origin.COMPACTION]
    assert rewind.to_message_id == summary


def test_a_killed_turn_does_not_abort_calls_of_the_next() -> None:
    found = fold(
        prompt(1, "One"),
        {"type": "turn.cancel", "turnId": 0, "target": "active", "time": 2},
        prompt(3, "Two"),
        event("step.begin", 4, uuid="u1"),
        event("tool.call", 5, name="Bash", args={"command": "ls"}, stepUuid="u1", toolCallId="c1"),
        event("tool.result", 6, toolCallId="c1", result={"output": "no", "isError": True}),
    )
    assert calls(found)["c1"].results[0].status == "error"


def test_a_call_that_the_user_refused_is_denied() -> None:
    step = {"stepUuid": "u1", "toolCallId": "c1"}
    found = fold(
        prompt(1, "Go"),
        event("step.begin", 2, uuid="u1"),
        event("tool.call", 3, name="Bash", args={"command": "ls"}, **step),
        {
            "type": "permission.record_approval_result",
            "toolCallId": "c1",
            "toolName": "Bash",
            "result": {"decision": "rejected"},
            "time": 4,
        },
        event("tool.result", 5, toolCallId="c1", result={"output": "no", "isError": True}),
    )
    assert calls(found)["c1"].results[0].status == "denied"


def appended(at: int, *written: tuple[str, str, str]) -> dict[str, Any]:
    """The second copy of an answer: its calls as the model wrote them."""
    calls = [{"type": "function", "id": call, "name": name, "arguments": text} for call, name, text in written]
    message = {"role": "assistant", "content": [{"type": "text", "text": "Both"}], "toolCalls": calls}
    return {"message": {"message": message, "meta": {}}, "type": "agent.message.appended", "time": at, "kind": "event"}


BROKEN = '{"command": "echo hi", "broken'

PARALLEL = (
    prompt(1, "Go"),
    event("step.begin", 2, uuid="u1"),
    event("content.part", 3, stepUuid="u1", part={"type": "text", "text": "Both"}),
    event("tool.call", 4, stepUuid="u1", toolCallId="b2", name="no_such_tool", args={"x": 1}),
    event("tool.call", 5, stepUuid="u1", toolCallId="b1", name="Read", args={"path": "a"}),
    event("tool.result", 6, toolCallId="b2", result={"output": "no tool", "isError": True}),
    event("tool.result", 7, toolCallId="b1", result={"output": "text"}),
    event("step.end", 8, uuid="u1", usage={"inputOther": 5, "output": 6}),
    event("step.begin", 9, uuid="u2"),
    event("tool.call", 10, stepUuid="u2", toolCallId="c1", name="Bash", args={}),
    event("tool.result", 11, toolCallId="c1", result={"output": "Invalid args", "isError": True}),
    event("tool.call", 12, stepUuid="u2", toolCallId="c2", name="TaskList", args={}),
    event("step.end", 13, uuid="u2"),
)
"""Two steps as 2.1.0 logs them: a call of an unknown tool begins before one that was written before it."""

COPIES = (
    appended(14, ("b1", "Read", '{"path": "a"}'), ("b2", "no_such_tool", '{"x": 1}')),
    appended(14, ("c1", "Bash", BROKEN), ("c2", "TaskList", "")),
    {"type": "turn.ended", "reason": "completed", "time": 15},
)


def test_calls_have_the_order_and_arguments_of_the_model() -> None:
    found = fold(*PARALLEL, *COPIES)
    first, second = answers(found)
    assert [(part.id, getattr(part, "tool_call_id", "")) for part in first.parts] == [
        ("u1.0", ""),
        ("u1.1", "b1"),
        ("u1.2", "b2"),
    ]
    assert [call.input_value() for call in calls(found).values()] == [{"path": "a"}, {"x": 1}, BROKEN, {}]
    assert [call.output_text for call in calls(found).values()] == ["text", "no tool", "Invalid args", ""]
    assert [call.state.value for call in calls(found).values()][2] == "output-error"
    assert (first.usage and first.usage.output, second.usage) == (6, None)
    assert found.counts.duplicates == 2


def test_calls_of_a_killed_turn_have_the_order_of_their_starts() -> None:
    assert [call.input_value() for call in calls(fold(*PARALLEL)).values()] == [{"x": 1}, {"path": "a"}, {}, {}]
    # The copies of the next turn are of other steps.
    later = (
        prompt(20, "On"),
        event("step.begin", 21, uuid="u3"),
        event("tool.call", 22, stepUuid="u3", toolCallId="d1", name="Bash", args={}),
        appended(23, ("d1", "Bash", BROKEN)),
    )
    assert [call.input_value() for call in calls(fold(*PARALLEL, *later)).values()][-2:] == [{}, BROKEN]


@pytest.mark.parametrize("copy", [7, "text", [], {"message": 7}, {"message": {"toolCalls": [7, {"id": "other"}]}}])
def test_a_damaged_copy_changes_no_call(copy: object) -> None:
    damaged = {"message": copy, "type": "agent.message.appended", "time": 14}
    found = calls(fold(*PARALLEL, damaged, *COPIES[:1]))
    assert [call.input_value() for call in found.values()] == [{"path": "a"}, {"x": 1}, {}, {}]


def test_a_request_that_is_sent_again_leaves_its_error() -> None:
    """As 2.1.0 logs a provider that asks for patience."""
    failed = {"type": "turn.step.retrying", "errorName": "APIProviderRateLimitError", "statusCode": 429, "time": 2}
    [error] = events_of(fold(prompt(1, "Hi"), failed | {"errorMessage": "429 slow down", "failedAttempt": 1}))
    assert isinstance(error, ErrorEvent)
    assert (error.error_text, error.status, error.will_retry) == ("429 slow down", 429, True)


def test_a_kind_that_is_not_known_is_kept_and_marked() -> None:
    """R-C3"""
    found = fold(prompt(1, "Hi"), {"type": "brand.new", "time": 2, "colour": "red"})
    [event] = [each for each in events_of(found) if getattr(each, "known", True) is False]
    assert getattr(event, "kind", "") == "brand.new"


def test_fields_that_are_not_known_are_kept() -> None:
    """R-C11"""
    record = prompt(1, "Hi")
    record["message"]["colour"] = "red"
    [message] = fold(record).messages.values()
    assert message.metadata == {"kimi-code": {"other_fields": {"colour": "red"}}}


# -- copies


def stored(case: str, folder: Path) -> Store:
    sync(folder / "store.db", roots=[DATA / case], agents=[KIMI])
    return open_store(folder / "store.db")


def session_with(store: Store, words: str) -> Session:
    return next(
        session
        for session in store.sessions().items
        if any(words in str(placed.message.parts) for placed in store.messages(session.id))
    )


def test_a_fork_shares_what_it_copied_and_is_billed_for_the_rest(tmp_path: Path) -> None:
    """R-C5"""
    with stored("2.1.0/fork", tmp_path) as store:
        fork = session_with(store, "says the fork")
        [relation] = fork.relationships
        assert relation.kind == "fork"
        billed = [
            placed.message.usage.input
            for placed in store.messages(fork.id)
            if placed.membership.is_billed and placed.message.usage is not None
        ]
        assert billed == [220]
        original = {placed.message.id for placed in store.messages(relation.parent_session_id)}
        assert original < {placed.message.id for placed in store.messages(fork.id)}


def test_a_migrated_session_continues_the_original_and_has_no_tokens(tmp_path: Path) -> None:
    with stored("2.1.0/migrated", tmp_path) as store:
        session = session_with(store, "Resumed: nothing")
        [relation] = session.relationships
        assert (relation.kind, relation.parent_session_id) == (
            "continuation",
            "kimi-cli:feff59d5-da3f-4791-8cc2-ea7938a6f93a",
        )
        assert [placed.message.usage for placed in store.messages(session.id) if placed.message.usage] == []
    found = calls(read(sources("2.1.0/migrated")))["call_fail1"].results[0]
    assert (found.status, found.exit_code) == ("error", 3)


def test_a_log_is_restored_byte_for_byte(tmp_path: Path) -> None:
    with stored("2.1.0/tour", tmp_path) as store:
        session = session_with(store, "Resumed: nothing")
        restored = store.restore(session.id, tmp_path / "restored")
    assert [file.source for file in restored] != []
    for file in restored:
        assert file.path.read_bytes() == Path(file.source).read_bytes()
