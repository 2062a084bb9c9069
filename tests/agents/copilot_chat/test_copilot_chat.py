"""Conversations of Copilot Chat: the file of JSON and the log of changes to it say the same."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

from support.agent_cases import DATA
from support.claude_files import Gathered, gather
from support.format_page import FormatPage, named
from turnlog.agents import agent, detect, fold_bytes
from turnlog.agents.base import Source
from turnlog.agents.copilot_chat.contents import SHOWN_ONLY
from turnlog.agents.copilot_chat.sources import path_of
from turnlog.model import (
    Fate,
    InterruptEvent,
    Message,
    Origin,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    UnknownPart,
)
from turnlog.store import open_store
from turnlog.store.base import SessionFilter
from turnlog.sync.syncer import sync

CHAT = agent("vscode-copilot")
HOME = DATA / "copilot_chat" / "handwritten" / "home"
[LOG, SNAPSHOT] = sorted(HOME.rglob("chatSessions/*"), key=lambda path: path.suffix, reverse=True)


def source_of(path: Path) -> Source:
    found = detect(path).source
    assert found is not None
    return found


def read(path: Path, data: bytes | None = None) -> Gathered:
    return gather(fold_bytes(CHAT, source_of(path), path.read_bytes() if data is None else data))


def said(message: Message) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for part in message.parts:
        if isinstance(part, ToolCallPart):
            results = [(each.status, each.exit_code, each.output_text) for each in part.results]
            found.append((part.tool_name, (part.input_value(), results)))
        elif isinstance(part, TextPart | ReasoningPart):
            found.append((part.type, part.text))
    return found


def fold(*requests: dict[str, Any]) -> Gathered:
    whole = json.loads(SNAPSHOT.read_text()) | {"requests": list(requests)}
    return read(SNAPSHOT, json.dumps(whole).encode())


def request(*response: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"requestId": "r1", "timestamp": 1790000000000, "message": "Go", "response": list(response)} | fields


def test_a_request_has_its_answers_by_the_rounds_of_the_model() -> None:
    """R-C5, R-C8: the exact input and output of a call are in its round; two calls of a round were parallel."""
    found = list(read(SNAPSHOT).messages.values())
    assert [said(message) for message in found[:6]] == [
        [("text", "Read notes.txt, then run the tests")],
        [
            ("reasoning", "The file first."),
            ("text", "I read `notes.txt`."),
            ("copilot_readFile", ({"filePath": "/home/dev/work/notes.txt"}, [("success", None, "alpha\nbeta\n")])),
        ],
        [
            ("text", "Now the tests."),
            (
                "run_in_terminal",
                (
                    {"command": "pytest -q missing"},
                    [("error", 4, "ERROR: file not found: missing\n\nCommand exited with code 4")],
                ),
            ),
        ],
        [
            ("copilot_findTextInFiles", ({"query": "alpha"}, [("success", None, "notes.txt:1:alpha")])),
            ("copilot_findFiles", ({"query": "*.txt"}, [("success", None, "notes.txt")])),
        ],
        [
            ("text", "An edit, and somebody to check it."),
            (
                "copilot_replaceString",
                (
                    {"filePath": "/home/dev/work/notes.txt", "oldString": "beta", "newString": "gamma"},
                    [("success", None, "The file was edited.")],
                ),
            ),
            (
                "runSubagent",
                (
                    {"description": "Check", "prompt": "Check that notes.txt holds gamma"},
                    [("success", None, "It does.")],
                ),
            ),
            ("copilot_readFile", ({}, [("success", None, "Read notes.txt")])),
        ],
        [("text", "The notes hold alpha and gamma.")],
    ]
    inner = [part for part in found[4].parts if isinstance(part, ToolCallPart)][-1]
    assert inner.parent_tool_call_id == "toolu_task1"
    assert [message.created_at and message.created_at.timestamp() - 1790000000 for message in found[1:5]] == [
        1,
        4,
        7,
        9,
    ]


def test_a_refused_call_is_denied_and_a_stopped_request_interrupted() -> None:
    found = read(SNAPSHOT)
    calls = {
        part.tool_call_id: part
        for message in found.messages.values()
        for part in message.parts
        if isinstance(part, ToolCallPart)
    }
    assert [result.status for result in calls["toolu_deny1"].results] == ["denied"]
    assert calls["toolu_deny1"].input_value() == {"command": "rm -r build"}
    assert [(each.status, each.output_text) for each in calls["toolu_mcp1"].results] == [("error", "refused")]
    events = [change.event for change in found.events.values()]
    assert [type(event) for event in events if isinstance(event, InterruptEvent)] == [InterruptEvent]


def test_tokens_are_those_of_a_request_and_at_least_so_many() -> None:
    """R-C5: a request is several calls of the model, of which the last one is counted."""
    totals = read(SNAPSHOT).sessions["vscode-copilot:1a2b3c4d-0000-4000-8000-00000000000a"].totals
    assert [(each.usage.input, each.usage.output, each.usage.exactness, each.calls) for each in totals.values()] == [
        (9000, 215, "lower_bound", 5),
        (2300, 22, "lower_bound", 2),
        (2400, 5, "lower_bound", 1),
    ]


def test_the_log_of_changes_says_what_the_file_says() -> None:
    """Items that were pushed in pieces, or in place of others, and a title that was set and deleted."""

    def shape(path: Path, size: int) -> str:
        found = [said(message) for message in read(path).messages.values()][:size]
        return json.dumps(found).replace("toolv_", "toolu_")

    assert shape(LOG, 8) == shape(SNAPSHOT, 8)
    [session] = read(LOG).sessions.values()
    assert session.titles == {"prompt": "Read notes.txt, then run the tests"}


def test_a_log_in_any_number_of_lines_is_read_up_to_there(tmp_path: Path) -> None:
    """R-S34: the store ends with the same messages, however often the log was read while it grew."""
    home = tmp_path / "home"
    shutil.copytree(HOME, home)
    [log] = home.rglob("*.jsonl")
    lines = log.read_bytes().splitlines(keepends=True)
    for size in (2, 4, 7, len(lines)):
        log.write_bytes(b"".join(lines[:size]))
        assert sync(tmp_path / "grown.db", roots=[home], agents=[CHAT]).problems == []
    sync(tmp_path / "once.db", roots=[home], agents=[CHAT])
    with open_store(tmp_path / "grown.db") as grown, open_store(tmp_path / "once.db") as once:
        [session, _] = grown.sessions(SessionFilter(), limit=9).items
        assert [each.message for each in grown.messages(session.id)] == [
            each.message for each in once.messages(session.id)
        ]
        assert {each.membership.fate for each in grown.messages(session.id)} == {Fate.ACTIVE}


def test_a_change_that_cannot_be_read_changes_nothing_else() -> None:
    lines = LOG.read_bytes().splitlines(keepends=True)
    odd = [b'{"kind":2,"k":["requests",9,"response"],"v":[1]}\n', b'{"kind":7,"k":["x"]}\n', b"{broken\n"]
    changes = fold_bytes(CHAT, source_of(LOG), b"".join([*lines[:3], *odd, *lines[3:]]))
    assert changes.counts.unreadable == 3
    assert len(changes.diagnostics) == 3
    assert len(changes.messages) == len(fold_bytes(CHAT, source_of(LOG), LOG.read_bytes()).messages)


def test_a_request_that_the_user_took_back_is_rewound(tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(HOME, home)
    [snapshot] = home.rglob("chatSessions/*.json")
    whole = json.loads(snapshot.read_text())
    whole["requests"][1]["shouldBeRemovedOnSend"] = {"requestId": whole["requests"][1]["requestId"]}
    snapshot.write_text(json.dumps(whole))
    sync(tmp_path / "turnlog.db", roots=[home], agents=[CHAT])
    with open_store(tmp_path / "turnlog.db") as store:
        placed = store.messages("vscode-copilot:1a2b3c4d-0000-4000-8000-00000000000a")
    assert [each.membership.fate for each in placed] == [Fate.ACTIVE] * 6 + [Fate.REWOUND] * 3 + [Fate.ACTIVE] * 2


def test_without_rounds_a_text_behind_a_call_begins_an_answer() -> None:
    call = {"kind": "toolInvocationSerialized", "toolId": "copilot_readFile", "isConfirmed": True, "isComplete": True}
    found = fold(request({"value": "One"}, call | {"toolCallId": "a"}, call | {"toolCallId": "b"}, {"value": "Two"}))
    answers = [message for message in found.messages.values() if message.origin is not Origin.PROMPT]
    assert [[name for name, _ in said(each)] for each in answers] == [
        ["text", "copilot_readFile", "copilot_readFile"],
        ["text"],
    ]


def test_what_the_user_only_saw_is_counted_and_what_nobody_knows_is_kept() -> None:
    [_, answer] = fold(
        request({"kind": "undoStop", "id": "1"}, {"value": "Hi"}, {"kind": "of_tomorrow", "x": 1})
    ).messages.values()
    assert answer.metadata == {"vscode-copilot": {"shown": {"undoStop": 1}}}
    assert [part.kind for part in answer.parts if isinstance(part, UnknownPart)] == ["of_tomorrow"]


def test_an_item_whose_kind_is_no_text_is_kept() -> None:
    """R-S34"""
    found = fold(request({"kind": ["text"], "value": "odd"}, {"value": "Answer"}))
    assert ("text", "oddAnswer") in [each for message in found.messages.values() for each in said(message)]


def test_a_structured_result_is_what_the_call_shows() -> None:
    found = CHAT.structured_result(SNAPSHOT.read_bytes(), "toolu_mcp1")
    assert found is not None
    assert msgspec.json.decode(found)["isError"] is True
    assert CHAT.structured_result(SNAPSHOT.read_bytes(), "toolu_read1") is None


@pytest.mark.parametrize(
    ("address", "path"),
    [
        ("file:///home/dev/my%20work", "/home/dev/my work"),
        ("file:///c%3A/work", "c:/work"),
        ("vscode-remote://ssh-remote%2Bbox/home/dev", "/home/dev"),
        ("work", None),
        ("", None),
    ],
)
def test_the_folder_of_a_workspace_is_an_address(address: str, path: str | None) -> None:
    assert path_of(address) == path


def test_other_files_of_json_are_not_conversations(tmp_path: Path) -> None:
    for number, text in enumerate(('{"requests": [{"a": 1}]}', '{"kind": 0, "v": {}}', '{"requests": "many"}')):
        path = tmp_path / f"{number}.json"
        path.write_text(text)
        assert detect(path).agent is None


def test_every_kind_of_item_is_on_the_page() -> None:
    """R-S23"""
    described = [name for kinds, _ in FormatPage("vscode-copilot").rows("### Items") for name in named(kinds)]
    assert set(described) >= SHOWN_ONLY | {"thinking", "toolInvocationSerialized", "inlineReference", "markdownVuln"}
