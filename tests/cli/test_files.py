import json
import sys
from pathlib import Path
from typing import Any

import pytest

from support.cli_runner import Command, on_terminal
from support.plain_agent import Log
from support.plain_store import at, read_home
from turnlog.model import Message, ToolCallPart, ToolKind, ToolState
from turnlog.model.codec import to_json

FILE = "/work/webshop/till.py"


@pytest.fixture(autouse=True)
def touched(store: Path, logs: Path) -> None:
    """A session that read a file and edited it."""
    log = Log(logs, "files")
    log.session(cwd="/work/webshop")
    for number, (kind, path) in enumerate(((ToolKind.READ, FILE), (ToolKind.EDIT, "till.py"))):
        part = ToolCallPart(
            tool_call_id=f"f{number}",
            tool_name=kind.title(),
            kind=kind,
            input=to_json({"file_path": path}),
            state=ToolState.OUTPUT_AVAILABLE,
        )
        log.message(Message(id=f"a{number}", role="assistant", created_at=at(number), parts=(part,)))
    read_home(store, logs)


def as_json(run: Command, *arguments: str) -> dict[str, Any]:
    result = run("files", "--json", *arguments)
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def test_a_file_has_its_sessions(run: Command) -> None:
    (use,) = as_json(run, FILE)["sessions"]
    assert (use["session"], use["calls"], use["edits"], use["kinds"]) == ("plain:files", 2, 1, ["edit", "read"])
    assert as_json(run, FILE, "--changed")["sessions"][0]["calls"] == 1
    assert as_json(run, "webshop/till.py")["sessions"] == [use]


def test_files_are_listed(run: Command) -> None:
    (file,) = as_json(run)["files"]
    assert (file["path"], file["sessions"], file["calls"], file["edits"]) == (FILE, 1, 2, 1)
    assert as_json(run, "--session", "files", "--contains", "TILL", "--changed")["files"] == [file]
    assert as_json(run, "--contains", "no such file") == {"sessions": [], "files": []}


def test_a_path_that_begins_with_a_dot_is_one_from_here(
    run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert as_json(run, "./till.py")["sessions"] == []
    assert as_json(run, ".\\till.py")["sessions"] == []
    assert as_json(run, "till.py")["sessions"]


def test_people_see_a_table(run: Command) -> None:
    assert FILE in run("files").stdout
    run("annotate", "plain:files", "--title", "Count the till")
    listed = run("files", FILE).stdout
    assert ("plain:files" in listed, "Count the till" in listed) == (True, True)


def test_a_path_and_filters_do_not_go_together(run: Command) -> None:
    assert run("files", "a.py", "--session", "files").exit_code == 2


def test_a_terminal_gets_ids_and_paths_that_fit() -> None:
    """An id that can be typed again, and the end of a path, which distinguishes it from the next."""
    code, written = on_terminal("files", "till.py", columns=70)
    assert (code, "plain:files" in written, "files" in written) == (0, False, True)
    narrow = on_terminal("files", columns=64)[1]
    assert "…k/webshop/till.py" in narrow


def test_a_narrow_terminal_shows_a_title_rather_than_how_often(run: Command) -> None:
    run("annotate", "plain:files", "--title", "Count the till once more before the shop opens")
    lines = on_terminal("files", "till.py", columns=80)[1]
    assert "Count the till once more before the sh" in lines


@pytest.mark.parametrize("path", [".py", "webshop\\till.py", "till.py", "/work/webshop/../webshop/till.py"])
def test_any_end_of_a_path_finds_it(path: str, run: Command) -> None:
    assert as_json(run, path)["sessions"][0]["calls"] == 2


@pytest.mark.parametrize("path", ["ill.py", "TILL.py", "shop/till.py", ".p"])
def test_the_end_begins_at_a_folder_or_a_dot(path: str, run: Command) -> None:
    assert as_json(run, path)["sessions"] == []


def test_case_counts_as_on_the_platform(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    for path in ("TILL.py", "/Work/webshop/till.py"):
        assert as_json(run, path)["sessions"][0]["calls"] == 2


def test_a_windows_path_is_found_by_its_end(run: Command, store: Path, logs: Path) -> None:
    log = Log(logs, "windows")
    part = ToolCallPart(
        tool_call_id="w1",
        tool_name="Edit",
        kind=ToolKind.EDIT,
        input=to_json({"file_path": r"C:\shop\src\kasse.py"}),
        state=ToolState.OUTPUT_AVAILABLE,
    )
    log.message(Message(id="w1", role="assistant", created_at=at(1), parts=(part,)))
    read_home(store, logs)
    for path in ("kasse.py", "src/kasse.py", r"shop\src\kasse.py", r"C:\shop\src\kasse.py"):
        assert as_json(run, path)["sessions"][0]["session"] == "plain:windows"


@pytest.mark.parametrize("state", [ToolState.OUTPUT_ERROR, ToolState.OUTPUT_DENIED, ToolState.ABORTED])
def test_an_edit_that_failed_is_no_change(state: ToolState, run: Command, store: Path, logs: Path) -> None:
    log = Log(logs, "failed")
    part = ToolCallPart(
        tool_call_id="f1",
        tool_name="Edit",
        kind=ToolKind.EDIT,
        input=to_json({"file_path": "/work/nope.py"}),
        state=state,
    )
    log.message(Message(id="f1", role="assistant", created_at=at(1), parts=(part,)))
    read_home(store, logs)
    (use,) = as_json(run, "nope.py")["sessions"]
    assert (use["calls"], use["edits"]) == (1, 0)
    assert as_json(run, "nope.py", "--changed")["sessions"] == []
    (file,) = as_json(run, "--contains", "nope")["files"]
    assert file["edits"] == 0
    assert as_json(run, "--contains", "nope", "--changed")["files"] == []


def test_a_piece_of_a_file_name_suggests_a_file_that_contains_it(run: Command) -> None:
    result = run("files", "ill.py")
    assert not result.stdout
    assert FILE in result.stderr
    assert "--contains ill.py" in result.stderr
    assert "--contains" not in run("files", "nowhere.py").stderr
