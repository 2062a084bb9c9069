"""What docs/how-to/agent-frameworks.md shows is true: its blocks run in order, and the agents that they make answer."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from agents import set_tracing_disabled
from support import agents_of_langchain, agents_of_openai
from support.chat_script import post, user

PAGE = (Path(__file__).parent.parent / "docs" / "how-to" / "agent-frameworks.md").read_text()
BLOCKS: list[str] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
JSON = {"content-type": "application/json"}


def test_the_agents_of_the_page_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def init_chat_model(name: str) -> Any:
        assert name == "anthropic:claude-sonnet-5"
        return agents_of_langchain.Script(seen=[])

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("langchain.chat_models.init_chat_model", init_chat_model)
    set_tracing_disabled(True)
    names: dict[str, Any] = {"__name__": "backend"}
    for block in BLOCKS:
        exec(compile(block, "docs/how-to/agent-frameworks.md", "exec"), names)
    names["clerk"].model = agents_of_openai.make_agent([]).model
    with TestClient(names["app"]) as client:
        for path in ("openai-agents", "langchain"):
            body = post(path, message=user("u", "hello"))
            assert b'"delta":"Hello."' in client.post(f"/api/{path}", content=body, headers=JSON).content
            assert [message["role"] for message in client.get(f"/api/{path}/{path}").json()] == ["user", "assistant"]
        reply = client.post("/api/pydantic-ai", content=post("p", message=user()), headers=JSON).text
        assert '"output":"Rain in a"' in reply
        assert '"type":"tool-approval-request"' in reply
        [_, asked] = client.get("/api/pydantic-ai/p").json()
        for part in asked["parts"]:
            if part.get("state") == "approval-requested":
                part |= {"state": "approval-responded", "approval": {**part["approval"], "approved": True}}
        client.post("/api/pydantic-ai", content=post("p", message=asked), headers=JSON)
        [_, answer] = client.get("/api/pydantic-ai/p").json()
        outputs = {part["toolName"]: part["output"] for part in answer["parts"] if part["type"] == "dynamic-tool"}
        assert outputs == {"weather": "Rain in a", "delete_files": "a is empty"}
        assert answer["parts"][-1]["type"] == "text"
    names["keeper"].close()
