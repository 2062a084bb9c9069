"""Pages with the real AbstractChat of 5, 6 and 7, answered by agents of other frameworks and by Open Harness."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from support.ai_sdk_judge import Judge
from support.chat_pages import Page, Pages, pages, shown

__all__ = ["pages"]

VERSIONS = (5, 6, 7)
FRAMEWORKS = ("langchain", "openai-agents", "pydantic-ai")
TESTS = Path(__file__).parents[1]
_chats = count()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("bridges")
    process = subprocess.Popen(
        [sys.executable, "-m", "support.bridge_server", str(folder)], cwd=TESTS, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    address = process.stdout.readline().strip()
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            urllib.request.urlopen(f"{address}/7/langchain/nobody", timeout=10).close()
            break
        except OSError:
            time.sleep(0.1)
    yield address
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=20)


@pytest.fixture
def chat_id() -> str:
    return f"chat-{next(_chats)}"


def get(address: str) -> tuple[int, Any]:
    with urllib.request.urlopen(address, timeout=30) as answer:
        data = answer.read()
        return answer.status, json.loads(data) if data else None


def post(address: str) -> int:
    with urllib.request.urlopen(urllib.request.Request(address, b"", method="POST"), timeout=30) as answer:
        return answer.status


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_page_shows_what_the_agent_does_and_what_is_kept(
    pages: Pages, server: str, judge: Judge, chat_id: str, framework: str, version: int
) -> None:
    api = f"{server}/{version}/{framework}"
    page = Page(pages, api, version, chat_id)
    page.send("look around")
    messages = page.ready()
    failed = "output-available" if framework == "openai-agents" else "output-error"
    assert [text for text in shown(messages[1]) if text != "step-start"] == [
        "Hm",
        "Let me see.",
        "output-available",
        failed,
        "Done.",
    ]
    kept = get(f"{api}/{chat_id}")[1]
    assert [shown(message) for message in kept] == [shown(message) for message in messages]
    assert all("messages" in verdict for verdict in judge.ask("validate", version, [{"messages": kept}]))
    page.send("hello again")
    assert shown(page.ready()[-1])[-1] == "Hello."
    page.send("fail now")
    assert "secret" not in page.see("error")["error"]


@pytest.mark.parametrize("approved", [True, False])
@pytest.mark.parametrize("version", [6, 7])
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_page_is_asked_and_the_agent_goes_on(
    pages: Pages, server: str, judge: Judge, chat_id: str, framework: str, version: int, approved: bool
) -> None:
    api = f"{server}/{version}/{framework}"
    page = Page(pages, api, version, chat_id)
    page.send("delete it")
    pending = page.ready()[1]
    call = pending["parts"][-1]
    assert call["state"] == "approval-requested"
    page.do("approve", {"id": call["approval"]["id"], "approved": approved, "reason": "not today"})
    page.see({"text": "Done." if approved else "Kept."})
    messages = page.ready()
    assert [message["id"] for message in messages][1:] == [pending["id"]]
    kept = get(f"{api}/{chat_id}")[1]
    assert [shown(message) for message in kept] == [shown(message) for message in messages]
    assert all("messages" in verdict for verdict in judge.ask("validate", version, [{"messages": kept}]))


@pytest.mark.parametrize("version", VERSIONS)
def test_open_harness_is_resumed_and_stopped(
    pages: Pages, server: str, judge: Judge, chat_id: str, version: int
) -> None:
    """R-O22, R-O27."""
    api = f"{server}/{version}/open-harness"
    page = Page(pages, api, version, chat_id)
    page.do("resume")
    page.ready()
    assert page.see()["posts"] == [["GET", 204]]
    page.send("wait for it")
    page.see({"text": "<5>"})
    page.do("stop")  # Only closes the page's connection.
    page.see("ready")
    page.do("resume")
    page.see({"text": "<9>"})
    assert post(f"{api}/{chat_id}/stop") == 200
    messages = page.ready()
    kept = get(f"{api}/{chat_id}")[1]
    assert [shown(message) for message in kept] == [shown(message) for message in messages]
    assert shown(kept[1])[:3] == ["step-start", "Hm", "output-available"]
    assert "<9>" in shown(kept[1])[-1]
    assert "<59>" not in shown(kept[1])[-1]
    assert all("messages" in verdict for verdict in judge.ask("validate", version, [{"messages": kept}]))
    assert (post(f"{api}/{chat_id}/stop"), get(f"{api}/{chat_id}/stream")[0]) == (204, 204)
    page.send("and now")
    assert shown(page.ready()[-1])[-1] == "<0><1>"
