"""A session goes on from its page: what one writes is answered by the session's own agent, and its log has it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from support.browser_server import serving
from support.browser_visit import Visit

pytestmark = pytest.mark.browser

AXE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"

SESSION = "11111111-1111-4111-8111-111111111111"

AGENT = """#!{python}
import json, sys, time, uuid
def say(kind, **fields):
    print(json.dumps({{"type": kind, "session_id": {session!r}, "uuid": str(uuid.uuid4())}} | fields), flush=True)
def hear():
    return json.loads(sys.stdin.readline())
def ask(tool_name, input):
    call = "toolu_" + str(uuid.uuid4())
    content = [{{"type": "tool_use", "id": call, "name": tool_name, "input": input}}]
    message = {{"id": "msg_" + call, "role": "assistant", "model": "claude-sonnet-4-5", "content": content}}
    say("assistant", message=message, parent_tool_use_id=None)
    request = {{"subtype": "can_use_tool", "tool_name": tool_name, "input": input, "tool_use_id": call}}
    say("control_request", request_id=str(uuid.uuid4()), request=request)
    return hear()["response"]["response"]
prompt = hear()["message"]["content"][0]["text"]
say("system", subtype="init")
if prompt == "fail":
    say("result", subtype="success", is_error=True, result="Credit balance is too low")
    sys.exit(1)
last = {last!r}
def write(kind, content):
    global last
    record = {{"type": kind, "uuid": str(uuid.uuid4()), "parentUuid": last, "sessionId": {session!r},
               "timestamp": time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime()), "cwd": {folder!r},
               "version": "2.1.98", "message": {{"role": kind, "content": content}}}}
    last = record["uuid"]
    if kind == "assistant":
        answered = {{"id": "msg_" + str(uuid.uuid4()), "model": "claude-sonnet-4-5", "stop_reason": "end_turn"}}
        record["message"] |= answered
    with open({log!r}, "a") as file:
        file.write(json.dumps(record) + "\\n")
write("user", prompt)
while prompt == "wait":
    time.sleep(0.05)
told = "You said: " + prompt
if prompt == "ask":
    input = {{"file_path": "/work/door.txt", "old_string": "blue", "new_string": "green"}}
    told = json.dumps([ask("Edit", input), ask("Bash", {{"command": "rm -rf paint"}})])
write("assistant", [{{"type": "text", "text": told}}])
say("result", subtype="success", is_error=False, result=told)
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with a session in it, and a program that goes on with it."""
    folder, programs = tmp_path / "work", tmp_path / "bin"
    folder.mkdir()
    programs.mkdir()
    log = tmp_path / "home" / ".claude" / "projects" / "work" / f"{SESSION}.jsonl"
    log.parent.mkdir(parents=True)
    first = "00000000-0000-4000-8000-000000000001"
    record = {
        "type": "user",
        "uuid": first,
        "sessionId": SESSION,
        "cwd": str(folder),
        "timestamp": "2026-11-20T10:00:00.000Z",
        "version": "2.1.98",
        "message": {"role": "user", "content": "Begin"},
    }
    log.write_text(json.dumps(record) + "\n")
    program = programs / "claude"
    program.write_text(
        AGENT.format(python=sys.executable, last=first, session=SESSION, folder=str(folder), log=str(log))
    )
    program.chmod(0o755)
    return tmp_path / "home"


@pytest.fixture
def page(browser: Browser, home: Path, tmp_path: Path) -> Iterator[Page]:
    environment = {"PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    context = browser.new_context(bypass_csp=True)
    with serving(home, tmp_path / "data", "--prompts", environment=environment) as address:
        yield Visit(context, address).open(f"/sessions/claude-code:{SESSION}")
    context.close()


def test_the_agent_answers_in_the_page(page: Page) -> None:
    field = page.get_by_role("textbox", name="Next prompt")
    field.fill("Paint it green")
    field.press("Enter")
    expect(page.locator(".prompt", has_text="Paint it green")).to_be_visible()
    expect(page.get_by_text("You said: Paint it green")).to_be_visible()
    expect(field).to_have_value("")
    expect(page.get_by_role("button", name="Send")).to_be_visible()


def test_a_line_break_sends_nothing_and_stopping_ends_the_agent(page: Page) -> None:
    field = page.get_by_role("textbox", name="Next prompt")
    expect(page.get_by_role("button", name="Send")).to_be_disabled()
    field.press("x")
    field.press("Shift+Enter")
    expect(field).to_have_value("x\n")
    field.fill("wait")
    page.get_by_role("button", name="Send").click()
    expect(page.locator(".prompt", has_text="wait")).to_be_visible()
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_role("button", name="Send")).to_be_visible()
    expect(page.get_by_text("You said")).to_have_count(0)


def test_permission_requests_are_answered_in_the_page(page: Page) -> None:
    field = page.get_by_role("textbox", name="Next prompt")
    field.fill("ask")
    field.press("Enter")
    asked = page.get_by_role("region", name="Waiting for your permission")
    expect(asked.get_by_role("heading")).to_have_text("May it use Edit?")
    expect(page.locator(".session-facts")).to_contain_text("Waiting for permission")
    expect(page.get_by_text("Waiting for you")).to_be_visible()
    expect(asked.locator(".diff")).to_contain_text("green")
    page.evaluate(AXE.read_text(encoding="utf-8"))
    result: dict[str, Any] = page.evaluate("axe.run({ resultTypes: ['violations'] })")
    assert [violation["id"] for violation in result["violations"]] == []
    asked.get_by_role("button", name="Allow").press("Enter")
    expect(asked.get_by_role("heading")).to_have_text("May it use Bash?")
    expect(asked).to_contain_text("rm -rf paint")
    asked.get_by_role("textbox", name="Reason for denying").fill("Keep the paint")
    asked.get_by_role("button", name="Deny").click()
    expect(asked).to_have_count(0)
    expect(page.get_by_text('"behavior": "allow"')).to_be_visible()
    expect(page.get_by_text("Keep the paint")).to_be_visible()
    expect(page.get_by_role("button", name="Send")).to_be_visible()


def test_the_list_shows_at_once_what_waits_for_permission(page: Page) -> None:
    listed = page.context.new_page()
    listed.goto(page.url.partition("/sessions/")[0])
    row = listed.locator(".session-row")
    expect(row).to_have_count(1)
    page.get_by_role("textbox", name="Next prompt").fill("ask")
    page.get_by_role("textbox", name="Next prompt").press("Enter")
    expect(row).to_contain_text("Waiting for permission")
    page.get_by_role("button", name="Stop").click()
    expect(row).not_to_contain_text("Waiting for permission")


def test_a_server_that_takes_no_prompts_shows_no_field(visit: Visit) -> None:
    page = visit.open("/sessions/claude-code:0bbbbbbb-0000-4000-8000-000000000002")
    expect(page.locator(".session-facts[data-live=true]")).to_be_visible()
    expect(page.get_by_role("textbox", name="Next prompt")).to_have_count(0)
    assert visit.asked_for("/prompt") == []
