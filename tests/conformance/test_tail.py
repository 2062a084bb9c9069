"""Pages with the real AbstractChat of 5, 6 and 7 that follow an agent's session while its log grows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2
import pytest

from support.chat_pages import Page, Pages, pages, shown
from support.event_streams import listening
from support.plain_agent import Log
from support.plain_store import read_home
from turnlog.model import (
    InterruptEvent,
    Message,
    Origin,
    ReasoningPart,
    StopReason,
    TextPart,
    ToolCallPart,
    ToolResult,
    Usage,
)
from turnlog.model.codec import to_json
from turnlog.model.parts import Part

__all__ = ["pages"]

VERSIONS = (5, 6, 7)
SESSION = "plain:main"


class Served:
    """A server over a store, and the log of an agent that works."""

    def __init__(self, folder: Path, address: str, hub: Any) -> None:
        self.address = address
        self._folder = folder
        self._hub = hub
        self._log = Log(folder / "home", "main")

    def prompt(self, id: str) -> None:
        part = TextPart(text=f"question {id}")
        self.write(Message(id=id, role="user", origin=Origin.PROMPT, created_at=now(), parts=(part,)))

    def answer(self, id: str, *parts: Part, stop: StopReason | None = None) -> None:
        usage = Usage(input=10, output=5)
        self.write(
            Message(id=id, role="assistant", created_at=now(), model="m", parts=parts, stop_reason=stop, usage=usage)
        )

    def write(self, message: Message) -> None:
        self._log.message(message)
        self.read()

    def result(self, call: str, text: str) -> None:
        self._log.result(call, ToolResult(id=f"{call}:r", content=(TextPart(text=text),), completed_at=now()))
        self.read()

    def interrupt(self) -> None:
        self._log.event(InterruptEvent(id="i", created_at=now()))
        self.read()

    def read(self) -> None:
        read_home(self._folder / "turnlog.db", self._folder / "home")
        self._hub.wake()

    @property
    def api(self) -> str:
        return f"{self.address}/api/sessions/{quote(SESSION)}"

    def messages(self, version: int) -> list[dict[str, Any]]:
        with httpx2.Client(trust_env=False) as client:
            answer = client.get(f"{self.api}/ui-messages", params={"version": version})
            return json.loads(answer.content)["messages"]

    def status(self, version: int = 7) -> int:
        with httpx2.Client(trust_env=False) as client:
            return client.get(f"{self.api}/chat/stream", params={"version": version}).status_code


def now() -> datetime:
    return datetime.now(UTC)


def call(id: str) -> ToolCallPart:
    return ToolCallPart(id=id, tool_call_id=id, tool_name="Bash", input=to_json({"command": "ls"}))


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    (tmp_path / "home").mkdir()
    with listening(tmp_path / "turnlog.db") as (address, app):
        found = Served(tmp_path, address, app.state.context.live_topics)
        found.prompt("u1")
        yield found


def page_of(pages: Pages, served: Served, version: int) -> Page:
    api = f"{served.api}?version={version}"
    return Page(pages, api, version, "chat", messages=served.messages(version))


@pytest.mark.parametrize("version", VERSIONS)
def test_a_page_follows_a_turn_and_resumes_into_the_next(pages: Pages, served: Served, version: int) -> None:
    """R-S39, R-H17."""
    served.answer("a1", ReasoningPart(id="r", text="hm"), TextPart(id="t", text="Let me look."), call("c1"))
    page = page_of(pages, served, version)
    page.do("resume")
    page.see({"posts": 1})
    served.result("c1", "a.txt")
    page.see({"text": "a.txt"})
    served.answer("a2", TextPart(id="t2", text="One"))
    page.see({"text": "One"})
    served.answer("a2", TextPart(id="t2", text="One file."), stop="stop")
    page.see({"text": "One file."})
    messages = page.ready()
    kept = served.messages(version)
    assert [message["id"] for message in messages] == [message["id"] for message in kept] == ["u1", "a1"]
    assert shown(messages[1]) == shown(kept[1])
    assert shown(messages[1])[3:] == ["output-available", "step-start", "One file."]
    assert served.status(version) == 204
    served.prompt("u2")
    page = page_of(pages, served, version)
    page.do("resume")
    page.see({"posts": 1})
    served.answer("a3", TextPart(id="t3", text="And again."), stop="stop")
    page.see({"text": "And again."})
    assert [message["id"] for message in page.ready()] == ["u1", "a1", "u2", "a3"]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_stream_ends_where_the_user_speaks_again(pages: Pages, served: Served, version: int) -> None:
    served.answer("a1", call("c1"))
    page = page_of(pages, served, version)
    page.do("resume")
    page.see({"posts": 1})
    served.prompt("u2")
    messages = page.ready()
    assert len(messages) == 2
    assert shown(messages[1])[-1] == "output-error"


@pytest.mark.parametrize("version", VERSIONS)
def test_a_stream_ends_where_the_user_stops_the_agent(pages: Pages, served: Served, version: int) -> None:
    """R-K10."""
    page = page_of(pages, served, version)
    page.do("resume")
    page.see({"posts": 1})
    served.answer("a1", TextPart(id="t", text="Well"), call("c1"))
    page.see({"text": "Well"})
    served.interrupt()
    assert shown(page.ready()[1])[1:] == ["Well", "output-error"]
    assert served.status(version) == 204


def test_a_session_that_is_not_there_is_a_404(served: Served) -> None:
    with httpx2.Client(trust_env=False) as client:
        assert client.get(f"{served.address}/api/sessions/plain:none/chat/stream").status_code == 404
