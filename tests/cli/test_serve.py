import json
import os
import signal
import subprocess
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.cli_runner import Command, command
from turnlog import paths, server


def test_the_page_and_the_api_answer_until_the_process_is_told_to_stop(store: Path) -> None:
    process = subprocess.Popen(
        command("serve", "--no-browser", "--no-sync", "--port", "0"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    try:
        address = process.stdout.readline().removeprefix("turnlog is at ").strip()
        assert address.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(f"{address}api/status", timeout=10) as answer:
            assert json.load(answer)["store"]["path"] == str(store)
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)


def test_what_was_asked_for_is_passed_on(run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {}

    def serve(store_path: Path, **settings: Any) -> None:
        asked.update(settings, store_path=store_path)
        settings["announce"]("http://127.0.0.1:1/")

    monkeypatch.setattr(server, "serve", serve, raising=False)
    store = tmp_path / "other.db"
    result = run("serve", "--port", "9000", "--no-sync", "--no-browser", "--token", "t", "--store", str(store))
    assert result.stdout == "turnlog is at http://127.0.0.1:1/\n"
    expected = {"host": "127.0.0.1", "port": 9000, "token": "t", "sync": False, "open_browser": False}
    assert {name: asked[name] for name in expected} == expected
    assert asked["store_path"] == store


def test_a_port_that_cannot_be_is_wrong_use(run: Command) -> None:
    assert run("serve", "--port", "70000").exit_code == 2


@contextmanager
def served() -> Generator[dict[str, Any]]:
    """The status of `turnlog serve`, which runs meanwhile."""
    process = subprocess.Popen(
        command("serve", "--no-browser", "--port", "0"),
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    try:
        address = process.stdout.readline().removeprefix("turnlog is at ").strip()
        with urllib.request.urlopen(f"{address}api/status", timeout=10) as answer:
            yield json.load(answer)
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)


def test_a_sample_is_shown_until_there_are_logs(home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with served() as status:
        assert status["sample"]
        assert status["store"]["sessions"] >= 3
        assert status["store"]["path"] == str(paths.sample_path())
    assert not paths.database_path().exists()
    assert "this is the sample" in capfd.readouterr().err
    project = home / ".claude/projects/-work"
    project.mkdir(parents=True)
    (project / "bbbbbbbb-0000-4000-8000-000000000001.jsonl").write_text("{}\n")
    with served() as status:
        assert not status["sample"]
        assert status["store"]["path"] == str(paths.database_path())
    assert "this is the sample" not in capfd.readouterr().err


def test_a_store_that_was_asked_for_is_opened_empty_as_it_is(
    run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, Any] = {}

    def serve(store_path: Path, **settings: Any) -> None:
        asked.update(settings, store_path=store_path)

    monkeypatch.setattr(server, "serve", serve, raising=False)
    run("serve", "--store", str(tmp_path / "other.db"))
    assert (asked["store_path"], asked["sample"], asked["sync"]) == (tmp_path / "other.db", False, True)
