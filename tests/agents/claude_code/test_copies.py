"""Copies of one message that leave out blocks, or list its calls in another order than the original."""

from __future__ import annotations

import json
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from support.claude_files import AGENT, SESSION, Log, call, lines, text
from turnlog.logs import read_session
from turnlog.model import Message, ToolCallPart
from turnlog.store import open_store
from turnlog.sync.rebuild import rebuild
from turnlog.sync.syncer import sync

PROJECT = "projects/-home-dev-proj"
FORK = "22222222-2222-4222-8222-222222222222"
CHILD = f"claude-code:{SESSION}.a1"
EXPECTED = ["thinking", "text", "toolu_a", "toolu_b", "toolu_c"]

BLOCKS = [
    {"type": "thinking", "thinking": "Which files?", "signature": "c2ln"},
    text("I look into three files."),
    call("toolu_a", "Read", file_path="/a"),
    call("toolu_b", "Read", file_path="/b"),
    call("toolu_c", "Read", file_path="/c"),
]


def subagent_files(*, copied: list[int], version: str = "2.1.20") -> dict[str, bytes]:
    """A parent whose `progress` records have some blocks of a subagent's message, and the subagent's own file."""
    child = Log(version, isSidechain=True, agentId="a1")
    records = [child.user("Look"), *(child.assistant("msg_c", block, stop=None) for block in BLOCKS)]
    results = [child.result(f"toolu_{name}") for name in "abc"]
    parent = Log(version)
    parent.count = 100
    log = [parent.user("Go"), parent.assistant("msg_p", call("toolu_p", "Task", prompt="Look"))]
    for record in [*(records[1 + number] for number in copied), *results]:
        kept = {name: record[name] for name in ("type", "message", "uuid", "timestamp")}
        data = {"type": "agent_progress", "agentId": "a1", "prompt": "Look", "message": kept}
        log.append(parent.record("progress", data=data, toolUseID="t", parentToolUseID="toolu_p"))
    return {
        f"{PROJECT}/{SESSION}.jsonl": lines(*log),
        f"{PROJECT}/{SESSION}/subagents/agent-a1.jsonl": lines(*records, *results),
    }


def fork_files(order: str, version: str = "2.1.20", **marks: Any) -> dict[str, bytes]:
    """A session with parallel calls, and a fork whose copy lists them in this order."""
    log = Log(version)
    records = [log.user("Look"), *(log.assistant("msg_1", block, stop=None) for block in BLOCKS)]
    results = [log.result(f"toolu_{name}") for name in "abc"]
    named = dict(zip("abc", records[3:], strict=True))
    copies = [*records[:3], *(named[name] for name in order), *results]
    forked = [{**record, "sessionId": FORK, **marks} for record in copies]
    return {
        f"{PROJECT}/{SESSION}.jsonl": lines(*records, *results),
        f"{PROJECT}/{FORK}.jsonl": lines(*forked),
    }


def names(message: Message) -> list[str]:
    """What the parts are, in order; their ids must be different."""
    assert len({part.id for part in message.parts}) == len(message.parts)
    assert all(part.id and part.id.startswith(f"{message.id}.") for part in message.parts)
    kinds = {"reasoning": "thinking"}
    return [
        part.tool_call_id if isinstance(part, ToolCallPart) else kinds.get(part.type, part.type)
        for part in message.parts
    ]


def ids(message: Message) -> list[str]:
    return [part.id or "" for part in message.parts]


def stored(folder: Path, files: dict[str, bytes], session_id: str, *, each: bool) -> list[Message]:
    """The answers of a session, once its files were read in this order, one by one or all at once."""
    for name, data in files.items():
        path = folder / "home" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        if each:
            sync(folder / "turnlog.db", roots=[folder / "home"], agents=[AGENT])
    sync(folder / "turnlog.db", roots=[folder / "home"], agents=[AGENT])
    return answers(folder / "turnlog.db", session_id)


def answers(store_path: Path, session_id: str) -> list[Message]:
    with open_store(store_path) as store:
        return [found.message for found in store.messages(session_id) if found.message.role == "assistant"]


def line_by_line(folder: Path, files: dict[str, bytes], session_id: str) -> list[Message]:
    """The same where both files grow by turns."""
    found: list[Message] = []
    written = dict.fromkeys(files, b"")
    pieces = {name: data.splitlines(keepends=True) for name, data in files.items()}
    for count in range(max(map(len, pieces.values()))):
        for name in files:
            written[name] += b"".join(pieces[name][count : count + 1])
        found = stored(folder, {name: data for name, data in written.items() if data}, session_id, each=True)
    return found


@pytest.mark.parametrize("copied", [[2, 3, 4], [0, 2, 3, 4], [1, 2, 3, 4], [4, 3, 2], [0, 1, 2, 3, 4], [3]])
def test_a_copy_in_the_parent_that_lacks_blocks_changes_no_order(copied: list[int], tmp_path: Path) -> None:
    """R-K4: in whatever order the files are read, parts have the ids that the subagent's own file gives them."""
    files = subagent_files(copied=copied)
    expected = [f"msg_c.{number}" for number in range(5)]
    for number, order in enumerate(permutations(files.items())):
        for each in (True, False):
            folder = tmp_path / f"{number}{each}"
            (message,) = stored(folder, dict(order), CHILD, each=each)
            assert (names(message), ids(message)) == (EXPECTED, expected)
            assert [part.state for part in message.parts if isinstance(part, ToolCallPart)] == ["output-available"] * 3
        rebuild(folder / "turnlog.db")
        assert [ids(found) for found in answers(folder / "turnlog.db", CHILD)] == [expected]
    (message,) = line_by_line(tmp_path / "lines", files, CHILD)
    assert (names(message), ids(message)) == (EXPECTED, expected)


def test_read_without_a_store_it_is_the_same(tmp_path: Path) -> None:
    files = subagent_files(copied=[2, 3, 4])
    stored(tmp_path, files, CHILD, each=False)
    own = tmp_path / "home" / PROJECT / SESSION / "subagents/agent-a1.jsonl"
    (message,) = [message for message in read_session(own).messages if message.role == "assistant"]
    assert names(message) == EXPECTED


def test_a_copy_alone_has_different_ids(tmp_path: Path) -> None:
    """Its own file may be gone: then the copy is all there is."""
    files = dict(list(subagent_files(copied=[1, 2, 3, 4]).items())[:1])
    (message,) = stored(tmp_path, files, CHILD, each=False)
    assert names(message) == EXPECTED[1:]


def test_blocks_that_the_log_numbers_have_their_numbers_in_a_copy(tmp_path: Path) -> None:
    files = {
        name: b"".join(
            line.replace(b'"type":"assistant"', b'"apiBlockIndex":%d,"type":"assistant"' % block_of(line))
            if b'"assistant"' in line and b"agent_progress" not in line
            else line
            for line in data.splitlines(keepends=True)
        )
        for name, data in subagent_files(copied=[2, 3, 4], version="2.1.329").items()
    }
    (message,) = stored(tmp_path, files, CHILD, each=False)
    assert names(message) == EXPECTED


def block_of(line: bytes) -> int:
    """The number of the block in a line of the subagent's own file; 0 for any other."""
    content = json.loads(line).get("message", {}).get("content", [])
    return BLOCKS.index(content[0]) if content and content[0] in BLOCKS else 0


@pytest.mark.parametrize("marks", [{}, {"requestSessionId": SESSION}, {"forkedFrom": {"sessionId": SESSION}}])
@pytest.mark.parametrize("order", ["bac", "cab", "bca", "cba", "acb"])
def test_a_fork_that_lists_calls_in_another_order_changes_none(
    order: str, marks: dict[str, Any], tmp_path: Path
) -> None:
    """R-K4, R-C5: parts have the order and the ids of the original."""
    files = fork_files(order, **marks)
    found: set[tuple[str, ...]] = set()
    for number, turned in enumerate(permutations(files.items())):
        (message,) = stored(tmp_path / str(number), dict(turned), f"claude-code:{SESSION}", each=True)
        assert names(message) == EXPECTED
        assert [names(copy) for copy in answers(tmp_path / str(number) / "turnlog.db", f"claude-code:{FORK}")] == [
            EXPECTED
        ]
        found.add(tuple(ids(message)))
    assert found == {tuple(f"msg_1.{number}" for number in range(5))}


def test_a_fork_in_the_same_order_leaves_the_ids_as_they_are(tmp_path: Path) -> None:
    (message,) = stored(tmp_path, fork_files("abc"), f"claude-code:{SESSION}", each=True)
    assert ids(message) == [f"msg_1.{number}" for number in range(5)]
