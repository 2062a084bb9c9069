"""Forks, copies, relationships, fates: what depends on whole sessions does not depend on the order of reading."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.toy_agent import line
from support.toy_store import ToyStore, in_any_order
from turnlog.store import open_store
from turnlog.store.packed_columns import PARENT_ID


def prompt(message: str, *, parent: str | None = None, at: float = 0, **fields: Any) -> bytes:
    return line(kind="prompt", id=f"r-{message}", parent=parent, message=message, text=message, at=at, **fields)


def answer(message: str, *, parent: str | None = None, at: float = 0, **fields: Any) -> bytes:
    known = {"model": "opus", "tokens": [10, 5], "stop": "end", **fields}
    return line(kind="text", id=f"r-{message}", parent=parent, message=message, text=message, at=at, **known)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ToyStore]:
    with ToyStore(tmp_path) as found:
        yield found


A = prompt("a1", at=1) + answer("a2", parent="r-a1", at=2)


def test_a_message_that_a_fork_copied_is_counted_once(tmp_path: Path) -> None:
    """R-C13: stored once, found once, paid for once, by the session that had it first."""
    files = {
        "first.log": A + answer("a3", parent="r-a2", at=3),
        "fork.log": A + answer("f3", parent="r-a2", at=4),
    }

    def look(store: ToyStore) -> None:
        assert store.row("SELECT count(*) FROM messages") == 4
        assert store.row("SELECT count(*) FROM memberships") == 6
        assert store.billed_sessions() == {"a1": "first", "a2": "first", "a3": "first", "f3": "fork"}
        assert store.session("first", "messages, steps, calls, input, output") == (3, 2, 2, 20, 10)
        assert store.session("fork", "messages, steps, calls, input, output") == (3, 2, 1, 10, 5)
        assert store.row("SELECT sum(calls), sum(input), sum(output) FROM usage") == (3, 30, 15)
        assert store.links() == {("fork", "first", "fork", 2)}
        assert store.parents() == {"fork": ("first", "fork")}

    in_any_order(tmp_path, files, look)


def test_a_session_that_goes_on_where_another_ended_continues_it(tmp_path: Path) -> None:
    files = {"first.log": A, "next.log": A + answer("n3", parent="r-a2", at=4)}

    def look(store: ToyStore) -> None:
        assert store.billed_sessions() == {"a1": "first", "a2": "first", "n3": "next"}
        assert store.parents() == {"next": ("first", "continuation")}

    in_any_order(tmp_path, files, look)


def test_a_record_that_says_it_is_a_copy_does_not_pay(tmp_path: Path) -> None:
    """Whatever the times say: clocks and file names may lie."""
    copied = prompt("a1", at=1, copied=True) + answer("a2", parent="r-a1", at=2, copied=True)
    files = {
        "late.log": A + answer("z3", parent="r-a2", at=99),
        "early.log": copied + answer("e3", parent="r-a2", at=3),
    }

    def look(store: ToyStore) -> None:
        assert store.billed_sessions() == {"a1": "late", "a2": "late", "z3": "late", "e3": "early"}
        assert store.parents() == {"early": ("late", "fork")}

    in_any_order(tmp_path, files, look)


def test_a_log_under_two_ids_is_billed_to_the_first_in_order(tmp_path: Path) -> None:
    def look(store: ToyStore) -> None:
        assert set(store.billed_sessions().values()) == {"one"}
        assert store.parents() == {"two": ("one", "continuation")}
        assert store.session("two", "messages, calls") == (2, 0)

    in_any_order(tmp_path, {"one.log": A, "two.log": A}, look)


CALLING = prompt("a1", at=1) + answer("a2", parent="r-a1", at=2)
RUNNING = line(kind="call", id="r-c", parent="r-a2", message="a2", block=1, call="c1", tool="Bash", at=2)


@pytest.mark.parametrize("is_answered", [False, True])
def test_a_call_is_left_open_where_the_conversation_went_on_elsewhere(is_answered: bool, tmp_path: Path) -> None:
    """R-K9: Claude Code 1.0 resumes what was killed in another file, without the call that was running."""
    result = line(kind="result", parent="r-c", call="c1", text="late", at=9) if is_answered else b""
    files = {
        "killed.log": CALLING + RUNNING + result,
        "resumed.log": CALLING + prompt("n3", parent="r-a2", at=5),
    }

    def look(store: ToyStore) -> None:
        state = "output-available" if is_answered else "aborted"
        assert store.rows("SELECT tool_state FROM parts WHERE tool_call_id = 'c1'") == [(state,)]

    in_any_order(tmp_path, files, look)


def test_a_call_goes_on_in_a_copy_without_another_turn(store: ToyStore) -> None:
    store.write("first.log", CALLING + RUNNING)
    store.write("copy.log", CALLING + answer("n3", parent="r-a2", at=5))
    store.read("first.log", "copy.log")
    assert store.rows("SELECT tool_state FROM parts WHERE tool_call_id = 'c1'") == [("input-available",)]


def test_forks_of_forks_are_settled_together(tmp_path: Path) -> None:
    """Who pays for what two forks share may depend on a session that only one of them knows."""
    shared = answer("x1", at=5)
    files = {
        "one.log": A + answer("o3", parent="r-a2", at=3),
        "two.log": A + shared + answer("t9", at=9),
        "three.log": shared + answer("h4", at=4),
    }

    def look(store: ToyStore) -> None:
        assert store.billed_sessions() == {
            "a1": "one",
            "a2": "one",
            "o3": "one",
            "x1": "three",
            "t9": "two",
            "h4": "three",
        }
        assert sum(store.session(name, "calls") for name in ("one", "two", "three")) == 5

    in_any_order(tmp_path, files, look)


def test_a_fork_of_a_fork_came_out_of_the_nearer_one(tmp_path: Path) -> None:
    """Its records name the makers of all that it copied, in any order of their names."""

    def origin(session: str) -> bytes:
        return line(kind="origin", link="fork", session=f"toy:{session}")

    files = {
        "a.log": A,
        "b.log": A + origin("a") + answer("b3", parent="r-a2", at=3),
        "c.log": A + origin("a") + origin("b") + answer("c3", parent="r-a2", at=4),
    }

    def look(store: ToyStore) -> None:
        assert store.parents() == {"b": ("a", "fork"), "c": ("b", "fork")}
        with open_store(store.path) as opened:
            found = opened.session("toy:c").relationships
            assert [(each.kind, each.parent_session_id) for each in found] == [("fork", "toy:b")]

    in_any_order(tmp_path, files, look)


def test_a_fork_that_names_its_original_does_not_pay_for_it(tmp_path: Path) -> None:
    """Kimi Code marks no copies, and the fork may have no prompt of its own yet, or have one before the original."""
    origin = line(kind="origin", link="fork", session="toy:original")
    files = {
        "original.log": A + answer("z3", parent="r-a2", at=99),
        "bare.log": A + origin,
        "early.log": A + origin + answer("e3", parent="r-a2", at=3),
    }

    def look(store: ToyStore) -> None:
        assert store.billed_sessions() == {"a1": "original", "a2": "original", "z3": "original", "e3": "early"}
        assert store.session("bare", "messages, calls") == (2, 0)
        assert store.parents() == {"bare": ("original", "fork"), "early": ("original", "fork")}

    in_any_order(tmp_path, files, look)


def test_a_session_between_two_that_share_messages_may_be_read_last(tmp_path: Path) -> None:
    """The fork shares nothing with what it came out of, but with the origin of that."""
    files = {
        "origin.log": A + answer("z3", parent="r-a2", at=50),
        "between.log": line(kind="origin", link="fork", session="toy:origin") + answer("x1", at=20),
        "fork.log": A + line(kind="origin", link="fork", session="toy:between") + answer("f3", parent="r-a2", at=3),
    }

    def look(store: ToyStore) -> None:
        assert store.billed_sessions() == {"a1": "fork", "a2": "fork", "z3": "origin", "x1": "between", "f3": "fork"}
        assert store.parents() == {"between": ("origin", "fork"), "fork": ("between", "fork")}

    in_any_order(tmp_path, files, look)


def test_copies_of_copies_continue_one_another(tmp_path: Path) -> None:
    """Claude Code 1.0 resumes in a new file each time, with all that was before, whatever the ids of the sessions."""
    second = A + answer("s3", parent="r-a2", at=3)
    third = second + answer("t4", parent="r-s3", at=4)
    files = {"z.log": A, "m.log": second, "a.log": third, "b.log": third + answer("f5", parent="r-t4", at=5)}

    def look(store: ToyStore) -> None:
        assert store.billed_sessions() == {"a1": "z", "a2": "z", "s3": "m", "t4": "a", "f5": "b"}
        assert store.parents() == {
            "m": ("z", "continuation"),
            "a": ("m", "continuation"),
            "b": ("a", "continuation"),
        }

    in_any_order(tmp_path, files, look)


def test_a_fork_that_grows_moves_what_is_paid_and_says_so(store: ToyStore) -> None:
    """The fork is read first and pays; when the original comes, it takes over, and both are changed."""
    store.add("fork.log", A, answer("f3", parent="r-a2", at=4))
    assert set(store.billed_sessions().values()) == {"fork"}
    changed = store.row("SELECT max(seq) FROM changes")
    store.add("first.log", A, answer("a3", parent="r-a2", at=3))
    assert store.billed_sessions()["a2"] == "first"
    touched = store.rows(
        "SELECT s.external_id FROM changes c JOIN sessions s ON s.key = c.session_key WHERE c.seq > ? ORDER BY 1",
        changed,
    )
    assert touched == [("first",), ("fork",)]
    assert store.rows("SELECT calls FROM usage ORDER BY session_key") == [(1,), (2,)]
    store.dump()


def test_what_a_record_says_takes_the_place_of_what_messages_show(tmp_path: Path) -> None:
    """A stated relationship, read before or after the shared messages were seen."""
    files = {
        "first.log": A + answer("a3", parent="r-a2", at=3),
        "fork.log": A + line(kind="origin", link="continuation", session="toy:elsewhere") + answer("f3", at=4),
        "elsewhere.log": prompt("e1", at=0),
    }

    def look(store: ToyStore) -> None:
        assert store.links() == {("fork", "elsewhere", "continuation", 0)}
        assert store.parents() == {"fork": ("elsewhere", "continuation")}

    in_any_order(tmp_path, files, look)


def test_a_relationship_that_an_agent_guesses_is_not_the_stores_to_delete(tmp_path: Path) -> None:
    guess = line(kind="origin", link="subagent", session="toy:boss", guess=True)
    files = {"first.log": A + answer("a3", at=3), "fork.sub": guess + A + answer("f3", at=4), "boss.log": prompt("b1")}

    def look(store: ToyStore) -> None:
        assert store.links() == {("fork", "boss", "subagent", 1)}

    in_any_order(tmp_path, files, look)


def test_both_sides_of_a_relationship_are_joined(tmp_path: Path) -> None:
    call = line(kind="call", id="r-c", parent="r-a2", message="a3", call="c1", tool="Task", at=3)
    spawn = line(kind="spawn", id="r-s", parent="r-c", call="c1", session="toy:child")
    files = {
        "parent.log": A + call + spawn,
        "child.sub": line(kind="origin", session="toy:parent", block=2, guess=True) + prompt("k1", at=4),
    }

    def look(store: ToyStore) -> None:
        columns = "parent_id, child_id, kind, tool_call_id, inferred, metadata"
        (row,) = store.rows(f"SELECT {columns} FROM links")
        assert row == ("toy:parent", "toy:child", "subagent", "c1", 0, '{"depth":2,"seen by":"parent"}')
        assert store.parents() == {"child": ("parent", "subagent")}

    in_any_order(tmp_path, files, look)


def test_no_session_comes_out_of_one_that_came_out_of_it(tmp_path: Path) -> None:
    """A record says that the earlier session is a fork of the later one: the messages they share then say nothing."""
    origin = line(kind="origin", link="fork", session="toy:late")
    files = {
        "early.log": origin + A + answer("e3", parent="r-a2", at=3),
        "late.log": A + answer("l3", parent="r-a2", at=4),
    }

    def look(store: ToyStore) -> None:
        assert store.links() == {("early", "late", "fork", 0)}
        assert store.parents() == {"early": ("late", "fork")}

    in_any_order(tmp_path, files, look)


def test_of_subagents_that_started_one_another_the_first_has_no_parent(tmp_path: Path) -> None:
    """Otherwise none of them would be in a list."""
    files = {
        f"{name}.sub": line(kind="origin", session=f"toy:{parent}") + prompt(f"{name}1", at=at)
        for at, (name, parent) in enumerate([("b", "a"), ("c", "b"), ("a", "c"), ("below", "c")])
    }

    def look(store: ToyStore) -> None:
        assert store.parents() == {"b": ("a", "subagent"), "c": ("b", "subagent"), "below": ("c", "subagent")}
        reports = store.rows("SELECT s.session_id, d.reason FROM diagnostics d JOIN sources s ON s.key = d.source_key")
        assert reports == [("toy:a", "a subagent of its own subagent: it is shown without a parent")]

    in_any_order(tmp_path, files, look)


def test_a_parent_that_is_not_stored_is_none_until_it_is(store: ToyStore) -> None:
    store.add("child.sub", line(kind="origin", session="toy:parent"), prompt("k1"))
    assert store.parents() == {}
    assert store.session("child", "relationship") is None
    store.add("parent.log", A)
    assert store.parents() == {"child": ("parent", "subagent")}


def test_an_inferred_parent_goes_when_it_no_longer_holds(store: ToyStore) -> None:
    """The fork turns out to be the origin: its parent's column must not stay behind."""
    store.add("one.log", A, answer("o3", at=3))
    store.add("two.log", A, answer("t4", at=4))
    assert store.parents() == {"two": ("one", "fork")}
    store.add("two.log", answer("t0", at=-5))
    assert store.parents() == {"one": ("two", "fork")}
    assert store.links() == {("one", "two", "fork", 2)}


def test_a_rewind_and_a_compaction_over_many_passes(store: ToyStore) -> None:
    store.add("s.log", A)
    store.add("s.log", prompt("b1", parent="r-a2"), answer("b2", parent="r-b1"))
    assert set(store.fates("s").values()) == {"active"}
    store.add("s.log", prompt("c1", parent="r-a2"))
    assert store.fates("s") == {
        "a1": "active",
        "a2": "active",
        "b1": "rewound < c1",
        "b2": "rewound < c1",
        "c1": "active",
    }
    store.add("s.log", line(kind="compact", id="k", parent="r-c1", kept=["a2"]))
    store.add("s.log", prompt("s1", parent="k", summary=True), answer("s2", parent="r-s1"))
    assert store.fates("s") == {
        "a1": "compacted < k",
        "a2": "active",
        "b1": "rewound < c1",
        "b2": "rewound < c1",
        "c1": "compacted < k",
        "s1": "active",
        "s2": "active",
    }
    assert store.row("SELECT body IS NOT NULL FROM events WHERE type = 'compaction'") == 1
    store.add("s.log", prompt("d1", parent="r-c1"))
    assert store.fates("s")["a1"] == "active", "the compaction was rewound with its summary"
    assert store.fates("s")["s2"] == "rewound < d1"


def test_what_a_record_says_of_a_message_survives_every_rewind(store: ToyStore) -> None:
    store.add("s.log", A, answer("x", parent="r-a2", fate="superseded"), answer("w", parent="r-x", fate="sidecar"))
    assert store.fates("s") == {"a1": "active", "a2": "active", "x": "superseded", "w": "sidecar"}
    store.add("s.log", prompt("b1", parent="r-a1"))
    assert store.fates("s") == {"a1": "active", "a2": "rewound < b1", "x": "superseded", "w": "sidecar", "b1": "active"}


def test_a_fate_that_a_later_line_has_is_kept(store: ToyStore) -> None:
    store.add("s.log", A, answer("x", parent="r-a2"))
    store.add("s.log", line(kind="text", id="r2", parent="r-x", message="x", block=1, text="!", fate="superseded"))
    assert store.fates("s")["x"] == "superseded"


def test_a_parent_that_the_fold_forgot_is_found_in_the_store(store: ToyStore) -> None:
    """Through a result, and through a record that is no message."""
    store.add("s.log", A, line(kind="call", id="r-c", parent="r-a2", message="a3", call="c1", tool="Bash"))
    store.add(
        "s.log", line(kind="result", id="r-r", parent="r-c", call="c1"), line(kind="note", id="r-n", parent="r-r")
    )
    store.add("s.log", prompt("b1", parent="r-n"), prompt("c1", parent="r-r"), prompt("d1", parent="nowhere"))
    parents = dict(
        store.rows(f"SELECT m.external_id, {PARENT_ID} FROM memberships s JOIN messages m ON m.key = s.message_key")
    )
    assert parents == {"a1": None, "a2": "a1", "a3": "a2", "b1": "a3", "c1": "a3", "d1": "c1"}, (
        "what was lost is the message before"
    )


def test_the_agents_own_pointer_ends_the_active_branch(store: ToyStore) -> None:
    store.add("s.log", A, prompt("b1", parent="r-a2"))
    store.add("s.log", line(kind="leaf", leaf="r-a2"))
    assert store.fates("s") == {"a1": "active", "a2": "active", "b1": "rewound"}
    store.add("s.log", line(kind="leaf", leaf=""))
    assert set(store.fates("s").values()) == {"rewound"}
    store.add("s.log", prompt("c1", parent=None))
    assert store.fates("s") == {"a1": "rewound < c1", "a2": "rewound < c1", "b1": "rewound < c1", "c1": "active"}


def test_a_long_session_with_branches_grows_as_fast_as_a_short_one(store: ToyStore) -> None:
    """Fates are not worked out anew for a line that only goes on."""
    branch = prompt("x", parent="r-a1")
    store.add("s.log", A, branch, *[prompt(f"m{n}", parent=f"r-m{n - 1}" if n else "r-x") for n in range(1500)])
    changes: list[int] = []
    for number in range(1500, 1505):
        before = store.connection.total_changes
        store.add("s.log", prompt(f"m{number}", parent=f"r-m{number - 1}"))
        changes.append(store.connection.total_changes - before)
    assert max(changes) < 30
    steps = 0

    def count() -> None:
        nonlocal steps
        steps += 1

    store.connection.set_progress_handler(count, 100)
    store.add("s.log", prompt("m1505", parent="r-m1504"))
    store.connection.set_progress_handler(None, 0)
    assert steps < 100, "the database did not walk over the whole session"
    assert set(list(store.fates("s").values())[3:]) == {"active"}
