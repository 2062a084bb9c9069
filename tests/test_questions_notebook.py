"""The notebook of the examples runs on the bundled sample, and its answers are those of the store."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from turnlog.server.sample import LOGS
from turnlog.store import open_store
from turnlog.store.base import SessionFilter, Store
from turnlog.sync.syncer import sync

COUNTED = ("claude-code", "codex", "gemini-cli", "opencode")

NOTEBOOK = Path(__file__).parents[1] / "examples" / "questions.ipynb"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The samples of four agents, and of one whose answers name no tokens."""
    folder = tmp_path_factory.mktemp("notebook")
    names = (*COUNTED, "droid")
    sync(folder / "sample.db", roots=[LOGS / name for name in names])
    return folder


@pytest.fixture
def store(folder: Path) -> Generator[Store]:
    with open_store(folder / "sample.db") as opened:
        yield opened


def test_the_notebook_answers_five_questions_as_the_store_does(
    folder: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    cells: list[dict[str, Any]] = json.loads(NOTEBOOK.read_text())["cells"]
    names: dict[str, Any] = {"__name__": "notebook"}
    for cell in cells:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []
            exec(compile("".join(cell["source"]), str(NOTEBOOK), "exec"), names)
    try:
        assert sum("".join(cell["source"]).startswith("## ") for cell in cells) == 5
        check_answers(names, store)
    finally:
        names["store"].close()
        names["database"].close()


def check_answers(names: dict[str, Any], store: Store) -> None:
    usage = {row.name: row.totals for row in store.usage(by="model").rows}
    for row in names["costs"].to_dicts():
        reported = usage[row["model"]]
        assert row["calls"] == reported.calls
        assert row["dollars"] == (None if reported.cost is None else pytest.approx(float(reported.cost)))
        priced = reported.calls - reported.unknown_calls - reported.unpriced_calls
        if row["dollars"] is not None:
            assert row["dollars_a_call"] == pytest.approx(row["dollars"] / priced)
    tools = {each.tool_name: each for each in store.tool_usage()}
    outcomes = {row["tool_name"]: row for row in names["outcomes"].to_dicts()}
    assert {name: (row["calls"], row["failed"], row["refused"], row["aborted"]) for name, row in outcomes.items()} == {
        name: (each.calls, each.failed, each.denied, each.aborted) for name, each in tools.items()
    }
    *counted, unknown = names["cached"].to_dicts()
    assert {row["agent"] for row in counted} == set(COUNTED)
    assert all(0 < row["share"] < 1 for row in counted)
    assert (unknown["agent"], unknown["answers"], unknown["cache_read"], unknown["share"]) == ("droid", 0, None, None)
    assert len(names["edited"]) > 2
    for row in names["edited"].to_dicts():
        touches = store.file_history(row["path"], changed=True, limit=200).touches.items
        assert row["edits"] == len({(each.call.message_id, each.call.tool_call_id) for each in touches}) > 0
        assert row["path"].startswith("/")
    turns: Counter[tuple[str, int | None]] = Counter()
    for session in store.sessions(SessionFilter(subagents=True), limit=200).items:
        for each in store.messages(session.id):
            calls = sum(part.type == "tool-call" for part in each.message.parts)
            if each.membership.turn is not None:
                turns[session.id, each.membership.turn] += calls
    longest = names["lengths"].to_dicts()
    assert [row["calls"] for row in longest] == [calls for _, calls in turns.most_common(10)]
    assert all(turns[row["session_id"], row["turn"]] == row["calls"] for row in longest)
