import json
import sqlite3
from contextlib import closing
from pathlib import Path
from threading import Timer
from typing import Any

import pytest

from support.cli_runner import Command
from support.plain_agent import PlainAgent
from support.plain_history import OTHER, SESSION
from turnlog.cli.figures import UNKNOWN
from turnlog.sync import rebuild

pytestmark = pytest.mark.usefixtures("store")


def said(run: Command, *arguments: str) -> dict[str, Any]:
    result = run("annotate", SESSION, "--json", *arguments)
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def listed(run: Command, *arguments: str) -> list[str]:
    return [session["id"] for session in json.loads(run("sessions", "--json", *arguments).stdout)["items"]]


def test_what_is_said_is_kept_piece_by_piece(run: Command) -> None:
    assert said(run)["changed_at"] is None
    said(run, "--title", "The till", "--star", "--tag", "work", "--tag", "draft")
    kept = said(run, "--untag", "draft", "--tag", "done", "--note", "ask Ida")
    assert kept.pop("changed_at").endswith("Z")
    assert kept == {
        "session": SESSION,
        "title": "The till",
        "starred": True,
        "archived": False,
        "tags": ["work", "done"],
        "note": "ask Ida",
    }
    emptied = said(run, "--title", "", "--no-star", "--note", "")
    assert (emptied["title"], emptied["starred"], emptied["note"]) == (None, False, None)


def test_a_tag_is_one_line(run: Command) -> None:
    assert said(run, "--tag", " two\n words ", "--tag", " ")["tags"] == ["two words"]
    assert said(run, "--untag", "two words")["tags"] == []


def test_lists_ask_for_stars_and_tags_and_leave_out_what_is_put_away(run: Command) -> None:
    said(run, "--star", "--tag", "work")
    assert listed(run, "--starred") == listed(run, "--tag", "work") == [SESSION]
    assert listed(run, "--tag", "play") == []
    said(run, "--archive")
    assert listed(run) == [OTHER]
    assert listed(run, "--archived") == [SESSION]


def test_what_is_said_outlives_a_rebuild(
    run: Command, store: Path, plain_agent: PlainAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    said(run, "--title", "The till", "--tag", "work")
    monkeypatch.setattr(rebuild, "registered_agents", lambda: [plain_agent])
    assert run("rebuild").exit_code == 0
    assert (said(run)["title"], said(run)["tags"]) == ("The till", ["work"])


def test_people_see_it_in_lines(run: Command) -> None:
    run("annotate", SESSION, "--star", "--note", "red \x1b[31m\nand green")
    assert run("annotate", SESSION).stdout.splitlines() == [
        SESSION,
        f"  title: {UNKNOWN}",
        "  marks: starred",
        f"  tags: {UNKNOWN}",
        "  note: red ",
        "        and green",
    ]


def test_who_waits_for_a_store_is_told_beside_the_output(
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
