"""The model of answers that do not name it, from the records around them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.claude_files import Gathered
from support.copilot_files import AGENT, SESSION, SESSION_ID, fold, lines, record, request
from turnlog.agents import fold_bytes
from turnlog.agents.base import Source, SourceKind
from turnlog.exports import export_session
from turnlog.store import open_store
from turnlog.store.base import SessionFilter
from turnlog.sync.syncer import sync

A, B = "gpt-5.4", "claude-sonnet-4.5"
AGENT_ID = "81587e4d-7b63-4319-a8f6-c2198b42b3ab"


def answer(number: int, *calls: str, **facts: Any) -> dict[str, Any]:
    data: dict[str, Any] = {
        "content": f"said {number}",
        "toolRequests": [request(call) for call in calls],
        "interactionId": "i",
        "outputTokens": 41,
        **facts,
    }
    return record("assistant.message", number, **data)


def start(number: int, model: str | None = None, kind: str = "start") -> dict[str, Any]:
    chosen = {} if model is None else {"selectedModel": model}
    return record(f"session.{kind}", number, sessionId=SESSION, **chosen)


def change(number: int, model: str, before: str | None = None) -> dict[str, Any]:
    named = {"newModel": model} if before is None else {"newModel": model, "previousModel": before}
    return record("session.model_change", number, **named)


def done(number: int, call: str, model: str | None) -> dict[str, Any]:
    named = {} if model is None else {"model": model}
    return record("tool.execution_complete", number, toolCallId=call, success=True, result={"content": "x"}, **named)


def shutdown(number: int, *models: str, current: str | None = None) -> dict[str, Any]:
    usage = {"inputTokens": 100, "outputTokens": 82, "cacheReadTokens": 0, "cacheWriteTokens": 0}
    metrics = {model: {"requests": {"count": 1}, "usage": usage} for model in models}
    return record(
        "session.shutdown", number, modelMetrics=metrics, **({} if current is None else {"currentModel": current})
    )


CASES: dict[str, tuple[list[dict[str, Any]], list[str | None]]] = {
    "start": ([start(0, A), answer(1), answer(2)], [A, A]),
    "start-auto": ([start(0, "auto"), answer(1)], [None]),
    "change": ([start(0), change(1, A), answer(2)], [A]),
    "change-between": ([change(0, A), answer(1), change(2, B), answer(3)], [A, B]),
    "change-names-the-one-before": ([start(0), answer(1), change(2, B, A), answer(3)], [A, B]),
    "change-says-nothing-of-before": ([start(0), answer(1), change(2, B), answer(3)], [None, B]),
    "tool": ([start(0), answer(1, "c"), done(2, "c", A), answer(3)], [A, A]),
    "tool-after-text": ([start(0), answer(1), answer(2, "c"), done(3, "c", A)], [A, A]),
    "tool-after-change": ([start(0), answer(1), change(2, "auto"), answer(3, "c"), done(4, "c", B)], [None, B]),
    "tool-that-names-none": ([start(0), answer(1, "c"), done(2, "c", None)], [None]),
    "other-answer": ([start(0), answer(1, model=A), answer(2), answer(3, model=B), answer(4)], [A, A, B, B]),
    "end": ([start(0), answer(1), answer(2), shutdown(3, A, current=B)], [A, A]),
    "end-current": ([start(0), answer(1), shutdown(2, current=A)], [A]),
    "end-auto": ([start(0), answer(1), shutdown(2, current="auto")], [None]),
    "end-several": ([start(0), answer(1), shutdown(2, A, B, current=A)], [None]),
    "end-after-choice": ([change(0, A), answer(1), change(2, B), answer(3), shutdown(4, A, B)], [A, B]),
    "end-of-the-next-run": ([start(0), answer(1), start(2, kind="resume"), answer(3), shutdown(4, A)], [None, A]),
    "nothing": ([start(0), answer(1)], [None]),
}


def models(found: Gathered, session: str = SESSION_ID) -> list[str | None]:
    return [message.model for message in found.in_order(session) if message.role == "assistant"]


@pytest.mark.parametrize(("records", "expected"), CASES.values(), ids=CASES)
def test_an_answer_has_the_model_that_gave_it(records: list[dict[str, Any]], expected: list[str | None]) -> None:
    """R-C22: as far as any record says it."""
    assert models(fold(*records)) == expected


def test_a_model_that_the_answer_does_not_name_is_marked() -> None:
    found = fold(start(0, A), answer(1), answer(2, model=A), answer(3, "c"), done(4, "c", A))
    marks = [message.metadata.get("copilot-cli") for message in found.in_order(SESSION_ID) if message.model]
    assert marks == [{"model_from": "session.start"}, None, {"model_from": "assistant.message"}]


def test_a_subagent_has_its_own_model() -> None:
    inner = {"agentId": AGENT_ID}
    found = fold(
        change(0, A),
        answer(1, "task"),
        {**record("subagent.started", 2, toolCallId="task", model=B), **inner},
        {**answer(3), **inner},
        {**change(4, A), **inner},
        {**answer(5), **inner},
        done(6, "task", A),
        answer(7),
    )
    assert models(found) == [A, A]
    assert models(found, f"{SESSION_ID}.{AGENT_ID}") == [B, A]


def test_a_call_of_the_program_has_no_model() -> None:
    """It reads what a background agent found."""
    assert models(fold(start(0, A), answer(1, interactionId=None))) == [None]


@pytest.mark.parametrize("named_by", ["start", "end"])
def test_totals_of_a_run_lack_what_its_answers_have_counted(named_by: str) -> None:
    found = fold(start(0, A if named_by == "start" else None), answer(1), answer(2), shutdown(3, A))
    totals = found.sessions[SESSION_ID].totals
    assert {name: (total.usage.input, total.usage.output) for name, total in totals.items()} == {A: (100, 0)}


@pytest.mark.parametrize("form", ["anthropic", "openai-chat", "openrouter", "responses"])
def test_a_request_has_the_model_that_the_log_names_last(form: str, tmp_path: Path) -> None:
    home = tmp_path / "home/session-state" / SESSION
    home.mkdir(parents=True)
    log = lines(start(0), record("user.message", 1, content="q"), answer(2), shutdown(3, A))
    (home / "events.jsonl").write_bytes(log)
    sync(tmp_path / "store.db", roots=[tmp_path / "home"], agents=[AGENT])
    with open_store(tmp_path / "store.db") as store:
        written = export_session(store, SESSION_ID, form).data
    assert json.loads(written)["model"] == A


def test_a_session_of_which_only_its_facts_are_left_has_a_time(tmp_path: Path) -> None:
    home = tmp_path / "home/session-state" / SESSION
    home.mkdir(parents=True)
    times = "created_at: 2026-06-18T10:46:54.000Z\nupdated_at: 2026-06-18T10:46:55.000Z\n"
    (home / "workspace.yaml").write_text(f"id: {SESSION}\ncwd: /home/dev/shop\nsummary_count: 0\n{times}")
    sync(tmp_path / "store.db", roots=[tmp_path / "home"], agents=[AGENT])
    with open_store(tmp_path / "store.db") as store:
        found = store.sessions(SessionFilter()).items
    assert [(str(session.created_at), str(session.updated_at)) for session in found] == [
        ("2026-06-18 10:46:54+00:00", "2026-06-18 10:46:55+00:00")
    ]


@pytest.mark.parametrize("written", ["", "yesterday", "2026-06-18"])
def test_a_time_that_cannot_be_read_is_none(written: str) -> None:
    path = f"/home/dev/.copilot/session-state/{SESSION}/workspace.yaml"
    source = Source(agent="copilot-cli", path=path, root="/x", kind=SourceKind.SIDECAR, session_id=SESSION_ID)
    changes = fold_bytes(AGENT, source, f"cwd: /x\ncreated_at: {written}\n".encode())
    assert changes.sessions[SESSION_ID].first_at is None


@pytest.mark.parametrize("models", [(A,), (A, B)])
def test_the_output_of_answers_without_a_model_is_left_out_of_totals_once(models: tuple[str, ...]) -> None:
    """R-C22: it is in the total of one of the models, and nothing says of which."""
    records = [start(0), answer(1), change(2, "auto"), answer(3), shutdown(4, *models)]
    found = fold(*records)
    answers = [m.usage.output or 0 for m in found.messages.values() if m.role == "assistant" and m.usage]
    totals = [total.usage.output or 0 for total in found.sessions[SESSION_ID].totals.values()]
    assert sum(answers) == 82
    assert sum(answers) + sum(totals) == 82 * len(models)
