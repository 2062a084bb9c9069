"""`turnlog project`."""

from __future__ import annotations

import json
from pathlib import Path

from support.cli_runner import Command


def projects(run: Command) -> list[dict[str, object]]:
    return json.loads(run("project", "list", "--no-sync", "--json").stdout)["items"]


def test_projects_are_listed_without_a_subcommand(run: Command, store: Path) -> None:
    lines = run("project").stdout.splitlines()
    assert lines[0].split() == ["Project", "Sessions", "Updated", "Folder"]
    assert lines[1:] == run("project", "list").stdout.splitlines()[1:]
    assert any(line.startswith("webshop ") and line.endswith("/work/webshop") for line in lines)


def test_projects_of_another_store_are_listed_and_named(run: Command, store: Path) -> None:
    copy = store.rename(store.with_name("copy.db"))
    listed = run("project", "--store", str(copy), "--json").stdout
    assert "/work/webshop" in listed
    assert run("project", "list", "--store", str(copy), "--json").stdout == listed
    assert run("project", "--store", str(copy), "rename", "webshop", "Shop").exit_code == 0
    assert "Shop" in run("project", "--store", str(copy), "--no-sync").stdout
    assert not store.exists()


def test_a_project_gets_a_name(run: Command, store: Path) -> None:
    assert run("project", "rename", "webshop", "Shop").stdout == "/work/webshop is named Shop.\n"
    assert run("sessions", "--no-sync", "--project", "Shop", "--json").exit_code == 0
    assert json.loads(run("project", "rename", "Shop", "", "--json").stdout)["name"] == "webshop"


def test_projects_are_merged_and_split(run: Command, store: Path) -> None:
    before = projects(run)
    first, second = (str(found["path"]) for found in before[:2])
    assert run("project", "merge", first, second).exit_code == 0
    assert [first] in [found["merged"] for found in projects(run)]
    assert "is merged into" in run("project", "rename", first, "x").stderr
    assert (
        run("sessions", "--no-sync", "--project", first).stdout
        == run("sessions", "--no-sync", "--project", second).stdout
    )
    assert run("project", "split", first).exit_code == 0
    assert projects(run) == before


def test_a_merged_project_is_still_found_by_the_name_of_its_folder(run: Command, store: Path) -> None:
    first, second = (str(found["path"]) for found in projects(run)[:2])
    name = Path(first).name
    assert run("project", "merge", name, second).exit_code == 0
    listed = [run("sessions", "--no-sync", "--project", each).stdout for each in (name, second)]
    assert listed[0] == listed[1]
    assert run("project", "split", name).exit_code == 0
    assert first in [found["path"] for found in projects(run)]


def test_a_project_that_is_not_there_is_an_error_with_the_near_ones(run: Command, store: Path) -> None:
    result = run("project", "rename", "webshp", "x")
    assert (result.exit_code, result.stdout) == (3, "")
    assert "did you mean webshop?" in result.stderr
    assert run("project", "split", "webshop").exit_code == 3


def test_a_name_that_another_project_has_is_refused(run: Command, store: Path) -> None:
    """Two projects of one name could not be told apart; one that is two folders is merged."""
    first, second = projects(run)[:2]
    result = run("project", "rename", str(first["path"]), str(second["name"]))
    assert (result.exit_code, result.stdout) == (4, "")
    assert f"{second['path']} is named {second['name']} already" in result.stderr
    assert f"`turnlog project merge {first['path']} {second['path']}`" in result.stderr
    assert run("project", "rename", str(second["path"]), str(second["name"])).exit_code == 0


def test_a_search_shows_the_name_of_the_project(run: Command, store: Path) -> None:
    run("project", "rename", "webshop", "Shop of Ada")
    assert "Shop of Ada" in run("search", "scout").stdout
    [found, *_] = json.loads(run("search", "scout", "--json").stdout)["sessions"]
    assert found["project_name"] == found["hit"]["places"][0]["project_name"] == "Shop of Ada"
