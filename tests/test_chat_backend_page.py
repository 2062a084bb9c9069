"""What docs/chat-backend.md shows is true: its blocks run in order, and the backends that they make answer."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from chat_script import post, user

PAGE = (Path(__file__).parent.parent / "docs" / "chat-backend.md").read_text()
BLOCKS: list[str] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
JSON = {"content-type": "application/json"}


def test_the_backends_of_the_page_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "example"}
    for block in BLOCKS:
        exec(compile(block, "docs/chat-backend.md", "exec"), names)
    with TestClient(names["app"]) as client:
        for path in ("/api/chat", "/api/own"):
            assert (
                b'"delta":"there! "'
                in client.post(path, content=post(message=user("u", "hi there")), headers=JSON).content
            )
            assert [message["role"] for message in client.get(f"{path}/chat").json()] == ["user", "assistant"]
        assert client.post("/api/mine", content=post(), headers=JSON).status_code == 401
        assert client.post("/api/mine", content=post(), headers=JSON | {"x-user": "one"}).status_code == 200
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
