"""Recorded rollouts of five versions, read whole: every line accounted for, tokens and order as they were scripted."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.claude_files import Gathered
from support.codex_files import AGENT, DATA, logs, read, sources
from support.log_splits import assert_pieces_agree, data_of
from support.profiles import examples
from turnlog.agents import detect
from turnlog.agents.base import Source
from turnlog.model import (
    CompactionEvent,
    DataPart,
    InterruptEvent,
    Message,
    Origin,
    ReasoningPart,
    RecordEvent,
    TextPart,
    ToolCallPart,
    ToolState,
    UnknownPart,
)
from turnlog.model.codec import encode
from turnlog.model.usage import sum_usage

VERSIONS = sorted(path.name for path in (DATA / "versions").iterdir())
SCENARIOS = sorted(path.name for path in (DATA / "scenarios").iterdir())
COSTS = sorted(path.name for path in (DATA / "costs").iterdir())
TOGETHER = [("migrated", "0.39.0"), ("migrated", "0.113.0-review"), ("mixed", "0.39.0"), ("mixed", "0.39.0-migrated")]
"""Logs that two versions wrote."""
FOLDERS = [("versions", name) for name in VERSIONS] + [("scenarios", name) for name in SCENARIOS] + TOGETHER
SCRIPTED = [name for name in SCENARIOS if name != "handwritten"]
STOPPED = {"call_mock_slow2"}
"""Killed with its process: nobody answers it, and the next turn says so by beginning."""


@pytest.mark.parametrize("folder", FOLDERS, ids="/".join)
def test_every_line_is_accounted_for(folder: tuple[str, str]) -> None:
    """R-S34, R-C3: a line is a message, a result, an event, or told already; none is unreadable."""
    for source in sources(*folder):
        gathered = read([source])
        counts = gathered.counts
        assert counts.messages + counts.results + counts.events + counts.duplicates == data_of(source).count(b"\n")
        assert counts.unreadable == counts.blank == 0
        assert not gathered.diagnostics


@pytest.mark.parametrize("folder", FOLDERS, ids="/".join)
def test_nothing_is_unknown(folder: tuple[str, str]) -> None:
    """R-C3: no record kind and no piece of content of the recorded versions is unknown."""
    gathered = read(logs(*folder))
    events = [change.event for change in gathered.events.values()]
    assert [event.kind for event in events if isinstance(event, RecordEvent) and not event.known] == []
    parts = [part for message in gathered.messages.values() for part in message.parts]
    inner = [part for call in gathered.calls() for result in call.results for part in result.content]
    assert [part for part in (*parts, *inner) if isinstance(part, UnknownPart)] == []


@pytest.mark.parametrize("folder", FOLDERS, ids="/".join)
def test_every_call_has_its_results(folder: tuple[str, str]) -> None:
    """R-S16: calls and results meet, except for calls that the provider ran and those that were stopped."""
    gathered = read(logs(*folder))
    open_calls = {call.tool_call_id for call in gathered.calls() if not call.results and not call.provider_executed}
    assert open_calls <= STOPPED
    assert gathered.late == []
    for call in gathered.calls():
        assert call.tool_name
        assert call.state is not ToolState.INPUT_AVAILABLE


@pytest.mark.parametrize("version", VERSIONS)
def test_the_content_names_the_version(version: str) -> None:
    """R-S21: agent and version of every log."""
    for source in logs("versions", version):
        detection = detect(Path(source.path))
        assert detection.agent == "codex"
        assert detection.source is not None
        assert detection.source.session_id == source.session_id
        number = version.partition("-")[0]
        assert detection.version == ("0.3x or older" if number == "0.20.0" else number)


# What was scripted


def requests_of(scenario: str) -> list[dict[str, Any]]:
    """The requests of threads that have a log: the terminal's own helpers (titles) have none."""
    threads = {source.session_id for source in logs("scenarios", scenario)}
    requests: list[dict[str, Any]] = json.loads((DATA / "scenarios" / scenario / "requests.json").read_text())
    return [request for request in requests if f"codex:{request['thread']}" in threads]


def scripted_turn(script: dict[str, Any], request: dict[str, Any]) -> dict[str, Any]:
    """The turn that answered a request."""
    scenario: dict[str, Any] = script[request["step"]]
    queues: list[dict[str, Any]] = [
        *scenario.get("queues", []),
        {"name": "main", "turns": scenario.get("main", [])},
        {"name": "side", "turns": scenario.get("side", [])},
    ]
    queue: list[dict[str, Any]] = next(found["turns"] for found in queues if found["name"] == request["queue"])
    number: int = request["turn"]
    exhausted: dict[str, Any] = {"blocks": []}
    return queue[number] if number < len(queue) else scenario.get("after") or exhausted


@pytest.mark.parametrize("scenario", SCRIPTED)
def test_tokens_are_those_that_were_scripted(scenario: str) -> None:
    """R-C5, R-S22: the usage of every response, by bucket, as the scripted server counted it."""
    script = json.loads((DATA / "scenarios" / scenario / "script.json").read_text())
    expected: Counter[tuple[int, ...]] = Counter()
    for request in requests_of(scenario):
        turn = scripted_turn(script, request)
        if turn.get("error") or turn.get("cut") or turn.get("hang"):
            continue
        usage = {"in": 100, "cached": 0, "out": 20, "reasoning": 0, **turn.get("usage", {})}
        expected[usage["in"], usage["cached"], usage["out"] - usage["reasoning"], usage["reasoning"]] += 1
    found = Counter(
        (usage.input, usage.cache_read, usage.output, usage.reasoning)
        for usage in (message.usage for message in read(logs("scenarios", scenario)).messages.values())
        if usage is not None
    )
    assert found == expected


@pytest.mark.parametrize("scenario", SCRIPTED)
def test_one_response_is_one_message(scenario: str) -> None:
    """R-S15: every answered request is one step, with its response's id and tokens."""
    script = json.loads((DATA / "scenarios" / scenario / "script.json").read_text())
    answered = [
        turn
        for turn in (scripted_turn(script, request) for request in requests_of(scenario))
        if not (turn.get("error") or turn.get("cut") or turn.get("hang"))
    ]
    steps = [message for message in read(logs("scenarios", scenario)).messages.values() if message.role == "assistant"]
    assert len(steps) == len(answered)
    assert all(message.response_id and message.usage for message in steps)


def said(message: Message) -> list[list[str]]:
    """What a message says and what came back, part by part, in the words of a request."""
    spoken: list[list[str]] = []
    if message.role == "user" or message.origin in (Origin.HARNESS, Origin.NOTIFICATION):
        return [["message", "user", "\n".join(part.text for part in message.parts if isinstance(part, TextPart))]]
    for part in message.parts:
        if isinstance(part, TextPart):
            spoken.append(["message", message.role, part.text])
        elif isinstance(part, ReasoningPart):
            spoken.append(["reasoning", part.text])
        elif isinstance(part, ToolCallPart) and part.parent_tool_call_id is None:
            spoken.append(["web_search_call" if part.provider_executed else "call", part.tool_call_id])
    return spoken


def flow_of(gathered: Gathered, session: str) -> list[list[str]]:
    """What was said in a session, in order, its outputs left out."""
    return [found for message in gathered.in_order(session) for found in said(message)]


def is_subsequence(wanted: Iterable[Any], whole: Iterable[Any]) -> bool:
    rest = iter(whole)
    return all(any(item == other for other in rest) for item in wanted)


@pytest.mark.parametrize("scenario", SCRIPTED)
def test_parts_are_in_the_order_in_which_the_model_got_them(scenario: str) -> None:
    """R-S15, R-S19: every request repeats the history; the log's reading has the same parts in the same order."""
    gathered = read(logs("scenarios", scenario))
    forks = {link.child_session_id: link.parent_session_id for link in gathered.links.values() if link.kind == "fork"}
    for request in requests_of(scenario):
        session = f"codex:{request['thread']}"
        history = [*(flow_of(gathered, forks[session]) if session in forks else []), *flow_of(gathered, session)]
        wanted = [
            found
            for found in request["input"]
            if found[0] in ("reasoning", "call", "web_search_call")
            or (found[0] == "message" and not found[2].startswith(("Another language model", "You are perform")))
        ]
        assert is_subsequence(wanted, history), (request["step"], [x for x in wanted if x not in history])
        answered = {found[1] for found in request["input"] if found[0] == "output"}
        answers = {call.tool_call_id for call in gathered.calls() if call.results or call.state is ToolState.ABORTED}
        assert answered <= answers


@pytest.mark.parametrize("version", ["0.39.0-order", "0.65.0-order"])
def test_texts_are_between_the_calls_between_which_they_were_written(version: str) -> None:
    """R-S15, R-C3: up to 0.6x the log tells all words of an answer before its items; some were said twice."""
    (log,) = logs("versions", version)
    gathered = read([log])
    flow = [found[-1] for found in flow_of(gathered, log.session_id or "")]
    assert flow[-15:] == [
        *("Order please", "**Plan**", "First words.", "c1", "Words between.", "c2", "Words after."),
        *("**T2**", "c3", "Middle two."),
        *("c4", "Said twice.", "c5", "Said twice."),
        "Done.",
    ]


def test_only_who_began_a_subagent_is_its_parent() -> None:
    """R-C10: recorded with 0.169; one agent of a team was written to by its maker, and interrupted another."""
    gathered = read(logs("versions", "0.169.0-team"))
    sessions = {
        name: found.titles.get("generated", "root").partition(" ")[0] for name, found in gathered.sessions.items()
    }
    assert {
        (sessions[link.parent_session_id], sessions[link.child_session_id], link.tool_call_id)
        for link in gathered.links.values()
        if link.kind == "subagent"
    } == {("root", "alpha", "p1"), ("root", "beta", "p2")}


def test_a_persons_prompt_to_a_subagent_is_no_prompt_of_its_parent() -> None:
    """R-C4: recorded with 0.169; a client began a turn in the subagent's thread."""
    (log,) = logs("versions", "0.169.0-asked-subagent")
    said = [found for found in read([log]).in_order(log.session_id or "") if found.role == "user"]
    asked = [(found.origin, part.text) for found in said for part in found.parts if isinstance(part, TextPart)]
    assert asked == [(Origin.SUBAGENT_PROMPT, "SUBMARK count"), (Origin.PROMPT, "Hello subagent")]


def test_a_command_that_outlives_its_code_belongs_to_it() -> None:
    """R-C10: recorded with 0.169; other code went on in the background when the user stopped this one."""
    calls = read(logs("versions", "0.169.0-code-in-background")).calls()
    parents = {encode(call.input): call.parent_tool_call_id for call in calls if call.tool_name == "exec_command"}
    (stopped,) = [parent for given, parent in parents.items() if b"begun" in given]
    (late,) = [parent for given, parent in parents.items() if b"late" in given]
    assert (stopped, late) == ("k1", "j5")


def test_a_goal_is_a_command_and_the_texts_about_it_are_injected() -> None:
    """R-C4: recorded with 0.169; the goal itself is an output that no call asked for."""
    (log,) = logs("versions", "0.169.0-goal")
    gathered = read([log])
    said = [
        (found.origin, part.text.partition("\n")[0])
        for found in gathered.in_order(log.session_id or "")
        for part in found.parts
        if isinstance(part, TextPart) and found.role != "assistant"
    ]
    goal = said.index((Origin.COMMAND, '<codex_internal_context source="user_goal">'))
    assert said[goal - 1] == (Origin.PROMPT, "Hello")
    assert said[goal + 1] == (Origin.HARNESS, "Reach the end")
    assert said[goal + 2][0] is Origin.HARNESS
    assert gathered.late == []


def test_what_a_hook_forbids_is_denied() -> None:
    """R-K9: recorded with 0.169."""
    states = {call.tool_call_id: call.state for call in read(logs("versions", "0.169.0-hooks")).calls()}
    assert states == {"c1": ToolState.OUTPUT_AVAILABLE, "c2": ToolState.OUTPUT_DENIED}


@pytest.mark.parametrize("case", COSTS)
def test_tokens_are_counted_once(case: str) -> None:
    """R-C5: repeated counts, replayed forks, archived copies, totals only: each response's tokens exactly once."""
    home = DATA / "costs" / case / "home"
    expected = json.loads((DATA / "costs" / case / "expect.json").read_text())
    gathered = read(AGENT.discover([home / ".codex"]))
    usage = sum_usage(message.usage for message in gathered.messages.values() if message.usage is not None).usage
    assert (usage.input, (usage.output or 0) + (usage.reasoning or 0)) == (expected["input"], expected["output"])
    assert (usage.cache_write or 0, usage.cache_read) == (expected["cache_write"], expected["cache_read"])


def test_what_the_provider_encrypted_is_kept_for_it() -> None:
    """R-S22: encrypted reasoning and item ids, which go back to the provider only."""
    gathered = read(logs("scenarios", "basic"))
    thoughts = [part for found in gathered.messages.values() for part in found.parts if isinstance(part, ReasoningPart)]
    assert thoughts
    for thought in thoughts:
        assert thought.text
        assert thought.provider is not None
        assert thought.provider.opaque["encrypted_content"]
        assert thought.provider.opaque["id"].startswith("rs_")


def test_code_mode_calls_are_inside_the_code_that_made_them() -> None:
    """R-C10: nested calls carry ids that match no call; they are inside the code that ran when they ended."""
    calls = read(logs("scenarios", "codemode")).calls()
    nested = [call for call in calls if call.parent_tool_call_id is not None]
    assert [(call.parent_tool_call_id, call.tool_name, call.state.value) for call in nested] == [
        ("call_mock_js1", "exec_command", "output-available"),
        ("call_mock_js2", "exec_command", "output-available"),
        ("call_mock_js2", "exec_command", "output-error"),
        ("call_mock_js3", "apply_patch", "output-available"),
    ]
    assert {call.tool_name for call in calls if call not in nested} == {"exec"}
    [notified] = [call for call in calls if len(call.results) > 1]
    assert notified.results[1].output_text == "a notification"


def test_the_summary_of_a_compaction_is_no_ordinary_message() -> None:
    gathered = read(logs("scenarios", "compact"))
    events = [change.event for change in gathered.events.values()]
    [compaction] = [event for event in events if isinstance(event, CompactionEvent)]
    summary = gathered.messages[compaction.summary_message_id or ""]
    assert summary.origin is Origin.COMPACTION
    assert summary.usage is not None
    origins = [message.origin for message in compaction.replacement]
    assert origins == [Origin.HARNESS, Origin.HARNESS, Origin.PROMPT, Origin.COMPACTION]


@pytest.mark.parametrize("scenario", ["subagent-gpt-5.5", "subagent-gpt-6-sol"])
def test_a_subagent_is_linked_from_both_sides(scenario: str) -> None:
    """R-C10"""
    gathered = read(logs("scenarios", scenario))
    [link] = gathered.links.values()
    assert link.tool_call_id == "call_mock_spawn"
    assert not link.inferred
    [asked] = [found for found in gathered.messages.values() if found.origin is Origin.SUBAGENT_PROMPT]
    texts = [part.text for part in asked.parts if isinstance(part, TextPart)]
    texts += [bytes(part.data).decode() for part in asked.parts if isinstance(part, DataPart)]
    assert "SUBMARK-A: count the files" in " ".join(texts)


@pytest.mark.parametrize(
    ("scenario", "titles"),
    [
        ("subagent-gpt-5.5", {"prompt": "SUBMARK-A: count the files"}),
        ("subagent-gpt-6-sol", {"generated": "counter (Dewey)"}),
    ],
)
def test_a_subagent_is_titled_by_its_prompt_or_its_task(scenario: str, titles: dict[str, str]) -> None:
    """R-C6"""
    gathered = read(logs("scenarios", scenario))
    [link] = gathered.links.values()
    assert gathered.sessions[link.child_session_id].titles == titles


def test_stopped_is_not_failed_is_not_refused() -> None:
    """R-K9"""
    gathered = read(logs("scenarios", "interrupt"))
    states = {call.tool_call_id: call.state for call in gathered.calls()}
    assert states == {"call_mock_slow": ToolState.ABORTED, "call_mock_slow2": ToolState.ABORTED}
    events = [change.event for change in gathered.events.values()]
    assert [event.during for event in events if isinstance(event, InterruptEvent)] == ["answer", "tool"]


# Any split is one reading

PIECES = [source for folder in FOLDERS for source in sources(*folder) if data_of(source).count(b"\n") > 2]


@settings(max_examples=examples(80), deadline=None)
@given(st.sampled_from(PIECES), st.integers(1, 6), st.randoms(use_true_random=False))
def test_any_split_gives_the_same_history_and_state(source: Source, count: int, chance: random.Random) -> None:
    length = data_of(source).count(b"\n")
    assert_pieces_agree(AGENT, source, [chance.randint(0, length) for _ in range(count)])


@pytest.mark.parametrize("source", PIECES[::3], ids=lambda source: source.path[-45:])
def test_line_by_line_gives_the_same_history_and_state(source: Source) -> None:
    assert_pieces_agree(AGENT, source, range(data_of(source).count(b"\n")))


def test_the_state_stays_small_however_long_the_log() -> None:
    source = max(logs("scenarios", "basic"), key=lambda found: len(data_of(found)))
    fold = AGENT.fold(source)
    data = data_of(source)
    sizes: list[int] = []
    for number in range(24):
        fold.feed(data.replace(b"_mock", b"_mock%d" % number), number * len(data))
        sizes.append(len(fold.state()))
    assert max(sizes[12:]) < 1.2 * sizes[11] < 60_000


def test_logs_without_their_beginning_differ_by_their_names(tmp_path: Path) -> None:
    line = b'{"type":"response_item","payload":{"type":"message","role":"user","content":[]}}\n'
    for name in ("one", "two"):
        log = tmp_path / f"{name}.jsonl"
        log.write_bytes(line)
        source = detect(log).source
        assert source is not None
        assert source.session_id == f"codex:{name}"
