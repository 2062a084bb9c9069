"""What each call of the model saw, and what of a session is played (R-S42)."""

from pathlib import Path

import msgspec
import pytest

from support.cassette_histories import CONVERSATION, recorded, recorded_logs
from support.provider_messages import assistant, call, developer, image, result, system, user
from turnlog.cassette.recording import Recorded
from turnlog.cassette.tape import (
    AskedFile,
    AskedResult,
    AskedText,
    EarlierAnswer,
    Exchange,
    load_cassette,
    parse_cassette,
    requests_of,
    to_json,
)
from turnlog.errors import ConversionError, FormatError, SourceError
from turnlog.model import CompactionEvent, Fate, MessageError, Origin, ToolCallPart, ToolState


def exchanges(made: Recorded) -> tuple[Exchange, ...]:
    (track,) = made.cassette.tracks
    return track.exchanges


def test_each_call_of_the_model_is_an_exchange() -> None:
    first, second, third = exchanges(recorded())
    assert first.asks == (AskedText(text="Fix  the bug"), AskedText(text="It is Monday.", optional=True))
    assert second.asks == (
        AskedResult(tool_call_id="c1", text="a.py\nb.py"),
        AskedResult(tool_call_id="c2", text="boom"),
    )
    assert third.asks == (AskedResult(tool_call_id="c3"), AskedText(text="Go on"))
    assert [part.type for part in first.answer.parts] == ["reasoning", "text", "tool-call", "tool-call"]
    assert not any(part.results for part in first.answer.parts if isinstance(part, ToolCallPart))
    assert first.answer.usage == CONVERSATION[2].usage
    assert {exchange.keeps for exchange in (first, second, third)} == {None}


def test_files_are_filtered_by_kind_and_the_system_prompt_is_not() -> None:
    shown = call("c1", result("seen", image()))
    (first, second) = exchanges(
        recorded(system("PROMPT"), user("look", image()), assistant(shown), assistant("ok", id="b"))
    )
    assert first.asks == (AskedText(text="look"), AskedFile(media_type="image/png"))
    assert second.asks == (AskedResult(tool_call_id="c1", text="seen", media_types=("image/png",)),)


def test_what_is_no_part_of_the_conversation_is_left_out_and_reported() -> None:
    failed = assistant("Overloaded", id="f", error=MessageError(text="Overloaded"))
    searched = call("s1", result("found"), name="web_search", provider_executed=True)
    torn = call("t1", input_text='{"a": ', state=ToolState.INPUT_STREAMING)
    made = recorded(
        user("q"), assistant("no", id="x"), failed, assistant("yes", searched, torn, id="y"), x=Fate.REWOUND
    )
    (only,) = exchanges(made)
    assert [part.type for part in only.answer.parts] == ["text"]
    assert [loss.kind for loss in made.losses] == ["rewound", "failed-answer", "tool-call-part", "tool-call-part"]
    assert [loss.detail.rpartition(": ")[2] for loss in made.losses[2:]] == [
        "the provider ran it",
        "it was not said to its end",
    ]


def test_calls_that_code_made_are_the_outer_calls_own() -> None:
    inner = call("i1", result("x"), parent_tool_call_id="o1")
    made = recorded(user("q"), assistant(call("o1", result("y")), inner), assistant("ok", id="b"))
    assert [part.tool_call_id for part in exchanges(made)[0].answer.parts if isinstance(part, ToolCallPart)] == ["o1"]
    assert exchanges(made)[1].asks == (AskedResult(tool_call_id="o1", text="y"),)
    assert made.losses == ()


def test_a_result_is_the_one_that_the_model_had_then() -> None:
    launched = result("running", id="r1", preliminary=True, sequence=15)
    reported = result("all done", id="r2", sequence=25)
    made = recorded(user("q"), assistant(call("c1", launched, reported)), assistant("I wait.", id="b"))
    assert exchanges(made)[1].asks == (AskedResult(tool_call_id="c1", text="running"),)


def test_aborted_and_empty_results_may_be_sent_in_other_words() -> None:
    made = recorded(
        user("q"),
        assistant(call("c1", result("stopped", status="aborted")), call("c2", result(""))),
        assistant("ok", id="b"),
    )
    assert exchanges(made)[1].asks[0] == AskedResult(tool_call_id="c1")


def test_a_compaction_replaces_the_context() -> None:
    messages = [
        user("one", id="u1"),
        assistant("two", id="a2"),
        user("three", id="u3"),
        developer("SUMMARY", id="s4", origin=Origin.COMPACTION),
        user("five", id="u5"),
        assistant("six", id="a6"),
        user("seven", id="u7"),
        assistant("eight", id="a8"),
    ]
    compaction = CompactionEvent(id="k", position=25, summary_message_id="s4", kept_message_ids=("u3",))
    made = recorded(*messages, events=[compaction], u1=Fate.COMPACTED, a2=Fate.COMPACTED)
    first, second, third = exchanges(made)
    assert first.asks == (AskedText(text="one"),)
    assert second.keeps == 0
    assert second.asks == (AskedText(text="SUMMARY"), AskedText(text="three"), AskedText(text="five"))
    assert (third.keeps, third.asks) == (None, (AskedText(text="seven"),))
    contexts = [context for context, _ in requests_of(made.cassette.tracks[0])]
    assert contexts[2] == (*second.asks, EarlierAnswer(parts=second.answer.parts), AskedText(text="seven"))


def test_answers_that_a_compaction_kept_come_before() -> None:
    messages = [user("one", id="u1"), assistant("two", id="a2"), user("three", id="u3"), assistant("four", id="a4")]
    compaction = CompactionEvent(id="k", position=15, kept_message_ids=("a2",))
    first, second = exchanges(recorded(*messages, events=[compaction], u1=Fate.COMPACTED))
    assert first.asks == (AskedText(text="one"),)
    assert second.keeps == 0
    assert second.asks == (EarlierAnswer(parts=first.answer.parts), AskedText(text="three"))


def test_a_prompt_that_the_log_does_not_have_may_be_any() -> None:
    made = recorded(developer("reminder"), assistant("a"))
    (only,) = exchanges(made)
    assert only.asks == (AskedText(text=None), AskedText(text="reminder", optional=True))
    assert [loss.kind for loss in made.losses] == ["prompt"]


def test_a_session_without_an_answer_cannot_be_played() -> None:
    with pytest.raises(ConversionError, match="no model has answered"):
        recorded(user("q"))


def test_the_file_comes_back_equal_and_arguments_stay_exact(tmp_path: Path) -> None:
    exact = msgspec.Raw(b'{"b": 1,  "a": 2.50}')
    made = recorded(user("two\nlines"), assistant(ToolCallPart(tool_call_id="c", tool_name="T", input=exact)))
    path = tmp_path / "x.json"
    path.write_bytes(to_json(made.cassette))
    assert load_cassette(path) == made.cassette
    assert bytes(exact) in path.read_bytes()
    # One line an entry and one an answer, and four around them.
    assert len(path.read_bytes().splitlines()) == 2 + 6


def test_recorded_logs_come_back_equal() -> None:
    assert len(recorded_logs()) > 50
    for made in recorded_logs().values():
        assert parse_cassette(to_json(made.cassette)) == made.cassette
        for track in made.cassette.tracks:
            assert all(context for context, _ in requests_of(track))
            assert all(exchange.answer.parts for exchange in track.exchanges)


def test_what_is_no_cassette_is_a_clear_error(tmp_path: Path) -> None:
    data = to_json(recorded().cassette)
    for wrong, told in (
        (b"{", "it is not a cassette"),
        (data.replace(b'"cassette":1', b'"cassette":2'), "$.cassette"),
        (data.replace(b'"asks"', b'"aks"', 1), "unknown field `aks`"),
        (data.replace(b'"type":"text"', b'"type":"txt"', 1), "txt"),
    ):
        path = tmp_path / "x.json"
        path.write_bytes(wrong)
        with pytest.raises(FormatError) as caught:
            load_cassette(path)
        assert told in str(caught.value)
        assert str(caught.value).startswith(str(path))
    with pytest.raises(SourceError, match="No such file"):
        load_cassette(tmp_path / "none.json")
