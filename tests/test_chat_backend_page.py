"""What docs/tutorial/chat-backend.md shows is true: its blocks run in order, and the backends that they make answer."""

from __future__ import annotations

import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.testclient import TestClient

from support.chat_script import post, user
from support.model_script import model_call, model_response, model_text

PAGE = (Path(__file__).parent.parent / "docs" / "tutorial" / "chat-backend.md").read_text()
BLOCKS: list[str] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
JSON = {"content-type": "application/json"}


class Response:
    """A response of a model's API, as the page's HTTP client gives it."""

    def __init__(self, method: str, address: str, json: dict[str, Any]) -> None:
        assert (method, address) == ("POST", "https://api.anthropic.com/v1/messages")
        self.data = CALLS if len(json["messages"]) == 1 else DONE

    async def __aenter__(self) -> Response:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    def raise_for_status(self) -> None:
        pass

    async def aiter_bytes(self) -> AsyncIterator[bytes]:
        for start in range(0, len(self.data), 100):
            yield self.data[start : start + 100]


class Client:
    stream = Response

    def __init__(self, **_: object) -> None:
        pass


CALLS = model_response("m1", "tool_use", model_call(0, "c1", "weather", '{"city": "Berlin"}'))
DONE = model_response("m2", "end_turn", model_text(0, "Take an umbrella."))


def test_the_backends_of_the_page_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "httpx", SimpleNamespace(AsyncClient=Client))
    names: dict[str, Any] = {"__name__": "example"}
    for block in BLOCKS:
        exec(compile(block, "docs/tutorial/chat-backend.md", "exec"), names)
    with TestClient(names["app"]) as client:
        for path in ("/api/chat", "/api/own"):
            assert (
                b'"delta":"there! "'
                in client.post(path, content=post(message=user("u", "hi there")), headers=JSON).content
            )
            assert [message["role"] for message in client.get(f"{path}/chat").json()] == ["user", "assistant"]
        assert client.post("/api/mine", content=post(), headers=JSON).status_code == 401
        assert client.post("/api/mine", content=post(), headers=JSON | {"x-user": "one"}).status_code == 200
        assert b"Take an umbrella." in client.post("/api/model", content=post(), headers=JSON).content
        assert client.get("/api/model/chat").json()[1]["parts"][1]["output"] == "Rain in Berlin"
        for approved, state in ((True, "output-available"), (False, "output-denied")):
            chat_id = f"chat {approved}"
            client.post("/api/careful", content=post(chat_id), headers=JSON)
            asked = client.get(f"/api/careful/{chat_id}").json()[1]
            asked["parts"][1] |= {"state": "approval-responded"}
            asked["parts"][1]["approval"]["approved"] = approved
            client.post("/api/careful", content=post(chat_id, message=asked), headers=JSON)
            assert client.get(f"/api/careful/{chat_id}").json()[1]["parts"][1]["state"] == state
    names["chat"]._keeper.close()
    names["chat"]._streams._store.close()


def test_a_backend_is_thirty_lines_long() -> None:
    assert len(BLOCKS[0].splitlines()) <= 30
