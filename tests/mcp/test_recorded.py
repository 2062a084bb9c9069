"""What MCP clients of four agents requested when they were recorded is answered, each in its own protocol."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from support.plain_agent import Log
from support.plain_store import at, read_home
from turnlog.model import Message, Origin, TextPart
from turnlog.server import Settings, create_app
from turnlog.store.search.base import search_path
from turnlog.store.search.indexer import Indexer

DATA = Path(__file__).parents[1] / "data" / "mcp"

TOOLS = ["search_history", "list_sessions", "read_session", "read_output", "file_history", "why", "usage"]


@pytest.fixture(scope="module")
def store_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "logs").mkdir()
    log = Log(folder / "logs", "earlier")
    log.session(cwd="/work")
    new_text = TextPart(text="The word of the retry limit is Zwetschgenkuchen")
    log.message(Message(id="m", role="user", origin=Origin.PROMPT, created_at=at(0), parts=(new_text,)))
    read_home(folder / "turnlog.db", folder / "logs")
    with Indexer(folder / "turnlog.db", search_path(folder / "turnlog.db")) as indexer:
        indexer.catch_up()
    return folder / "turnlog.db"


@pytest.mark.parametrize("name", ["claude-code", "codex", "gemini-cli", "opencode"])
def test_a_recorded_client_finds_the_tools_and_gets_its_answer(name: str, store_path: Path) -> None:
    requests: list[dict[str, Any]] = [json.loads(line) for line in (DATA / f"{name}.jsonl").read_text().splitlines()]
    # What ends only with its connection has no answer of its own here.
    wanted = [
        each for each in requests if "id" in each and each["method"] in ("initialize", "tools/list", "tools/call")
    ]
    app = create_app(store_path, Settings(static_folder=store_path.parent / "none"))
    answers: dict[str, Any] = {}
    with TestClient(app, base_url="http://127.0.0.1:8765") as client:
        for each in wanted:
            headers = {"Accept": "application/json, text/event-stream"} | _protocol(each, requests)
            answer = client.post("/api/mcp?all_projects=true", json=each, headers=headers)
            assert answer.status_code == 200, answer.text
            answers[each["method"]] = answer.json()["result"]
    assert [tool["name"] for tool in answers["tools/list"]["tools"]] == TOOLS
    [content] = answers["tools/call"]["content"]
    assert "Zwetschgenkuchen" in content["text"]
    assert content["text"].startswith("Quoted from earlier sessions.")


def _protocol(request: dict[str, Any], requests: list[dict[str, Any]]) -> dict[str, str]:
    """The version in which a client over HTTP would name, and what it requests."""
    own = request.get("params", {}).get("_meta", {}).get("io.modelcontextprotocol/protocolVersion")
    if own is not None:
        name = request.get("params", {}).get("name")
        named = {"Mcp-Method": request["method"]} | ({} if name is None else {"Mcp-Name": name})
        return {"MCP-Protocol-Version": own} | named
    version = next(each["params"]["protocolVersion"] for each in requests if each["method"] == "initialize")
    return {} if request["method"] == "initialize" else {"MCP-Protocol-Version": version}
