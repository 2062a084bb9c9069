"""Tasks of the Cline family: both lists of a task are one session, and come back byte for byte."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from support.agent_cases import DATA
from support.format_page import FormatPage, named
from turnlog.agents import agent, detect
from turnlog.agents.cline_tasks.contents import TOOL_KINDS, ApiRequest, usage_of
from turnlog.agents.cline_tasks.fold import ERRORS, REPEATED, REQUEST, SHOWN_ONLY
from turnlog.agents.cline_tasks.task_files import list_in
from turnlog.model import (
    ErrorEvent,
    Fate,
    Message,
    Origin,
    ReasoningPart,
    TextPart,
    ToolCallPart,
)
from turnlog.store import open_store
from turnlog.store.base import SessionFilter, Store
from turnlog.sync.syncer import sync

CASES = DATA / "cline_tasks" / "handwritten"
PARENT, CHILD = (f"0a1b2c3d-0000-4000-8000-0000000000a{number}" for number in (1, 2))
OLD, NEW = "1790000100000", "1790000200000"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "turnlog.db"


def read(database: Path, root: Path, name: str) -> None:
    assert sync(database, roots=[root], agents=[agent(name)]).problems == []


def said(message: Message) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for part in message.parts:
        if isinstance(part, ToolCallPart):
            found.append((part.tool_name, [(result.status, result.exit_code) for result in part.results]))
        elif isinstance(part, ReasoningPart) or (isinstance(part, TextPart) and not part.is_synthetic):
            found.append((part.type, part.text))
    return found


def answers(store: Store, session: str) -> list[Message]:
    return [placed.message for placed in store.messages(session) if placed.message.role == "assistant"]


# -- a run of Cline's own older program for the terminal, which kept such tasks

RECORDED = DATA / "cline_tasks" / "3.82.0"


def test_a_run_has_the_words_calls_and_tokens_of_the_script(root: Path, database: Path) -> None:
    """R-C5, R-K1: the input of this provider contains what was read from a cache. The last answer was only shown."""
    shutil.copytree(RECORDED / "tour", root)
    read(database, root, "cline-extension")
    script = json.loads((RECORDED / "main.script.json").read_text())["main"]
    with open_store(database) as store:
        [session] = store.sessions(SessionFilter()).items
        found = answers(store, session.id)
        prompts = [one.message for one in store.messages(session.id) if one.message.origin is Origin.PROMPT]
    used = [message.usage for message in found if message.usage is not None]
    assert [(one.input, one.cache_read, one.output, one.exactness) for one in used] == [
        (turn["usage"]["in"], turn["usage"]["cached"], turn["usage"]["out"], "exact") for turn in script
    ]
    for message, turn in zip(found, script, strict=True):
        written = "".join(block["text"] for block in turn["blocks"])
        for kind, value in said(message):
            assert (value if kind in ("text", "reasoning") else f"<{kind}>") in written
    assert [[kind for kind, _ in said(message)] for message in found] == [
        ["reasoning", "text", "read_file"],
        ["reasoning", "execute_command"],
        ["text", "replace_in_file"],
        ["read_file"],
        ["text"],
    ]
    results = [value for message in found for kind, value in said(message) if kind not in ("text", "reasoning")]
    assert results == [[("success", None)], [("error", 3)], [("success", None)], [("error", None)]]
    assert [said(message) for message in prompts] == [[("text", "Please read notes.txt and tell me what is in it.")]]
    assert session.title == "Please read notes.txt and tell me what is in it."


@pytest.mark.parametrize("case", ["tour", "stopped"])
def test_a_recorded_task_is_accounted_for_and_restored_byte_for_byte(case: str, root: Path, database: Path) -> None:
    """R-S1, R-S34"""
    shutil.copytree(RECORDED / case, root)
    read(database, root, "cline-extension")
    with open_store(database) as store:
        [session] = store.sessions(SessionFilter()).items
        assert session.counts.diagnostics == 0
        assert all(getattr(event, "known", True) for event in store.events(session.id))
        restored = {one.path.name: one.path.read_bytes() for one in store.restore(session.id, root.parent / "again")}
    tasks = [path for path in (RECORDED / case / "tasks").rglob("*") if path.is_file()]
    assert restored == {path.name: path.read_bytes() for path in tasks}


# -- Roo Code and what came of it


def test_a_task_has_its_calls_with_the_tokens_of_their_requests(root: Path, database: Path) -> None:
    """R-C5, R-C8: results in another order, a failed command, a refused one, and a request without an answer."""
    shutil.copytree(CASES / "roo", root)
    read(database, root, "roo-code")
    with open_store(database) as store:
        found = answers(store, f"roo-code:{PARENT}")
        session = store.session(f"roo-code:{PARENT}")
        errors = [each for each in store.events(f"roo-code:{PARENT}") if isinstance(each, ErrorEvent)]
    assert [said(message) for message in found] == [
        [("reasoning", "The file first."), ("text", "I read the notes."), ("read_file", [("success", None)])],
        [("text", "Now the tests."), ("execute_command", [("error", 4)])],
        [],
        [
            ("text", "Two look-ups at once."),
            ("search_files", [("success", None)]),
            ("list_files", [("success", None)]),
        ],
        [
            ("text", "An edit, and somebody to check it."),
            ("apply_diff", [("success", None)]),
            ("new_task", [("success", None)]),
        ],
        [("text", "The notes hold alpha and gamma.")],
        [("text", "That needs your consent."), ("execute_command", [("denied", None)])],
        [("text", "Then it stays.")],
    ]
    counted = [(m.usage.input, m.usage.cache_read, m.usage.cache_write, m.usage.output) for m in found if m.usage]
    assert counted[:3] == [(200, 1200, 100, 60), (200, 1500, None, 40), (200, 1700, None, 50)]
    assert [message.error.text for message in found if message.error is not None] == ["overloaded"]
    # The request and the message after it say the same.
    assert errors == []
    assert {message.model for message in found} == {"claude-sonnet-4-5"}
    assert session is not None
    assert (session.cwd, session.title, session.counts.turns) == (
        "/home/dev/work",
        "Read notes.txt, then run the tests",
        2,
    )


@pytest.mark.parametrize(
    ("told", "events"), [("overloaded", []), ("too many requests", ["overloaded"]), (None, ["overloaded"])]
)
def test_a_failure_at_the_end_is_there_once(told: str | None, events: list[str], root: Path, database: Path) -> None:
    """R-C8: whether or not the request says the same."""
    shutil.copytree(CASES / "roo", root)
    shown = root / "tasks" / PARENT / "ui_messages.json"
    items: list[dict[str, Any]] = json.loads(shown.read_text())
    asked = {"apiProtocol": "anthropic", "tokensIn": 0, "tokensOut": 0, "streamingFailedMessage": told}
    items += [
        {"ts": 1790000070000, "type": "say", "say": "api_req_started", "text": json.dumps(asked)},
        {"ts": 1790000070100, "type": "ask", "ask": "api_req_failed", "text": "overloaded"},
    ]
    shown.write_text(json.dumps(items))
    read(database, root, "roo-code")
    with open_store(database) as store:
        found = [message.error.text for message in answers(store, f"roo-code:{PARENT}") if message.error is not None]
        errors = [each for each in store.events(f"roo-code:{PARENT}") if isinstance(each, ErrorEvent)]
    assert [error.error_text for error in errors] == events
    assert len(found) + len(errors) == 2


def test_a_subtask_belongs_to_the_call_at_its_place(root: Path, database: Path) -> None:
    """R-C10: the link is marked as inferred, since no file names the call."""
    shutil.copytree(CASES / "roo", root)
    read(database, root, "roo-code")
    with open_store(database) as store:
        child = store.session(f"roo-code:{CHILD}")
        first = store.messages(f"roo-code:{CHILD}")[0].message
    assert child is not None
    [link] = child.relationships
    assert (link.parent_session_id, link.parent_tool_call_id, link.inferred) == (
        f"roo-code:{PARENT}",
        "toolu_task1",
        True,
    )
    assert first.origin is Origin.SUBAGENT_PROMPT


def test_messages_after_a_restored_checkpoint_are_rewound(root: Path, database: Path) -> None:
    shutil.copytree(CASES / "roo", root)
    read(database, root, "roo-code")
    for name, size in (("api_conversation_history.json", 4), ("ui_messages.json", 6)):
        path = root / "tasks" / PARENT / name
        path.write_text(json.dumps(json.loads(path.read_text())[:size], separators=(",", ":")))
    read(database, root, "roo-code")
    with open_store(database) as store:
        fates = [placed.membership.fate for placed in store.messages(f"roo-code:{PARENT}")]
    assert fates[:3] == [Fate.ACTIVE] * 3
    assert set(fates[3:]) == {Fate.REWOUND}


def test_a_task_that_grows_is_the_task_read_at_once(root: Path, database: Path, tmp_path: Path) -> None:
    """R-S34: also if the tokens of a request are written only after its answer."""
    shutil.copytree(CASES / "roo", root)
    task = root / "tasks" / PARENT
    whole = {
        name: json.loads((task / name).read_text()) for name in ("api_conversation_history.json", "ui_messages.json")
    }
    for sizes in ((1, 2), (2, 5), (4, 8), (9, 16)):
        for (name, items), size in zip(whole.items(), sizes, strict=True):
            grown = json.loads(json.dumps(items[:size]))
            if grown[-1].get("say") == "api_req_started":
                grown[-1]["text"] = '{"apiProtocol":"anthropic"}'
            (task / name).write_text(json.dumps(grown, separators=(",", ":")))
        read(database, root, "roo-code")
    shutil.copytree(CASES / "roo", root, dirs_exist_ok=True)
    read(database, root, "roo-code")
    read(tmp_path / "once.db", root, "roo-code")
    with open_store(database) as grown_store, open_store(tmp_path / "once.db") as once:
        for name in (PARENT, CHILD):
            placed = [store.messages(f"roo-code:{name}") for store in (grown_store, once)]
            assert [each.message for each in placed[0]] == [each.message for each in placed[1]]
            assert {each.membership.fate for each in placed[0]} == {Fate.ACTIVE}


# -- Cline


def test_calls_in_the_text_of_older_versions_are_calls(root: Path, database: Path) -> None:
    """R-C8: results name only their tool, and times are those of what was shown."""
    shutil.copytree(CASES / "cline", root)
    read(database, root, "cline-extension")
    with open_store(database) as store:
        placed = [each.message for each in store.messages(f"cline-extension:{OLD}")]
        session = store.session(f"cline-extension:{OLD}")
    found = [message for message in placed if message.role == "assistant"]
    assert [said(message) for message in found] == [
        [("reasoning", "The file first."), ("text", "I read the notes."), ("read_file", [("success", None)])],
        [("text", "Now the tests."), ("execute_command", [("error", 4)])],
        [("replace_in_file", [("denied", None)])],
        [("text", "It stays."), ("attempt_completion", [])],
    ]
    call = next(part for part in found[1].parts if isinstance(part, ToolCallPart))
    assert call.input_value() == {"command": "pytest -q missing", "requires_approval": "false"}
    assert [said(message) for message in placed if message.origin is Origin.PROMPT] == [
        [("text", "Read notes.txt, then run the tests")],
        [("text", "Keep beta")],
    ]
    assert [(m.usage.input, m.usage.cache_read, m.usage.exactness) for m in found if m.usage is not None] == [
        (1500, 1200, "exact"),
        (1600, 1500, "exact"),
        (1700, 1600, "exact"),
        (1800, 1700, "exact"),
    ]
    assert {message.model for message in found} == {"claude-sonnet-4-5"}
    assert session is not None
    assert (session.cwd, session.agent_version) == ("/home/dev/work", "3.36.0")


def test_newer_messages_have_their_own_tokens_and_models(root: Path, database: Path) -> None:
    shutil.copytree(CASES / "cline", root)
    read(database, root, "cline-extension")
    with open_store(database) as store:
        [first, second] = answers(store, f"cline-extension:{NEW}")
    assert said(first) == [
        ("reasoning", "Look."),
        ("text", "I look."),
        ("read_file", [("success", None)]),
        ("execute_command", [("success", None)]),
    ]
    assert first.usage is not None
    assert (first.usage.input, first.usage.cache_read, first.usage.output) == (300, 1200, 60)
    assert (first.model, str(first.cost and first.cost.amount)) == ("gpt-5", "0.002")
    assert said(second) == [("text", "Alpha.")]


# -- files


@pytest.mark.parametrize(("name", "case"), [("roo-code", "roo"), ("cline-extension", "cline")])
def test_the_files_of_a_task_come_back_byte_for_byte(
    name: str, case: str, root: Path, database: Path, tmp_path: Path
) -> None:
    """R-S25: on one line, or with an item on many lines."""
    shutil.copytree(CASES / case, root)
    read(database, root, name)
    before = {path.relative_to(root): path.read_bytes() for path in (root / "tasks").rglob("*.json")}
    shutil.rmtree(root)
    with open_store(database) as store:
        for session in store.sessions(SessionFilter(subagents=True), limit=20).items:
            store.restore(session.id, tmp_path / "back")
    found = {path.relative_to(tmp_path / "back"): path.read_bytes() for path in (tmp_path / "back").rglob("*.json")}
    assert {Path(*path.parts[-3:]): data for path, data in found.items()} == before


@pytest.mark.parametrize("text", ["[]", "[1, 2,3]", '{"version":2,"messages":[{"a":1},\n{"b":2}]}', "[1,", "null"])
def test_the_pieces_of_a_list_are_the_file(text: str) -> None:
    found = list_in("x", text)
    assert found.head + found.separator.join(found.items) + found.tail == text


def test_a_task_is_of_the_extension_whose_folder_it_is_in(tmp_path: Path) -> None:
    """R-S21"""
    for folder, name in (
        ("rooveterinaryinc.roo-cline", "roo-code"),
        ("kilocode.kilo-code", "kilo-extension"),
        ("elsewhere", "cline-extension"),
    ):
        shutil.copytree(CASES / "roo", tmp_path / folder)
        found = detect(tmp_path / folder / "tasks" / PARENT / "api_conversation_history.json")
        assert (found.agent, found.is_certain) == (name, True)
        assert found.source is not None
        assert found.source.session_id == f"{name}:{PARENT}"
    (tmp_path / "other.json").write_text('[{"role": "user", "content": "<tasks>"}]')
    assert detect(tmp_path / "other.json").agent is None


@pytest.mark.parametrize(
    ("asked", "wanted"),
    [
        (ApiRequest(tokens_in=100, tokens_out=5, cache_reads=80), (100, 80, "exact")),
        (ApiRequest(tokens_in=100, tokens_out=5, cache_reads=80, api_protocol="openai"), (20, 80, "estimated")),
        (ApiRequest(tokens_in=10, tokens_out=5, cache_reads=80, api_protocol="anthropic"), (10, 80, "exact")),
        (ApiRequest(tokens_in=0, tokens_out=0, cost=0), None),
        (ApiRequest(tokens_in=-1), None),
    ],
    ids=["Cline", "all input together", "less than was cached", "nothing", "damaged"],
)
def test_input_is_counted_without_what_was_cached(asked: ApiRequest, wanted: tuple[int, int, str] | None) -> None:
    """R-C5"""
    usage = usage_of(asked)
    assert (None if usage is None else (usage.input, usage.cache_read, usage.exactness)) == wanted


# -- the page


def test_every_kind_of_shown_message_and_every_tool_is_on_the_page() -> None:
    """R-S23"""
    page = FormatPage("cline-extension")
    described = [name for kinds, _ in page.rows("### Shown messages") for name in named(kinds)]
    assert sorted(described) == sorted({REQUEST} | ERRORS | REPEATED | SHOWN_ONLY)
    tools = [name for names, _ in page.rows("### Tools") for name in named(names)]
    assert sorted(tools) == sorted(TOOL_KINDS)
