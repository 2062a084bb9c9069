"""`turnlog task` and `annotate --task`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.cli_runner import Command
from support.plain_history import OTHER


def tasks(run: Command) -> list[tuple[str, str, int]]:
    items = json.loads(run("task", "list", "--no-sync", "--json").stdout)["items"]
    return [(found["id"], found["name"], found["sessions"]) for found in items]


@pytest.mark.usefixtures("store")
def test_a_session_is_put_into_a_task_that_has_a_name(run: Command) -> None:
    assert json.loads(run("annotate", OTHER, "--task", " T\n17", "--json").stdout)["task"] == "T 17"
    assert tasks(run) == [("T 17", "T 17", 1)]
    listed = json.loads(run("sessions", "--no-sync", "--task", "T 17", "--json").stdout)["items"]
    assert [session["id"] for session in listed] == [OTHER]
    assert run("task", "rename", "T 17", "The till").stdout == "T 17 is named The till.\n"
    assert run("task", "--no-sync").exit_code == 0
    assert [line.split() for line in run("task").stdout.splitlines()][1][-2:] == ["The", "till"]
    assert "  task: T 17" in run("annotate", OTHER).stdout
    assert run("task", "delete", "T 17").exit_code == 0
    assert tasks(run) == []
    assert run("task", "delete", "T 17").exit_code == 3


@pytest.mark.usefixtures("store")
def test_a_session_leaves_its_task(run: Command) -> None:
    run("annotate", OTHER, "--task", "T-1")
    assert json.loads(run("annotate", OTHER, "--task", "", "--json").stdout)["task"] is None
    assert tasks(run) == []


@pytest.mark.usefixtures("store")
def test_tasks_of_another_store_are_listed_and_named(run: Command, store: Path) -> None:
    copy = store.rename(store.with_name("copy.db"))
    run("annotate", OTHER, "--task", "T-1", "--store", str(copy))
    assert "T-1" in run("task", "--store", str(copy)).stdout
    assert json.loads(run("task", "--store", str(copy), "--json").stdout)["items"][0]["id"] == "T-1"
    assert run("task", "--store", str(copy), "rename", "T-1", "Till").stdout == "T-1 is named Till.\n"
    assert not store.exists()
