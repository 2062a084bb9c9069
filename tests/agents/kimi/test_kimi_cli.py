"""Kimi CLI's logs become what the script and the requests say that happened (R-C1)."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from support.claude_files import Gathered, gather
from support.format_page import FormatPage, named
from turnlog.agents import agent, detect, fold_bytes
from turnlog.agents.base import Source, SourceKind
from turnlog.agents.kimi.cli_records import CLI_RECORD_KINDS
from turnlog.model import InterruptEvent, Message, ReasoningPart, TextPart, ToolCallPart
from turnlog.store import open_store
from turnlog.store.base import SessionFilter
from turnlog.sync.syncer import sync

DATA = Path(__file__).parents[2] / "data" / "kimi_cli" / "1.45.0"
MIGRATED = Path(__file__).parents[2] / "data" / "kimi" / "2.1.0" / "migrated"
KIMI = agent("kimi-cli")
PLACE = "/home/dev/.kimi/sessions/ec0a6c45a120a60cb2d2143ae908bc96/11111111-2222-4333-8444-555555555555"


SHOWN = {"1.30.0": ("text", "tool"), DATA.name: ("thinking", "text", "tool")}
"""Runs of the same script -> what of it they logged: 1.30.0 kept no reasoning of that protocol."""


def sources(version: str = DATA.name) -> list[Source]:
    return list(KIMI.discover([DATA.parent / version / "tour"]))


def tour(version: str = DATA.name) -> Gathered:
    return gather(*(fold_bytes(KIMI, source, Path(source.path).read_bytes()) for source in sources(version)))


def record(kind: str, at: float, **payload: Any) -> dict[str, Any]:
    return {"timestamp": at, "message": {"type": kind, "payload": payload}}


def fold(*records: Any) -> Gathered:
    """What a log with these records brings."""
    session = f"kimi-cli:{PLACE.rpartition('/')[2]}"
    source = Source(agent="kimi-cli", path=f"{PLACE}/wire.jsonl", root="/home/dev/.kimi", session_id=session)
    return gather(fold_bytes(KIMI, source, b"".join(json.dumps(each).encode() + b"\n" for each in records)))


def script(*names: str) -> list[dict[str, Any]]:
    return [turn for name in names for turn in json.loads((DATA / f"{name}.script.json").read_text())["main"]]


def answers(found: Gathered) -> list[Message]:
    return [each for each in found.messages.values() if each.role == "assistant"]


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
            found.append(("tool", (part.tool_name, part.tool_call_id, part.input_value())))
    return found


def recorded(case: str, kind: SourceKind = SourceKind.SESSION) -> Gathered:
    """What the logs of a recorded home bring."""
    found = [source for source in KIMI.discover([DATA / case]) if source.kind is kind]
    return gather(*(fold_bytes(KIMI, source, Path(source.path).read_bytes()) for source in found))


def uses(messages: list[Message]) -> list[tuple[int | None, int | None, int | None]]:
    return [(one.usage.input, one.usage.cache_read, one.usage.output) for one in messages if one.usage is not None]


def in_script(turns: list[dict[str, Any]]) -> list[tuple[int, int, int]]:
    return [(turn["usage"]["in"], turn["usage"]["cached"], turn["usage"]["out"]) for turn in turns]


def test_a_step_that_compacts_its_context_first_is_not_compacted(tmp_path: Path) -> None:
    """R-C9: the record that begins a step comes before those of the compaction, the answer after them."""
    turns = script("compaction")
    said = answers(recorded("compaction"))
    assert [message.parts[0].text for message in said[:4] if isinstance(message.parts[0], TextPart)] == [
        turn["blocks"][0]["text"] for turn in turns
    ]
    assert uses(said)[:4] == in_script(turns)
    sync(tmp_path / "store.db", roots=[DATA / "compaction"], agents=[KIMI])
    with open_store(tmp_path / "store.db") as store:
        [session] = store.sessions(SessionFilter()).items
        fates = [one.membership.fate for one in store.messages(session.id)]
    # The prompt and three steps; the step that went on, and the prompts and answers of two resumes.
    assert fates == [*["compacted"] * 4, *["active"] * 5]


def test_a_subagent_that_ran_has_its_own_log_and_counts_once() -> None:
    """R-C10: the log of its parent repeats each of its records."""
    turns = json.loads((DATA / "subagent.script.json").read_text())
    parent, child = recorded("subagent"), recorded("subagent", SourceKind.SUBAGENT)
    assert uses(answers(parent)) == in_script(turns["main"])
    assert uses(answers(child)) == in_script(turns["queues"][0]["turns"])
    assert {link.tool_call_id for link in parent.links.values()} == {"call_task1"}
    [image] = calls(parent)["call_img1"].results
    assert "file" in [part.type for part in image.content]
    [missing] = calls(parent)["call_gone1"].results
    assert missing.status == "error"


@pytest.mark.parametrize("version", SHOWN)
def test_a_tour_has_the_parts_and_tokens_of_the_script_in_their_order(version: str) -> None:
    """R-C5, R-K1"""
    found, wanted = tour(version), script("main", "resume")
    assert found.diagnostics == []
    assert [
        [(kind, told[:2] if kind == "tool" else told) for kind, told in blocks(each)] for each in answers(found)
    ] == [
        [
            (block["type"], (block["name"], block["id"]) if "name" in block else block["text"])
            for block in turn["blocks"]
            if block["type"] in SHOWN[version]
        ]
        for turn in wanted
    ]
    usage = [message.usage for message in answers(found) if message.usage is not None]
    assert [(one.input, one.cache_read, one.output, one.reasoning) for one in usage] == [
        (turn["usage"]["in"], turn["usage"]["cached"], turn["usage"]["out"], None) for turn in wanted
    ]


def test_outputs_are_those_that_the_last_request_held() -> None:
    request = json.loads((DATA / "request.json").read_text())["messages"]
    sent = {each["tool_call_id"]: each["content"] for each in request if each["role"] == "tool"}
    found = calls(tour())
    assert list(found) == list(sent)
    assert all(call.output_text.strip() in str_of(sent[name]) for name, call in found.items())
    prompts = [each.parts[0] for each in tour().messages.values() if each.role == "user"]
    assert [part.text for part in prompts if isinstance(part, TextPart)] == [
        str_of(each["content"]) for each in request if each["role"] == "user"
    ]


def str_of(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def test_a_failed_command_has_its_exit_code() -> None:
    """R-C8"""
    [result] = calls(tour())["call_fail1"].results
    assert (result.status, result.exit_code) == ("error", 3)


def test_the_folder_is_the_one_whose_hash_names_the_place() -> None:
    [session] = tour().sessions.values()
    assert (session.cwd, session.titles["prompt"]) == (
        "/home/dev/work",
        "Please read notes.txt and tell me what is in it.",
    )


def test_every_record_is_accounted_for_and_known() -> None:
    """R-S34, R-C3"""
    for source in sources():
        data = Path(source.path).read_bytes()
        changes = fold_bytes(KIMI, source, data)
        assert changes.counts.total == (data.count(b"\n") if source.path.endswith(".jsonl") else 1)
        assert changes.diagnostics == []
        assert [change.event for change in changes.events if getattr(change.event, "known", True) is False] == []


def test_line_by_line_gives_what_the_whole_gives() -> None:
    [log] = [source for source in sources() if source.appendable]
    data, state, offset, pieces = Path(log.path).read_bytes(), None, 0, list[Any]()
    for line in data.splitlines(keepends=True):
        reader = KIMI.fold(log, state)
        pieces.append(reader.feed(line, offset))
        state, offset = reader.state(), offset + len(line)
    assert gather(*pieces).as_json() == gather(fold_bytes(KIMI, log, data)).as_json()


def test_a_log_is_known_by_its_records(tmp_path: Path) -> None:
    """R-S21"""
    [log] = [source for source in sources() if source.appendable]
    found = detect(Path(shutil.copy(log.path, tmp_path / "moved.jsonl")))
    assert (found.agent, found.version) == ("kimi-cli", "wire 1.10")


def test_a_refused_call_is_denied_and_a_stop_is_an_interrupt() -> None:
    found = fold(
        record("TurnBegin", 1.0, user_input="Go"),
        record("StepBegin", 2.0, n=1),
        record("ToolCall", 3.0, type="function", id="c1", function={"name": "Shell", "arguments": '{"command": "ls"}'}),
        record("ApprovalRequest", 4.0, id="r1", tool_call_id="c1", sender="Shell", action="run", description="ls"),
        record("ApprovalResponse", 5.0, request_id="r1", response="reject"),
        record("ToolResult", 6.0, tool_call_id="c1", return_value={"is_error": True, "output": "", "message": "no"}),
        record("StepInterrupted", 7.0),
    )
    [call] = calls(found).values()
    assert (call.results[0].status, call.results[0].error_text) == ("denied", "no")
    assert [type(change.event) for change in found.events.values() if isinstance(change.event, InterruptEvent)] != []


def test_what_a_parent_repeats_of_a_subagent_is_not_read_twice() -> None:
    """R-C10: the subagent has a log of its own."""
    event = {"type": "StepBegin", "payload": {"n": 1}}
    found = fold(
        record("TurnBegin", 1.0, user_input="Go"),
        record("SubagentEvent", 2.0, parent_tool_call_id="c1", agent_id="a1", subagent_type="coder", event=event),
        record("SubagentEvent", 3.0, parent_tool_call_id="c1", agent_id="a1", subagent_type="coder", event=event),
    )
    [link] = found.links.values()
    assert (link.kind, link.tool_call_id, link.child_session_id.rpartition(".")[2]) == ("subagent", "c1", "a1")
    assert (found.counts.duplicates, len(answers(found))) == (2, 0)


def test_a_subagent_has_a_place_below_its_session(tmp_path: Path) -> None:
    place = tmp_path / PLACE.removeprefix("/home/dev/.kimi/") / "subagents" / "a1"
    place.mkdir(parents=True)
    lines = (record("TurnBegin", 1.0, user_input="Count"), record("StepBegin", 2.0, n=1))
    (place / "wire.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))
    (place / "meta.json").write_text(json.dumps({"subagent_type": "coder", "launch_spec": {"effective_model": "m"}}))
    found = {source.kind: source for source in KIMI.discover([tmp_path])}
    log = found[SourceKind.SUBAGENT]
    assert (log.session_id or "").endswith(".a1")
    [answer] = answers(gather(fold_bytes(KIMI, log, Path(log.path).read_bytes())))
    assert answer.model == "m"


def test_a_kind_that_is_not_known_is_kept_and_marked() -> None:
    """R-C3"""
    found = fold(record("TurnBegin", 1.0, user_input="Hi"), record("BrandNew", 2.0, colour="red"))
    unknown = [change.event for change in found.events.values() if getattr(change.event, "known", True) is False]
    assert [getattr(event, "kind", "") for event in unknown] == ["BrandNew"]


def test_tokens_count_once_though_the_session_was_copied(tmp_path: Path) -> None:
    """R-C5: Kimi Code's copy has none, and continues the original."""
    store = tmp_path / "store.db"
    sync(store, roots=[DATA / "tour"], agents=[KIMI])
    sync(store, roots=[MIGRATED], agents=[agent("kimi-code")])
    with open_store(store) as opened:
        found = {session.id.partition(":")[0]: session for session in opened.sessions().items if session.title}
        original = found["kimi-cli"]
        usage = [placed.message.usage for placed in opened.messages(original.id)]
        assert sum(one.input or 0 for one in usage if one is not None) == 7100
        copies = [each for each in opened.sessions().items for rel in each.relationships if rel.kind == "continuation"]
        assert [rel.parent_session_id for each in copies for rel in each.relationships] == [original.id]


def test_the_files_of_a_session_are_restored_byte_for_byte(tmp_path: Path) -> None:
    sync(tmp_path / "store.db", roots=[DATA / "tour"], agents=[KIMI])
    with open_store(tmp_path / "store.db") as store:
        [session] = store.sessions().items
        restored = store.restore(session.id, tmp_path / "restored")
    assert {Path(file.source).name for file in restored} == {"wire.jsonl", "context.jsonl", "state.json"}
    assert [file.path.read_bytes() == Path(file.source).read_bytes() for file in restored] == [True] * 3


def test_every_record_kind_is_on_the_page_with_what_it_becomes() -> None:
    """R-S23, R-C3"""
    described = {named(kind)[0]: outcome for kind, outcome, *_ in FormatPage("kimi-cli").rows("## Records")}
    assert described == {kind: outcome.value for kind, outcome in CLI_RECORD_KINDS.items()}
