"""`turnlog hub level`: which project or folder is meant, and the rules that hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.cli_runner import Command
from support.plain_agent import Log
from support.plain_history import prompt
from support.plain_store import read_home
from turnlog import paths
from turnlog.hub.machine.pusher import current_levels
from turnlog.hub.machine.state import MachineState


def level_of(store: Path, path: str) -> str:
    with MachineState(store) as state:
        return current_levels(state).of(path)


def test_a_project_is_named_as_everywhere_else(
    run: Command, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("hub", "level", "webshop", "none").stdout == "/work/webshop: none (nothing leaves)\n"
    assert level_of(store, "/work/webshop") == "none"
    run("hub", "level", "websh", "metrics")
    run("hub", "level", "/work/webshop/", "metrics")
    assert level_of(store, "/work/webshop") == "metrics"
    assert run("hub", "level", "webshop").stdout.startswith("/work/webshop: metrics (")
    with MachineState(store) as state:
        assert state.levels() == {"/work/webshop": "metrics"}


@pytest.mark.parametrize("text", ["webhsop", "nope/x", "/nowhere/at/all"])
def test_what_is_neither_a_project_nor_a_folder_is_refused(text: str, run: Command, store: Path) -> None:
    refused = run("hub", "level", text, "full")
    assert (refused.exit_code, refused.stdout) == (3, "")
    assert "there is no folder" in refused.stderr
    with MachineState(store) as state:
        assert state.levels() == {}


def test_a_folder_that_is_gone_is_taken_where_projects_lie_below_it(run: Command, logs: Path) -> None:
    log = Log(logs, "old-shop")
    log.session(title="Old", project_path="/long-gone/work/shop")
    log.message(prompt("o1", "hello", 1))
    store = paths.database_path()
    read_home(store, logs)
    assert run("hub", "level", "/long-gone", "none").stdout == "/long-gone: none (nothing leaves)\n"
    assert level_of(store, "/long-gone/work/shop") == "none"
    for other in ("/long", "/long-gone/wor", "/long-gone/work/shop/deep"):  # which only begin alike, or are below
        assert run("hub", "level", other, "none").exit_code == 3


def test_a_near_name_is_proposed(run: Command, store: Path) -> None:
    assert "did you mean webshop?" in run("hub", "level", "webhsop", "none").stderr


def test_a_name_of_two_projects_is_refused_with_their_folders(run: Command, logs: Path) -> None:
    log = Log(logs, "other-shop")
    log.session(title="Other", project_path="/elsewhere/webshop")
    log.message(prompt("o1", "hello", 1))
    store = paths.database_path()
    read_home(store, logs)
    refused = run("hub", "level", "webshop", "none")
    assert refused.exit_code == 4
    assert (
        "/work/webshop, /elsewhere/webshop" in refused.stderr or "/elsewhere/webshop, /work/webshop" in refused.stderr
    )
    assert run("hub", "level", "/elsewhere/webshop", "none").exit_code == 0
    assert level_of(store, "/work/webshop") == "redacted"


def test_every_rule_is_listed_also_that_of_a_folder_without_a_project(
    run: Command, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = tmp_path / "client"
    client.mkdir()
    settings = tmp_path / "config.toml"
    settings.write_text('[hub]\nlevel = "metrics"\n[hub.projects]\n"/srv/other" = "full"\n')
    monkeypatch.setenv("TURNLOG_CONFIG", str(settings))
    assert run("hub", "level", str(client), "none").exit_code == 0
    (tmp_path / "link").symlink_to(client)
    run("hub", "level", str(tmp_path / "link" / ".." / "link"), "none")
    listed = run("hub", "level").stdout
    assert "metrics   /work/webshop" in listed
    rules = listed.partition("Rules")[2].splitlines()[1:]
    assert rules == [
        f"  none      {client}",
        f"  none      {tmp_path / 'link'}",
        "  full      /srv/other  (settings)",
        "  metrics   everything else",
    ]
    # The rule of a folder that is gone can still be changed.
    (tmp_path / "link").unlink()
    client.rmdir()
    assert run("hub", "level", str(client), "metrics").exit_code == 0


def test_a_folder_within_a_project_has_the_level_of_the_project(run: Command, logs: Path, tmp_path: Path) -> None:
    log = Log(logs, "in-a-folder")
    log.session(title="Here", project_path=str(tmp_path))
    log.message(prompt("h1", "hello", 1))
    read_home(paths.database_path(), logs)
    (tmp_path / "within").mkdir()
    said = run("hub", "level", str(tmp_path / "within"), "none")
    assert f"sessions here are of the project {tmp_path}" in said.stderr
    assert run("hub", "level", str(tmp_path), "none").stderr == ""


def test_a_session_of_no_project_leaves_no_more_than_all_folders(run: Command, store: Path) -> None:
    for level, held in (("none", "none"), ("full", "redacted")):
        run("hub", "level", "/", level)
        with MachineState(store) as state:
            assert current_levels(state).of(None) == held
        assert f"  {held:9} everything else" in run("hub", "level").stdout
