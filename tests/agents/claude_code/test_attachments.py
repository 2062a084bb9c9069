"""Attachments whose text only their fields have (2.1.96 to 2.1.260), and records about how a call goes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from support.claude_files import AGENT, SESSION, Log, fold, lines, text
from turnlog.exports import export_session
from turnlog.model import Message, Origin, RecordEvent, TextPart
from turnlog.store import open_store
from turnlog.store.search.base import SearchFilter, search_path
from turnlog.store.search.indexer import Indexer
from turnlog.store.search.searcher import Searcher
from turnlog.sync.syncer import sync

MEMORY = "/home/dev/proj/web/CLAUDE.md"
SEEN: dict[str, tuple[dict[str, Any], str, dict[str, Any]]] = {
    "nested_memory": (
        {
            "path": MEMORY,
            "content": {
                "path": MEMORY,
                "type": "Project",
                "content": "Spell it tangerine.\n",
                "contentDiffersFromDisk": False,
            },
            "displayPath": "web/CLAUDE.md",
        },
        "Spell it tangerine.\n",
        {"path": MEMORY},
    ),
    "edited_text_file": (
        {"filename": "/home/dev/proj/a.py", "snippet": "1\tcolour = 'tangerine'\n2\t"},
        "1\tcolour = 'tangerine'\n2\t",
        {"path": "/home/dev/proj/a.py"},
    ),
    "skill_listing": (
        {"content": "- peel: Peels a tangerine.", "skillCount": 1, "isInitial": True, "names": ["peel"]},
        "- peel: Peels a tangerine.",
        {},
    ),
    "mcp_instructions_delta": (
        {"addedNames": ["fruit", "db"], "addedBlocks": ["## fruit\nAsk for a tangerine.", "## db"], "removedNames": []},
        "## fruit\nAsk for a tangerine.\n## db",
        {},
    ),
    "agent_listing_delta": (
        {
            "addedTypes": ["peeler"],
            "addedLines": ["- peeler: Peels (Tools: *)", "- tangerine: Grows"],
            "removedTypes": ["slicer"],
            "isInitial": False,
            "showConcurrencyNote": True,
        },
        "- peeler: Peels (Tools: *)\n- tangerine: Grows",
        {"removed": ["slicer"]},
    ),
    "deferred_tools_delta": (
        {"addedNames": ["Tangerine"], "addedLines": ["Tangerine"], "removedNames": []},
        "Tangerine",
        {},
    ),
    "plan_file_reference": (
        {"planFilePath": "/home/dev/.claude/plans/x.md", "planContent": "# Plan\nBuy a tangerine."},
        "# Plan\nBuy a tangerine.",
        {"path": "/home/dev/.claude/plans/x.md"},
    ),
    "total_tokens_reminder": (
        {"text": "<total_tokens>1500 tangerine tokens left</total_tokens>"},
        "<total_tokens>1500 tangerine tokens left</total_tokens>",
        {},
    ),
}


def log_with(kind: str, version: str = "2.1.200") -> list[dict[str, Any]]:
    log = Log(version)
    return [
        log.user("Hello"),
        log.record("attachment", attachment={"type": kind, **SEEN[kind][0]}),
        log.assistant("msg_1", text("Hi.")),
    ]


def words(message: Message) -> str:
    return "".join(part.text for part in message.parts if isinstance(part, TextPart))


@pytest.mark.parametrize("kind", SEEN)
def test_what_the_model_saw_is_a_message_without_rendered(kind: str) -> None:
    """R-S23, R-C3"""
    gathered = fold(*log_with(kind))
    injected = [message for message in gathered.messages.values() if message.origin is Origin.HARNESS]
    _, expected, facts = SEEN[kind]
    assert [(message.role, words(message)) for message in injected] == [("developer", expected)]
    assert injected[0].metadata == {"claude-code": {"attachment": kind, **facts}}
    assert not gathered.events
    assert not gathered.diagnostics


@pytest.mark.parametrize("kind", SEEN)
def test_it_is_found_and_exported(kind: str, tmp_path: Path) -> None:
    folder = tmp_path / "home" / "projects" / "-home-dev-proj"
    folder.mkdir(parents=True)
    (folder / f"{SESSION}.jsonl").write_bytes(lines(*log_with(kind)))
    sync(tmp_path / "turnlog.db", roots=[tmp_path / "home"], agents=[AGENT])
    store_path = tmp_path / "turnlog.db"
    with Indexer(store_path, search_path(store_path)) as indexer:
        indexer.catch_up()
    with Searcher(store_path, search_path(store_path)) as searcher:
        assert len(searcher.search("tangerine", SearchFilter()).hits) == 1
    with open_store(store_path) as store:
        document = export_session(store, f"claude-code:{SESSION}", "json").data.decode()
    assert "tangerine" in document.lower()


@pytest.mark.parametrize("kind", SEEN)
def test_rendered_counts_where_it_is_there(kind: str) -> None:
    record = log_with(kind, "2.1.280")[1] | {"rendered": [{"content": "word for word"}]}
    (message,) = fold(record).messages.values()
    assert words(message) == "word for word"


@pytest.mark.parametrize(
    "fields",
    [
        {"type": "mcp_instructions_delta", "addedNames": [], "addedBlocks": [], "removedNames": ["fruit"]},
        {"type": "nested_memory", "path": MEMORY, "content": {"path": MEMORY}},
        {"type": "edited_text_file", "filename": "/a.py", "snippet": {"lines": 3}},
        {"type": "agent_listing_delta", "addedLines": None},
    ],
)
def test_an_attachment_without_text_is_an_event_that_has_it(fields: dict[str, Any]) -> None:
    gathered = fold(Log("2.1.200").record("attachment", attachment=fields))
    assert not gathered.messages
    assert not gathered.diagnostics
    ((change),) = gathered.events.values()
    assert isinstance(change.event, RecordEvent)
    assert (change.event.kind, change.event.known) == (f"attachment/{fields['type']}", True)
    assert isinstance(change.event.data, msgspec.Raw)
    assert msgspec.json.decode(change.event.data) == {"attachment": fields}


@pytest.mark.parametrize(
    "data",
    [
        {"type": "mcp_progress", "status": "started", "serverName": "fruit", "toolName": "peel"},
        {"type": "waiting_for_task", "taskDescription": "Peel it", "taskType": "local_bash"},
        {"type": "query_update", "query": "tangerine peel"},
        {"type": "search_results_received", "resultCount": 8, "query": "tangerine peel"},
    ],
)
def test_records_of_progress_are_known_by_their_kind(data: dict[str, Any]) -> None:
    """R-C3"""
    log = Log("2.1.41")
    prompt = log.user("Hello")
    progress = log.record("progress", data=data, toolUseID="toolu_1", parentToolUseID="toolu_1")
    answer = log.assistant("msg_1", text("Hi."))
    gathered = fold(prompt, progress, answer)
    ((change),) = gathered.events.values()
    assert isinstance(change.event, RecordEvent)
    assert (change.event.kind, change.event.known) == (f"progress/{data['type']}", True)
    assert isinstance(change.event.data, msgspec.Raw)
    assert msgspec.json.decode(change.event.data) == {"data": data, "parentToolUseID": "toolu_1"}
    # It is a link of the chain: what names it as parent follows the prompt.
    assert gathered.place("msg_1").parent_id == prompt["uuid"]
