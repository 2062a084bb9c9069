"""What a new session gets of earlier ones: a page of a project that fits, without secrets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from support.cli_runner import call
from turnlog.mcp.budget import BYTES_PER_TOKEN
from turnlog.mcp.context import Subject, project_context
from turnlog.store import open_store
from turnlog.sync.syncer import sync

SECRET = "ghp_" + "a1B2c3D4e5F6" * 3


def write_session(home: Path, number: int, *records: dict[str, Any], folder: str = "shop") -> None:
    """Write a session of Claude Code, a record a minute."""
    name = f"0000000{number}-0000-4000-8000-000000000000"
    path = home / f".claude/projects/-{folder}/{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    parent = None
    lines: list[str] = []
    for index, record in enumerate(records):
        known = {
            **{"uuid": f"{number}-{index}", "parentUuid": parent, "sessionId": name, "cwd": str(home / folder)},
            **{"timestamp": f"2026-11-2{number}T10:0{index}:00Z", "version": "2.1.98", "gitBranch": "main"},
        }
        parent = f"{number}-{index}"
        lines.append(json.dumps(known | record) + "\n")
    path.write_text("".join(lines))


def prompt_record(text: str) -> dict[str, Any]:
    return {"type": "user", "message": {"role": "user", "content": text}}


def answered(*blocks: dict[str, Any]) -> dict[str, Any]:
    message = {
        "id": f"msg_{crc32(json.dumps(blocks).encode())}",
        "role": "assistant",
        "model": "claude-sonnet-4-5",
        "content": list(blocks),
    }
    return {"type": "assistant", "message": message}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def edit(path: Path) -> dict[str, Any]:
    given = {"file_path": str(path), "old_string": "a", "new_string": "b"}
    return {"type": "tool_use", "id": "toolu_1", "name": "Edit", "input": given}


RESULT = {
    "type": "user",
    "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "ok"}]},
}


@pytest.fixture
def home_with_sessions(home: Path) -> Path:
    (home / "shop").mkdir()
    write_session(
        home,
        1,
        prompt_record("Raise the limit"),
        answered(edit(home / "shop/app.py")),
        RESULT,
        answered(text("Raised.")),
    )
    write_session(home, 2, prompt_record("Where is the key?"), answered(text(f"The key is {SECRET}.")))
    write_session(home, 3, prompt_record("Of another project"), answered(text("Nothing.")), folder="blog")
    sync(home / "store.db", roots=[home / ".claude"])
    return home


def page(home: Path, *files: str, **options: Any) -> str:
    with open_store(home / "store.db") as store:
        return project_context(store, Subject(str(home / "shop"), files), **options)


def test_a_page_has_what_the_newest_sessions_were_asked_did_and_wrote(home_with_sessions: Path) -> None:
    found = page(home_with_sessions)
    assert found.index("**Where is the key?**") < found.index("**Raise the limit**")
    assert "  - answered last: Raised.\n  - edited: app.py\n" in found
    assert "- app.py: 1 edit in 1 session, last 2026-11-21" in found
    assert "another project" not in found
    assert found.startswith("Quoted from earlier sessions.")
    assert found.endswith("</history>")


def test_decisions_are_answers_to_questions_notes_and_pins(home: Path) -> None:
    question = "Which database shall we take?"
    request: dict[str, Any] = {
        **{"type": "tool_use", "id": "toolu_ask", "name": "AskUserQuestion"},
        "input": {"questions": [{"question": question, "header": "Database", "options": []}]},
    }
    output = f'User has answered your questions: "{question}"="Postgres, for its locks"'
    result = {"type": "tool_result", "tool_use_id": "toolu_ask", "content": output}
    write_session(
        home,
        1,
        prompt_record("Plan the shop"),
        answered(request),
        {"type": "user", "message": {"role": "user", "content": [result]}},
        answered(text("Keep prices in cents.")),
    )
    sync(home / "store.db", roots=[home / ".claude"])
    with open_store(home / "store.db") as store:
        [session] = store.sessions().items
        last = store.messages(session.id)[-1].message.id
        store.annotate(session.id, note="The plan that counts", pins=[last])
        page = project_context(store, Subject(str(home / "shop")))
    [_, decisions] = page.split("## Decisions\n")
    lines = decisions.partition("\n\n")[0].splitlines()
    assert "Postgres, for its locks" in lines[0]
    assert lines[1].startswith("- noted: The plan that counts on")
    assert lines[2].startswith("- pinned: Keep prices in cents.")


def test_secrets_stay_out_unless_they_are_wanted(home_with_sessions: Path) -> None:
    assert SECRET not in page(home_with_sessions)
    assert SECRET in page(home_with_sessions, is_redacted=False)


def test_a_file_comes_first_with_the_prompt_behind_its_change(home_with_sessions: Path) -> None:
    found = page(home_with_sessions, str(home_with_sessions / "shop/app.py"))
    history = found[: found.index("## Newest sessions")]
    assert "## app.py" in history
    assert "Edit (edit, output-available) in **Raise the limit**" in history
    assert "  - asked: Raise the limit" in history


@pytest.mark.parametrize("tokens", [200, 260, 2_000])
def test_a_page_fits_and_says_that_it_goes_on(tokens: int, home: Path) -> None:
    (home / "shop").mkdir()
    for number in range(1, 9):
        write_session(home, number, prompt_record(f"Question {number} {'words ' * 30}"), answered(text("answer " * 60)))
    sync(home / "store.db", roots=[home / ".claude"])
    found = page(home, max_tokens=tokens)
    assert len(found.encode()) <= tokens * BYTES_PER_TOKEN
    assert ("\n- …" in found) == (tokens == 260)
    assert page(home, max_tokens=tokens) == found


def test_a_project_without_sessions_says_so(home: Path) -> None:
    sync(home / "store.db", roots=[home])
    assert "No earlier session was read." in page(home)


def test_the_command_takes_the_project_of_the_folder(home_with_sessions: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home_with_sessions / "shop/src").mkdir()
    monkeypatch.chdir(home_with_sessions / "shop/src")
    store = str(home_with_sessions / "store.db")
    written = call("context", "--store", store)
    assert (written.exit_code, written.stdout) == (0, page(home_with_sessions) + "\n")
    named = call("context", "--project", "blog", "--store", store)
    assert "Of another project" in named.stdout
    refused = call("context", "--project", "nowhere", "--store", store)
    assert refused.exit_code == 3
