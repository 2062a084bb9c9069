"""Forks by reference: the fork's history begins with its parent's, and costs nothing for it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

from support.codex_files import (
    AGENT,
    DATA,
    OTHER,
    THREAD,
    answer,
    call,
    counts,
    event,
    line,
    logs,
    meta,
    output,
    prompt,
    token_count,
    usage_record,
)
from turnlog.chat import load_ui_messages
from turnlog.logs import extract_tool_calls, read_session
from turnlog.model import Fate, Origin, TextPart, ToolResultEvent, ToolState
from turnlog.replay import replay
from turnlog.server.sample import LOGS
from turnlog.store import open_store
from turnlog.store.base import SessionFilter, Store, ToolCallFilter
from turnlog.store.values import PlacedMessage
from turnlog.sync.rebuild import rebuild
from turnlog.sync.syncer import sync

THIRD = "01a1fbaa-0000-7000-8000-000000000003"


def numbered(start: int, *lines: bytes) -> bytes:
    """The lines with ordinals."""
    return b"".join(text.replace(b"{", b'{"ordinal": %d, ' % number, 1) for number, text in enumerate(lines, start))


def write(home: Path, thread: str, data: bytes) -> None:
    folder = home / "sessions/2026/11/21"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"rollout-2026-11-21T10-00-00-{thread}.jsonl").write_bytes(data)


def turn(number: int, text: str, *, start: int) -> bytes:
    return numbered(
        start,
        prompt(text, id=f"msg_p{number}"),
        answer(f"to {text}", id=f"msg_a{number}"),
        usage_record(f"resp_{number}", counts(100, 0, 10, 0)),
    )


PARENT = numbered(0, meta(history_mode="paginated")) + turn(1, "one", start=1) + turn(2, "two", start=4)
BASE = {"thread_id": THREAD, "end_ordinal_exclusive": 4}
FORKED = {"forked_from_id": THREAD, "forked_from_ordinal_exclusive": 4, "history_base": BASE}
FORKED_FROM_ID = {"forked_from_id": THREAD}
FORK = numbered(4, meta(id=OTHER, **FORKED)) + turn(3, "other", start=5)
FORKED_AGAIN = {"forked_from_id": OTHER, "forked_from_ordinal_exclusive": 8}
FORK_OF_FORK = numbered(8, meta(id=THIRD, **FORKED_AGAIN)) + turn(4, "third", start=9)
ORDERS = {"forwards": (THREAD, OTHER, THIRD), "backwards": (THIRD, OTHER, THREAD), "mixed": (OTHER, THREAD, THIRD)}


def pass_over(store: Path, home: Path) -> None:
    sync(store, roots=[home], agents=[AGENT])


def texts(store: Store, thread: str) -> list[str]:
    placed = list(store.messages(f"codex:{thread}"))
    assert [item.membership.position for item in placed] == sorted(item.membership.position for item in placed)
    return [part.text for item in placed for part in item.message.parts if isinstance(part, TextPart)]


def check(path: Path) -> None:
    with open_store(path) as store:
        assert texts(store, THREAD) == ["one", "to one", "two", "to two"]
        assert texts(store, OTHER) == ["one", "to one", "other", "to other"]
        assert texts(store, THIRD) == ["one", "to one", "other", "to other", "third", "to third"]
        sessions = {session.external_id: session for session in store.sessions(SessionFilter(subagents=True)).items}
        assert {name: session.usage.calls for name, session in sessions.items()} == {THREAD: 2, OTHER: 1, THIRD: 1}
        assert {name: session.counts.messages for name, session in sessions.items()} == {THREAD: 4, OTHER: 4, THIRD: 6}
        assert [found.parent_session_id for found in sessions[OTHER].relationships] == [f"codex:{THREAD}"]
        placed = {item.message.id: item.membership for item in store.messages(f"codex:{OTHER}")}
        assert placed[f"{OTHER}:msg_p3"].parent_id == f"{THREAD}:msg_a1"


@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
def test_a_fork_begins_with_what_it_shares(order: tuple[str, ...], tmp_path: Path) -> None:
    """R-C5, R-C13: in whatever order the logs are read, what it shares is in its history, and paid for once."""
    path = tmp_path / "store.db"
    data = {THREAD: PARENT, OTHER: FORK, THIRD: FORK_OF_FORK}
    for thread in order:
        write(tmp_path / "home", thread, data[thread])
        pass_over(path, tmp_path / "home")
    check(path)
    rebuild(path)
    check(path)


def test_a_fork_stays_as_it_was_when_its_parent_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    for thread, data in ((THREAD, PARENT[: PARENT.index(b"two") - 200]), (OTHER, FORK), (THIRD, FORK_OF_FORK)):
        write(tmp_path / "home", thread, data)
    pass_over(path, tmp_path / "home")
    write(tmp_path / "home", THREAD, PARENT)
    pass_over(path, tmp_path / "home")
    check(path)


def test_a_fork_follows_the_last_shared_message_as_its_parent_grows(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    write(tmp_path / "home", OTHER, FORK)
    for end in range(1, len(PARENT.splitlines()) + 1):
        write(tmp_path / "home", THREAD, b"".join(PARENT.splitlines(keepends=True)[:end]))
        pass_over(path, tmp_path / "home")
    write(tmp_path / "home", THIRD, FORK_OF_FORK)
    pass_over(path, tmp_path / "home")
    check(path)


def test_a_fork_whose_parent_is_gone_has_its_own_part(tmp_path: Path) -> None:
    write(tmp_path / "home", OTHER, FORK)
    pass_over(tmp_path / "store.db", tmp_path / "home")
    with open_store(tmp_path / "store.db") as store:
        assert texts(store, OTHER) == ["other", "to other"]


def test_a_recorded_fork_has_the_history_that_its_request_had(tmp_path: Path) -> None:
    shutil.copytree(DATA / "scenarios/basic/sessions", tmp_path / "home/sessions")
    pass_over(tmp_path / "store.db", tmp_path / "home")
    with open_store(tmp_path / "store.db") as store:
        [fork] = [session for session in store.sessions().items if session.relationships]
        base = fork.relationships[0].parent_session_id
        whole, shared = list(store.messages(fork.id)), list(store.messages(base))
        assert [item.message.id for item in whole[: len(shared)]] == [item.message.id for item in shared]
        assert len(whole) == len(shared) + 2
        assert fork.usage.calls == 1


COMPACTED = "01a202ef-4e55-7973-8533-b6ba56c62da9"
FORK_OF_COMPACTED = "01a202ef-5526-7030-98d3-a9e0d841b8f4"


@pytest.mark.parametrize("grows", [False, True], ids=["whole", "growing"])
def test_what_a_fork_shares_is_compacted_in_it_too(grows: bool, tmp_path: Path) -> None:
    """R-S19: recorded with 0.169; what the fork asked with held the summary, and no answer that it stands for."""
    path, home = tmp_path / "store.db", tmp_path / "home"
    data = {source.session_id: Path(source.path).read_bytes() for source in logs("versions/0.169.0-fork-of-compacted")}
    write(home, FORK_OF_COMPACTED, data[f"codex:{FORK_OF_COMPACTED}"])
    lines = data[f"codex:{COMPACTED}"].splitlines(keepends=True)
    for end in range(1 if grows else len(lines), len(lines) + 1):
        write(home, COMPACTED, b"".join(lines[:end]))
        pass_over(path, home)
    for _ in range(2):
        with open_store(path) as store:
            shared, own = (
                [(part.text, item.membership.fate) for item, part in said_in(store, thread)]
                for thread in (FORK_OF_COMPACTED, COMPACTED)
            )
        assert shared[: len(own)] == own
        assert [text for text, fate in shared if fate is Fate.COMPACTED] == ["Big."]
        assert [text for text, _ in shared[len(own) :]] == ["Forked prompt", "In the fork."]
        rebuild(path)


def test_a_compaction_in_a_fork_keeps_prompts_of_what_it_goes_on_from(tmp_path: Path) -> None:
    """R-S19: recorded with 0.169; what the fork, and a fork of it, asked with held the first prompt and no answer."""
    pass_over(tmp_path / "store.db", DATA / "versions/0.169.0-compacted-fork")
    threads = [f"01a2030{rest}" for rest in ("d-0b58-7e62-85f2-ac70aeb0ae9a", "d-43b3-74e3-a09b-3c753a07f8d5")]
    with open_store(tmp_path / "store.db") as store:
        seen = [
            [part.text for item, part in said_in(store, thread) if item.membership.fate is Fate.ACTIVE]
            for thread in threads
        ]
    summary = '{"title": "Mock title", "isNewTopic": true}'
    fork = ["First prompt", "Fork prompt", summary, "Fork again", "Fork after compaction."]
    assert seen == [fork, [*fork, "Forked by command", "By command."]]


def test_a_compaction_after_a_fork_is_not_the_forks(tmp_path: Path) -> None:
    summary = numbered(7, answer("Summary", id="msg_s"), line("compacted", {"message": "Summary"}))
    write(tmp_path / "home", THREAD, PARENT + summary)
    write(tmp_path / "home", OTHER, FORK)
    pass_over(tmp_path / "store.db", tmp_path / "home")
    with open_store(tmp_path / "store.db") as store:
        assert {item.membership.fate for item in store.messages(f"codex:{OTHER}")} == {Fate.ACTIVE}
        assert Fate.COMPACTED in {item.membership.fate for item in store.messages(f"codex:{THREAD}")}


def said_in(store: Store, thread: str) -> list[tuple[PlacedMessage, TextPart]]:
    """The texts of a session that no agent put in."""
    placed = [item for item in store.messages(f"codex:{thread}") if item.message.origin is not Origin.HARNESS]
    return [(item, part) for item in placed for part in item.message.parts if isinstance(part, TextPart)]


def test_a_fork_by_copy_is_not_billed_for_turns_that_had_just_ended(tmp_path: Path) -> None:
    """R-C19: recorded with 0.110, a second after the newest turn that it copied."""
    original, fork = "01a20014-b374-7a20-80bc-567a1ba0318a", "01a20014-cd21-75c1-a57c-f45405d003c9"
    store = tmp_path / "turnlog.db"
    sync(store, roots=[DATA / "versions" / "0.110.0-forks"], agents=[AGENT])
    with open_store(store) as opened:
        sessions = {session.external_id: session for session in opened.sessions(SessionFilter()).items}
        assert {name: session.usage.calls for name, session in sessions.items()} == {original: 11, fork: 1}
        paid = [item.message for item in opened.messages(f"codex:{fork}") if item.membership.is_billed]
        said = [message for message in paid if message.role != "developer"]
        assert [(message.role, message.id.partition(":")[0]) for message in said] == [
            ("user", fork),
            ("assistant", fork),
        ]


def test_a_fork_by_copy_changes_nothing_of_what_it_copied(tmp_path: Path) -> None:
    """Its lines have the time of the copying, which is nobody's but the fork's."""
    original = "01a20014-b374-7a20-80bc-567a1ba0318a"
    home = DATA / "versions" / "0.110.0-forks"
    alone = read_session(next(home.rglob(f"*{original}.jsonl"))).messages
    sync(tmp_path / "turnlog.db", roots=[home], agents=[AGENT])
    with open_store(tmp_path / "turnlog.db") as store:
        assert [item.message for item in store.messages(f"codex:{original}")] == list(alone)
    assert any(message.created_at != message.completed_at for message in alone if message.completed_at is not None)


def test_the_calls_of_a_fork_begin_with_those_that_it_shares(tmp_path: Path) -> None:
    """R-C12: in their order, page by page too."""
    path = tmp_path / "store.db"
    sync(path, roots=[LOGS / "codex"], agents=[AGENT])
    with open_store(path) as store:
        [fork] = store.sessions(SessionFilter(relationship="fork")).items
        calls = [call.tool_call_id for call in extract_tool_calls(item.message for item in store.messages(fork.id))]
        assert len(calls) == fork.counts.tool_calls > 0
        found, cursor = list[str](), None
        while not found or cursor:
            page = store.tool_calls(ToolCallFilter(session=fork.id), limit=3, cursor=cursor)
            found += [call.tool_call_id for call in page.items]
            cursor = page.next_cursor
            assert page.items
        assert found == calls


def test_results_keep_their_place_in_what_a_fork_shares_too(tmp_path: Path) -> None:
    """R-S19: before what was asked in the fork; the same, read at once, by passages, and by windows."""
    path = tmp_path / "store.db"
    sync(path, roots=[LOGS / "codex"], agents=[AGENT])
    with open_store(path) as store:
        [fork] = store.sessions(SessionFilter(relationship="fork")).items
        events = store.history(fork.id)
        arrived = [event.position for event in events if isinstance(event, ToolResultEvent)]
        first = min(item.membership.position for item in store.messages(fork.id, after=-1))
        assert arrived == sorted(arrived)
        assert all(position < first for position in arrived)
        assert all(event.records for event in events if isinstance(event, ToolResultEvent))
        whole = [shown for shown in replay(events) if shown.position < first]
        passage = store.passage(fork.id, before=first, limit=100)
        paged = [shown for shown in replay(passage.events) if shown.position < first]
        assert [type(shown) for shown in paged] == [type(shown) for shown in whole]
        rows = msgspec.json.decode(store.window(fork.id, limit=200).rows)
        assert sorted(position for row in rows for _, position in row["results"]) == arrived


def test_a_fork_is_loaded_page_by_page_from_what_it_shares_on(tmp_path: Path) -> None:
    """R-H14: by the cursor of each page before."""
    path = tmp_path / "store.db"
    sync(path, roots=[LOGS / "codex"], agents=[AGENT])
    with open_store(path) as store:
        [fork] = store.sessions(SessionFilter(relationship="fork")).items
        page = load_ui_messages(store, fork.id, limit=1)
        found = list(page.messages)
        while page.next_cursor is not None:
            page = load_ui_messages(store, fork.id, limit=1, cursor=page.next_cursor)
            found += page.messages
        assert found == list(load_ui_messages(store, fork.id, limit=100).messages)
        assert len(found) > 3


def test_messages_copied_by_a_subagent_are_billed_to_its_parent(tmp_path: Path) -> None:
    """R-C5: also where the copy has tokens of answers that it leaves out."""
    own = "01a1fbaa-7000-7000-8000-000000000009"
    spawned = {"subagent": {"thread_spawn": {"parent_thread_id": THREAD, "depth": 1}}}
    first, second = counts(100, 0, 10, 0), counts(250, 0, 30, 0)
    copied = (prompt("a"), answer("b", id="msg_b"), token_count(first, first))
    called = (call("c1", "spawn_agent"), token_count(second, None))
    write(tmp_path, THREAD, b"".join((meta(), *copied, *called, output("c1", json.dumps({"agent_id": own})))))
    turn_of_child = event("task_started", turn_id="01a1fbaa-7100-7000-8000-000000000001")
    facts = {"id": own, "forked_from_id": THREAD, "source": spawned}
    said = (turn_of_child, prompt("c"), answer("d", id="msg_d"), token_count(counts(320, 0, 33, 0), None))
    write(tmp_path, own, b"".join((meta(**facts), meta(), *copied, called[1], *said)))
    history = read_session(next(tmp_path.rglob(f"*{THREAD}.jsonl")))
    (child,) = history.children
    assert [place.is_billed for place in child.memberships] == [False, False, True, True]
    assert (history.session.usage.usage.total, child.session.usage.usage.total) == (280, 73)


@pytest.mark.parametrize("version", ["0.98.0", "0.113.0"])
def test_what_a_subagent_left_open_ends_with_the_process_of_its_parent(version: str, tmp_path: Path) -> None:
    """R-K9: recorded; the process was killed, and its thread, not the subagent's, went on in another."""
    folder = DATA / "killed" / version
    pass_over(tmp_path / "store.db", folder)
    with open_store(tmp_path / "store.db") as store:
        (child,) = store.sessions(SessionFilter(relationship="subagent")).items
        (parent,) = store.sessions(SessionFilter()).items
        stored = [extract_tool_calls(item.message for item in store.messages(found.id)) for found in (parent, child)]
    history = read_session(next(folder.rglob(f"*{parent.external_id}.jsonl")))
    read = [extract_tool_calls(found.messages) for found in (history, *history.children)]
    for calls in (stored, read):
        states = [[(call.tool_call_id, call.state) for call in found] for found in calls]
        assert states == [
            [("p1", ToolState.OUTPUT_AVAILABLE), ("p2", ToolState.ABORTED)],
            [("s1", ToolState.ABORTED)],
        ]


def test_a_subagent_continues_after_the_turn_that_began_it(tmp_path: Path) -> None:
    """R-K9: what it is doing is not over when its parent's turn is."""
    own = "01a1fbaa-7000-7000-8000-000000000009"
    spawned = {"subagent": {"thread_spawn": {"parent_thread_id": THREAD, "depth": 1}}}
    begun = (event("task_started", turn_id="t1"), prompt("a"), call("c1", "spawn_agent"))
    said = (output("c1", json.dumps({"agent_id": own})), answer("b"), event("task_complete", turn_id="t1"))
    write(tmp_path, THREAD, b"".join((meta(), *begun, *said, event("task_started", turn_id="t2"), prompt("c"))))
    write(tmp_path, own, b"".join((meta(id=own, source=spawned), prompt("d"), call("s1", at="2026-11-21T10:00:05Z"))))
    pass_over(tmp_path / "store.db", tmp_path)
    with open_store(tmp_path / "store.db") as store:
        (running,) = extract_tool_calls(item.message for item in store.messages(f"codex:{own}"))
    assert running.state is ToolState.INPUT_AVAILABLE


def test_a_thread_goes_on_in_another_file_where_a_prompt_was_changed(tmp_path: Path) -> None:
    """R-C4: since 0.16x a base is named by its file: the thread's first, or a branch. Nothing is paid twice."""
    first, second = "01a1fbab-0000-7000-8000-00000000000a", "01a1fbac-0000-7000-8000-00000000000b"
    told = {"type": "CommandExecution", "id": "c1", "command": ["ls"], "aggregated_output": "x", "exit_code": 3}
    home = tmp_path / "home"
    write(home, THREAD, PARENT)
    base = {"history_base": {"thread_id": THREAD, "end_ordinal_exclusive": 4}, "history_mode": "paginated"}
    called = (call("c1"), event("item_completed", item=told, thread_id=THREAD), output("c1", "x"))
    branch = numbered(4, meta(**base)) + turn(2, "two, changed", start=5) + numbered(8, *called)
    write(home, f"{THREAD}_{first}", branch)
    base = {"history_base": {"thread_id": first, "end_ordinal_exclusive": 8}, "history_mode": "paginated"}
    write(home, f"{THREAD}_{second}", numbered(8, meta(**base)) + turn(3, "three", start=9))
    pass_over(tmp_path / "store.db", home)
    with open_store(tmp_path / "store.db") as store:
        whole = texts(store, f"{THREAD}_{second}")
        assert whole == ["one", "to one", "two, changed", "to two, changed", "three", "to three"]
        changed = store.messages(f"codex:{THREAD}_{first}")
        (command,) = extract_tool_calls([item.message for item in changed])
        assert [result.exit_code for result in command.results] == [3]
        assert store.session(f"codex:{THREAD}").usage.calls == 2
        assert store.session(f"codex:{THREAD}_{second}").usage.calls == 1


@pytest.mark.parametrize("late", [False, True], ids=["at once", "name first"])
def test_a_branch_has_the_name_of_its_thread(late: bool, tmp_path: Path) -> None:
    """R-C6: recorded with 0.169; a client took a turn back, and named the thread that went on in another file."""
    path, home, recorded = tmp_path / "store.db", tmp_path / "home", DATA / "named_branch"
    first, branch = sorted((log for log in AGENT.discover([recorded]) if log.session_id), key=lambda log: log.path)
    home.mkdir()
    shutil.copy(recorded / "session_index.jsonl", home)
    for log in (first, branch) if late else ():
        pass_over(path, home)
        write(home, (log.session_id or "").removeprefix("codex:"), Path(log.path).read_bytes())
    if not late:
        shutil.copytree(recorded / "sessions", home / "sessions")
    pass_over(path, home)
    for _ in range(2):
        assert names(path) == {first.session_id: "Named thread", branch.session_id: "Named thread"}
        rebuild(path)
    thread = (first.session_id or "").removeprefix("codex:")
    with (home / "session_index.jsonl").open("a") as index:
        index.write(json.dumps({"id": thread, "thread_name": "Another name"}) + "\n")
    pass_over(path, home)
    assert set(names(path).values()) == {"Another name"}


def names(path: Path) -> dict[str | None, str | None]:
    with open_store(path) as store:
        return {session.id: session.title for session in store.sessions(SessionFilter()).items}


def copied_log(thread: str, origin: str | None, *copies: bytes, own: tuple[bytes, ...], at: str) -> bytes:
    """The log of a fork by copy: its own first line, the copied records with its time, its own records."""
    copy = [{**json.loads(text), "timestamp": at} for text in copies]
    first = meta(id=thread, forked_from_id=origin, cli_version="0.110.0", timestamp=at)
    return first + b"".join(json.dumps(record).encode() + b"\n" for record in copy) + b"".join(own)


def legacy_turn(turn_id: str, text: str, total: int, at: str) -> tuple[bytes, ...]:
    """A turn of one call, without ids of messages."""
    usage = {"total_token_usage": counts(100 * total, 0, 10 * total, 0), "last_token_usage": counts(100, 0, 10, 0)}
    return (
        event("task_started", at, turn_id=turn_id),
        line("turn_context", {"turn_id": turn_id, "model": "gpt-5-codex"}, at),
        prompt(text, at),
        answer(f"to {text}", at),
        event("token_count", at, info=usage),
    )


GENERATIONS = tuple(f"01a1fba{digit}-0000-7000-8000-00000000000{digit}" for digit in "abc")
TIMED_TURNS = tuple(f"01a1fba{digit}-8000-7000-8000-00000000000a" for digit in "abc")
RANDOM_TURNS = tuple(f"{digit * 8}-1111-4111-8111-111111111111" for digit in "abc")
TIMES = tuple(f"2026-11-21T1{hour}:00:00.000Z" for hour in range(3))
LATER = tuple(f"2026-11-21T1{hour}:00:30.000Z" for hour in range(3))


def generations(turns: tuple[str, ...], *, with_metas: bool) -> list[bytes]:
    """A thread, a fork of it, and a fork of the fork. Each has a turn of its own."""
    found: list[bytes] = []
    for number, (thread, turn_id) in enumerate(zip(GENERATIONS, turns, strict=True)):
        own = legacy_turn(turn_id, f"prompt {number}", number + 1, LATER[number])
        copy = found[-1].splitlines(keepends=True)[0 if with_metas else 1 :] if found else []
        origin = GENERATIONS[number - 1] if number else None
        found.append(copied_log(thread, origin, *copy, own=own, at=TIMES[number]))
    return found


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)], ids=["forwards", "backwards", "mixed"])
@pytest.mark.parametrize(
    ("turns", "with_metas"), [(TIMED_TURNS, True), (RANDOM_TURNS, False)], ids=["timed-turns", "random-turns"]
)
def test_a_fork_of_a_fork_by_copy_counts_each_call_once(
    turns: tuple[str, ...], with_metas: bool, order: tuple[int, ...], tmp_path: Path
) -> None:
    """R-C19: what two threads before it wrote has the ids that it has there."""
    logs_of = generations(turns, with_metas=with_metas)
    path = tmp_path / "store.db"
    for number in order:
        write(tmp_path / "home", GENERATIONS[number], logs_of[number])
        pass_over(path, tmp_path / "home")
    said = [text for number in range(3) for text in (f"prompt {number}", f"to prompt {number}")]
    for _ in range(2):
        with open_store(path) as store:
            for number, thread in enumerate(GENERATIONS):
                assert texts(store, thread) == said[: 2 * number + 2]
                session = store.session(f"codex:{thread}")
                assert session is not None
                assert session.usage.calls == 1
            written = [{item.message.id for item in store.messages(f"codex:{thread}")} for thread in GENERATIONS]
            assert written[0] < written[1] < written[2]
        rebuild(path)


def totals(number: int, *, last: bool) -> bytes:
    return token_count(counts(100 * number, 0, 10 * number, 0), counts(100, 0, 10, 0) if last else None)


def inputs(path: Path, thread: str) -> list[int | None]:
    with open_store(path) as store:
        messages = [placed.message for placed in store.messages(f"codex:{thread}") if placed.membership.position >= 0]
    return [message.usage.input if message.usage else None for message in messages if message.role == "assistant"]


FORK_OF = {"by ordinal": FORKED, "by base": {"history_base": {**BASE, "thread_id": OTHER}}, "by id": FORKED_FROM_ID}


@pytest.mark.parametrize("facts", FORK_OF.values(), ids=FORK_OF)
def test_a_fork_does_not_count_the_total_of_its_parent(facts: dict[str, Any], tmp_path: Path) -> None:
    """R-C19: what of a fork's first total is its own is unknown; after that the difference counts."""
    said = (prompt("q"), answer("a"), totals(31, last=False), prompt("r"), answer("b"), totals(32, last=False))
    write(tmp_path / "home", THIRD, meta(id=THIRD, **facts) + b"".join(said))
    pass_over(tmp_path / "store.db", tmp_path / "home")
    assert inputs(tmp_path / "store.db", THIRD) == [None, 100]


def test_a_fork_counts_the_difference_to_a_total_that_it_copied(tmp_path: Path) -> None:
    own = (prompt("r", LATER[1]), answer("b", LATER[1]), totals(31, last=False).replace(b"T10:00:00", b"T11:00:40"))
    copy = legacy_turn(TIMED_TURNS[0], "q", 30, TIMES[0])
    first = meta(timestamp=TIMES[0])
    log = copied_log(OTHER, THREAD, first, *copy, own=own, at=TIMES[1])
    write(tmp_path / "home", OTHER, log)
    pass_over(tmp_path / "store.db", tmp_path / "home")
    assert inputs(tmp_path / "store.db", OTHER)[-1] == 100


def test_totals_at_the_start_of_a_fork_are_no_response(tmp_path: Path) -> None:
    lines = (totals(30, last=False), prompt("q"), answer("a"), totals(31, last=False))
    write(tmp_path / "home", THIRD, meta(id=THIRD, **FORKED) + b"".join(lines))
    pass_over(tmp_path / "store.db", tmp_path / "home")
    assert inputs(tmp_path / "store.db", THIRD) == [100]


def test_a_thread_that_is_no_fork_counts_its_first_total(tmp_path: Path) -> None:
    write(tmp_path / "home", THIRD, meta(id=THIRD) + prompt("q") + answer("a") + totals(1, last=False))
    pass_over(tmp_path / "store.db", tmp_path / "home")
    assert inputs(tmp_path / "store.db", THIRD) == [100]
