"""Which sessions touched a file, over HTTP."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from support.plain_agent import Log
from support.plain_store import at, read_home
from support.server_history import MAIN, answer, prompt
from turnlog.model import ToolCallPart, ToolKind, ToolState
from turnlog.model.codec import to_json

OpenClient = Callable[..., TestClient]

EDIT = {"file_path": "frame.py", "old_string": "wood", "new_string": "glass"}


@pytest.fixture
def edited(own_store: Path, tmp_path: Path) -> Path:
    """The store, with a session that edited a file that another has read."""
    home = tmp_path / "more"
    home.mkdir()
    log = Log(home, "edit")
    log.session(project_path="/work/shop", cwd="/work/shop", titles={"generated": "Edit the frame"})
    log.message(prompt("e1", "glass please", 60), turn=1)
    part = ToolCallPart(
        tool_call_id="x1",
        tool_name="Edit",
        kind=ToolKind.EDIT,
        input=to_json(EDIT),
        state=ToolState.OUTPUT_AVAILABLE,
        started_at=at(61),
    )
    log.message(answer("e2", 61, part), turn=1, step=1)
    read_home(own_store, home)
    return own_store


def test_a_file_has_its_sessions_and_its_edits(edited: Path, open_client: OpenClient) -> None:
    answer = open_client(edited).get("/api/files", params={"path": "/work/shop/frame.py"}).json()
    assert [(use["session"]["id"], use["edits"]) for use in answer["sessions"]] == [("plain:edit", 1), (MAIN, 0)]
    assert answer["sessions"][0]["session"] == {
        "id": "plain:edit",
        "agent": "plain",
        "title": "Edit the frame",
        "project": "/work/shop",
    }
    edit, read = answer["items"]
    assert edit["path"] == read["path"] == "/work/shop/frame.py"
    assert edit["part"]["input"] == EDIT
    assert (read["part"], read["call"]["state"]) == (None, "output-error")
    assert answer["next_cursor"] is None


def test_edits_alone_page_by_page(edited: Path, open_client: OpenClient) -> None:
    client = open_client(edited)
    changed = client.get("/api/files", params={"path": "frame.py", "changed": "true"}).json()
    assert [item["call"]["tool_call_id"] for item in changed["items"]] == ["x1"]
    first = client.get("/api/files", params={"path": "frame.py", "limit": 1}).json()
    second = client.get("/api/files", params={"path": "frame.py", "limit": 1, "cursor": first["next_cursor"]}).json()
    assert [page["items"][0]["call"]["tool_call_id"] for page in (first, second)] == ["x1", "c2"]
    assert client.get("/api/files", params={"path": "frame.py", "cursor": "nonsense"}).status_code == 422
    assert client.get("/api/files").status_code == 422


def test_files_are_listed_for_all_and_for_one_session(edited: Path, open_client: OpenClient) -> None:
    client = open_client(edited)
    (file,) = client.get("/api/files/touched", params={"text": "FRAME"}).json()["items"]
    assert (file["path"], file["sessions"], file["calls"], file["edits"]) == ("/work/shop/frame.py", 2, 2, 1)
    (read,) = client.get(f"/api/sessions/{MAIN}/files").json()["items"]
    assert (read["calls"], read["edits"]) == (1, 0)
    assert client.get("/api/files/touched", params={"project": "blog"}).json() == {"items": []}
    assert client.get("/api/sessions/plain:nope/files").status_code == 404
