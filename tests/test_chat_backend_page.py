"""What docs/tutorial/chat-backend.md shows is true: its blocks run in order, and the backends that they make answer."""

from __future__ import annotations

import asyncio
import json
import re
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.request import Request

import pytest
from starlette.testclient import TestClient

from support.chat_script import post, user
from support.model_script import model_call, model_response, model_text

PAGE = (Path(__file__).parent.parent / "docs" / "tutorial" / "chat-backend.md").read_text()
BLOCKS: list[str] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
JSON = {"content-type": "application/json"}


def urlopen(request: Request, timeout: float) -> BytesIO:
    """The model's API."""
    assert (request.get_method(), request.full_url, timeout) == ("POST", "https://api.anthropic.com/v1/messages", 600)
    assert isinstance(request.data, bytes)
    return BytesIO(CALLS if len(json.loads(request.data)["messages"]) == 1 else DONE)


CALLS = model_response("m1", "tool_use", model_call(0, "c1", "weather", '{"city": "Berlin"}'))
DONE = model_response("m2", "end_turn", model_text(0, "Take an umbrella."))


def test_the_backends_of_the_page_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("urllib.request.urlopen", urlopen)
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
        mine = post("mine", message=user("m", "my own"))
        assert client.post("/api/mine", content=mine, headers=JSON | {"x-user": "ann"}).status_code == 200
        assert client.get("/api/mine/mine", headers={"x-user": "bob"}).status_code == 404
        [listed] = client.get("/api/mine", headers={"x-user": "ann"}).json()["chats"]
        assert (listed["id"], listed["title"]) == ("mine", "my own")
        renamed = client.patch("/api/mine/mine", json={"title": "Mine"}, headers={"x-user": "ann"})
        assert renamed.json()["title"] == "Mine"
        assert b"Take an umbrella." in client.post("/api/model", content=post(), headers=JSON).content
        assert client.get("/api/model/chat").json()[1]["parts"][1]["output"] == "Rain in Berlin"
        for approved, state in ((True, "output-available"), (False, "output-denied")):
            chat_id = f"chat {approved}"
            client.post("/api/careful", content=post(chat_id), headers=JSON)
            answer = client.get(f"/api/careful/{chat_id}").json()[1]
            answer["parts"][1] |= {"state": "approval-responded"}
            answer["parts"][1]["approval"]["approved"] = approved
            client.post("/api/careful", content=post(chat_id, message=answer), headers=JSON)
            assert client.get(f"/api/careful/{chat_id}").json()[1]["parts"][1]["state"] == state
    keeper = names["chat"]._keeper
    asyncio.run(names["tidy"](keeper))
    assert asyncio.run(keeper.chats(names["Ownership"](user="ann"))).chats == ()
    keeper.close()
    names["chat"]._streams._store.close()


def test_a_backend_is_thirty_lines_long() -> None:
    assert len(BLOCKS[0].splitlines()) <= 30
