"""`turnlog import`: a file or a pipe, for people and for programs."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from pathlib import Path

import msgspec
import pytest

from support.claude_files import DATA, SESSION
from support.cli_runner import Command, command
from turnlog.agents import detect
from turnlog.cli.documents import ImportDocument

STREAM = DATA / "streams" / "basic.jsonl"


def test_a_file_is_imported_once(run: Command) -> None:
    first = run("import", str(STREAM))
    assert first.exit_code == 0
    assert "claude-code 2.1.329, stream" in first.stdout
    assert "1 new session, 0 updated, 8 new messages." in first.stdout
    assert f"turnlog show claude-code:{SESSION}" in first.stdout
    assert "It is in the store already." in run("import", str(STREAM)).stdout


def test_a_pipe_is_imported_and_reported_as_json() -> None:
    result = subprocess.run(
        command("import", "-", "--json"), input=STREAM.read_bytes(), capture_output=True, check=True
    )
    document = json.loads(result.stdout)
    assert document["sessions"] == [f"claude-code:{SESSION}"]
    assert (document["agent"], document["kind"], document["is_new"]) == ("claude-code", "stream", True)
    assert msgspec.to_builtins(msgspec.convert(document, ImportDocument)) == document


def test_what_is_nobodys_fails_and_says_why(run: Command, tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("hello\n")
    result = run("import", str(notes))
    assert result.exit_code == 1
    message = f"turnlog: {notes}: of no agent that turnlog reads"
    assert result.stderr == f"{message}; --verbose says why\n"
    first, *reasons = run("import", str(notes), "--verbose").stderr.splitlines()
    assert first == message
    assert "  Claude Code: no line is a JSON object" in reasons
    notes.write_text("")
    assert run("import", str(notes)).stderr == f"{message} (empty)\n"


def test_a_file_that_is_not_there_is_wrong_use(run: Command) -> None:
    assert run("import", "nowhere.jsonl").exit_code == 2


@pytest.fixture(params=["device", "pipe", "socket"])
def endless(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, str]:
    """What would never end, or is no log, and what it is called."""
    path = tmp_path / "odd"
    if request.param == "device":
        return Path("/dev/zero"), "a device"
    if request.param == "pipe":
        os.mkfifo(path)
    else:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))
    return path, f"a {request.param}"


@pytest.mark.parametrize("is_linked", [False, True])
def test_what_is_no_file_is_refused_before_it_is_read(
    endless: tuple[Path, str], is_linked: bool, tmp_path: Path
) -> None:
    """R-S34"""
    path, what = endless
    if is_linked:
        link = tmp_path / "link.jsonl"
        link.symlink_to(path)
        path = link
    result = subprocess.run(command("import", str(path)), capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 1, result.stderr
    assert f"this is {what}, not a file" in result.stderr
    assert str(path) in result.stderr
    assert f"this is {what}, not a file" in str(detect(path).reason)


def test_a_folder_without_an_export_is_refused(run: Command, tmp_path: Path) -> None:
    (tmp_path / "notes.json").write_text("[]")
    result = run("import", str(tmp_path))
    assert result.exit_code == 1
    assert result.stderr.startswith(f"turnlog: {tmp_path}: a folder without an export that is read here")


def test_a_device_is_refused_as_a_pipe_too() -> None:
    with Path("/dev/zero").open("rb") as endless:
        result = subprocess.run(
            command("import", "-"), stdin=endless, capture_output=True, text=True, timeout=60, check=False
        )
    assert result.returncode == 1
    assert result.stderr == "turnlog: standard input: this is a device, not a file\n"
