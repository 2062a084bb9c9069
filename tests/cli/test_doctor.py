"""`turnlog doctor --report` and `turnlog agents`: what is new in an agent's logs, without a word of what they say."""

from __future__ import annotations

import json
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
def test_agents_tell_versions_and_unknown_kinds(run: Command) -> None:
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
