"""Pages with the real AbstractChat of 5, 6 and 7 against a server of ours: every turn that a chat may take."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from support.ai_sdk_judge import Judge
from support.chat_pages import Page, Pages, pages, shown, without_metadata

__all__ = ["pages"]

VERSIONS = (5, 6, 7)
TESTS = Path(__file__).parents[1]
_chats = count()


class Server:
    """A server process over the files of a folder."""

    def __init__(self, folder: Path, *form: str) -> None:
        self._arguments = [sys.executable, "-m", "support.chat_server", str(folder), *form]
        self.start()

    def start(self) -> None:
        self._process = subprocess.Popen(self._arguments, cwd=TESTS, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.address = self._process.stdout.readline().strip()
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            try:
                self.get("/7/chat/nobody")
            except urllib.error.HTTPError:
                return
            except OSError:
                time.sleep(0.05)
            else:
                return
        raise AssertionError("the server did not answer")

    def api(self, version: int) -> str:
        return f"{self.address}/{version}/chat"

    def get(self, path: str) -> tuple[int, bytes]:
        with urllib.request.urlopen(self.address + path, timeout=30) as answer:
            return answer.status, answer.read()

    def messages(self, version: int, chat_id: str) -> list[dict[str, Any]]:
        return json.loads(self.get(f"/{version}/chat/{chat_id}")[1])

    def post(self, path: str, data: bytes, kind: str = "application/json") -> tuple[int, bytes]:
        request = urllib.request.Request(self.address + path, data, {"content-type": kind}, method="POST")
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate(timeout=20)

    def close(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        self._process.communicate(timeout=20)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    running = Server(tmp_path_factory.mktemp("chats"))
    yield running
    running.close()


@pytest.fixture
def chat_id() -> str:
    return f"chat-{next(_chats)}"


@pytest.mark.parametrize("version", VERSIONS)
def test_a_full_run_shows_what_is_kept(pages: Pages, server: Server, judge: Judge, chat_id: str, version: int) -> None:
    """R-O27, R-O17, R-H17."""
    page = Page(pages, server.api(version), version, chat_id)
    page.send("full story")
    messages = page.ready()
    assert [message["role"] for message in messages] == ["user", "assistant"]
    assert "You said: full story. Grüße 🦀" in shown(messages[1])
    assert messages[1]["metadata"]["session"] == "run 1"
    assert messages[1]["metadata"]["usage"] == {"input": 30, "output": 8}
    kept = server.messages(version, chat_id)
    assert [message["id"] for message in kept] == [message["id"] for message in messages]
    assert [shown(message) for message in kept] == [shown(message) for message in messages]
    assert kept[1]["metadata"] == messages[1]["metadata"]
    assert all("messages" in verdict for verdict in judge.ask("validate", version, [{"messages": kept}]))
    page.send("full again")
    assert len(page.ready()) == 4
    assert page.see()["finished"][-1].get("isError") is False


@pytest.mark.parametrize("version", VERSIONS)
def test_a_page_that_begins_with_what_is_kept_goes_on(pages: Pages, server: Server, chat_id: str, version: int) -> None:
    """R-H16, R-H17."""
    first = Page(pages, server.api(version), version, chat_id)
    first.send("full story")
    first.ready()
    second = Page(pages, server.api(version), version, chat_id, messages=server.messages(version, chat_id))
    second.send("full again")
    second.ready()
    assert len(server.messages(version, chat_id)) == 4


@pytest.mark.parametrize("version", VERSIONS)
def test_leaving_is_not_stopping_and_coming_back_shows_all(
    pages: Pages, server: Server, chat_id: str, version: int
) -> None:
    """R-O18, R-S39."""
    page = Page(pages, server.api(version), version, chat_id)
    page.send("slow please")
    page.see({"text": "<5>"})
    page.do("stop")  # The client's stop only closes the connection.
    left = page.see("ready")
    assert left["finished"][-1]["isAbort"] is True
    page.do("resume")
    messages = page.ready()
    assert len(messages) == 2
    assert shown(messages[1])[-1] == "".join(f"<{number}>" for number in range(60))
    assert server.messages(version, chat_id)[1]["id"] == messages[1]["id"]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_stop_at_the_server_ends_it_everywhere(pages: Pages, server: Server, chat_id: str, version: int) -> None:
    """R-K10, R-O20."""
    page = Page(pages, server.api(version), version, chat_id)
    page.send("slow please")
    page.see({"text": "<5>"})
    assert server.post(f"/{version}/chat/{chat_id}/stop", b"")[0] == 200
    messages = page.ready()
    kept = server.messages(version, chat_id)
    assert [shown(message) for message in kept] == [shown(message) for message in messages]
    assert "output-error" in shown(kept[1])
    assert kept[1]["metadata"]["steps"][-1]["stopReason"] == "aborted"
    assert server.post(f"/{version}/chat/{chat_id}/stop", b"")[0] == 204


@pytest.mark.parametrize("version", VERSIONS)
def test_an_error_is_reported_and_what_came_before_is_kept(
    pages: Pages, server: Server, chat_id: str, version: int
) -> None:
    page = Page(pages, server.api(version), version, chat_id)
    page.send("fail now")
    seen = page.see("error")
    assert "secret" not in seen["error"]
    assert shown(seen["messages"][1]) == ["step-start", "half"]
    assert shown(server.messages(version, chat_id)[1]) == ["step-start", "half"]
    page.send("full story")
    assert len(page.ready()) == 4


@pytest.mark.parametrize("version", VERSIONS)
def test_nothing_to_resume_is_a_204(pages: Pages, server: Server, chat_id: str, version: int) -> None:
    """R-O22."""
    page = Page(pages, server.api(version), version, chat_id)
    page.do("resume")
    page.ready()
    page.send("full story")
    before = page.ready()
    page.do("resume")
    page.see({"text": "full story"})
    assert page.ready() == before
    assert page.see()["posts"][::2] == [["GET", 204], ["GET", 204]]


@pytest.mark.parametrize("version", VERSIONS)
def test_two_tabs_show_one_stream(pages: Pages, server: Server, chat_id: str, version: int) -> None:
    waiting_page = Page(pages, server.api(version), version, chat_id)
    waiting_page.send("slow please")
    waiting_page.see({"text": "<3>"})
    tab = Page(pages, server.api(version), version, chat_id, messages=server.messages(version, chat_id)[:1])
    tab.do("resume")
    tab.see({"text": "<8>"})
    # A message of another tab ends the answer for all, and is answered.
    sending = Page(pages, server.api(version), version, chat_id, messages=server.messages(version, chat_id)[:1])
    sending.send("full story")
    assert without_metadata(tab.ready())[1] == without_metadata(waiting_page.ready())[1]
    assert sending.ready()
    assert sending.see()["posts"] == [["POST", 200]]
    kept = server.messages(version, chat_id)
    assert [message["role"] for message in kept] == ["user", "assistant", "user", "assistant"]
    assert "<8>" in shown(kept[1])[-1]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_page_that_is_reloaded_in_the_middle_shows_everything_once(
    pages: Pages, server: Server, chat_id: str, version: int
) -> None:
    waiting_page = Page(pages, server.api(version), version, chat_id)
    waiting_page.send("slow please")
    waiting_page.see({"text": "<25>"})
    kept = server.messages(version, chat_id)
    assert [message["role"] for message in kept] == ["user"]  # all of the other one comes from the stream
    reloaded = Page(pages, server.api(version), version, chat_id, messages=kept)
    reloaded.do("resume")
    reloaded.see({"text": "<59>"})
    assert without_metadata(reloaded.ready()) == without_metadata(waiting_page.ready())
    assert [shown(message) for message in server.messages(version, chat_id)] == [
        shown(message) for message in reloaded.ready()
    ]


@pytest.mark.parametrize("version", VERSIONS)
def test_an_answer_made_anew_and_an_edited_question(pages: Pages, server: Server, chat_id: str, version: int) -> None:
    page = Page(pages, server.api(version), version, chat_id)
    page.send("full story")
    question, old = page.ready()
    page.do("regenerate")
    page.see({"text": "full story"})
    question_again, new = page.ready()
    assert question_again == question
    assert new["id"] != old["id"]
    assert [message["id"] for message in server.messages(version, chat_id)] == [question["id"], new["id"]]
    page.send("full otherwise", messageId=question["id"])
    page.see({"text": "You said: full otherwise"})
    edited = page.ready()
    kept = server.messages(version, chat_id)
    assert [message["id"] for message in kept] == [message["id"] for message in edited]
    assert shown(kept[0]) == ["full otherwise"]


@pytest.mark.parametrize("approved", [True, False])
@pytest.mark.parametrize("version", [6, 7])
def test_the_page_is_asked_and_the_run_goes_on_with_its_answer(
    pages: Pages, server: Server, judge: Judge, chat_id: str, version: int, approved: bool
) -> None:
    page = Page(pages, server.api(version), version, chat_id)
    page.send("ask me")
    pending = page.ready()[1]
    assert shown(pending)[-1] == "approval-requested"
    # Another page shows the question too, and is the one that answers it.
    page = Page(pages, server.api(version), version, chat_id, messages=server.messages(version, chat_id))
    page.do("approve", {"id": "q", "approved": approved, "reason": "because"})
    page.see({"text": "One file." if approved else "Then not."})
    messages = page.ready()
    assert len(messages) == 2
    assert messages[1]["id"] == pending["id"]
    assert shown(messages[1])[2] == ("output-available" if approved else "output-denied")
    kept = server.messages(version, chat_id)
    assert [shown(message) for message in kept] == [shown(message) for message in messages]
    assert all("messages" in verdict for verdict in judge.ask("validate", version, [{"messages": kept}]))


@pytest.mark.parametrize("version", VERSIONS)
def test_a_server_that_is_killed_leaves_a_chat_that_goes_on(
    pages: Pages, judge: Judge, tmp_path: Path, chat_id: str, version: int
) -> None:
    server = Server(tmp_path)
    page = Page(pages, server.api(version), version, chat_id)
    page.send("slow please")
    seen = page.see({"text": "<30>"})
    server.kill()
    assert page.see("error")["finished"][-1]["isError"] is True
    texts = shown(seen["messages"][1])
    server.start()
    kept = server.messages(version, chat_id)
    assert all("messages" in verdict for verdict in judge.ask("validate", version, [{"messages": kept}]))
    again = Page(pages, server.api(version), version, chat_id, messages=kept)
    again.do("resume")
    again.see({"text": "<30>"})
    again.see("ready")
    kept = server.messages(version, chat_id)
    assert shown(kept[1])[-1].startswith(texts[-1])
    assert shown(kept[1])[1] == "output-error"
    assert all("messages" in verdict for verdict in judge.ask("validate", version, [{"messages": kept}]))
    again.send("full story")
    messages = again.ready()
    assert len(messages) == 4
    assert [message["id"] for message in server.messages(version, chat_id)] == [message["id"] for message in messages]
    server.close()


def test_requests_that_are_none_are_refused_with_a_sentence(server: Server) -> None:
    text = b'{"id":"x","message":{"id":"u","role":"user","parts":[{"type":"text","text":"full"}]}}'
    status, sentence = server.post("/7/chat", b"{")
    assert (status, sentence.startswith(b"not JSON: ")) == (400, True)
    assert server.post("/7/chat", text, "text/plain")[0] == 415
    assert server.post("/7/chat", b'{"id":"x","trigger":"regenerate-message","messages":[]}')[0] == 404
    status, sentence = server.post("/7/chat", b" " * 200_000)
    assert (status, sentence) == (413, b"a request may have 100000 bytes")


@pytest.mark.parametrize("version", VERSIONS)
def test_the_application_without_a_framework_does_the_same(pages: Pages, tmp_path: Path, version: int) -> None:
    server = Server(tmp_path, str(version))
    chat_id = "a chat/of Grüße ~1"
    page = Page(pages, server.api(version), version, chat_id)
    page.send("slow please")
    page.see({"text": "<5>"})
    tab = Page(pages, server.api(version), version, chat_id, messages=page.see()["messages"][:1])
    tab.do("resume")
    tab.see({"text": "<8>"})
    path = f"/{version}/chat/{quote(chat_id, safe='')}"
    assert server.post(f"{path}/stop", b"")[0] == 200
    assert without_metadata(tab.ready()) == without_metadata(page.ready())
    assert [shown(message) for message in json.loads(server.get(path)[1])] == [shown(m) for m in page.ready()]
    server.close()
