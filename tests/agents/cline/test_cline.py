"""Cline's sessions become what the script and the requests say that happened (R-C1)."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from support.claude_files import Gathered, gather
from support.format_page import FormatPage, named
from turnlog.agents import agent, detect, fold_bytes
from turnlog.agents.base import Source, SourceKind
from turnlog.agents.cline.records import ClineMessage, ClineMetrics, MessageFile
from turnlog.model import (
    CompactionEvent,
    Fate,
    FilePart,
    InterruptEvent,
    Message,
    Origin,
    ReasoningPart,
    Session,
    TextPart,
    ToolCallPart,
)
from turnlog.store import open_store
from turnlog.store.base import SessionFilter, Store
from turnlog.sync.syncer import sync

DATA = Path(__file__).parents[2] / "data" / "cline" / "3.0.65"
CLINE = agent("cline")
CASES = sorted(folder.name for folder in DATA.iterdir() if folder.is_dir())


def sources(case: str) -> list[Source]:
    return list(CLINE.discover([DATA / case]))


def read(found: Iterable[Source]) -> Gathered:
    return gather(*(fold_bytes(CLINE, source, Path(source.path).read_bytes()) for source in found))


def fold(*messages: Any) -> Gathered:
    """What a file with these messages brings."""
    return gather(fold_bytes(CLINE, source_at("/home/dev/.cline/data"), json.dumps(document(*messages)).encode()))


def document(*messages: Any) -> dict[str, Any]:
    origin = {"source": "cli", "version": "3.0.65"}
    return {"version": 1, "updated_at": "2026-11-22T20:17:23.072Z", "sessionId": "1_a", "origin": origin} | {
        "messages": list(messages)
    }


def source_at(root: str) -> Source:
    path = f"{root}/sessions/1_a/1_a.messages.json"
    return Source(agent="cline", path=path, root=root, session_id="cline:1_a", appendable=False)


def said(number: int, text: str, **fields: Any) -> dict[str, Any]:
    return {"id": f"m{number}", "role": "user", "content": [{"type": "text", "text": text}], "ts": number} | fields


def script(name: str, queue: str = "main") -> list[dict[str, Any]]:
    return json.loads((DATA / f"{name}.script.json").read_text())[queue]


def tour(case: str = "tour") -> Gathered:
    """The session with a failed command and two at once."""
    return read(source for source in sources(case) if b"missing.txt" in Path(source.path).read_bytes())


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
            found.append(("tool", (part.tool_name, part.tool_call_id.removeprefix("toolu_"), part.input_value())))
    return found


def test_a_message_whose_kind_is_no_text_is_read() -> None:
    """R-S34"""
    assert len(fold(said(1, "Go", metadata={"kind": ["compaction"]})).messages) == 1


@pytest.mark.parametrize("case", ["tour", "anthropic"])
def test_a_tour_has_the_parts_and_tokens_of_the_script_in_their_order(case: str) -> None:
    """R-C5, R-K1: the input that Cline counts includes what was read from and written to the cache."""
    found, wanted = tour(case), script("main")
    told = [[(kind, value[:2] if kind == "tool" else value) for kind, value in blocks(each)] for each in answers(found)]
    assert told == [
        [
            (block["type"], (block["name"], block["id"]) if "name" in block else block["text"])
            for block in turn["blocks"]
        ]
        for turn in wanted
    ]
    usage = [message.usage for message in answers(found) if message.usage is not None]
    written = 11 if case == "anthropic" else None
    assert [(one.input, one.cache_read, one.cache_write, one.output, one.reasoning) for one in usage] == [
        (turn["usage"]["in"], turn["usage"]["cached"], written, turn["usage"]["out"], None) for turn in wanted
    ]


def test_the_cost_of_a_session_is_the_sum_of_its_calls() -> None:
    costs = [message.cost for message in answers(tour("anthropic"))]
    assert round(sum(float(cost.amount) for cost in costs if cost is not None), 6) == 0.020475
    assert {message.cost for message in answers(tour())} == {None}


def test_a_tour_is_what_the_last_request_held() -> None:
    request = json.loads((DATA / "request.json").read_text())["messages"]
    sent = {each["tool_call_id"]: json.loads(each["content"]) for each in request if each["role"] == "tool"}
    found = tour()
    assert list(sent) == list(calls(found))
    for name, call in calls(found).items():
        assert call.output_text == "".join(answer["result"] for answer in sent[name])
    [prompt] = [message for message in found.messages.values() if message.role == "user"]
    # What Cline puts around the text is not sent.
    assert blocks(prompt) == [("text", each["content"]) for each in request if each["role"] == "user"]
    assert prompt.parts[0].metadata == {"cline": {"mode": "act"}}


def test_an_image_is_a_file_in_a_prompt_and_in_a_result() -> None:
    """R-C5: a file that was named in the prompt and cannot be read is a text that Cline added."""
    found, turns = read(sources("image")), script("image")
    assert [[value[:2] if kind == "tool" else value for kind, value in blocks(each)] for each in answers(found)] == [
        [(block["name"], block["id"]) if "name" in block else block["text"] for block in turn["blocks"]]
        for turn in turns
    ]
    [prompt] = [message for message in found.messages.values() if message.role == "user"]
    kinds = [(type(part), getattr(part, "is_synthetic", False)) for part in prompt.parts]
    assert kinds == [(TextPart, False), (FilePart, False), (TextPart, True)]
    [result] = calls(found)["call_img1"].results
    assert [type(part) for part in result.content] == [TextPart, FilePart]
    images = [part.data for part in (*prompt.parts, *result.content) if isinstance(part, FilePart)]
    assert [len(data or b"") for data in images] == [70, 70]


def test_a_failed_command_without_a_mark_has_its_exit_code() -> None:
    """R-C8"""
    [result] = calls(tour())["call_fail1"].results
    assert (result.status, result.exit_code) == ("error", 3)
    assert "No such file or directory" in (result.error_text or "")


def test_a_structured_result_is_the_list_of_answers() -> None:
    [log] = [source for source in sources("tour") if b"missing.txt" in Path(source.path).read_bytes()]
    records = [json.dumps(message).encode() for message in json.loads(Path(log.path).read_bytes())["messages"]]
    structured = [CLINE.structured_result(record, "call_fail1") for record in records]
    [told] = [msgspec.json.decode(each) for each in structured if each is not None]
    assert [answer["success"] for answer in told] == [False]


@pytest.mark.parametrize("case", CASES)
def test_every_message_is_accounted_for(case: str) -> None:
    """R-S34"""
    for source in sources(case):
        data = Path(source.path).read_bytes()
        changes = fold_bytes(CLINE, source, data)
        messages = len(json.loads(data)["messages"]) if source.kind is not SourceKind.SIDECAR else 0
        assert changes.counts.total == messages + 1
        assert changes.diagnostics == []


def test_a_file_is_known_by_its_header(tmp_path: Path) -> None:
    """R-S21"""
    subagent = next(source for source in sources("tour") if source.kind is SourceKind.SUBAGENT)
    found = detect(Path(shutil.copy(subagent.path, tmp_path / "moved.json")))
    assert (found.agent, found.version) == ("cline", "3.0.65")
    assert found.source is not None
    assert (found.source.kind, found.source.session_id) == (SourceKind.SUBAGENT, subagent.session_id)


def test_variables_name_the_home(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(DATA / "tour", home / "moved" / "data")
    monkeypatch.setenv("CLINE_DIR", str(home / "moved"))
    assert list(CLINE.roots()) == [home / "moved" / "data"]
    monkeypatch.setenv("CLINE_DATA_DIR", str(home / "elsewhere"))
    assert list(CLINE.roots()) == []


# -- what else happens


def test_tools_that_fail_and_a_call_that_asks_for_two_things() -> None:
    found = calls(read(sources("errors")))
    assert {name: (call.results[0].status, call.results[0].exit_code) for name, call in found.items()} == {
        "call_gone1": ("error", None),
        "call_none1": ("error", None),
        "call_two": ("error", 3),
        "call_edit1": ("success", None),
    }
    assert "ENOENT" in (found["call_gone1"].results[0].error_text or "")
    assert found["call_two"].output_text == "one\n\n[Command exited with code 3]"


def test_a_refused_request_is_the_error_of_an_answer_without_text() -> None:
    [message] = [each for each in read(sources("errors")).messages.values() if each.error is not None]
    assert message.error is not None
    assert (message.error.text, message.parts, message.usage) == ("bad request here", (), None)


def test_a_stopped_command_is_aborted_and_a_killed_one_open() -> None:
    found = read(sources("interrupt"))
    assert [result.status for result in calls(found)["call_slow1"].results] == ["aborted"]
    assert calls(found)["call_kill1"].results == ()
    [interrupt] = [each.event for each in found.events.values() if isinstance(each.event, InterruptEvent)]
    assert (interrupt.during, interrupt.derived) == ("tool", True)


def test_a_compaction_keeps_messages_and_replaces_the_rest() -> None:
    found = read(sources("resume"))
    [compaction] = [each.event for each in found.events.values() if isinstance(each.event, CompactionEvent)]
    kept = [blocks(found.messages[name])[0][1] for name in compaction.kept_message_ids]
    assert kept == ["I remember heron.", "Which word?", "Heron."]
    [summary] = compaction.replacement
    assert "Context summary:" in str(summary.parts)


def test_a_signature_goes_back_to_the_model_that_made_it() -> None:
    block = {"type": "thinking", "thinking": "Hm", "signature": "s1"}
    model = {"id": "m", "provider": "anthropic"}
    [message] = fold(
        {"id": "a1", "role": "assistant", "content": [block], "ts": 1, "modelInfo": model}
    ).messages.values()
    [part] = message.parts
    assert part.provider is not None
    assert (part.provider.name, part.provider.model, part.provider.opaque) == ("anthropic", "m", {"signature": "s1"})


def test_fields_that_are_not_known_are_kept() -> None:
    """R-C11"""
    [message] = fold(said(1, "Hi", colour="red")).messages.values()
    assert message.metadata == {"cline": {"other_fields": {"colour": "red"}}}


def test_a_damaged_file_keeps_the_messages_that_are_whole() -> None:
    data = json.dumps(document(said(1, "One"), said(2, "Two")), indent=2).encode()
    cut = data[: data.rindex(b'"Two"')]
    found = gather(fold_bytes(CLINE, source_at("/home/dev/.cline/data"), cut))
    assert [blocks(message) for message in found.messages.values()] == [[("text", "One")]]
    assert [each.severity for each in found.diagnostics] == ["error"]


def test_the_messages_after_damage_are_found() -> None:
    """R-S34: a block of the broken message is none of its own."""
    data = json.dumps(document(said(1, "One"), said(2, "Two"))).encode()
    found = gather(
        fold_bytes(CLINE, source_at("/home/dev/.cline/data"), data.replace(b'"role": "user"', b'"role": us', 1))
    )
    assert [blocks(message) for message in found.messages.values()] == [[("text", "Two")]]


@pytest.mark.parametrize(
    "garbage", [b"\xff\xfe", b"{}", b"[1]", b"null", b'{"messages": 7}', b'{"messages": [null, 7]}']
)
def test_what_is_no_file_of_messages_raises_nothing(garbage: bytes) -> None:
    found = gather(fold_bytes(CLINE, source_at("/home/dev/.cline/data"), garbage))
    assert found.messages == {}


# -- in a store


def stored(case: str, folder: Path) -> Store:
    sync(folder / "store.db", roots=[DATA / case], agents=[CLINE])
    return open_store(folder / "store.db")


def everything(store: Store) -> list[Session]:
    return list(store.sessions(SessionFilter(subagents=True)).items)


def test_a_subagent_is_linked_to_the_call_that_asked_the_same(tmp_path: Path) -> None:
    """R-C10: no file says which call it was."""
    with stored("tour", tmp_path) as store:
        [child] = [session for session in everything(store) if session.relationships]
        [relation] = child.relationships
        assert (relation.kind, relation.parent_tool_call_id is not None) == ("subagent", True)
        origins = [placed.message.origin for placed in store.messages(child.id) if placed.message.role == "user"]
        assert origins == [Origin.SUBAGENT_PROMPT]
        usage = [placed.message.usage for session in everything(store) for placed in store.messages(session.id)]
        # Of the first session 5,400, of the parent and the subagent 200 each.
        assert sum(one.input or 0 for one in usage if one is not None) == 5800


def test_a_message_that_a_later_version_leaves_out_is_kept(tmp_path: Path) -> None:
    root = tmp_path / "data"
    path = Path(source_at(str(root)).path)
    path.parent.mkdir(parents=True)
    one, two, three = said(1, "One"), said(2, "Two"), said(3, "Three")
    for messages in ((one, two), (one, three)):
        path.write_text(json.dumps(document(*messages), indent=2))
        sync(tmp_path / "store.db", roots=[root], agents=[CLINE])
    with open_store(tmp_path / "store.db") as store:
        found = {placed.message.id: placed.membership.fate for placed in store.messages("cline:1_a")}
        assert found == {"m1": Fate.ACTIVE, "m2": Fate.REWOUND, "m3": Fate.ACTIVE}
        restored = store.restore("cline:1_a", tmp_path / "restored")
    assert [file.path.read_bytes() for file in restored if file.source == str(path)][-1] == path.read_bytes()


def test_what_a_later_version_changes_is_kept(tmp_path: Path) -> None:
    root = tmp_path / "data"
    path = Path(source_at(str(root)).path)
    path.parent.mkdir(parents=True)
    for text in ("Before", "After"):
        path.write_text(json.dumps(document(said(1, "One"), said(2, text)), indent=2))
        sync(tmp_path / "store.db", roots=[root], agents=[CLINE])
    with open_store(tmp_path / "store.db") as store:
        found = [(blocks(placed.message), placed.membership.fate) for placed in store.messages("cline:1_a")]
    assert ([("text", "After")], Fate.ACTIVE) in found
    assert ([("text", "Before")], Fate.SUPERSEDED) in found


def test_a_fork_repeats_the_messages_of_the_original_and_counts_them_once(tmp_path: Path) -> None:
    """R-C10: both go on by themselves; the program copies messages with their ids and names the original."""
    turns: dict[str, list[dict[str, Any]]] = json.loads((DATA / "fork.script.json").read_text())
    wanted = {"original": [*turns["main"], *turns["orig"]], "fork": [*turns["main"], *turns["fork"]]}
    with stored("fork", tmp_path) as store:
        sessions = {"fork" if each.relationships else "original": each for each in everything(store)}
        [relation] = sessions["fork"].relationships
        assert (relation.kind, relation.parent_session_id) == ("fork", sessions["original"].id)
        assert [each.title for each in sessions.values()].count("What is in notes.txt? (fork)") == 1
        answered: dict[str, Message] = {}
        for name, session in sessions.items():
            placed = [each.message for each in store.messages(session.id) if each.message.role == "assistant"]
            answered |= {message.id: message for message in placed}
            assert [blocks(message) for message in placed] == [
                [
                    ("tool", (block["name"], block["id"], block["input"]))
                    if block["type"] == "tool"
                    else (block["type"], block["text"])
                    for block in turn["blocks"]
                ]
                for turn in wanted[name]
            ]
            outputs = [
                part.output_text for message in placed for part in message.parts if isinstance(part, ToolCallPart)
            ]
            assert outputs == ["alpha\nbeta\ngamma\n", "forked\n"][: len(outputs)]
        used = store.usage(by="model").totals
    asked = [turn["usage"] for each in turns.values() for turn in each]
    assert (used.input, used.cache_read, used.output) == tuple(
        sum(u[n] for u in asked) for n in ("in", "cached", "out")
    )


@pytest.mark.parametrize(("case", "files"), [("resume", 3), ("fork", 2)])
def test_the_files_of_a_session_are_restored_byte_for_byte(case: str, files: int, tmp_path: Path) -> None:
    with stored(case, tmp_path) as store:
        session = everything(store)[0]
        restored = store.restore(session.id, tmp_path / "restored")
    assert len(restored) == files
    assert [file.path.read_bytes() == Path(file.source).read_bytes() for file in restored] == [True] * files


def test_a_session_has_the_facts_of_its_manifest(tmp_path: Path) -> None:
    with stored("anthropic", tmp_path) as store:
        [session] = everything(store)
        assert (session.cwd, session.git_branch, session.agent_version) == ("/home/dev/work", "main", "3.0.65")


def test_every_field_that_is_read_is_on_the_page() -> None:
    """R-S23"""
    described = [named(fields) for fields, _ in FormatPage("cline").rows("### Fields")]
    shapes = (MessageFile, ClineMessage, ClineMetrics)
    assert described == [
        [field.encode_name for field in msgspec.structs.fields(shape) if field.encode_name] for shape in shapes
    ]
