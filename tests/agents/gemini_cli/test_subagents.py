"""What subagents wrote, version by version: their own sessions where that can be told, never prompts of the parent."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.claude_files import Gathered
from support.gemini_files import DATA, SESSION, SESSION_ID, fold, fold_json, header, read, sources
from turnlog.model import Message, Origin, TextPart
from turnlog.store import open_store
from turnlog.store.base import SessionFilter
from turnlog.sync.syncer import sync

ASKED = "Your task is to do a deep investigation of the codebase to find all relevant files, code locations and so on"
BEGAN = "2026-11-21T18:32:52.062Z"


def said(gathered: Gathered, session: str) -> list[Message]:
    """The messages of a session in order."""
    places = [
        (place.position, message_id) for (owner, message_id), place in gathered.placements.items() if owner == session
    ]
    return [gathered.messages[message_id] for _, message_id in sorted(places)]


def texts(messages: list[Message]) -> list[str]:
    return ["".join(part.text for part in message.parts if isinstance(part, TextPart))[:40] for message in messages]


def user(text: str, identity: str = "u1") -> dict[str, object]:
    return {"id": identity, "timestamp": BEGAN, "type": "user", "content": [{"text": text}]}


def answer(text: str, identity: str = "g1") -> dict[str, object]:
    return {"id": identity, "timestamp": BEGAN, "type": "gemini", "content": text}


@pytest.mark.parametrize(
    ("version", "children"),
    [
        ("0.30.1", ["gemini-cli:2d2617ac-699a-4b36-8988-ee08e8133f30.20261121T182951"]),
        ("0.34.0", ["gemini-cli:34e1383b-9e93-4c46-a11e-4c0f6fff11b7.20261121T183252"]),
        ("0.38.2", ["gemini-cli:920q5f", "gemini-cli:9xxa7p", "gemini-cli:n1pp6a", "gemini-cli:xfiw2k"]),
    ],
)
def test_a_subagent_that_has_a_file_is_a_session_linked_to_its_parent(version: str, children: list[str]) -> None:
    """R-C13"""
    gathered = read(sources("subagents", version))
    (parent,) = {link.parent_session_id for link in gathered.links.values()}
    assert sorted(link.child_session_id for link in gathered.links.values()) == children
    assert {link.kind for link in gathered.links.values()} == {"subagent"}
    for child in children:
        first, second, *_ = said(gathered, child)
        assert (first.origin, second.role) == (Origin.SUBAGENT_PROMPT, "assistant")
        assert texts([second]) == ["I look."]
    assert {message.origin for message in said(gathered, parent)} <= {None, Origin.PROMPT, Origin.HARNESS}


@pytest.mark.parametrize("version", ["0.30.1", "0.34.0", "0.38.2"])
def test_only_what_a_person_typed_is_a_prompt(version: str) -> None:
    """R-C4"""
    prompts = [m for m in read(sources("subagents", version)).messages.values() if m.origin is Origin.PROMPT]
    asked = ["Use a sub-agent at once", "Use two", "Use one more", "The last"]
    assert texts(prompts) == (asked if version != "0.34.0" else asked[:3])


@pytest.mark.parametrize("version", ["0.30.1", "0.34.0", "0.38.2"])
def test_the_store_has_the_subagents_below_their_parent(version: str, tmp_path: Path) -> None:
    store = tmp_path / "turnlog.db"
    sync(store, roots=[DATA / "subagents" / version])
    with open_store(store) as opened:
        (parent,) = opened.sessions().items
        others = [known for known in opened.sessions(SessionFilter(subagents=True)).items if known.id != parent.id]
        assert {known.relationships[0].parent_session_id for known in others} == {parent.id}
        assert parent.counts.prompts == (3 if version == "0.34.0" else 4)


@pytest.mark.parametrize("name", ["generalist", "an-agent-of-the-project"])
def test_a_tool_that_showed_a_subagent_at_work_started_it(name: str, tmp_path: Path) -> None:
    """Before 0.39 each subagent is a tool of its own, also one that the project defines; no record links them."""
    home = tmp_path / "gemini"
    for source in sources("subagents", "0.36.0"):
        path = home / Path(source.path).relative_to(source.root)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(Path(source.path).read_text().replace('"name": "generalist"', f'"name": "{name}"'))
    sync(tmp_path / "turnlog.db", roots=[home])
    with open_store(tmp_path / "turnlog.db") as opened:
        (parent,) = opened.sessions().items
        (child,) = opened.children(parent.id)
    (relationship,) = child.relationships
    assert (relationship.parent_tool_call_id, relationship.inferred) == ("generalist_1795357203389_0", True)


def test_the_kind_of_a_header_marks_a_subagent_in_either_form() -> None:
    head = header(kind="subagent", startTime=BEGAN)
    child = f"{SESSION_ID}.20261121T183252"
    for gathered in (
        fold_json({**head, "messages": [user("anything"), answer("found")]}),
        fold(head, user("anything"), {"$set": {"sessionId": SESSION}}, answer("found")),
    ):
        assert texts(said(gathered, child)) == ["anything", "found"]
        assert [link.child_session_id for link in gathered.links.values()] == [child]


def test_a_later_prompt_like_a_subagents_is_no_session() -> None:
    found = fold_json({**header(startTime=BEGAN), "messages": [user("Hi"), answer("Yes."), user(ASKED, "u2")]})
    first, _, asked = said(found, SESSION_ID)
    assert (first.origin, asked.origin, asked.role) == (Origin.PROMPT, Origin.HARNESS, "developer")
    assert found.placements[SESSION_ID, asked.id].turn == 1
    assert found.links == {}
