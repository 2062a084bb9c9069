"""`turnlog doctor --report` and `turnlog agents`: what is new in an agent's logs, without a word of what they say."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from support.cli_runner import Command
from turnlog.cli.doctor import shape_of

SECRET = "my secret project"
KEY = "sk-ant-api03-" + "b7Qx2Lr9Kd4TzW8sVn"
"""Short enough to be the name of a field."""


@pytest.fixture
def synced(home: Path, run: Command) -> Path:
    """A store with a session of Claude Code whose last record is of a kind that nobody knows."""
    log = home / ".claude/projects/-src/11111111-1111-4111-8111-111111111111.jsonl"
    log.parent.mkdir(parents=True)
    known = {"sessionId": "x", "version": "9.9.1", "cwd": f"/home/{SECRET}", "uuid": "u", "parentUuid": None}
    records = [
        {"type": "user", "message": {"role": "user", "content": SECRET}, **known},
        {"type": "quantum", "payload": {SECRET: 1, "count": 2, KEY: 3, "list": [SECRET]}, "sessionId": "x"},
        {"type": f"{SECRET}!", "sessionId": "x"},
    ]
    log.write_text("".join(json.dumps(record) + "\n" for record in records))
    assert run("sync").exit_code == 0
    return log


@pytest.mark.usefixtures("synced")
def test_agents_show_versions_and_unknown_kinds(run: Command) -> None:
    items = {item["agent"]: item for item in json.loads(run("agents", "--json").stdout)["items"]}
    assert items["claude-code"]["versions"] == [{"version": "9.9.1", "sessions": 1}]
    assert {"kind": "quantum", "count": 1} in items["claude-code"]["unknown_kinds"]
    assert "9.9.1" in run("agents").stdout


@pytest.mark.usefixtures("synced")
def test_a_report_has_kinds_versions_and_shapes_and_no_content(run: Command, home: Path) -> None:
    report = run("doctor", "--report").stdout
    assert "claude-code: 1 session, 0 subagents" in report
    assert "versions: 9.9.1 (1)" in report
    assert "`quantum`: 1" in report
    payload = "{count: number, [REDACTED:anthropic-key]: number, list: [text], … 1 more}"
    assert f"{{type: text, payload: {payload}, sessionId: text}}" in report
    for word in (SECRET, "secret", str(home), "1111"):
        assert word not in report


@pytest.mark.usefixtures("home")
def test_places_within_a_record_are_named(run: Command, tmp_path: Path) -> None:
    log = tmp_path / "t.json"
    steps = [{"step_id": number, "source": "agent", "message": "", "timestamp": "once"} for number in (1, 2)]
    log.write_text(json.dumps({"schema_version": "ATIF-v1.8", "session_id": "s", "steps": steps}))
    assert run("import", str(log)).exit_code == 0
    wanted = ["$.steps[0].timestamp", "$.steps[1].timestamp"]
    found = json.loads(run("doctor", "--json").stdout)["diagnostics"]
    assert [each["json_path"] for each in found if each["path"] == str(log)] == wanted
    lines = [line.strip() for line in run("doctor").stdout.splitlines()]
    assert [line for line in lines if line.startswith(str(log))] == [f"{log}:1 at {place}" for place in wanted]


def test_a_report_without_a_store_says_so(run: Command) -> None:
    assert "no store" in run("doctor", "--report").stdout


def test_shapes_end_where_they_get_deep() -> None:
    assert shape_of({"a": {"b": {"c": 1}}, "d": [], "e": None, "f": True}) == (
        "{a: {b: {…}}, d: [], e: null, f: true or false}"
    )


def test_settings_that_cannot_be_used_are_a_warning(
    run: Command, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tmp_path / "mine.toml"
    monkeypatch.setenv("TURNLOG_CONFIG", str(settings))
    assert "there are no settings at" in run("doctor").stdout
    settings.write_text("sync_before_reading = 3")
    warnings = json.loads(run("doctor", "--json").stdout)["warnings"]
    assert any(warning.startswith("cannot use the settings") for warning in warnings)
    settings.write_text("sync_before_reading = false")
    assert "settings" not in " ".join(json.loads(run("doctor", "--json").stdout)["warnings"])


def test_only_the_top_folder_of_an_agent_may_be_a_link(home: Path, run: Command, tmp_path: Path) -> None:
    """Logs on another disk are read; what is linked below is not followed, and doctor says so."""
    elsewhere = tmp_path / "elsewhere"
    names = [f"{digit * 8}-1111-4111-8111-111111111111" for digit in "123"]
    for folder, name in zip(("disk/-src", "outside", "outside"), names, strict=True):
        log = elsewhere / folder / f"{name}.jsonl"
        log.parent.mkdir(parents=True, exist_ok=True)
        record = {"type": "user", "message": {"role": "user", "content": "Go"}, "uuid": "u", "parentUuid": None}
        log.write_text(json.dumps({**record, "sessionId": name, "cwd": "/src"}) + "\n")
    top = home / ".claude" / "projects"
    top.parent.mkdir()
    top.symlink_to(elsewhere / "disk")
    (top / "-linked").symlink_to(elsewhere / "outside")
    (top / "-src" / f"{names[1]}.jsonl").symlink_to(elsewhere / "outside" / f"{names[1]}.jsonl")
    assert run("sync").exit_code == 0
    assert [each["id"] for each in json.loads(run("sessions", "--json").stdout)["items"]] == [f"claude-code:{names[0]}"]
    links = [str(top / "-linked"), str(top / "-src" / f"{names[1]}.jsonl")]
    assert json.loads(run("doctor", "--json").stdout)["links_not_followed"] == links
    expected_lines = "\n2 symbolic links below agents' folders not followed\n" + "".join(
        f"    {link}\n" for link in links
    )
    assert expected_lines in run("doctor").stdout


def test_half_a_last_line_is_a_note_and_damage_before_it_an_error(run: Command, synced: Path) -> None:
    """An agent is writing: the rest comes. Errors are listed first, and found also when they are not listed."""
    whole = synced.read_bytes()
    synced.write_bytes(whole + whole[:70])
    assert (run("sync").exit_code, run("doctor").exit_code) == (0, 0)
    (found,) = json.loads(run("doctor", "--json").stdout)["diagnostics"]
    assert (found["severity"], found["line"], found["reason"]) == ("note", 4, "cut off at the end of the file")
    broken = synced.with_name("22222222-2222-4222-8222-222222222222.jsonl")
    broken.write_bytes(b'{"type": "user", "mess\n' + whole)
    assert run("sync").exit_code == 0
    severities = [each["severity"] for each in json.loads(run("doctor", "--json").stdout)["diagnostics"]]
    assert severities == ["error", "note"]
    assert [run("doctor", *limit).exit_code for limit in ((), ("--limit", "1"), ("--limit", "0"))] == [6, 6, 6]


@pytest.mark.usefixtures("synced")
def test_logs_that_an_older_reader_read_are_named_until_a_rebuild(run: Command) -> None:
    assert "n older version" not in run("doctor").stdout
    with closing(sqlite3.connect(run("db", "path").stdout.strip())) as connection, connection:
        connection.execute("UPDATE sources SET parser_version = parser_version - 1")
    assert "An older version of turnlog has read 1 file of the archive (Claude Code 1)" in run("doctor").stdout
    assert run("rebuild").exit_code == 0
    assert "n older version" not in run("doctor").stdout


@pytest.mark.usefixtures("synced")
def test_bytes_of_a_forgotten_session_are_named_until_a_rebuild(run: Command) -> None:
    with closing(sqlite3.connect(run("db", "path").stdout.strip())) as connection, connection:
        connection.execute("INSERT INTO tombstones (session_id, forgotten_at) SELECT session_id, 0 FROM sources")
        connection.execute("DELETE FROM memberships")
    assert "still has bytes of 1 file of forgotten sessions" in run("doctor").stdout
    assert run("rebuild").exit_code == 0
    assert "forgotten" not in run("doctor").stdout
