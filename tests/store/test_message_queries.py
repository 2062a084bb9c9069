"""Messages with their places, and the causal history of a session."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

import turnlog.agents
from support.exact_json import exact
from support.plain_agent import Log, PlainAgent
from support.plain_store import PRICE_VERSION, at, read_home
from turnlog.agents.changes import Link
from turnlog.errors import NotFoundError
from turnlog.model import (
    CompactionEvent,
    ErrorEvent,
    Fate,
    FilePart,
    HistoryEvent,
    InterruptEvent,
    Membership,
    Message,
    MessageEvent,
    Origin,
    Provenance,
    ReasoningPart,
    RecordEvent,
    RunMetadataEvent,
    TextPart,
    ToolCallPart,
    ToolResult,
    ToolResultEvent,
    ToolState,
    UnknownPart,
    Usage,
)
from turnlog.model.codec import encode, to_json
from turnlog.store import open_store
from turnlog.store.base import Store
from turnlog.store.values import BlobContent

LONG = "x" * 70_000
IMAGE = bytes(range(256)) * 8


def call(id: str, tool: str = "Bash", **fields: Any) -> ToolCallPart:
    return ToolCallPart(id=f"part.{id}", tool_call_id=id, tool_name=tool, input=to_json({"of": id}), **fields)


def result(id: str, text: str, minute: float, **fields: Any) -> ToolResult:
    return ToolResult(id=id, content=(TextPart(text=text),), completed_at=at(minute), **fields)


PROMPT = Message(id="m1", role="user", origin=Origin.PROMPT, created_at=at(0), parts=(TextPart(id="m1.0", text="go"),))
ANSWER = Message(
    id="m2",
    role="assistant",
    model="large",
    created_at=at(1),
    usage=Usage(input=900, output=100),
    parts=(
        ReasoningPart(id="m2.0", text=LONG),
        TextPart(id="m2.1", text="Two at once."),
        ToolCallPart(id="m2.2", tool_call_id="a", tool_name="Bash", input=to_json({"command": LONG}), started_at=at(1)),
        ToolCallPart(id="m2.3", tool_call_id="b", tool_name="Task", input=to_json({"prompt": "look"})),
        ToolCallPart(
            id="m2.4",
            tool_call_id="w",
            tool_name="web_search",
            provider_executed=True,
            state=ToolState.OUTPUT_AVAILABLE,
            results=(ToolResult(id="w:1", content=(TextPart(text="found"),)),),
        ),
    ),
)
SHOWN = Message(
    id="m3",
    role="user",
    origin=Origin.HARNESS,
    created_at=at(4),
    parts=(FilePart(id="m3.0", media_type="image/png", data=IMAGE), TextPart(id="m3.1", text="seen")),
)


class Places(NamedTuple):
    """Where the records of the log are."""

    path: Path
    prompt: int
    answer: int
    mode: int
    second: int
    first: int
    orphan: int
    interrupt: int
    compaction: int
    shown: int
    error: int


@pytest.fixture
def places(tmp_path: Path) -> Places:
    home = tmp_path / "home"
    home.mkdir()
    log = Log(home, "one")
    child = "plain:one.scout"
    places = Places(
        path=log.path,
        prompt=log.message(PROMPT, record_id="r1", turn=1),
        answer=log.message(ANSWER, record_id="r2", turn=1, step=1, parent_id="m1"),
        mode=log.event(RecordEvent(id="e1", kind="mode"), record_id="r3", parent_id="m2"),
        second=log.result("b", result("b:1", "nothing", 3), message_id="m2", structured={"agent": "scout"}),
        first=log.result("a", result("a:1", LONG, 2, status="error"), message_id="m2", structured={"code": 1}),
        orphan=log.result("gone", result("gone:1", "whose?", 3)),
        interrupt=log.event(InterruptEvent(id="e2", during="tool")),
        compaction=log.event(CompactionEvent(id="e3", trigger="auto", created_at=at(3.5), kept_message_ids=("m2",))),
        shown=log.message(SHOWN, record_id="r4", parent_record="r3", turn=2),
        error=log.event(ErrorEvent(id="e4", error_text="overloaded", status=529)),
    )
    log.event(RunMetadataEvent(id="e5", kind="title", data=to_json({"title": "T"})))
    log.link(Link(kind="subagent", parent_session_id="plain:one", child_session_id=child, tool_call_id="b"))
    Log(home, "one.scout").message(Message(id="c1", role="user", created_at=at(1.5)))
    fork = Log(home, "two")
    fork.link(Link(kind="fork", parent_session_id="plain:one", child_session_id="plain:two"))
    fork.message(PROMPT, turn=1, copied=True)
    fork.message(ANSWER, turn=1, step=1, copied=True)
    read_home(tmp_path / "turnlog.db", home)
    return places


@pytest.fixture
def store(places: Places, tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "turnlog.db") as opened:
        yield opened


def without_places(message: Message) -> Message:
    """A message as its own records said it, without what a session adds."""
    parts = tuple(
        msgspec.structs.replace(
            part,
            child_session_id=None,
            results=tuple(msgspec.structs.replace(found, sequence=None) for found in part.results),
        )
        if isinstance(part, ToolCallPart)
        else part
        for part in message.parts
    )
    return msgspec.structs.replace(message, parts=parts)


def call_of(message: Message, id: str) -> ToolCallPart:
    return next(part for part in message.parts if isinstance(part, ToolCallPart) and part.tool_call_id == id)


def test_a_message_comes_back_as_it_was_read(store: Store) -> None:
    """R-S22, R-S28: long texts, large inputs, images and their order."""
    prompt, answer, shown = (placed.message for placed in store.messages("plain:one"))
    assert prompt == PROMPT
    assert shown == SHOWN
    assert without_places(answer).parts[0] == ANSWER.parts[0]
    assert exact(call_of(answer, "a").input) == exact(call_of(ANSWER, "a").input)
    assert call_of(answer, "a").results[0].output_text == LONG
    assert [part.id for part in answer.parts] == [part.id for part in ANSWER.parts]


def test_large_contents_are_previews_until_they_are_wanted(store: Store) -> None:
    answer = store.messages("plain:one", resolve_blobs=False)[1].message
    reasoning = answer.parts[0]
    assert isinstance(reasoning, ReasoningPart)
    assert len(reasoning.text) == 8000
    assert reasoning.blob is not None
    assert (reasoning.blob.size, reasoning.blob.sha256) == (70_000, hashlib.sha256(LONG.encode()).hexdigest())
    assert store.blob(reasoning.blob.sha256).data == LONG.encode()
    shown = store.messages("plain:one", resolve_blobs=False)[2].message.parts[0]
    assert isinstance(shown, FilePart)
    assert shown.data is None
    assert shown.blob is not None
    assert store.blob(shown.blob.sha256) == BlobContent(IMAGE, "image/png")


@pytest.mark.parametrize("sha256", ["0" * 64, "none", ""])
def test_an_unknown_blob_is_an_error(store: Store, sha256: str) -> None:
    with pytest.raises(NotFoundError):
        store.blob(sha256)


def test_memberships_have_place_turn_fate_payer_and_records(store: Store, places: Places) -> None:
    """R-S24."""
    prompt, answer, shown = store.messages("plain:one")
    size = places.path.stat().st_size
    assert prompt.membership == Membership(
        session_id="plain:one",
        message_id="m1",
        position=places.prompt,
        turn=1,
        records=(Provenance(source=str(places.path), offset=places.prompt, length=places.answer - places.prompt),),
    )
    assert (answer.membership.turn, answer.membership.step, answer.membership.parent_id) == (1, 1, "m1")
    assert [record.offset for record in answer.membership.records] == [places.answer, places.second, places.first]
    assert shown.membership.parent_id == "m2", "found through the event between them"
    assert all(0 < (record.length or 0) <= size for record in answer.membership.records)


def test_a_priced_message_says_by_which_prices(store: Store) -> None:
    costs = [placed.cost for placed in store.messages("plain:one")]
    assert costs[0] is None
    assert costs[1] is not None
    assert (str(costs[1].amount), costs[1].kind, costs[1].price_version) == ("1", "priced", PRICE_VERSION)


def test_a_copy_in_a_fork_is_the_same_message_and_does_not_pay(store: Store) -> None:
    copies = store.messages("plain:two")
    assert [placed.message.id for placed in copies] == ["m1", "m2"]
    assert [placed.membership.is_billed for placed in copies] == [False, False]
    assert [placed.membership.is_billed for placed in store.messages("plain:one")] == [True, True, True]
    found = {(place.session_id, place.is_billed) for place in store.memberships("m2")}
    assert found == {("plain:one", True), ("plain:two", False)}


def test_a_forks_copy_of_a_call_leads_to_the_subagent_of_the_original(store: Store) -> None:
    assert call_of(store.messages("plain:two")[1].message, "b").child_session_id == "plain:one.scout"


@pytest.mark.parametrize(
    ("span", "found"),
    [
        ({}, ["m1", "m2", "m3"]),
        ({"limit": 2}, ["m1", "m2"]),
        ({"after": "prompt"}, ["m2", "m3"]),
        ({"after": "prompt", "limit": 1}, ["m2"]),
        ({"before": "shown"}, ["m1", "m2"]),
        ({"before": "shown", "limit": 1}, ["m2"]),
        ({"after": "prompt", "before": "shown"}, ["m2"]),
        ({"around": "answer", "limit": 2}, ["m1", "m2"]),
        ({"around": "answer", "limit": 3}, ["m1", "m2", "m3"]),
        ({"around": "shown", "limit": 1}, ["m3"]),
        ({"around": "mode", "limit": 1}, ["m3"]),
        ({"around": "answer"}, ["m1", "m2", "m3"]),
        ({"limit": 0}, []),
    ],
)
def test_spans(store: Store, places: Places, span: dict[str, str | int], found: list[str]) -> None:
    """R-C12, R-C15."""
    wanted: dict[str, Any] = {
        name: value if isinstance(value, int) else getattr(places, value) for name, value in span.items()
    }
    assert [placed.message.id for placed in store.messages("plain:one", **wanted)] == found


def test_a_span_requests_one_thing(store: Store) -> None:
    with pytest.raises(ValueError, match="around"):
        store.messages("plain:one", around=1, after=2)


def test_fates_are_requested_by_name(store: Store) -> None:
    assert len(store.messages("plain:one", fates=[Fate.ACTIVE])) == 3
    assert store.messages("plain:one", fates=[Fate.REWOUND, Fate.SIDECAR]) == []


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turnlog.agents, "agent", {"plain": PlainAgent()}.__getitem__)


@pytest.mark.usefixtures("registered")
def test_one_message_with_what_the_agent_kept_of_its_results(store: Store, places: Places) -> None:
    """The structured result is read from the record that brought it, never stored twice."""
    plain = store.message("m2")
    assert call_of(plain, "a").results[0].structured is msgspec.UNSET
    answer = store.message("m2", structured=True)
    first, second = call_of(answer, "a").results[0], call_of(answer, "b").results[0]
    assert (exact(first.structured), exact(second.structured)) == (b'{"code":1}', b'{"agent":"scout"}')
    assert (first.sequence, second.sequence) == (places.first, places.second)
    assert call_of(answer, "w").results[0].sequence is None
    assert call_of(answer, "b").child_session_id == "plain:one.scout"
    assert call_of(answer, "a").state is ToolState.OUTPUT_ERROR


@pytest.mark.usefixtures("registered")
def test_messages_with_what_the_agent_kept_of_the_results_of_some_kinds(store: Store) -> None:
    calls = [call_of(store.message("m2"), name) for name in ("a", "b")]
    for kind in {call.kind for call in calls}:
        (found,) = [each.message for each in store.messages("plain:one", structured={kind}) if each.message.id == "m2"]
        for wanted in calls:
            expected = call_of(store.message("m2", structured=True), wanted.tool_call_id)
            assert call_of(found, wanted.tool_call_id) == (expected if wanted.kind is kind else wanted)


def test_an_agent_that_is_not_there_any_more_says_nothing(store: Store) -> None:
    assert store.message("m2", structured=True) == store.message("m2")


def test_a_message_has_the_places_of_the_session_that_is_asked(store: Store) -> None:
    answer = store.message("m2", session_id="plain:two")
    assert call_of(answer, "a").results[0].sequence is None, "the result never arrived in the fork"
    with pytest.raises(NotFoundError, match="does not hold"):
        store.message("m3", session_id="plain:two")
    with pytest.raises(NotFoundError, match="no message"):
        store.message("nothing")


def test_the_raw_records_of_a_message(store: Store, places: Places) -> None:
    data = places.path.read_bytes()
    records = store.records("m2")
    assert [record.provenance.offset for record in records] == [places.answer, places.second, places.first]
    for record in records:
        offset, length = record.provenance.offset or 0, record.provenance.length or 0
        assert record.data == data[offset : offset + length]
        assert record.data.endswith(b"\n")


# -- the causal history


def kinds(events: list[HistoryEvent]) -> list[str]:
    return [str(event.__struct_config__.tag) for event in events]


def test_history_is_in_the_order_in_which_things_arrived(store: Store, places: Places) -> None:
    """R-S19, R-K13 to R-K19: results where they came, not where their calls are."""
    history = store.history("plain:one")
    assert kinds(history) == [
        "message",
        "message",
        "record",
        "tool-result",
        "tool-result",
        "tool-result",
        "interrupt",
        "compaction",
        "message",
        "error",
        "run-metadata",
    ]
    assert [event.position for event in history[:-1]] == list(places[1:])
    assert all(event.records for event in history)


def test_a_message_of_the_history_has_no_results_yet(store: Store) -> None:
    event = store.history("plain:one")[1]
    assert isinstance(event, MessageEvent)
    assert call_of(event.message, "a").results == ()
    assert call_of(event.message, "a").state is ToolState.INPUT_AVAILABLE
    assert call_of(event.message, "w") == call_of(ANSWER, "w"), "what the provider ran came with the call"
    assert event.membership is not None
    assert (event.membership.turn, event.membership.step) == (1, 1)


def test_results_are_events_with_text_and_parts(store: Store) -> None:
    """R-K2, R-K3, R-K16."""
    results = [event for event in store.history("plain:one") if isinstance(event, ToolResultEvent)]
    assert [(event.tool_call_id, event.tool_name, event.message_id) for event in results] == [
        ("b", "Task", "m2"),
        ("a", "Bash", "m2"),
        ("gone", None, None),
    ]
    assert [event.output_text for event in results] == ["nothing", LONG, "whose?"]
    assert [event.result.status for event in results] == ["success", "error", "success"]
    assert [event.duplicate for event in results] == [False, False, False]
    assert results[0].parts == ()


def test_the_history_previews_large_contents_when_requested(store: Store) -> None:
    results = [event for event in store.history("plain:one", resolve_blobs=False) if isinstance(event, ToolResultEvent)]
    assert len(results[1].output_text) == 8000


def test_stored_events_keep_what_they_say(store: Store, places: Places) -> None:
    """R-K19."""
    events = {event.position: event for event in store.events("plain:one")}
    error, compaction = events[places.error], events[places.compaction]
    assert isinstance(error, ErrorEvent)
    assert (error.error_text, error.status) == ("overloaded", 529)
    assert isinstance(compaction, CompactionEvent)
    assert (compaction.trigger, compaction.kept_message_ids, compaction.created_at) == ("auto", ("m2",), at(3.5))
    assert kinds(store.events("plain:one", position=places.mode)) == ["record"]
    assert store.events("plain:one", position=places.mode + 1) == []


def test_two_results_of_one_call_are_two_events_and_a_repeated_one_says_so(tmp_path: Path) -> None:
    """R-K17: an asynchronous call answers twice; a repeated answer is kept and marked."""
    home = tmp_path / "twice"
    home.mkdir()
    log = Log(home, "one")
    log.message(Message(id="m", role="assistant", parts=(call("a"),)))
    log.result("a", result("a:1", "started", 1, preliminary=True), message_id="m")
    log.result("a", result("a:2", "done", 2), message_id="m")
    log.result("a", result("a:3", "done", 3), message_id="m")
    read_home(tmp_path / "twice.db", home)
    with open_store(tmp_path / "twice.db") as store:
        results = [event for event in store.history("plain:one") if isinstance(event, ToolResultEvent)]
        assert [(event.output_text, event.duplicate) for event in results] == [
            ("started", False),
            ("done", False),
            ("done", True),
        ]
        assert [found.id for found in call_of(store.message("m"), "a").results] == ["a:1", "a:2", "a:3"]


def test_a_result_that_came_before_its_call_joins_it(tmp_path: Path) -> None:
    home = tmp_path / "early"
    home.mkdir()
    log = Log(home, "one")
    place = log.result("a", result("a:1", "first", 1))
    read_home(tmp_path / "early.db", home)
    with open_store(tmp_path / "early.db") as store:
        assert [event.position for event in store.history("plain:one")] == [place]
        log.message(Message(id="m", role="assistant", parts=(call("a"),)))
        read_home(tmp_path / "early.db", home)
        assert kinds(store.history("plain:one")) == ["tool-result", "message"]
        assert store.events("plain:one") == []
        assert call_of(store.message("m"), "a").results[0].sequence == place


def test_landmarks(store: Store, places: Places) -> None:
    outline = store.outline("plain:one")
    assert [
        (entry.position, entry.kind, entry.text, entry.message_id, entry.turn, entry.fate) for entry in outline
    ] == [
        (places.prompt, "prompt", "go", "m1", 1, "active"),
        (places.compaction, "compaction", "auto", None, None, None),
        (places.error, "error", "overloaded", None, None, None),
    ]
    assert [entry.created_at for entry in outline] == [at(0), at(3.5), None]


def test_failures_are_landmarks(tmp_path: Path) -> None:
    home = tmp_path / "failing"
    home.mkdir()
    log = Log(home, "one")
    log.message(PROMPT, turn=1)
    log.event(ErrorEvent(id="e", error_text="overloaded " * 50, created_at=at(1)))
    log.message(Message(id="m", role="assistant", stop_reason="error", created_at=at(2)))
    read_home(tmp_path / "failing.db", home)
    with open_store(tmp_path / "failing.db") as store:
        found = [(entry.kind, entry.text[:10], entry.message_id) for entry in store.outline("plain:one")]
        assert found == [("prompt", "go", "m1"), ("error", "overloaded", None), ("error", "", "m")]
        assert len(store.outline("plain:one")[1].text) == 200


def test_unknown_parts_survive(tmp_path: Path) -> None:
    """R-C11."""
    home = tmp_path / "strange"
    home.mkdir()
    unknown = UnknownPart(id="m.0", kind="hologram", data=msgspec.Raw(b'{"type":"hologram","depth":3.50}'))
    message = Message(id="m", role="user", parts=(unknown, TextPart(id="m.1", text="a")), metadata={"plain": {"x": 1}})
    Log(home, "one").message(message)
    read_home(tmp_path / "strange.db", home)
    with open_store(tmp_path / "strange.db") as store:
        assert encode(store.message("m")) == encode(message)
        assert msgspec.json.decode(store.window("plain:one").to_json())["items"] == [
            msgspec.json.decode(encode(message))
        ]
