"""The bundled sample: what is in it, and that it is shown only where there is nothing else."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, TypeVar

import pytest
from msgspec.structs import replace

from support.plain_store import read_home
from support.server_history import write_history
from turnlog import paths
from turnlog.model import FilePart, ReasoningPart, ToolCallPart, ToolState
from turnlog.server.sample import LOGS, empty_other_sample, ensure_sample, is_sample_due, sample_roots
from turnlog.store import open_store
from turnlog.store.base import SessionFilter, Store

PartT = TypeVar("PartT")

RECORDS = [line for log in (LOGS / "claude-code").rglob("*.jsonl") for line in log.read_text().splitlines()]


def parts(store: Store, kind: type[PartT]) -> list[PartT]:
    sessions = store.sessions(SessionFilter(subagents=True), limit=200).items
    placed = [message for session in sessions for message in store.messages(session.id)]
    return [part for item in placed for part in item.message.parts if isinstance(part, kind)]


# -- when it is shown


def test_it_is_due_where_there_is_nothing_else(home: Path) -> None:
    assert is_sample_due(paths.database_path())
    assert not paths.database_path().exists()


def test_it_is_not_due_where_an_agent_has_written_a_log(home: Path) -> None:
    project = home / ".claude/projects/-home-dev-sample"
    project.mkdir(parents=True)
    assert is_sample_due(paths.database_path())
    (project / "aaaaaaaa-0000-4000-8000-000000000001.jsonl").write_text("{}\n")
    assert not is_sample_due(paths.database_path())


def test_it_is_not_due_where_the_store_has_a_history_whose_logs_are_gone(home: Path) -> None:
    folder = home / "plain"
    folder.mkdir()
    write_history(folder)
    store = paths.database_path()
    read_home(store, folder)
    shutil.rmtree(folder)
    assert not is_sample_due(store)


def test_it_is_due_beside_an_empty_store() -> None:
    open_store().close()
    assert is_sample_due(paths.database_path())


# -- how it is made


def test_it_has_a_store_of_its_own() -> None:
    sample = paths.sample_path()
    ensure_sample(sample)
    assert sample.parent.parent == paths.data_dir()
    assert not paths.database_path().exists()


def test_it_is_read_once(sample: Path) -> None:
    with open_store(sample) as store:
        before = store.status()
    ensure_sample(sample)
    with open_store(sample) as store:
        assert replace(store.status(), file_size=0) == replace(before, file_size=0)


def test_that_of_another_installation_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = paths.sample_path()
    other = tmp_path / "other"
    shutil.copytree(LOGS / "claude-code", other / "claude-code")
    monkeypatch.setattr("turnlog.server.sample.LOGS", other)
    ensure_sample(path)
    monkeypatch.undo()
    ensure_sample(path)
    with open_store(path) as store:
        assert [source for source in store.sources() if not source.path.startswith(f"{LOGS}/")] == []


def test_a_mark_of_any_bytes_is_another_installation(tmp_path: Path) -> None:
    folder = tmp_path / "sample"
    folder.mkdir()
    (folder / "made-from").write_bytes(b"\xff\0")
    empty_other_sample(folder / "turnlog.db")
    assert not folder.exists()


# -- what is in it


def test_every_record_is_understood(sample: Path) -> None:
    with open_store(sample) as store:
        assert store.status().diagnostics == 0
        assert {summary.agent for summary in store.agents()} == {root.name for root in sample_roots()}


def test_it_shows_what_a_history_has(sample: Path) -> None:
    with open_store(sample) as store:
        calls = parts(store, ToolCallPart)
        assert {call.tool_name for call in calls} >= {"Agent", "Bash", "Edit", "Read", "Write"}
        assert {call.state for call in calls} >= {ToolState.OUTPUT_AVAILABLE, ToolState.OUTPUT_ERROR}
        assert parts(store, ReasoningPart)
        assert "image/png" in [part.media_type for part in parts(store, FilePart)]


def test_its_subagent_answers_the_call_that_started_it(sample: Path) -> None:
    with open_store(sample) as store:
        [subagent] = store.sessions(SessionFilter(agent="claude-code", relationship="subagent")).items
        [relationship] = subagent.relationships
        started_by = relationship.parent_tool_call_id
        [call] = [call for call in parts(store, ToolCallPart) if call.tool_call_id == started_by]
        assert call.tool_name == "Agent"
        assert call.results[0].output_text.endswith("There are 2 files.")


def test_every_agent_has_a_folder_that_is_described() -> None:
    listed = (LOGS / "README.md").read_text()
    assert sample_roots()
    assert [root.name for root in sample_roots() if f"`{root.name}`" not in listed] == []


def test_it_is_small() -> None:
    sizes = {
        root.name: sum(path.stat().st_size for path in root.rglob("*") if path.is_file()) for root in sample_roots()
    }
    assert [name for name, size in sizes.items() if size > 160_000] == []


def test_it_holds_no_prompt_of_a_vendor() -> None:
    """Requests are left out whole, what the harness sent to the model in its wording."""
    records: list[dict[str, Any]] = [json.loads(line) for line in RECORDS]
    assert [record for record in records if record["type"].startswith("api-request")] == []
    attachments = [record for record in records if record["type"] == "attachment"]
    rendered = {item["content"] for record in attachments for item in record.get("rendered", [])}
    prompts = {text for record in attachments for text in record["attachment"].get("systemPrompt", [])}
    assert rendered
    assert prompts
    assert {text for text in rendered | prompts if not text.endswith(": left out)")} == set()
