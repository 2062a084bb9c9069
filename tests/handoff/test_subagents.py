"""`--subagents`: the prompts, calls and answers of recorded subagents travel with the result of their call."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from support.handed_over import make_databases, said, stored
from turnlog import handoff
from turnlog.handoff.conversation import convert
from turnlog.handoff.targets import target_agent, writer_of
from turnlog.model import Message, Origin, Session, TextPart, ToolCallPart, ToolResult
from turnlog.model.codec import to_json
from turnlog.model.parts import ToolState
from turnlog.store import open_store
from turnlog.store.base import Store
from turnlog.sync.syncer import sync

DATA = Path(__file__).parents[1] / "data"

RECORDED: dict[str, list[list[str]]] = {
    "claude_code/scenarios/subagent-sync": [
        ["SUBMARK-A: count the files here", "ls | wc -l", "result (success): 2", "There are 2 files."]
    ],
    "claude_code/scenarios/subagent": [
        ["SUBMARK-A: count the files here", "ls | wc -l", "result (success): 2", "There are 2 files."],
        ["SUBMARK-B: list git branches", "git branch", "result (success): * main", "Only branch main."],
    ],
    "codex/scenarios/subagent-gpt-5.5": [["SUBMARK-A: count the files", "Sub: there are 2 files."]],
}
"""Home -> of each subagent what its script has, in order."""


@pytest.fixture(scope="module", params=RECORDED)
def recorded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[list[str]]]:
    path = tmp_path_factory.mktemp("recorded") / "store.db"
    sync(path, roots=[DATA / request.param])
    return path, RECORDED[request.param]


def parent(store: Store) -> Session:
    return next(each for each in store.sessions(limit=20).items if store.children(each.id))


def results(conversation: list[tuple[str, list[Any]]]) -> Iterator[str]:
    for _, parts in conversation:
        # A call is its name, its input, its statuses and what it gave; anything else is a text or a file.
        calls = [cast("tuple[Any, ...]", part) for part in parts if isinstance(part, tuple)]
        yield from ("\n".join(map(str, call[3])) for call in calls if len(call) == 4)


@pytest.mark.parametrize("target", ["claude-code", "codex", "opencode"])
def test_transcripts_of_recorded_subagents_stand_in_the_new_session(
    target: str, recorded: tuple[Path, list[list[str]]], tmp_path: Path
) -> None:
    path, subagents = recorded
    home = tmp_path / "home"
    make_databases(home)
    with open_store(path) as store:
        origin = parent(store)
        bare = handoff.plan(store, origin.id, target, folder=tmp_path, home=home)
        plan = handoff.plan(store, origin.id, target, folder=tmp_path, home=home, subagents=True)
    assert [loss.kind for loss in bare.losses].count("subagent") == len(subagents)
    assert "subagent" not in [loss.kind for loss in plan.losses]
    plan.write()
    new = tmp_path / "new.db"
    sync(new, roots=[home])
    with open_store(new) as store:
        found = stored(store, plan.session_id)
    assert found == said(plan)
    kept, without = list(results(found)), list(results(said(bare)))
    assert len(kept) == len(without)
    for words in subagents:
        [text] = [each for each in kept if f"user: {words[0]}" in each]
        places = [text.index(word) for word in words]
        assert places == sorted(places)
        assert text.count("<subagent-transcript>") == text.count("</subagent-transcript>") == 1
        # What the call itself gave is before it.
        before = text.partition("<subagent-transcript>")[0].strip()
        assert before in [each.strip() for each in without]
        assert not [each for each in without if f"user: {words[0]}" in each]


def test_the_transcript_of_a_subagent_has_those_of_its_own_subagents(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    sync(path, roots=[DATA / "claude_code/versions/2.1.330-nested"])
    with open_store(path) as store:
        plan = handoff.plan(store, parent(store).id, "codex", folder=tmp_path, home=tmp_path / "home", subagents=True)
    [text] = [each for each in results(said(plan)) if "user: NEST-A: do it" in each]
    outer, begin, rest = text.partition("<subagent-transcript>\nuser: NEST-E: do it")
    inner, end, after = rest.partition("</subagent-transcript>")
    assert begin
    assert end
    # It follows the result of its call, and the conversation of the one that started it goes on after it.
    assert "result (success): E done <b>with tags</b> & more.\n" in outer
    assert "result (success): e\nassistant: E done <b>with tags</b> & more.\n" in inner
    assert "assistant: A saw both." in after
    # Two others are known only by the call that started them: they get no empty transcript.
    assert text.count("<subagent-transcript>") == text.count("</subagent-transcript>") == 2


def test_a_transcript_that_no_model_could_take_is_cut_and_reported() -> None:
    call = ToolCallPart(
        tool_call_id="t",
        tool_name="Task",
        input=to_json({}),
        state=ToolState.OUTPUT_AVAILABLE,
        child_session_id="demo:child",
        results=(ToolResult(id="r", status="success", content=(TextPart(text="Done."),)),),
    )
    converted = convert(
        [
            Message(id="u", role="user", origin=Origin.PROMPT, parts=(TextPart(text="Go"),)),
            Message(id="a", role="assistant", model="m", parts=(call,)),
        ],
        writer_of(target_agent("codex")),
        lambda blob: b"",
        reasoning="omit",
        transcript=lambda child: "y" * 3_000_000,
    )
    assert [(loss.kind, loss.tool_call_id) for loss in converted.losses] == [("output-cut", "t")]
    [part] = converted.messages[-1].parts
    assert isinstance(part, ToolCallPart)
    assert part.results[0].output_text.startswith("Done.")
    assert 400_000 < len(part.results[0].output_text) < 401_000
