"""`turnlog sessions` and `turnlog annotate`, for people and for programs."""

import json
import re
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Timer
from typing import Any

import click
import pytest
from msgspec import Raw

from support.cli_runner import Command, on_terminal
from support.plain_agent import PlainAgent
from support.plain_history import OTHER, SESSION, SUBAGENT
from turnlog import paths
from turnlog.cli.formatting import UNKNOWN
from turnlog.cli.options import find_session
from turnlog.cli.short_ids import short_ids
from turnlog.model import Message, TextPart, ToolCallPart, ToolKind
from turnlog.model.codec import decode_session, encode
from turnlog.runs.states import session_states
from turnlog.store import open_store
from turnlog.sync import rebuild

pytestmark = pytest.mark.usefixtures("store")


PARTLY = "turnlog: 1 log could be read only in part: `turnlog doctor` shows why\n"
"""One record of the log is no JSON."""


def ids(run: Command, *arguments: str) -> list[str]:
    result = run("sessions", "--json", *arguments)
    assert result.exit_code == 0, result.stderr
    return [session["id"] for session in json.loads(result.stdout)["items"]]


def test_sessions_are_listed_newest_first_without_subagents(run: Command) -> None:
    assert ids(run) == [OTHER, SESSION]
    assert ids(run, "--subagents") == [OTHER, SESSION, SUBAGENT]


def test_filters_hold(run: Command) -> None:
    assert ids(run, "--project", "webshop") == [SESSION]
    assert ids(run, "--model", "small") == [OTHER]
    assert ids(run, "--branch", "main") == [SESSION]
    assert ids(run, "--title", "POST") == [OTHER]
    assert ids(run, "--since", "2026-11-03T00:00Z") == [OTHER]
    assert ids(run, "--until", "2026-11-02T23:00Z") == [SESSION]
    assert ids(run, "--parent", "3f2a") == [SUBAGENT]
    assert ids(run, "--agent", "pla") == ids(run, "--agent", "plain") != []
    assert ids(run, "--sort", "messages") == [SESSION, OTHER]


def test_sessions_with_failed_calls(run: Command) -> None:
    assert ids(run, "--having", "failed-call") == [SESSION]
    assert ids(run, "--having", "failed-call", "--project", "blog") == []


def test_sessions_within_a_turn_show_their_last_action(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is it doing now, or was when it went silent: its unfinished call, else what it did or said last."""
    now = datetime.now(UTC)
    call = ToolCallPart(
        tool_call_id="c", tool_name="Bash", kind=ToolKind.EXECUTE, input=Raw(b'{"command":"make test"}')
    )
    text = TextPart(text="Mend the tests.")
    with open_store(paths.database_path()) as store:
        for message in (
            Message(id="calls", role="assistant", created_at=now, parts=(call,)),
            Message(id="says", role="user", created_at=now, parts=(text,)),
        ):
            store.save_session(f"mine:{message.id}")
            store.save_messages(f"mine:{message.id}", [message])
    listed = run("sessions", "--status", "running").stdout
    assert "Last action" in listed
    assert "Bash make test" in listed
    assert "Mend the tests." in listed
    assert "Last action" not in run("sessions").stdout
    monkeypatch.setattr("turnlog.store.session_state.QUIET_AFTER", timedelta())
    assert "Bash make test" in run("sessions", "--status", "idle").stdout


def test_pages_go_on_where_the_last_one_ended(run: Command) -> None:
    first = json.loads(run("sessions", "--json", "--limit", "1").stdout)
    assert first["total"] == 2
    second = json.loads(run("sessions", "--json", "--limit", "1", "--cursor", first["next_cursor"]).stdout)
    assert [page["items"][0]["id"] for page in (first, second)] == [OTHER, SESSION]
    assert second["next_cursor"] is None
    assert run("sessions", "--cursor", "nonsense").exit_code == 2


def test_items_are_the_models_sessions(run: Command) -> None:
    items = json.loads(run("sessions", "--json").stdout)["items"]
    session = decode_session(json.dumps(items[1]).encode())
    assert (session.title, session.counts.tool_calls, session.unpriced_calls) == ("Repair the webshop", 5, 1)


def test_in_a_pipe_nothing_is_cut(run: Command) -> None:
    result = run("sessions", "--limit", "1")
    assert OTHER in result.stdout
    assert "Write a post" in result.stdout
    assert result.stderr == f"1 of 2 sessions; --limit shows more.\n{PARTLY}"


def test_a_terminal_gets_short_ids_in_colour_that_fit() -> None:
    code, written = on_terminal("sessions", "--subagents", columns=80)
    assert code == 0
    assert "\x1b[36m" in written
    assert "-1111-" not in written
    assert {"77aa0000", "3f2a91c0", "3f2a91c0.scout"} <= set(click.unstyle(written).split())
    # A slow machine has shown, and taken away, how far it was.
    head, *lines = click.unstyle(written).strip().splitlines()
    assert {"Status", "Title", "Cost"} <= set(head.split())
    assert max(map(len, [head, *lines])) <= 80


def test_what_a_list_prints_of_an_id_is_found_alone_in_the_whole_store(tmp_path: Path) -> None:
    time = "01a20000-0000-7000-8000-00000000000"
    expected = {
        "one:3f2a91c0-1111": "3f2a91c0",
        "one:01a1fbdd-6030-7": "01a1fbdd-6",
        "one:01a1fbdd-7122-7": "01a1fbdd-7",
        f"one:{time}1": "01a2…001",
        f"one:{time}2": "01a2…002",
        "one:0a1b2c3d-0000": "one:0a1b2c3d",
        "two:0a1b2c3d-0000": "two:0a1b2c3d",
        "one:short": "one:short",
        "one:shorter": "shorter",
        "one:aaaaaaaa-1": "aaaa…a-1",
        "one:aaaaaaaa-12": "aaaaaaaa-12",
    }
    with open_store(tmp_path / "turnlog.db", create=True) as store:
        for id in expected:
            store.save_session(id)
        found = {id: text for each in expected for id, text in short_ids(store, [each]).items()}
        assert found == expected == short_ids(store, expected)
        assert {find_session(store, text).id: text for text in found.values()} == expected


COLOUR = re.compile(r"\x1b\[[34]\d")


def test_a_terminal_gets_no_colour_where_none_is_wanted() -> None:
    again = ("replay", SESSION, "--max-pause", "0")
    code, written = on_terminal(*again, NO_COLOR="1")
    assert code == 0
    assert not COLOUR.search(written)
    code, written = on_terminal(*again, TERM="dumb")
    assert code == 0
    assert "\x1b" not in written
    assert COLOUR.search(on_terminal(*again, NO_COLOR="")[1])


def as_json(run: Command, *arguments: str) -> dict[str, Any]:
    result = run("annotate", SESSION, "--json", *arguments)
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def listed(run: Command, *arguments: str) -> list[str]:
    return [session["id"] for session in json.loads(run("sessions", "--json", *arguments).stdout)["items"]]


def test_what_arrives_is_kept_piece_by_piece(run: Command) -> None:
    assert as_json(run)["changed_at"] is None
    as_json(run, "--title", "The till", "--star", "--tag", "work", "--tag", "draft")
    kept = as_json(run, "--untag", "draft", "--tag", "done", "--note", "ask Ida")
    assert kept.pop("changed_at").endswith("Z")
    assert kept == {
        "session": SESSION,
        "title": "The till",
        "starred": True,
        "archived": False,
        "tags": ["work", "done"],
        "note": "ask Ida",
        "task": None,
        "pins": [],
    }
    emptied = as_json(run, "--title", "", "--no-star", "--note", "")
    assert (emptied["title"], emptied["starred"], emptied["note"]) == (None, False, None)


def test_a_status_selects_the_sessions_whose_state_has_this_name(run: Command) -> None:
    def listed(*arguments: str) -> list[tuple[str, str]]:
        items = json.loads(run("sessions", "--json", "--subagents", *arguments).stdout)["items"]
        return [(item["id"], item["state"]["state"]) for item in items]

    everything = listed()
    for status, state in {"running": "running", "waiting": "waiting", "done": "done", "idle": "quiet"}.items():
        assert listed("--status", status) == [each for each in everything if each[1] == state]
    assert run("sessions", "--status", "quiet").exit_code == 2
    assert run("sessions", "--status", "idle").stderr.endswith(
        f"Subagents are left out; --subagents lists them too.\n{PARTLY}"
    )
    states = [state for _, state in everything]
    often = max(states, key=states.count)
    name = {"quiet": "idle"}.get(often, often)
    assert run("sessions", "--subagents", "--status", name, "--limit", "1").stderr == (
        ("1 session; --limit shows more.\n" if states.count(often) > 1 else "") + PARTLY
    )


def test_a_tag_that_is_not_there_cannot_be_removed_in_silence(run: Command) -> None:
    result = run("annotate", SESSION, "--tag", "one", "--untag", "nope")
    assert (result.exit_code, result.stderr) == (0, "turnlog: it had no tag 'nope'\n")
    assert run("annotate", SESSION, "--untag", "one").stderr == ""


@pytest.mark.parametrize("name", ["star", "archive"])
def test_a_mark_cannot_be_added_and_removed_at_once(run: Command, name: str) -> None:
    for options in ((f"--{name}", f"--no-{name}"), (f"--no-{name}", f"--{name}")):
        refused = run("annotate", SESSION, *options)
        assert (refused.exit_code, f"--{name} and --no-{name} exclude each other." in refused.stderr) == (2, True)
    kept = {True: as_json(run, f"--{name}", f"--{name}"), False: as_json(run, f"--no-{name}"), None: as_json(run)}
    assert [kept[given][f"{name.removesuffix('e')}{'red' if name == 'star' else 'ed'}"] for given in kept] == [
        True,
        False,
        False,
    ]


def test_a_tag_is_one_line(run: Command) -> None:
    assert as_json(run, "--tag", " two\n words ")["tags"] == ["two words"]
    assert as_json(run, "--untag", "two words")["tags"] == []
    empty = run("annotate", SESSION, "--tag", " ")
    assert (empty.exit_code, "a tag cannot be empty" in empty.stderr) == (2, True)


def test_lists_ask_for_stars_and_tags_and_leave_out_what_is_put_away(run: Command) -> None:
    as_json(run, "--star", "--tag", "work")
    assert listed(run, "--starred") == listed(run, "--tag", "work") == [SESSION]
    assert run("sessions", "--tag", "play").exit_code == 3
    as_json(run, "--archive")
    assert listed(run) == [OTHER]
    assert listed(run, "--archived") == [SESSION]


def test_annotations_outlive_a_rebuild(
    run: Command, store: Path, plain_agent: PlainAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_json(run, "--title", "The till", "--tag", "work")
    monkeypatch.setattr(rebuild, "registered_agents", lambda: [plain_agent])
    assert run("rebuild").exit_code == 0
    assert (as_json(run)["title"], as_json(run)["tags"]) == ("The till", ["work"])


def test_people_see_it_in_lines(run: Command) -> None:
    run("annotate", SESSION, "--star", "--note", "red \x1b[31m\nand green")
    assert run("annotate", SESSION).stdout.splitlines() == [
        SESSION,
        f"  title: {UNKNOWN}",
        "  marks: starred",
        f"  tags: {UNKNOWN}",
        "  note: red ",
        "        and green",
        f"  task: {UNKNOWN}",
        f"  pins: {UNKNOWN}",
    ]


def test_waiting_for_a_store_is_reported_beside_the_output(
    run: Command, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("turnlog.store.write_lock.SILENT_SECONDS", 0.05)
    with closing(sqlite3.connect(store, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        end = Timer(1, other.rollback)
        end.start()
        result = run("annotate", SESSION, "--json", "--star")
        end.join()
    assert result.exit_code == 0
    assert json.loads(result.stdout)["starred"] is True
    assert result.stderr == f"turnlog: waiting for another process that is writing to {store}\n"


def test_items_have_the_state_that_the_api_has(run: Command, store: Path) -> None:
    items = json.loads(run("sessions", "--json").stdout)["items"]
    with open_store(store) as opened:
        states = session_states(opened, [item["id"] for item in items])
    assert [item["state"] for item in items] == [json.loads(encode(states[item["id"]])) for item in items]
    assert {item["state"]["state"] for item in items} <= {"done", "quiet"}


@pytest.mark.parametrize("name", ["sessions", "usage", "insights", "search x", "runs"])
def test_a_period_that_ends_before_it_begins_is_wrong_use(run: Command, name: str) -> None:
    late, early = ("--since", "2026-11-30"), ("--until", "2026-11-01")
    for arguments in ((*late, *early), (*early, *late)):
        refused = run(*name.split(), *arguments)
        assert refused.exit_code == 2
        assert refused.stderr.endswith("Error: The period ends before it begins: --until is before --since.\n")
    assert run(*name.split(), "--since", "2026-11-01", "--until", "2026-11-01").exit_code == 0
