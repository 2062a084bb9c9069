"""A session that hooks report is on the screen before its log is written, and once when it is."""

from __future__ import annotations

import json
import shutil
import time
import urllib.error
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from playwright.sync_api import Route, expect

from support.browser_history import write_home
from support.browser_server import ask, serving
from support.browser_visit import Visit
from support.hook_recordings import recording

pytestmark = pytest.mark.browser

RECORDED = recording("claude-code-tui")


@pytest.fixture
def agent_home(tmp_path: Path) -> Path:
    """A home of the test's own, to which the recorded log comes late."""
    home = tmp_path / "home"
    write_home(home, long=False)
    return home


@pytest.fixture
def address(agent_home: Path, tmp_path: Path) -> Iterator[str]:
    with serving(agent_home, tmp_path / "data") as found:
        yield found


def tell(address: str, *names: str) -> None:
    """Post the recorded events of these names, as Claude Code's hooks did."""
    for line in map(json.loads, RECORDED.lines):
        if line["event"]["hook_event_name"] in names:
            body = json.dumps(line["event"]).encode()
            ask(f"{address}/api/hooks/claude?at={line['at']}", body)


def test_a_session_is_on_the_screen_before_its_log_is_written(visit: Visit, address: str, agent_home: Path) -> None:
    """R-C18, R-C20."""
    page = visit.open("/")
    name = f"claude-code:{RECORDED.events[0]['session_id']}"
    tell(address, "SessionStart", "UserPromptSubmit")
    row = page.locator(f'a[href="/sessions/{name}"]')
    expect(row).to_contain_text("Tell me something")
    visit.open(f"/sessions/{name}")
    expect(page.locator(".session-facts[data-live=true]")).to_be_visible()
    expect(page.locator(".prompt", has_text="Tell me something")).to_be_visible()
    tell(address, "MessageDisplay", "PreToolUse", "Notification")
    expect(page.get_by_text("First line of the answer.")).to_have_count(3)
    visit.open("/")
    expect(page.get_by_role("region", name="Now")).to_contain_text("Waiting for permission")
    visit.open(f"/sessions/{name}")
    tell(address, "Stop", "SessionEnd")
    shutil.copytree(RECORDED.home / "projects", agent_home / ".claude" / "projects", dirs_exist_ok=True)
    expect(page.locator(".session-facts")).to_contain_text("claude-")
    expect(page.get_by_text("First line of the answer.")).to_have_count(3)
    expect(page.locator(".prompt", has_text="Tell me something")).to_have_count(1)


def test_what_changed_before_the_stream_is_up_is_shown_too(visit: Visit, address: str, agent_home: Path) -> None:
    """R-C20: on a slow machine the log may come between the page and its stream."""
    name = f"claude-code:{RECORDED.events[0]['session_id']}"
    tell(address, "SessionStart", "UserPromptSubmit", "MessageDisplay", "PreToolUse", "Notification")
    wait_for_state(address, name, "waiting")
    held: list[Route] = []
    visit.page.route("**/api/sessions/*/events*", lambda route: held.append(route))
    with visit.page.expect_request("**/api/sessions/*/events*"):
        page = visit.open(f"/sessions/{name}")
    expect(page.locator(".session-facts")).to_contain_text("Waiting for permission")
    tell(address, "Stop", "SessionEnd")
    shutil.copytree(RECORDED.home / "projects", agent_home / ".claude" / "projects", dirs_exist_ok=True)
    wait_for_state(address, name, "done")
    assert held
    visit.page.unroute("**/api/sessions/*/events*")  # lets go of what is held
    expect(page.locator(".session-facts")).to_contain_text("claude-")
    expect(page.locator(".session-facts")).not_to_contain_text("Waiting for permission")


def wait_for_state(address: str, name: str, state: str) -> None:
    """Until the store says so of the session, and knows what it knows of it."""
    deadline = time.monotonic() + 15
    while time.monotonic() < deadline:
        with suppress(urllib.error.HTTPError):
            if ask(f"{address}/api/sessions/{name}")["session"]["state"]["state"] == state:
                return
        time.sleep(0.05)
    raise AssertionError(f"{name} is not {state}")
