"""Commands that read the store bring it up to date first."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.cli_runner import Command, command, in_pipe
from turnlog import paths
from turnlog.errors import StoreBusyError, StoreError
from turnlog.hooks.server_socket import ask_server
from turnlog.sync import syncer

SESSION = "7d1f6a52-3a70-4a57-9d0c-0b4b6f0a1c11"


def line(number: int, text: str) -> str:
    """A prompt, as Claude Code logs it."""
    record = {
        "type": "user",
        "uuid": f"00000000-0000-4000-8000-{number:012}",
        "parentUuid": f"00000000-0000-4000-8000-{number - 1:012}" if number else None,
        "sessionId": SESSION,
        "timestamp": f"2026-11-20T10:{number:02}:00.000Z",
        "cwd": "/home/ada/shop",
        "version": "2.1.30",
        "message": {"role": "user", "content": text},
    }
    return json.dumps(record) + "\n"


@pytest.fixture
def log(home: Path) -> Path:
    """A log of Claude Code; there is no store yet."""
    path = home / ".claude" / "projects" / "-home-ada-shop" / f"{SESSION}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text(line(0, "mend the till"))
    return path


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("sessions", "--json"), SESSION),
        (("search", "till", "--json"), SESSION),
        (("usage", "--json"), '"totals"'),
        (("show", SESSION), "mend the till"),
        (("files", "--json"), '"files"'),
        (("export", SESSION, "--as", "json"), "mend the till"),
        (("replay", SESSION), "mend the till"),
    ],
)
def test_the_first_command_reads_the_logs(arguments: tuple[str, ...], expected: str, log: Path) -> None:
    result = in_pipe(*arguments)
    assert (result.returncode, result.stderr) == (0, "")
    assert expected in result.stdout


def test_what_was_written_since_is_read_before_the_answer(run: Command, log: Path) -> None:
    run("sessions")
    with log.open("a") as file:
        file.write(line(1, "and the receipts"))
    assert "and the receipts" in run("show", SESSION).stdout
    assert len(json.loads(run("search", "receipts", "--flat", "--json").stdout)["hits"]) == 1


def test_without_sync_the_answer_is_what_was_read_before(run: Command, log: Path) -> None:
    result = run("sessions", "--no-sync")
    assert (result.exit_code, result.stdout) == (3, "")
    assert "`turnlog sync`" in result.stderr
    assert not paths.database_path().exists()
    run("sync")
    with log.open("a") as file:
        file.write(line(1, "and the receipts"))
    assert "receipts" not in run("show", SESSION, "--no-sync").stdout


def test_a_setting_turns_it_off(run: Command, log: Path) -> None:
    settings = paths.settings_path()
    settings.parent.mkdir(parents=True)
    settings.write_text("sync_before_reading = false\n")
    assert run("sessions").exit_code == 3
    settings.write_text("sync_before_reading = true\n")
    assert run("sessions").exit_code == 0


@pytest.mark.parametrize("text", ["sync_before_reading = 3", "sync_before_raeding = false", "= no toml", "\xff"])
def test_settings_that_cannot_be_used_are_named(text: str, run: Command, log: Path) -> None:
    paths.settings_path().parent.mkdir(parents=True)
    paths.settings_path().write_text(text, encoding="latin-1")
    result = run("sessions")
    assert (result.exit_code, result.stdout) == (1, "")
    assert f"cannot use the settings {paths.settings_path()}: " in result.stderr


def test_the_environment_names_the_settings(
    run: Command, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tmp_path / "mine.toml"
    settings.write_text("sync_before_reading = false")
    monkeypatch.setenv("TURNLOG_CONFIG", str(settings))
    assert run("sessions").exit_code == 3


def test_settings_that_are_named_must_exist(
    run: Command, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TURNLOG_CONFIG", str(tmp_path / "none.toml"))
    result = run("sessions")
    assert (result.exit_code, result.stdout) == (1, "")
    assert f"there are no settings at {tmp_path / 'none.toml'}, which TURNLOG_CONFIG names" in result.stderr


def test_a_store_that_is_named_stays_as_it_is(run: Command, log: Path, tmp_path: Path) -> None:
    run("sync")
    copy = tmp_path / "copy.db"
    shutil.copy(paths.database_path(), copy)
    with log.open("a") as file:
        file.write(line(1, "and the receipts"))
    assert "receipts" not in run("show", SESSION, "--store", str(copy)).stdout
    assert run("show", SESSION, "--store", str(tmp_path / "none.db")).exit_code == 3


def test_on_a_machine_without_logs_it_says_so(run: Command) -> None:
    result = run("sessions")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "no logs of agents were found: `turnlog agents` lists" in result.stderr
    assert "no logs of agents" not in run("sessions").stderr


@pytest.mark.parametrize(
    ("error", "note"),
    [
        (KeyboardInterrupt(), "interrupted: older logs are not read yet"),
        (StoreBusyError("locked"), "another process is reading logs: something may be missing"),
        (StoreError("the disk is full"), "new logs are not read: the disk is full"),
    ],
)
def test_what_cannot_be_read_now_does_not_keep_the_answer_back(
    error: BaseException, note: str, run: Command, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("sync")

    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(syncer, "sync", fail)
    result = run("show", SESSION)
    assert (result.exit_code, result.stderr) == (0, f"turnlog: {note}\n")
    assert "mend the till" in result.stdout


def test_a_store_that_cannot_be_made_is_an_error(run: Command, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise StoreError("the disk is full")

    monkeypatch.setattr(syncer, "sync", fail)
    result = run("show", SESSION)
    assert (result.exit_code, result.stderr) == (1, "turnlog: the disk is full\n")


def test_logs_that_cannot_be_read_are_one_line(run: Command, log: Path) -> None:
    Path(os.fsdecode(os.fsencode(log.parent) + b"/\xff.jsonl")).touch()
    result = run("sessions", "--json")
    assert json.loads(result.stdout)["total"] == 1
    assert result.stderr == "turnlog: 1 log could not be read: `turnlog doctor` shows why\n"


def test_a_list_of_sessions_reports_unread_and_partly_read_logs(run: Command, log: Path) -> None:
    """Also later, when nothing is read: only `doctor` knew."""
    with log.open("ab") as file:
        file.write(b"no JSON\n")
    partly = "turnlog: 1 log could be read only in part: `turnlog doctor` shows why\n"
    assert [run("sessions", "--json", *options).stderr for options in ((), (), ("--no-sync",))] == [partly] * 3
    kept = log.read_bytes()
    log.unlink()
    gone = run("sessions", "--json")
    assert (json.loads(gone.stdout)["total"], gone.stderr) == (1, "")
    log.write_bytes(kept)
    Path(os.fsdecode(os.fsencode(log.parent) + b"/\xff.jsonl")).touch()
    result = run("sessions", "--json")
    assert json.loads(result.stdout)["total"] == 1
    assert result.stderr == "turnlog: 1 log could not be read, 1 only in part: `turnlog doctor` shows why\n"


@contextmanager
def serving(*options: str) -> Generator[None]:
    process = subprocess.Popen(
        command("serve", "--no-browser", "--port", "0", *options),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    try:
        assert process.stdout.readline().startswith("turnlog is at ")
        while (
            "--no-sync" not in options and not ask_server(paths.data_dir(), "GET", "/api/status")[1]["sync"]["passes"]
        ):
            time.sleep(0.05)
        yield
    finally:
        process.terminate()
        process.communicate(timeout=20)


def test_a_running_server_has_read_everything(run: Command, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("sync")

    def fail(*_: object, **__: object) -> None:
        pytest.fail("the server reads the logs")

    monkeypatch.setattr(syncer, "sync", fail)
    with serving():
        result = run("show", SESSION)
    assert "mend the till" in result.stdout


def test_a_server_that_reads_no_logs_is_no_help(run: Command, log: Path) -> None:
    run("sync")
    with serving("--no-sync"):
        with log.open("a") as file:
            file.write(line(1, "and the receipts"))
        assert "and the receipts" in run("show", SESSION).stdout
