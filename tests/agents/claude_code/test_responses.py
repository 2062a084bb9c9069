"""Which records are one response of the model, where a provider gives one `message.id` to several."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from support.claude_files import AGENT, SESSION, Log, call, fold, lines, session_source, text
from turnlog.agents import fold_bytes
from turnlog.logs.merger import SourceMerger
from turnlog.model import Message, TextPart, ToolCallPart
from turnlog.store import open_store
from turnlog.store.sqlite.forget import forget_for_good
from turnlog.sync.rebuild import rebuild
from turnlog.sync.syncer import sync

OTHER = "22222222-2222-4222-8222-222222222222"
FORK = "33333333-3333-4333-8333-333333333333"
ID = "msg_static"

Record = dict[str, Any]


def used(tokens: int) -> dict[str, Any]:
    return {"input_tokens": tokens, "output_tokens": 5}


def loop(log: Log, count: int, *, own_request: bool) -> list[Record]:
    """A prompt, and calls that each get their result before the next one is made."""
    records = [log.user("Read the files")]
    for number in range(count):
        fields = {"requestId": f"req_{number}"} if own_request else {}
        usage = used(1000 + 200 * number)
        records.append(log.assistant(ID, call(f"toolu_{number}"), stop="tool_use", usage=usage, **fields))
        records.append(log.result(f"toolu_{number}", f"content {number}"))
    return records


def says(message: Message) -> list[str]:
    return [
        part.tool_call_id if isinstance(part, ToolCallPart) else part.text
        for part in message.parts
        if isinstance(part, ToolCallPart | TextPart)
    ]


def answers(messages: list[Message]) -> list[list[str]]:
    return [says(message) for message in messages if message.role == "assistant"]


@pytest.mark.parametrize("own_request", [True, False])
@pytest.mark.parametrize("count", [3, 40])
def test_another_request_or_input_count_is_another_response(own_request: bool, count: int) -> None:
    """Also where the fold has forgotten the first one."""
    records = loop(Log(), count, own_request=own_request)
    whole = fold(*records)
    messages = whole.in_order(f"claude-code:{SESSION}")
    assert answers(messages) == [[f"toolu_{number}"] for number in range(count)]
    assert [message.usage.input for message in messages if message.usage] == [1000 + 200 * n for n in range(count)]
    assert {message.response_id for message in messages if message.role == "assistant"} == {ID}
    assert {len(part.results) for part in whole.calls()} == {1}


def test_a_prompt_between_begins_another_response_and_each_follows_its_own() -> None:
    log = Log()
    records = [log.user("one"), log.assistant(ID, text("A")), log.user("two"), log.assistant(ID, text("B"))]
    gathered = fold(*records)
    first, second = (message.id for message in gathered.messages.values() if message.role == "assistant")
    assert (first, second) == (ID, f"{ID}~{records[3]['uuid']}")
    assert gathered.place(records[2]["uuid"]).parent_id == first
    assert gathered.place(second).parent_id == records[2]["uuid"]


def test_records_of_two_requests_may_be_mixed() -> None:
    log = Log()
    records = [
        log.user("Go"),
        log.assistant(ID, text("A"), requestId="req_1"),
        log.assistant(ID, text("B"), requestId="req_2"),
        log.assistant(ID, call("toolu_a"), requestId="req_1"),
        log.assistant(ID, call("toolu_b"), requestId="req_2"),
    ]
    assert answers(fold(*records).in_order(f"claude-code:{SESSION}")) == [["A", "toolu_a"], ["B", "toolu_b"]]


def test_parallel_calls_of_one_response_stay_one_message() -> None:
    """Claude Code 2.1 writes a result, and the user's next prompt, between two calls of one response."""
    log = Log()
    records = [log.user("Look at all")]
    for name in "abc":
        records += [
            log.assistant(ID, call(f"toolu_{name}"), stop="tool_use", usage=used(7), requestId="req_1"),
            log.result(f"toolu_{name}"),
        ]
    gathered = fold(*records)
    assert answers(gathered.in_order(f"claude-code:{SESSION}")) == [["toolu_a", "toolu_b", "toolu_c"]]


def test_line_by_line_the_same_responses_are_found() -> None:
    data = lines(*loop(Log(), 30, own_request=True))
    whole = SourceMerger()
    whole.add(session_source(), fold_bytes(AGENT, session_source(), data))
    pieces, state, offset = SourceMerger(), None, 0
    for line in data.splitlines(keepends=True):
        reading = AGENT.fold(session_source(), state)
        pieces.add(session_source(), reading.feed(line, offset))
        state, offset = reading.state(), offset + len(line)
    session_id = f"claude-code:{SESSION}"
    assert [message for message, _ in pieces.placed(session_id)] == [message for message, _ in whole.placed(session_id)]


# -- in several sessions


def session(name: str, number: int, words: str, **fields: Any) -> bytes:
    log = Log(sessionId=name)
    log.count = 100 * number
    question = log.user(f"question {number}")
    return lines(question, log.assistant(ID, text(words), usage=used(number), **fields))


def write(home: Path, files: dict[str, bytes]) -> None:
    folder = home / "projects" / "-home-dev-proj"
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (folder / f"{name}.jsonl").write_bytes(data)


def stored_answers(store: Path) -> dict[str, list[list[str]]]:
    with open_store(store) as opened:
        return {
            found.external_id: answers([placed.message for placed in opened.messages(found.id)])
            for found in opened.sessions().items
        }


def stored_input(store: Path) -> int | None:
    with open_store(store) as opened:
        return opened.usage().totals.input


@pytest.mark.parametrize("own_request", [True, False])
def test_sessions_that_share_an_id_have_their_own_answers(tmp_path: Path, own_request: bool) -> None:
    """In whatever order they are read, and when everything is made anew."""
    requests = [{"requestId": f"req_{number}"} if own_request else {} for number in (1, 2)]
    files = {
        SESSION: session(SESSION, 1, "pelican one", **requests[0]),
        OTHER: session(OTHER, 2, "pelican two", **requests[1]),
    }
    expected = {SESSION: [["pelican one"]], OTHER: [["pelican two"]]}
    for number, order in enumerate(permutations(files)):
        folder = tmp_path / str(number)
        for name in order:
            write(folder / "home", {name: files[name]})
            sync(folder / "turnlog.db", roots=[folder / "home"], agents=[AGENT])
        assert stored_answers(folder / "turnlog.db") == expected
        assert stored_input(folder / "turnlog.db") == 3
        rebuild(folder / "turnlog.db")
        assert stored_answers(folder / "turnlog.db") == expected


def test_what_is_forgotten_is_not_in_the_session_that_shares_its_id(tmp_path: Path) -> None:
    files = {SESSION: session(SESSION, 1, "pelican one"), OTHER: session(OTHER, 2, "pelican two")}
    store = tmp_path / "turnlog.db"
    write(tmp_path / "home", files)
    sync(store, roots=[tmp_path / "home"], agents=[AGENT])
    forget_for_good(store, f"claude-code:{SESSION}")
    assert stored_answers(store) == {OTHER: [["pelican two"]]}
    assert b"pelican one" not in store.read_bytes()


def test_a_session_that_goes_on_keeps_its_answers_apart(tmp_path: Path) -> None:
    """Later feeds name the message by the provider's id, too: results, parents, further blocks."""
    store = tmp_path / "turnlog.db"
    log = Log(sessionId=OTHER)
    log.count = 200
    records = [
        log.user("question 2"),
        log.assistant(ID, text("two"), requestId="req_2"),
        log.assistant(ID, call("toolu_2"), requestId="req_2"),
        log.result("toolu_2", "two done"),
        log.user("and now"),
        log.assistant(ID, text("two again"), requestId="req_3"),
    ]
    write(tmp_path / "home", {SESSION: session(SESSION, 1, "one", requestId="req_1")})
    for count in range(1, len(records) + 1):
        write(tmp_path / "home", {OTHER: lines(*records[:count])})
        sync(store, roots=[tmp_path / "home"], agents=[AGENT])
    assert stored_answers(store) == {SESSION: [["one"]], OTHER: [["two", "toolu_2"], ["two again"]]}
    with open_store(store) as opened:
        places = opened.messages(f"claude-code:{OTHER}")
        assert [placed.membership.fate for placed in places] == ["active"] * 4
        (made,) = [part for placed in places for part in placed.message.parts if isinstance(part, ToolCallPart)]
    assert [result.output_text for result in made.results] == ["two done"]


@pytest.mark.parametrize("order", list(permutations([SESSION, OTHER, FORK])))
def test_a_fork_shares_the_answers_of_its_original_alone(tmp_path: Path, order: tuple[str, ...]) -> None:
    files = {SESSION: session(SESSION, 1, "one", requestId="req_1"), OTHER: session(OTHER, 2, "two", requestId="req_2")}
    files[FORK] = files[OTHER].replace(OTHER.encode(), FORK.encode())
    store = tmp_path / "turnlog.db"
    for name in order:
        write(tmp_path / "home", {name: files[name]})
        sync(store, roots=[tmp_path / "home"], agents=[AGENT])
    assert stored_answers(store) == {SESSION: [["one"]], OTHER: [["two"]], FORK: [["two"]]}
    assert stored_input(store) == 3
