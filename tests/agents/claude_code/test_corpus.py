"""Recorded logs of ten versions, read whole: every line accounted for, tokens and order as they were scripted."""

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

from support.claude_files import AGENT, DATA, SESSION, calls_of, read, sources
from support.log_splits import assert_pieces_agree, data_of
from support.profiles import examples
from turnlog.agents import detect, fold_bytes
from turnlog.agents.base import Source, SourceKind
from turnlog.model import Message, Origin, ReasoningPart, RecordEvent, TextPart, ToolCallPart, ToolState, UnknownPart
from turnlog.model.usage import sum_usage

VERSIONS = sorted(path.name for path in (DATA / "versions").iterdir())
SCENARIOS = sorted(path.name for path in (DATA / "scenarios").iterdir())
COSTS = sorted(path.name for path in (DATA / "costs").iterdir())
FOLDERS = [("versions", name) for name in VERSIONS] + [("scenarios", name) for name in SCENARIOS]
LOGS = (SourceKind.SESSION, SourceKind.SUBAGENT)

LEFT_OPEN = {"toolu_hand1", "toolu_subK1", "toolu_sC1", "toolu_wB", "toolu_z2"}
"""A hand-written log with a call that nobody answers, those of subagents which were killed, and one of 1.0.80 that only
a store knows to be aborted, since the next prompt stands in another file."""

KILLED = {"toolu_s1", "toolu_s2", "toolu_s5", "toolu_taskC", "toolu_w1", "toolu_x3", "toolu_x4"}
"""Of 2.1.33, 2.1.76, 2.1.215 and 2.1.231: interrupted or killed while the tool ran, of which the log says nothing."""


def logs(*folder: str) -> list[Source]:
    return [source for source in sources(*folder) if source.kind in LOGS]


@pytest.mark.parametrize("folder", FOLDERS, ids="/".join)
def test_every_line_is_accounted_for(folder: tuple[str, str]) -> None:
    """R-S34, R-C3: a line is a message, a result, an event, or blank; none is unknown, none unreadable."""
    for source in logs(*folder):
        gathered = read([source])
        counts = gathered.counts
        assert counts.messages + counts.results + counts.events + counts.duplicates == data_of(source).count(b"\n")
        assert counts.unreadable == counts.blank == 0
        assert not gathered.diagnostics


@pytest.mark.parametrize("folder", FOLDERS, ids="/".join)
def test_nothing_is_unknown(folder: tuple[str, str]) -> None:
    """R-C3: no record kind and no content block of the recorded versions is unknown."""
    gathered = read(sources(*folder))
    events = [change.event for change in gathered.events.values()]
    assert [event.kind for event in events if isinstance(event, RecordEvent) and not event.known] == []
    parts = [part for message in gathered.messages.values() for part in message.parts]
    inner = [part for call in gathered.calls() for result in call.results for part in result.content]
    assert [part for part in (*parts, *inner) if isinstance(part, UnknownPart)] == []


@pytest.mark.parametrize("folder", FOLDERS, ids="/".join)
def test_every_call_has_its_results(folder: tuple[str, str]) -> None:
    """R-S16: calls and results meet; a result without a call is left only where its call is in no file."""
    gathered = read(sources(*folder))
    open_calls = {call.tool_call_id: call.state for call in gathered.calls() if not call.results}
    assert set(open_calls) <= LEFT_OPEN | KILLED
    assert {open_calls[call_id] for call_id in set(open_calls) & KILLED} <= {ToolState.ABORTED}
    assert gathered.late == []
    for message in gathered.messages.values():
        assert all(call.tool_name and call.started_at for call in calls_of(message))


@pytest.mark.parametrize("version", VERSIONS)
def test_the_content_names_the_version(version: str) -> None:
    """R-S21: agent and version of every log, also under another name."""
    for source in logs("versions", version):
        if not data_of(source):
            assert detect(Path(source.path)).reason == "empty"
            continue
        detection = detect(Path(source.path))
        assert detection.agent == "claude-code"
        assert detection.source == source
        assert detection.version in (version.partition("-")[0], None)


# What was scripted

HELPERS = {"side", "summary", "ws"}
"""Queues of requests that no log shows: titles, summaries, searches."""


def requests_of(scenario: str) -> list[dict[str, Any]]:
    return json.loads((DATA / "scenarios" / scenario / "requests.json").read_text())


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
    after: dict[str, Any] = scenario.get("after") or {"blocks": []}
    return queue[number] if number < len(queue) else after


def is_summary(request: dict[str, Any]) -> bool:
    """Whether a request asked for the summary of a compaction."""
    return "CRITICAL: Respond with TEXT ONLY" in json.dumps(request["messages"][-1:])


SCRIPTED = [name for name in SCENARIOS if name != "handwritten"]


@pytest.mark.parametrize("scenario", SCRIPTED)
def test_tokens_are_those_that_were_scripted(scenario: str) -> None:
    """R-C5, R-S22: the usage of every model call, by bucket, as the scripted server counted it."""
    script = json.loads((DATA / "scenarios" / scenario / "script.json").read_text())
    expected: Counter[tuple[int, int, int, int]] = Counter()
    for request in requests_of(scenario):
        turn = scripted_turn(script, request)
        if request["queue"] in HELPERS or turn.get("error") or turn.get("cut") or is_summary(request):
            continue
        usage = {"in": 100, "cached": 0, "cache_write": 0, "out": 20, **turn.get("usage", {})}
        # Stopped in mid-stream: the log has what the stream began with.
        output = (
            1 if turn.get("hang") and not any(block["type"] == "tool" for block in turn["blocks"]) else usage["out"]
        )
        expected[usage["in"], usage["cached"], usage["cache_write"], output] += 1
    messages = read(sources("scenarios", scenario)).messages.values()
    found = Counter(
        (usage.input, usage.cache_read, usage.cache_write_5m, (usage.output or 0) + (usage.reasoning or 0))
        for usage in (message.usage for message in messages)
        if usage is not None
    )
    assert found == expected
    aborted = [message.usage for message in messages if message.stop_reason == "aborted"]
    assert all(usage is not None and usage.exactness == "lower_bound" for usage in aborted)
    finished = [message.usage for message in messages if message.raw_stop_reason and message.usage]
    assert finished
    assert all(usage.exactness == "exact" for usage in finished)


def said(message: Message) -> list[tuple[str, str]]:
    """What a message says, part by part, in the words of a request."""
    spoken: list[tuple[str, str]] = []
    for part in message.parts:
        if isinstance(part, TextPart):
            spoken.append(("text", part.text))
        elif isinstance(part, ReasoningPart):
            opaque = part.provider.opaque if part.provider else {}
            spoken.append(("reasoning", str(opaque.get("data") or part.text)))
        elif isinstance(part, ToolCallPart):
            spoken.append(("call", part.tool_call_id))
    return spoken


def asked(blocks: str | list[dict[str, Any]]) -> list[tuple[str, str]]:
    """What an assistant message of a request says, in the same words."""
    if isinstance(blocks, str):
        return [("text", blocks)]
    spoken: list[tuple[str, str]] = []
    for block in blocks:
        if block["type"] == "text":
            spoken.append(("text", block["text"]))
        elif block["type"] in ("thinking", "redacted_thinking"):
            spoken.append(("reasoning", block.get("data") or block["thinking"]))
        elif block["type"] in ("tool_use", "server_tool_use"):
            spoken.append(("call", block["id"]))
    return spoken


def is_subsequence(wanted: Iterable[Any], whole: Iterable[Any]) -> bool:
    """Whether `whole` has all that is wanted, in that order. Thinking may be missing: after a change of the model
    Claude Code leaves it out."""
    rest = iter(whole)
    return all(any(item == other or item == without_reasoning(other) for other in rest) for item in wanted)


def without_reasoning(item: Any) -> Any:
    """An answer, alone or as a step of a flow, without its reasoning."""
    if item[0] == "answer":
        return ("answer", without_reasoning(item[1]))
    return [part for part in item if part[0] != "reasoning"] if not isinstance(item[0], str) else item


@pytest.mark.parametrize("scenario", SCRIPTED)
def test_messages_and_parts_are_in_the_order_the_model_got_them(scenario: str) -> None:
    """R-S15, R-S19: every request repeats the history; the log's reading has the same parts in the same order."""
    gathered = read(sources("scenarios", scenario))
    histories = [
        [said(message) for message in gathered.in_order(session) if message.role == "assistant"]
        for session in gathered.sessions
    ]
    for request in requests_of(scenario):
        wanted = [asked(message["content"]) for message in request["messages"] if message["role"] == "assistant"]
        assert any(is_subsequence(wanted, history) for history in histories), (request["step"], wanted)


@pytest.mark.parametrize("scenario", SCRIPTED)
def test_prompts_and_results_are_where_the_model_got_them(scenario: str) -> None:
    """R-S19: prompts come between the answers as they were sent, and results answer the message before them."""
    gathered = read(sources("scenarios", scenario))
    prompts = {
        text for message in gathered.messages.values() if message.origin is Origin.PROMPT for _, text in said(message)
    }
    histories = [flow_of(gathered.in_order(session)) for session in gathered.sessions]
    for request in requests_of(scenario):
        wanted = requested_flow(request["messages"], prompts)
        assert any(is_subsequence(wanted, history) for history in histories), request["step"]


def flow_of(messages: list[Message]) -> list[tuple[str, Any]]:
    flow: list[tuple[str, Any]] = []
    for message in messages:
        if message.role == "assistant":
            flow.append(("answer", said(message)))
            flow.extend(("result", call.tool_call_id) for call in calls_of(message) if call.results)
        elif message.origin is Origin.PROMPT:
            flow.extend(("prompt", text) for kind, text in said(message) if kind == "text")
    return flow


def requested_flow(messages: list[dict[str, Any]], prompts: set[str]) -> list[tuple[str, Any]]:
    flow: list[tuple[str, Any]] = []
    for message in messages:
        content = message["content"]
        if message["role"] == "assistant":
            flow.append(("answer", asked(content)))
            continue
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        results = {block["tool_use_id"] for block in blocks if block["type"] == "tool_result"}
        calls = [name for kind, name in flow[-1][1] if kind == "call"] if flow and flow[-1][0] == "answer" else []
        assert results <= set(calls)
        flow.extend(("result", name) for name in calls if name in results)
        flow.extend(("prompt", block["text"]) for block in blocks if block.get("text") in prompts)
    return flow


@pytest.mark.parametrize("case", COSTS)
def test_tokens_are_counted_once(case: str) -> None:
    """R-C5: streaming placeholders, copies, forks, progress and sidechains: each call's tokens exactly once."""
    home = DATA / "costs" / case / "home"
    expected = json.loads((DATA / "costs" / case / "expect.json").read_text())
    roots = [home / ".claude", home / ".config" / "claude"]
    gathered = read(AGENT.discover(roots))
    usage = sum_usage(message.usage for message in gathered.messages.values() if message.usage is not None).usage
    written = (usage.cache_write_5m or 0) + (usage.cache_write_1h or 0) + (usage.cache_write or 0)
    assert (usage.input, (usage.output or 0) + (usage.reasoning or 0)) == (expected["input"], expected["output"])
    assert (written, usage.cache_read) == (expected["cache_write"], expected["cache_read"])


# Any split is one reading

PIECES = [source for folder in FOLDERS for source in logs(*folder) if data_of(source).count(b"\n") > 3]


@settings(max_examples=examples(80), deadline=None)
@given(st.sampled_from(PIECES), st.integers(1, 6), st.randoms(use_true_random=False))
def test_any_split_gives_the_same_history_and_state(source: Source, count: int, chance: random.Random) -> None:
    length = data_of(source).count(b"\n")
    assert_pieces_agree(AGENT, source, [chance.randint(0, length) for _ in range(count)])


@pytest.mark.parametrize("source", PIECES[::4], ids=lambda source: source.path[-45:])
def test_line_by_line_gives_the_same_history_and_state(source: Source) -> None:
    assert_pieces_agree(AGENT, source, range(data_of(source).count(b"\n")))


@pytest.mark.parametrize("folder", FOLDERS[::3], ids="/".join)
def test_any_order_of_the_files_gives_the_same_messages(folder: tuple[str, str]) -> None:
    found = sources(*folder)
    forwards, backwards = read(found), read(reversed(found))
    assert dict(sorted(forwards.messages.items())) == dict(sorted(backwards.messages.items()))
    assert sorted(forwards.links) == sorted(backwards.links)


def test_the_state_stays_small_however_long_the_log() -> None:
    (source,) = [source for source in logs("scenarios", "compact") if SESSION in source.path]
    fold = AGENT.fold(source)
    fold.feed(data_of(source), 0)
    once = len(fold.state())
    for turn in range(1, 6):
        copy = data_of(source).replace(b"-4", b"-%d" % (turn + 4)).replace(b"msg_mock", b"msg_mock%d" % turn)
        fold.feed(copy, turn * len(data_of(source)))
    assert len(fold.state()) < 2.5 * once < 60_000


def test_folding_leaves_the_file_alone(tmp_path: Path) -> None:
    source = logs("versions", VERSIONS[0])[0]
    before = data_of(source)
    fold_bytes(AGENT, source, before)
    assert data_of(source) == before
