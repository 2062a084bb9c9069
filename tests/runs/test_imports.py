"""Records of prompt and result, as another program kept them: rows, and histories of two messages."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from support.agent_runs import runs
from support.cli_runner import call
from support.fake_claude import log_of, records, write_log
from turnlog import paths
from turnlog.cli.documents import RunImportDocument
from turnlog.model import Message, TextPart, Usage
from turnlog.runs.imports import RunImport, import_runs, iter_records
from turnlog.store import open_store
from turnlog.store.sqlite.forget import forget_for_good
from turnlog.store.values import Run
from turnlog.sync.rebuild import rebuild

SMITHERS: dict[str, Any] = {
    "id": "agent-7",
    "execution_id": "exec-1",
    "phase_id": None,
    "model": "claude-opus-4-5",
    "system_prompt": "Be short.",
    "prompt": "Fix the tests",
    "status": "completed",
    "result": "All of them pass.",
    "result_structured": {"passed": 12, "notes": [None, "ok"]},
    "log_path": None,
    "error": None,
    "started_at": "2026-01-26 10:00:00",
    "completed_at": "2026-01-26T10:00:09.500Z",
    "created_at": "2026-01-26 09:59:59",
    "duration_ms": 9500,
    "tokens_input": 1200,
    "tokens_output": 34,
    "tool_calls_count": 5,
}
MADE = {"turnlog": {"made_from": "prompt and result"}}


def bring(*found: dict[str, Any]) -> RunImport:
    return import_runs(paths.database_path(), "\n".join(map(json.dumps, found)).encode())


def history(session_id: str) -> list[Message]:
    with open_store(paths.database_path()) as store:
        return [placed.message for placed in store.messages(session_id)]


def test_a_record_becomes_a_run_and_a_history_of_two_messages() -> None:
    """R-S36."""
    summary = bring(SMITHERS)
    assert (summary.runs, summary.new_runs, summary.linked, summary.histories) == (1, 1, 0, 1)
    (run,) = runs()
    assert (run.id, run.origin, run.status, run.exit_code) == ("agent-7", "import", "completed", None)
    assert (run.prompt, run.result, run.model) == ("Fix the tests", "All of them pass.", "claude-opus-4-5")
    assert (run.system_prompt, run.usage, run.tool_calls) == ("Be short.", Usage(input=1200, output=34), 5)
    assert run.started_at == datetime(2026, 1, 26, 10, tzinfo=UTC)
    assert run.ended_at == datetime(2026, 1, 26, 10, 0, 9, 500_000, tzinfo=UTC)
    assert run.metadata == {
        "execution_id": "exec-1",
        "result_structured": {"passed": 12, "notes": [None, "ok"]},
    }
    assert run.session_id == "turnlog:run-agent-7"
    assert run.cost is not None
    prompt, result = history(run.session_id)
    assert [(each.role, each.metadata) for each in (prompt, result)] == [("user", MADE), ("assistant", MADE)]
    assert prompt.parts == (TextPart(id="run-agent-7.prompt.0", text="Fix the tests"),)
    assert result.parts == (TextPart(id="run-agent-7.result.0", text="All of them pass."),)
    assert (result.model, result.usage, result.completed_at) == (run.model, run.usage, run.ended_at)
    with open_store(paths.database_path()) as store:
        session = store.session(run.session_id)
        assert (session.native, session.metadata, session.counts.messages) == (True, MADE["turnlog"], 2)
        assert session.counts.turns == 1


def test_importing_again_changes_nothing() -> None:
    """R-S36: and neither does a rebuild."""
    bring(SMITHERS, {"prompt": "no id", "result": "x"})
    before = runs(), history("turnlog:run-agent-7")
    summary = bring(SMITHERS, {"prompt": "no id", "result": "x"})
    assert (summary.runs, summary.new_runs) == (2, 0)
    rebuild(paths.database_path())
    assert (runs(), history("turnlog:run-agent-7")) == before


def test_a_record_with_a_log_is_that_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-S35: twice does no harm."""
    monkeypatch.chdir(tmp_path)
    session = "aaaaaaaa-0000-4000-8000-000000000001"
    write_log(session, records(session, "Fix the tests", "Done."))
    for _ in range(2):
        summary = bring({**SMITHERS, "log_path": str(log_of(session)), "tool_calls_count": None})
        assert (summary.linked, summary.histories) == (1, 0)
        (run,) = runs()
        assert (run.session_id, run.agent, run.log_problem) == (f"claude-code:{session}", "claude-code", None)
        assert run.tool_calls == 1
        assert len(history(f"claude-code:{session}")) == 3


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("missing.jsonl", None, "there is no such file"),
        ("notes.txt", "not a log", "it is no log of an agent that is read here"),
        ("folder", "", "there is no such file"),
    ],
)
def test_a_log_that_cannot_be_read_is_a_reason(tmp_path: Path, name: str, content: str | None, reason: str) -> None:
    """R-S35, R-S36: the run stays completed, and prompt and result are the history."""
    path = tmp_path / name
    if content:
        path.write_text(content)
    elif content is not None:
        path.mkdir()
    bring({**SMITHERS, "log_path": str(path)})
    (run,) = runs()
    assert (run.status, run.session_id, run.log_path) == ("completed", "turnlog:run-agent-7", str(path))
    assert run.log_problem == f"{path}: {reason}"


def test_a_failed_run_has_its_error_for_an_answer() -> None:
    bring({"id": "f", "prompt": "go", "status": "failed", "error": "out of tokens"}, {"id": "c", "prompt": "go"})
    _, failed = history("turnlog:run-f")
    assert failed.error is not None
    assert (failed.error.text, failed.parts, failed.stop_reason) == ("out of tokens", (), "error")
    assert [message.role for message in history("turnlog:run-c")] == ["user"]


@pytest.mark.parametrize(
    ("fields", "status", "error"),
    [
        ({"status": "cancelled"}, "cancelled", None),
        ({"status": "running"}, "failed", "it was still running when its record was written"),
        ({"status": "pending", "error": "why"}, "failed", "why"),
        ({"status": "unheard of"}, "completed", None),
        ({"error": "why"}, "failed", "why"),
        ({}, "completed", None),
    ],
)
def test_how_it_ended(fields: dict[str, Any], status: str, error: str | None) -> None:
    (record,) = iter_records(json.dumps({"prompt": "go", **fields}).encode())
    assert record.run is not None
    assert (record.run.status, record.run.error) == (status, error)


@pytest.mark.parametrize(
    "value",
    [
        "2026-01-26T10:00:00Z",
        "2026-01-26T12:00:00+02:00",
        "2026-01-26 10:00:00",
        1769421600,
        1769421600.0,
        1769421600000,
    ],
)
def test_times_are_written_in_many_ways(value: object) -> None:
    (record,) = iter_records(json.dumps({"prompt": "go", "startedAt": value, "durationMs": 1500}).encode())
    assert record.run is not None
    assert record.run.started_at == datetime(2026, 1, 26, 10, tzinfo=UTC)
    assert record.run.ended_at == datetime(2026, 1, 26, 10, 0, 1, 500_000, tzinfo=UTC)


@pytest.mark.parametrize("value", ["soon", "", True, [], 1e400, -1e300, "9999-99-99"])
def test_what_is_no_time_or_count_is_not_known(value: object) -> None:
    line = json.dumps({"prompt": "go", "started_at": value, "tokens_input": value, "tool_calls_count": value})
    (record,) = iter_records(line.encode())
    assert record.run is not None
    assert (record.run.started_at, record.run.usage, record.run.tool_calls) == (None, None, None)


SHAPES = [
    json.dumps([SMITHERS]),
    json.dumps(SMITHERS, indent=2),
    json.dumps({"executions": [SMITHERS]}),
    "\ufeff" + json.dumps(SMITHERS) + "\n\n",
    json.dumps({"agents": [SMITHERS], "phases": []}),
]


@pytest.mark.parametrize("text", SHAPES, ids=["list", "one", "executions", "lines", "agents"])
def test_records_come_as_a_list_or_as_lines(text: str) -> None:
    (record,) = iter_records(text.encode())
    assert isinstance(record.run, Run)
    assert record.run.id == "agent-7"


def test_what_is_no_record_is_reported_with_its_place() -> None:
    lines = ["{not json", "[1]", json.dumps({"result": "x"}), "", json.dumps({"prompt": 7}), json.dumps(SMITHERS)]
    summary = import_runs(paths.database_path(), "\n".join(lines).encode())
    assert summary.runs == 1
    assert [problem.path for problem in summary.problems] == ["line 1", "line 2", "line 3", "line 5"]
    assert [problem.reason.partition(":")[0] for problem in summary.problems] == [
        "not JSON",
        "no JSON object",
        "it has no prompt",
        "it has no prompt",
    ]


def test_any_id_and_any_text_are_taken() -> None:
    strange = {"id": "a/b:c\u0000 \U0001f600", "prompt": "lone \ud800", "result": "\u0000", "x": {"\ud800": "\udfff"}}
    summary = bring(strange, {"id": 7, "prompt": "", "result": ""})
    assert (summary.runs, summary.problems) == (2, [])
    seven, run = runs()[0], runs()[1]
    if seven.id != "7":
        seven, run = run, seven
    assert (seven.id, seven.prompt) == ("7", "")
    assert run.session_id is not None
    assert "/" not in run.session_id
    assert [message.role for message in history(run.session_id)] == ["user", "assistant"]


def test_a_forgotten_history_does_not_come_back() -> None:
    bring(SMITHERS)
    forget_for_good(paths.database_path(), "turnlog:run-agent-7")
    assert runs() == []
    summary = bring(SMITHERS)
    assert [problem.reason for problem in summary.problems] == ["turnlog:run-agent-7 was forgotten"]
    assert runs() == []


def test_the_command_reads_a_file(tmp_path: Path) -> None:
    path = tmp_path / "old.jsonl"
    path.write_text(json.dumps(SMITHERS) + "\n")
    assert call("runs", "import", str(path)).stdout == (
        "1 new run of 1: 0 logs read, 1 history of prompt and result.\n"
    )
    assert "Fix the tests" in call("show", "turnlog:run-agent-7").stdout
    assert "run-agent-7" in call("search", "tests", "--json").stdout
    path.write_text("nothing\n")
    result = call("runs", "import", str(path), "--json")
    assert result.exit_code == 6
    document = json.loads(result.stdout)
    assert msgspec.to_builtins(msgspec.convert(document, RunImportDocument)) == document
    assert document["problems"][0]["path"] == "line 1"
