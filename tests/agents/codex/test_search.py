"""What Codex's logs hold is found, as the store and its search keep it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.codex_files import AGENT, THREAD, call, completed, meta, output, prompt
from support.plain_store import read_home
from turnlog.store.search.base import SearchFilter, search_path
from turnlog.store.search.indexer import Indexer
from turnlog.store.search.searcher import Searcher

RUNNING = "Chunk ID: a\nWall time: 10 seconds\nProcess running with session ID 7\nOutput:\nlistening_on_8123\n"
WRAPPED = json.dumps({"output": "one\nWombat two\n", "metadata": {"exit_code": 0, "duration_seconds": 0.0}})


def found(folder: Path, query: str, *lines: bytes) -> list[str]:
    """The fields in which a query is found in a session of these lines."""
    log = folder / "home" / "sessions" / "2026" / "11" / "21" / f"rollout-2026-11-21T10-00-00-{THREAD}.jsonl"
    log.parent.mkdir(parents=True)
    log.write_bytes(b"".join(lines))
    store = folder / "turnlog.db"
    read_home(store, folder / "home", AGENT)
    with Indexer(store, search_path(store)) as indexer:
        indexer.catch_up()
    with Searcher(store, search_path(store)) as searcher:
        return [hit.field for hit in searcher.search(query, SearchFilter(), sort="newest", limit=10, cursor=None).hits]


@pytest.mark.parametrize("query", ["wombat", "one", "two"])
def test_the_first_word_of_every_line_of_a_commands_json_is_found(tmp_path: Path, query: str) -> None:
    """R-S22"""
    assert found(tmp_path, query, meta(), prompt("Run it"), call("c1", "shell"), output("c1", WRAPPED)) == ["output"]


PRINTED = {"output": "one\nWombat two\n"}


@pytest.mark.parametrize(
    "told",
    [
        json.dumps(PRINTED),
        json.dumps({**PRINTED, "metadata": None}),
        json.dumps({**PRINTED, "metadata": {"exit_code": 0, "duration_seconds": 0.0}}, indent=2),
        " " + json.dumps(PRINTED, indent=4) + "\n",
        [{"type": "input_text", "text": WRAPPED}],
        [{"type": "input_text", "text": "Wall time: 1 second"}, {"type": "input_text", "text": json.dumps(PRINTED)}],
    ],
)
def test_json_of_a_command_in_another_form_is_found_too(tmp_path: Path, told: object) -> None:
    """R-S22"""
    assert found(tmp_path, "wombat", meta(), prompt("Run it"), call("c1", "shell"), output("c1", told)) == ["output"]


def test_the_output_of_a_command_that_was_left_running_is_found(tmp_path: Path) -> None:
    """R-S22"""
    lines = (
        meta(),
        prompt("Serve"),
        call("c1"),
        output("c1", RUNNING),
        call("c2", "write_stdin"),
        output("c2", RUNNING),
    )
    assert found(tmp_path, "listening_on_8123", *lines) == ["output", "output"]


def test_the_end_of_a_command_replaces_what_it_had_printed_before(tmp_path: Path) -> None:
    ended = completed("CommandExecution", id="c1", status="completed", exit_code=0, aggregated_output="closed_8123")
    lines = (meta(), prompt("Serve"), call("c1"), output("c1", RUNNING), ended)
    assert found(tmp_path, "listening_on_8123", *lines) == []
