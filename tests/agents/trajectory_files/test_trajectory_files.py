"""Trajectories of other programs and of turnlog: what becomes of their steps, and of what is wrong with them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest
from atif import Trajectory as Judge

from support.cli_runner import call as turnlog
from support.provider_messages import PNG, assistant, result
from support.provider_messages import call as call_of
from turnlog.agents import agent, detect
from turnlog.agents.base import RowAgent, Source
from turnlog.agents.changes import Changes
from turnlog.exports import export_session
from turnlog.formats.atif import AtifConversation, to_atif
from turnlog.model import (
    Approval,
    Cost,
    FilePart,
    Membership,
    Message,
    Origin,
    ReasoningPart,
    Session,
    TextPart,
    ToolCallPart,
    Usage,
)
from turnlog.store import open_store
from turnlog.store.base import Store

DATA = Path(__file__).parents[2] / "data" / "trajectory_files"


def step(number: int, source: str = "agent", message: Any = "said", **more: Any) -> dict[str, Any]:
    return {"step_id": number, "source": source, "message": message, **more}


def call(name: str, tool: str = "bash", **more: Any) -> dict[str, Any]:
    return {"tool_call_id": name, "function_name": tool, "arguments": {"command": "ls"}, **more}


def trajectory(*steps: Any, **more: Any) -> dict[str, Any]:
    made = {"schema_version": "ATIF-v1.8", "session_id": "run", "agent": {"name": "a", "version": "1"}}
    return {**made, "steps": list(steps), **more}


def read(folder: Path, document: bytes | dict[str, Any], name: str = "t.json") -> Changes:
    """What the reader makes of a file."""
    path = folder / name
    path.write_bytes(document if isinstance(document, bytes) else json.dumps(document).encode())
    found = agent("atif")
    assert isinstance(found, RowAgent)
    source = Source(agent="atif", path=str(path), root=str(folder))
    return found.fold(source).feed(b"".join(found.read_rows(source, ()).lines), 0)


def messages(changes: Changes) -> list[Message]:
    return [change.message for change in changes.messages]


def imported(path: Path, store: Path) -> dict[str, Any]:
    result = turnlog("import", str(path), "--store", str(store), "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.output)


def tokens_of(store: Store, session_id: str) -> Usage:
    return store.session(session_id).usage.usage


def test_a_call_with_thousands_of_results_is_read_in_time(tmp_path: Path) -> None:
    """R-S23: where each result were added to a copy of all before it, four thousand would take ten seconds."""
    results = [{"source_call_id": "c", "content": f"part {number}"} for number in range(4000)]
    document = trajectory(step(1, "user", "go"), step(2, tool_calls=[call("c")], observation={"results": results}))
    began = time.process_time()
    [_, answer] = messages(read(tmp_path, document))
    assert time.process_time() - began < 2
    [part] = [part for part in answer.parts if isinstance(part, ToolCallPart)]
    assert {result.output_text for result in part.results} == {each["content"] for each in results}


# -- what harbor writes


@pytest.mark.parametrize(
    "name", ["harbor-0.26/claude-code-tour", "harbor-0.26/claude-code-agent", "harbor-0.26-codex/codex-tour"]
)
def test_what_harbor_counts_is_counted(name: str, home: Path, tmp_path: Path) -> None:
    path = DATA / name / "trajectory.json"
    written = json.loads(path.read_bytes())
    [session_id] = imported(path, tmp_path / "s.db")["sessions"]
    with open_store(tmp_path / "s.db") as store:
        session = store.session(session_id)
    used, totals = session.usage.usage, written["final_metrics"]
    prompt = [used.input, used.cache_read, used.cache_write]
    assert sum(count or 0 for count in prompt) == totals["total_prompt_tokens"]
    assert (used.output or 0) + (used.reasoning or 0) == totals["total_completion_tokens"]
    assert used.cache_read == totals["total_cached_tokens"]
    assert session.counts.tool_calls == sum(len(each.get("tool_calls", [])) for each in written["steps"])
    assert session.counts.messages == len(written["steps"])


def test_a_folder_is_imported_searched_and_restored(home: Path, tmp_path: Path) -> None:
    job = tmp_path / "job"
    (job / "trial" / "agent" / "images").mkdir(parents=True)
    (job / "result.json").write_text('{"reward": 1}')
    shown = {"type": "image", "source": {"media_type": "image/png", "path": "images/a.png"}}
    document = json.dumps(trajectory(step(1, "user", [{"type": "text", "text": "periwinkle"}, shown])), indent=2)
    (job / "trial" / "agent" / "trajectory.json").write_text(document)
    (job / "trial" / "agent" / "images" / "a.png").write_bytes(PNG)
    store = tmp_path / "s.db"
    assert imported(job, store)["sessions"] == ["atif:run"]
    assert imported(job, store)["is_new"] is False
    hits = turnlog("search", "periwinkle", "--store", str(store), "--no-sync", "--json")
    assert "atif:run" in hits.output
    restored = turnlog("restore", "atif:run", "--to", str(tmp_path / "back"), "--store", str(store))
    assert restored.exit_code == 0, restored.output
    [back] = (tmp_path / "back").rglob("trajectory.json")
    assert back.read_text() == document
    assert (back.parent / "images" / "a.png").read_bytes() == PNG


@pytest.mark.parametrize("ending", [b"", b"\n", b"\r\n\n"])
@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("said", ["é" * 100_000, "caf\xe9"])
def test_the_bytes_of_a_trajectory_come_back_as_they_were(
    said: str, indent: int | None, ending: bytes, tmp_path: Path
) -> None:
    text = json.dumps(trajectory(step(1, "user", said)), indent=indent, ensure_ascii=False)
    # One is UTF-8 and longer than what is checked at a time, the other none.
    document = text.encode("utf-8" if len(said) > 4 else "latin-1") + ending
    path = tmp_path / "t.json"
    path.write_bytes(document)
    found = agent("atif")
    assert isinstance(found, RowAgent)
    source = Source(agent="atif", path=str(path), root=str(tmp_path))
    log = found.read_rows(source, ()).lines
    [back] = found.restore_rows(source, log, tmp_path / "back")
    assert back.read_bytes() == document
    [message] = messages(found.fold(source).feed(b"".join(log), 0))
    [part] = message.parts
    assert isinstance(part, TextPart)
    assert part.text == (said if len(said) > 4 else "caf\ufffd")


# -- what steps become


def test_a_step_has_thoughts_words_calls_and_their_results(tmp_path: Path) -> None:
    observation = {
        "results": [
            {"source_call_id": "a", "content": "one"},
            {"source_call_id": "b", "content": "no", "extra": {"tool_result_is_error": True}},
        ]
    }
    made = step(1, reasoning_content="Hm.", tool_calls=[call("a"), call("b", "Edit")], observation=observation)
    [message] = messages(read(tmp_path, trajectory(made)))
    thought, text, first, second = message.parts
    assert isinstance(thought, ReasoningPart)
    assert isinstance(text, TextPart)
    assert isinstance(first, ToolCallPart)
    assert isinstance(second, ToolCallPart)
    assert (thought.text, text.text, first.output_text, second.results[0].error_text) == ("Hm.", "said", "one", "no")
    assert (first.kind, first.state, second.kind, second.state) == (
        "execute",
        "output-available",
        "edit",
        "output-error",
    )


def test_tokens_are_disjoint_and_what_is_not_said_is_unknown(tmp_path: Path) -> None:
    metrics = {"prompt_tokens": 100, "completion_tokens": 30, "cached_tokens": 60}
    extra = {"cache_creation_input_tokens": 10, "reasoning_tokens": 5}
    full, part, none = messages(
        read(
            tmp_path,
            trajectory(
                step(1, metrics={**metrics, "extra": extra}), step(2, metrics={"prompt_tokens": 7}), step(3, metrics={})
            ),
        )
    )
    assert full.usage == Usage(input=30, cache_read=60, cache_write=10, output=25, reasoning=5)
    assert part.usage == Usage(input=7)
    assert none.usage is None


def test_totals_count_only_where_no_step_has_tokens(tmp_path: Path) -> None:
    totals = {"total_prompt_tokens": 50, "total_completion_tokens": 5, "total_cost_usd": 0.5}
    [without] = read(tmp_path, trajectory(step(1), final_metrics=totals)).sessions.values()
    assert [total.usage for total in without.totals.values()] == [Usage(input=50, output=5)]
    assert without.reported_cost == 0.5
    metrics = {"prompt_tokens": 50, "cost_usd": 0.5}
    [with_tokens] = read(tmp_path, trajectory(step(1, metrics=metrics), final_metrics=totals)).sessions.values()
    assert (with_tokens.totals, with_tokens.reported_cost) == ({}, 0.5)
    computed = trajectory(step(1), final_metrics={**totals, "extra": {"cost_kind": "priced"}})
    [priced] = read(tmp_path, computed).sessions.values()
    assert priced.reported_cost is None


def test_a_session_costs_what_its_own_steps_cost(tmp_path: Path) -> None:
    steps = [
        step(1, metrics={"cost_usd": 0.25}),
        step(2, metrics={"cost_usd": 4.0}, is_copied_context=True),
        step(3, metrics={"cost_usd": 8.0, "extra": {"cost_kind": "priced"}}),
    ]
    [session] = read(tmp_path, trajectory(*steps, final_metrics={"total_cost_usd": 99.0})).sessions.values()
    assert session.reported_cost == 0.25


def test_an_observation_without_a_call_is_a_message(tmp_path: Path) -> None:
    made = step(1, observation={"results": [{"content": "$ prompt"}]})
    answer, seen = messages(read(tmp_path, trajectory(made)))
    assert (answer.role, seen.role, seen.origin) == ("assistant", "developer", Origin.HARNESS)


def test_a_result_in_a_later_step_reaches_its_call(home: Path, tmp_path: Path) -> None:
    late = step(2, "system", "", observation={"results": [{"source_call_id": "a", "content": "late"}]})
    (tmp_path / "t.json").write_text(json.dumps(trajectory(step(1, tool_calls=[call("a")]), late)))
    imported(tmp_path / "t.json", tmp_path / "s.db")
    with open_store(tmp_path / "s.db") as store:
        [found] = [
            part
            for stored in store.messages("atif:run")
            for part in stored.message.parts
            if isinstance(part, ToolCallPart)
        ]
    assert found.output_text == "late"


def test_copied_steps_are_billed_elsewhere(home: Path, tmp_path: Path) -> None:
    metrics = {"prompt_tokens": 10, "completion_tokens": 1}
    steps = (step(1, metrics=metrics, is_copied_context=True), step(2, metrics=metrics))
    (tmp_path / "t.json").write_text(json.dumps(trajectory(*steps)))
    imported(tmp_path / "t.json", tmp_path / "s.db")
    with open_store(tmp_path / "s.db") as store:
        assert tokens_of(store, "atif:run").input == 10


def test_subagents_and_continuations_are_linked(tmp_path: Path) -> None:
    inner = {**trajectory(step(1, "user")), "trajectory_id": "sub"}
    seen = {"source_call_id": "a", "subagent_trajectory_ref": [{"trajectory_id": "sub"}]}
    other = {"source_call_id": "a", "subagent_trajectory_ref": [{"trajectory_path": "o.json", "session_id": "other"}]}
    made = step(1, tool_calls=[call("a")], observation={"results": [seen, other]})
    document = trajectory(made, subagent_trajectories=[inner], continued_trajectory_ref="t.cont-1.json")
    changes = read(tmp_path, document)
    found = {(link.kind, link.child_session_id, link.tool_call_id) for link in changes.links}
    assert found == {
        ("subagent", "atif:run.sub", "a"),
        ("subagent", "atif:other", "a"),
        ("continuation", "atif:run.cont-1", None),
    }
    assert set(read(tmp_path, trajectory(step(1)), "t.cont-1.json").sessions) == {"atif:run.cont-1"}
    assert next(change.message for change in changes.messages if change.message.id == "run.sub.1").origin == (
        Origin.SUBAGENT_PROMPT
    )


def test_subagents_with_the_same_id_are_all_read(tmp_path: Path) -> None:
    inner = [trajectory(step(1, message=text), trajectory_id="twin") for text in ("one", "two")]
    changes = read(tmp_path, trajectory(step(1), trajectory_id="t", subagent_trajectories=inner))
    assert len(changes.sessions) == 3
    assert len({change.message.id for change in changes.messages}) == 3
    assert [each.json_path for each in changes.diagnostics] == ["$.subagent_trajectories[1].trajectory_id"]


@pytest.mark.parametrize("version", [f"ATIF-v1.{number}" for number in range(9)])
def test_every_version_is_known_by_its_content(version: str, tmp_path: Path) -> None:
    path = tmp_path / "any.json"
    path.write_text(json.dumps({**trajectory(step(1)), "schema_version": version}, indent=1))
    found = detect(path)
    assert (found.agent, found.version) == ("atif", version.removeprefix("ATIF-v"))


# -- turnlog's own


def test_what_turnlog_exports_comes_back(home: Path, tmp_path: Path) -> None:
    """All that the table of losses does not name."""
    first, second = tmp_path / "a.db", tmp_path / "b.db"
    assert turnlog("sync", "--root", str(SAMPLE), "--store", str(first)).exit_code == 0
    with open_store(first) as store:
        before = {session.id: session for session in store.sessions(limit=50).items}
        for session_id in before:
            made = export_session(store, session_id, "atif").data
            Judge.model_validate_json(made)
            (tmp_path / f"{session_id.replace(':', '_')}.json").write_bytes(made)
        texts = {session_id: said(store, session_id) for session_id in before}
    for path in sorted(tmp_path.glob("*.json")):
        imported(path, second)
    with open_store(second) as store:
        for session_id, session in before.items():
            back = store.session(f"atif:{session_id}")
            assert (back.title, back.cwd, back.git_branch) == (session.title, session.cwd, session.git_branch)
            assert back.usage.usage.total == session.usage.usage.total
            assert (back.counts.tool_calls, back.counts.failed_tool_calls, back.counts.steps) == (
                session.counts.tool_calls,
                session.counts.failed_tool_calls,
                session.counts.steps,
            )
            assert said(store, back.id) == texts[session_id]
        again = [export_session(store, session.id, "atif").data for session in store.sessions(limit=50).items]
    # What has come back once is the same ever after, under the same ids.
    for number, made in enumerate(again):
        (tmp_path / f"again{number}.json").write_bytes(made)
        imported(tmp_path / f"again{number}.json", tmp_path / "c.db")
    with open_store(tmp_path / "c.db") as store:
        assert {export_session(store, each.id, "atif").data for each in store.sessions(limit=50).items} == set(again)


SAMPLE = Path(__file__).parents[3] / "src" / "turnlog" / "sample" / "claude-code"


def said(store: Store, session_id: str) -> list[tuple[str, Origin | None, str, tuple[str, ...]]]:
    return [
        (
            stored.message.role,
            stored.message.origin,
            "".join(part.text for part in stored.message.parts if isinstance(part, TextPart)),
            tuple(part.output_text for part in stored.message.parts if isinstance(part, ToolCallPart)),
        )
        for stored in store.messages(session_id)
    ]


def test_missing_values_are_not_invented_and_an_approval_is_whole(tmp_path: Path) -> None:
    approval = Approval(id="p", approved=True, source="user", reason="ok", metadata={"scope": "session", "rules": [1]})
    placed = [assistant(call_of("c", result("r"), approval=approval), id="a"), assistant("b", id="b")]
    spoken = [msgspec.structs.replace(message, model=None if message.id == "a" else "m") for message in placed]
    session = Session(id="plain:s", agent="plain", external_id="s", models=("m",))
    places = [Membership(session_id="plain:s", message_id=each.id, position=n) for n, each in enumerate(spoken)]
    parts = [(message, place, None) for message, place in zip(spoken, places, strict=True)]
    made = to_atif([AtifConversation(session, parts, (), dict[str, str]().get)]).to_json()
    Judge.model_validate_json(made)
    first, second = messages(read(tmp_path, made))
    assert (first.model, second.model) == (None, "m")
    assert [part.approval for part in first.parts if isinstance(part, ToolCallPart)] == [approval]


def test_a_step_without_a_model_has_that_of_its_agent(tmp_path: Path) -> None:
    agent_of_all = {"name": "a", "version": "1", "model_name": "m"}
    [message] = messages(read(tmp_path, trajectory(step(1), agent=agent_of_all)))
    assert message.model == "m"


# -- damage


def test_of_a_torn_file_the_whole_steps_are_read(tmp_path: Path) -> None:
    inner = {**trajectory(step(7, message="not the session's")), "trajectory_id": "sub"}
    whole = json.dumps(trajectory(step(1, "user"), step(2), step(3), subagent_trajectories=[inner])).encode()
    for cut, number in ((whole.rindex(b'"step_id": 3') + 20, 2), (whole.index(b"not the"), 3)):
        changes = read(tmp_path, whole[:cut])
        assert [message.id for message in messages(changes)] == [f"run.{each}" for each in range(1, number + 1)]
        assert [each.json_path for each in changes.diagnostics] == ["$"]


def test_what_does_not_fit_is_named_by_its_place(tmp_path: Path) -> None:
    document = trajectory(
        step(1, timestamp="yesterday", metrics={"prompt_tokens": -5, "completion_tokens": 3}),
        "no step",
        step(9, "oracle", None),
        step(9, tool_calls=[call("a"), 7], surprise={"kept": True}),
    )
    changes = read(tmp_path, document)
    assert {each.json_path for each in changes.diagnostics} == {
        "$.steps[0].timestamp",
        "$.steps[0].metrics.prompt_tokens",
        "$.steps[1]",
        "$.steps[2]",
        "$.steps[2].source",
        "$.steps[3]",
        "$.steps[3].tool_calls[1]",
    }
    first, *_, last = messages(changes)
    assert first.usage == Usage(output=3)
    assert last.metadata["atif"]["other_fields"] == {"surprise": {"kept": True}}
    assert len({message.id for message in messages(changes)}) == 3


@pytest.mark.parametrize("indent", [None, 2])
def test_bytes_that_are_no_utf8_are_noted(indent: int | None, tmp_path: Path) -> None:
    document = json.dumps(trajectory(step(1, "user", "caf@"), step(2)), indent=indent).encode()
    (tmp_path / "t.json").write_bytes(document.replace(b"@", b"\xe9"))
    found = agent("atif")
    assert isinstance(found, RowAgent)
    [source] = found.find_sources(tmp_path)
    changes = found.fold(source).feed(b"".join(found.read_rows(source, ()).lines), 0)
    assert [part.text for part in messages(changes)[0].parts if isinstance(part, TextPart)] == ["caf\ufffd"]
    noted = [(each.reason, each.severity, each.json_path) for each in changes.diagnostics]
    assert noted == [("bytes that are not UTF-8 became U+FFFD", "note", "$")]


def test_a_trajectory_within_itself_stays_in_the_list(home: Path, tmp_path: Path) -> None:
    seen = {"source_call_id": "a", "subagent_trajectory_ref": [{"trajectory_id": "cyc"}]}
    made = step(1, tool_calls=[call("a")], observation={"results": [seen]})
    document = trajectory(made, trajectory_id="cyc", subagent_trajectories=[trajectory(made, trajectory_id="cyc")])
    place = "$.subagent_trajectories[0].steps[0].observation.results[0].subagent_trajectory_ref"
    assert [each.json_path for each in read(tmp_path, document).diagnostics] == [place]
    assert imported(tmp_path / "t.json", tmp_path / "s.db")["new_sessions"] == 1
    with open_store(tmp_path / "s.db") as store:
        assert [each.id for each in store.sessions().items if not each.relationships] == ["atif:cyc"]


def test_no_file_outside_of_its_folder_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "job"
    folder.mkdir()
    (tmp_path / "secret.png").write_bytes(PNG)
    (folder / "link.png").symlink_to(tmp_path / "secret.png")
    (folder / "linked").symlink_to(tmp_path)
    paths = ("../secret.png", str(tmp_path / "secret.png"), "link.png", "linked/secret.png", "http://127.0.0.1:1/a.png")
    shown = [{"type": "image", "source": {"media_type": "image/png", "path": path}} for path in paths]
    [message] = messages(read(folder, trajectory(step(1, "user", shown))))
    assert [(part.data, part.url) for part in message.parts if isinstance(part, FilePart)] == [
        (None, path) for path in paths
    ]


@pytest.mark.parametrize("deep", [b'{"a":', b'[{"}":'])
def test_a_step_that_is_too_deep_costs_no_other_one(deep: bytes, tmp_path: Path) -> None:
    made = json.dumps(trajectory(step(1), step(2, tool_calls=[call("a", extra="@")]), step(3))).encode()
    closing = deep.translate(bytes.maketrans(b"{[", b"}]"), b'a}":')[::-1]
    changes = read(tmp_path, made.replace(b'"@"', deep * 10_000 + b"1" + closing * 10_000))
    assert [message.id for message in messages(changes)] == ["run.1", "run.3"]
    first = changes.diagnostics[0]
    assert (first.reason, first.json_path) == ("nested too deep", "$")


def test_deep_nesting_costs_only_what_is_too_deep(tmp_path: Path) -> None:
    document = trajectory(step(1))
    for number in range(60):
        document = trajectory(step(1), subagent_trajectories=[{**document, "trajectory_id": f"t{number}"}])
    changes = read(tmp_path, document)
    assert 1 < len(changes.messages) <= 34
    assert any("too many levels" in each.reason for each in changes.diagnostics)
    bomb = b'{"schema_version": "ATIF-v1.8", "steps": [' + b'{"extra": ' * 5000
    assert messages(read(tmp_path, bomb)) == []


@pytest.mark.parametrize("written", [float, str, "{}.0".format, int])
def test_numbers_are_read_as_programs_with_tables_write_them(written: Callable[[int], Any], tmp_path: Path) -> None:
    """pandas writes floats, JavaScript texts; harbor reads both, and so the numbers of steps."""
    names = ("prompt_tokens", "completion_tokens", "cached_tokens")
    metrics = {name: written(n) for name, n in zip(names, (1200, 50, 200), strict=True)}
    second = step(2, metrics={**metrics, "cost_usd": "0.5"}) | {"step_id": written(2)}
    changes = read(tmp_path, trajectory(step(1, "user") | {"step_id": written(1)}, second))
    usage = messages(changes)[1].usage
    assert usage is not None
    assert (usage.input, usage.cache_read, usage.output) == (1000, 200, 50)
    assert messages(changes)[1].cost == Cost(amount=Decimal("0.5"), kind="reported")
    assert changes.diagnostics == []


def test_a_number_that_is_none_costs_no_other_one(tmp_path: Path) -> None:
    odd = {"prompt_tokens": "1200", "completion_tokens": 12.5, "cached_tokens": "NaN"}
    changes = read(tmp_path, trajectory(step(1, "user"), step(2, metrics=odd)))
    usage = messages(changes)[1].usage
    assert usage is not None
    assert (usage.input, usage.cache_read, usage.output) == (1200, None, None)
    assert [each.json_path for each in changes.diagnostics] == [
        "$.steps[1].metrics.completion_tokens",
        "$.steps[1].metrics.cached_tokens",
    ]
