"""A real browser on the real server, over a store that the real sync made. Every test ends with a look at what the
page did besides: no error in its console, no request to another host, nothing refused."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, sync_playwright

from browser_history import write_home
from browser_visit import SECONDS, Visit

CHROMIUM = "/usr/bin/chromium"


@pytest.fixture(scope="session")
def agent_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home folder with Claude Code's logs in it."""
    folder = tmp_path_factory.mktemp("agent-home")
    write_home(folder)
    return folder


@pytest.fixture(scope="session")
def address(agent_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where `turnlog serve` answers, once it has read and indexed everything."""
    process = subprocess.Popen(
        [sys.executable, "-m", "turnlog", "serve", "--no-browser", "--port", "0"],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ
        | {
            "HOME": str(agent_home),
            "TURNLOG_DATA_DIR": str(tmp_path_factory.mktemp("data")),
            "PYTHONUNBUFFERED": "1",
        },
    )
    assert process.stdout is not None
    try:
        found = process.stdout.readline().removeprefix("turnlog is at ").strip().rstrip("/")
        assert found.startswith("http://127.0.0.1:")
        _wait_until_searchable(found)
        yield found
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)


def _wait_until_searchable(address: str) -> None:
    deadline = time.monotonic() + SECONDS
    status: dict[str, Any] = {}
    while time.monotonic() < deadline:
        with urllib.request.urlopen(f"{address}/api/status", timeout=5) as answer:
            status = json.load(answer)
        if status["sync"]["passes"] > 0 and status["search"]["pending"] == 0:
            return
        time.sleep(0.1)
    raise AssertionError(f"the logs were not read in {SECONDS} s: {status}")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def visit(browser: Browser, address: str) -> Iterator[Visit]:
    """A window of usual size, light theme, in Berlin."""
    context = browser.new_context(
        viewport={"width": 1280, "height": 800}, color_scheme="light", timezone_id="Europe/Berlin", locale="en-GB"
    )
    visit = Visit(context, address)
    yield visit
    context.close()
    assert visit.problems == []
