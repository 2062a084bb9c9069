"""The programs of examples/frameworks, run as they are: they ask the page, and go on with its answer."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from support.chat_script import post, user

EXAMPLES = Path(__file__).parents[2] / "examples" / "frameworks"
PROGRAMS = sorted(path.name for path in EXAMPLES.glob("*.py"))
JSON = {"content-type": "application/json"}


def test_the_readme_names_every_program() -> None:
    readme = (EXAMPLES / "README.md").read_text()
    assert len(PROGRAMS) == 3
    assert all(f"[{name}]({name})" in readme for name in PROGRAMS)


@pytest.mark.parametrize("approved", [True, False])
@pytest.mark.parametrize("program", PROGRAMS)
def test_it_asks_and_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, approved: bool) -> None:
    monkeypatch.chdir(tmp_path)
    names = runpy.run_path(str(EXAMPLES / program))
    with TestClient(names["app"]) as client:
        assert b'"type":"tool-approval-request"' in client.post("/api/chat", content=post(), headers=JSON).content
        [_, asked] = client.get("/api/chat/chat").json()
        call: dict[str, Any] = asked["parts"][-1]
        assert (call["state"], call["input"]) == ("approval-requested", {"name": "notes.txt"})
        call |= {"state": "approval-responded", "approval": {**call["approval"], "approved": approved}}
        client.post("/api/chat", content=post(message=asked), headers=JSON)
        [_, answer] = client.get("/api/chat/chat").json()
        assert answer["parts"][-1]["text"].startswith("I asked, and this came of it: ")
        assert ("notes.txt is gone." in answer["parts"][-1]["text"]) == approved
        said = client.post("/api/chat", content=post(message=user("u2", "again")), headers=JSON).text
        assert '"toolName":"delete"' in said
