"""A page's whole life with scripted answers, over every keeper: answered, kept, stopped, resumed, approved."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw

from support.chat_script import ANSWER, ASKING, GOING_ON, HALF, Script, drain, post, user
from support.shared_streams import SHARED, SharedStreams, each_shared_streams
from turnlog.aisdk import DynamicToolUIPart, UIMessage, validate_ui_messages
from turnlog.aisdk.codec import to_plain
from turnlog.aisdk.reader import read_ui_message
from turnlog.aisdk.sse import decode_chunks
from turnlog.chat import (
    Chat,
    ChatKeeper,
    MemoryKeeper,
    NativeKeeper,
    RunRequest,
    Streams,
    endpoint,
)
from turnlog.errors import ConflictError, NotFoundError, ShapeError, StoreBusyError
from turnlog.model import Ownership, TextPart, ToolResult
from turnlog.model.codec import repair_text, to_json
from turnlog.model.stream import (
    ApprovalRequest,
    Pause,
    RunFinish,
    StepStart,
    StreamEvent,
    TextDelta,
    ToolInputAvailable,
    ToolOutput,
)


@pytest.fixture(params=["memory", "native"])
def keeper(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ChatKeeper]:
    if request.param == "memory":
        yield MemoryKeeper()
        return
    native = NativeKeeper(tmp_path / "turnlog.db")
    yield native
    native.close()


def texts(message: UIMessage) -> list[str]:
    """What a message shows: its texts, and the states of its calls."""
    parts: list[dict[str, Any]] = to_plain(message)["parts"]
    return [part.get("text", part.get("state", "")) for part in parts if part["type"] != "step-start"]


@pytest.mark.parametrize("version", [5, 6, 7])
def test_an_answer_is_streamed_and_kept_under_the_servers_id(keeper: ChatKeeper, version: int) -> None:
    async def run() -> None:
        chat = Chat(Script(ANSWER), keeper)
        told = await drain(await chat.post(post(), version=version))
        question, answer = await chat.messages("chat", version=version)
        assert (question.id, answer.role) == ("u", "assistant")
        assert f'"messageId":"{answer.id}"'.encode() in told
        assert texts(answer) == ["Hello"]
        validate_ui_messages([question, answer], version=version)
        metadata = to_plain(answer)["metadata"]
        assert metadata["usage"] == {"input": 3, "output": 2}
        assert "turnlog" not in metadata
        assert await chat.resume("chat") is None
        await drain(await chat.post(post(message=user("u2", "and?")), version=version))
        assert [message.role for message in await chat.messages("chat")] == ["user", "assistant"] * 2

    asyncio.run(run())


def test_half_characters_of_either_side_cost_nothing_else(keeper: ChatKeeper) -> None:
    """As programs leave them that cut a text by its UTF-16 units."""
    half = "cut \ud83d"
    given = (
        StepStart(model=half),
        ToolInputAvailable(tool_call_id="c", tool_name="Bash", input=Raw(b'{"command":"\\ud83d"}')),
        ToolOutput(tool_call_id="c", result=ToolResult(id="r", content=(TextPart(text=half),))),
        TextDelta(id="t", delta=half),
        RunFinish(),
    )

    async def run() -> None:
        script = Script(given)
        chat = Chat(script, keeper)
        await drain(await chat.post(post(message=user(text=half))))
        assert script.given[0].prompt == "cut \ufffd"
        question, answer = await chat.messages("chat")
        assert texts(question) == ["cut \ufffd"]
        assert [repair_text(text) for text in texts(answer)] == ["output-available", "cut \ufffd"]
        await drain(await chat.post(post(messages=[to_plain(question), to_plain(answer), user("u2", "and?")])))
        assert len(await chat.messages("chat")) == 4

    asyncio.run(run())


def test_what_came_is_kept_within_a_second_and_is_valid_at_any_time(
    keeper: ChatKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoint, "SAVE_SECONDS", 0.02)

    async def run() -> None:
        chat = Chat(Script((*HALF, None)), keeper)
        await chat.post(post())
        await asyncio.sleep(0.3)
        _, half = await keeper.load("chat")
        assert texts(half) == ["Hel", "output-error"]
        for version in (5, 6, 7):
            validate_ui_messages(await chat.messages("chat", version=version), version=version)
        await chat.close()

    asyncio.run(run())


def test_a_stop_ends_the_answer_and_what_came_of_it_is_kept_as_aborted(keeper: ChatKeeper) -> None:
    """R-K10."""

    async def run() -> None:
        chat = Chat(Script((*HALF, None)), keeper, when_busy="refuse")
        told = asyncio.create_task(drain(await chat.post(post())))
        await asyncio.sleep(0.05)
        with pytest.raises(ConflictError):
            await chat.post(post())
        again = asyncio.create_task(drain(await chat.resume("chat")))
        await asyncio.sleep(0)
        assert await chat.stop("chat")
        assert await told == await again
        assert b'"type":"abort"' in await told
        _, answer = await keeper.load("chat")
        assert texts(answer) == ["Hel", "output-error"]
        assert to_plain(answer)["metadata"]["steps"] == [{"stopReason": "aborted"}]
        assert not await chat.stop("chat")

    asyncio.run(run())


def test_of_two_posts_at_once_one_is_answered(keeper: ChatKeeper) -> None:
    async def run() -> None:
        chat = Chat(Script(ANSWER), keeper, when_busy="refuse")
        posts = await asyncio.gather(*[chat.post(post()) for _ in range(2)], return_exceptions=True)
        assert sorted(type(each).__name__ for each in posts) == ["ConflictError", "async_generator"]
        await chat.close()

    asyncio.run(run())


def test_an_answer_is_made_anew(keeper: ChatKeeper) -> None:
    async def run() -> None:
        script = Script(ANSWER)
        chat = Chat(script, keeper)
        await drain(await chat.post(post()))
        old = (await chat.messages("chat"))[1]
        # The page has cut off what it wants anew.
        await drain(await chat.post(post(messages=[user()], trigger="regenerate-message", messageId=old.id)))
        assert [[message.id for message in request.messages] for request in script.given] == [["u"], ["u"]]
        question, new = await chat.messages("chat")
        assert question.id == "u"
        assert new.id != old.id

    asyncio.run(run())


def test_an_edited_message_keeps_its_id_and_the_rest_of_the_chat_goes(keeper: ChatKeeper) -> None:
    async def run() -> None:
        script = Script(ANSWER)
        chat = Chat(script, keeper)
        for _ in range(3):
            await drain(await chat.post(post(message=user("u", f"words {len(script.given)}"), messageId="u")))
            await drain(await chat.post(post(message=user("u2", "more"))))
        shown = await chat.messages("chat")
        assert [texts(message) for message in shown] == [["words 4"], ["Hello"], ["more"], ["Hello"]]
        assert [message.id for message in shown][::2] == ["u", "u2"]
        assert [len(request.messages) for request in script.given] == [1, 3] * 3

    asyncio.run(run())


def test_a_lost_question_is_answered_when_the_page_retries(keeper: ChatKeeper) -> None:
    async def run() -> None:
        chat = Chat(Script(ANSWER), keeper)
        await drain(await chat.post(post()))
        await drain(await chat.post(post(messages=[user(), user("u2")], trigger="regenerate-message")))
        assert [message.id for message in await chat.messages("chat")][::2] == ["u", "u2"]

    asyncio.run(run())


def answered(message: UIMessage, **approval: Any) -> dict[str, Any]:
    """The message as a page sends it once its user has said yes or no."""
    plain = to_plain(message)
    call = next(part for part in plain["parts"] if part.get("toolCallId") == "c")
    call |= {"state": "approval-responded", "approval": {"id": "q", **approval}}
    return plain


@pytest.mark.parametrize("version", [6, 7])
def test_a_run_goes_on_with_an_approval_in_the_same_message(keeper: ChatKeeper, version: int) -> None:
    async def run() -> None:
        script = Script(ASKING, GOING_ON)
        chat = Chat(script, keeper)
        await drain(await chat.post(post(), version=version))
        asked = (await chat.messages("chat", version=version))[1]
        assert texts(asked) == ["May I?", "approval-requested"]
        told = await drain(await chat.post(post(message=answered(asked, approved=True)), version=version))
        assert f'"messageId":"{asked.id}"'.encode() in told
        request = script.given[1]
        assert request.continued == request.messages[-1]
        assert texts(request.messages[-1]) == ["May I?", "approval-responded"]
        question, answer = await chat.messages("chat", version=version)
        assert answer.id == asked.id
        assert texts(answer) == ["May I?", "output-available", "One file."]
        validate_ui_messages([question, answer], version=version)
        metadata = to_plain(answer)["metadata"]
        assert [step["model"] for step in metadata["steps"]] == ["model-1", "model-2"]
        assert metadata["usage"] == {"input": 30, "output": 5}

    asyncio.run(run())


def test_a_call_that_was_refused_stays_refused(keeper: ChatKeeper) -> None:
    async def run() -> None:
        chat = Chat(Script(ASKING, GOING_ON), keeper)
        await drain(await chat.post(post()))
        asked = (await chat.messages("chat"))[1]
        await drain(await chat.post(post(message=answered(asked, approved=False, reason="no"))))
        answer = (await chat.messages("chat"))[1]
        assert texts(answer)[1] in ("approval-responded", "output-denied")
        assert b"a.txt" not in repr(answer).encode()

    asyncio.run(run())


def test_an_undecided_request_runs_and_keeps_nothing(keeper: ChatKeeper) -> None:
    async def run() -> None:
        script = Script(ASKING, GOING_ON)
        chat = Chat(script, keeper)
        await drain(await chat.post(post()))
        asked = (await chat.messages("chat"))[1]
        wrong = answered(asked, approved=True)
        call = next(part for part in wrong["parts"] if part.get("toolCallId") == "c")
        call["approval"]["id"] = "wrong"
        for sent, reason in ((wrong, "no open permission request wrong"), (to_plain(asked), "request q is still open")):
            with pytest.raises(ConflictError, match=reason):
                await chat.post(post(message=sent))
        assert len(script.given) == 1
        assert (await chat.messages("chat"))[1] == asked
        await drain(await chat.post(post(message=answered(asked, approved=True))))
        assert texts((await chat.messages("chat"))[1])[1] == "output-available"

    asyncio.run(run())


@pytest.mark.parametrize("approved", [True, False])
def test_a_decision_that_comes_twice_runs_once(keeper: ChatKeeper, approved: bool) -> None:
    async def run() -> None:
        script = Script(ASKING, GOING_ON)
        chat = Chat(script, keeper)
        await drain(await chat.post(post()))
        asked = (await chat.messages("chat"))[1]
        decided = answered(asked, approved=approved)
        await drain(await chat.post(post(message=decided)))
        done = await chat.messages("chat")
        for again in (decided, answered(asked, approved=not approved)):
            with pytest.raises(ConflictError, match="request q was answered before"):
                await chat.post(post(message=again))
        assert len(script.given) == 2
        assert await chat.messages("chat") == done

    asyncio.run(run())


def test_a_run_that_cannot_begin_is_an_error_on_the_page(keeper: ChatKeeper) -> None:
    """R-O21."""

    async def broken(request: RunRequest) -> AsyncGenerator[StreamEvent, None]:
        if request.prompt:
            raise ValueError("no secrets to the page")
        yield RunFinish()

    async def run() -> None:
        chat = Chat(broken, keeper)
        told = await drain(await chat.post(post()))
        assert told.count(b'"type":"error"') == 1
        assert b"secrets" not in told
        told = await drain(await Chat(broken, keeper, error_text=lambda error: f"Oh, {error}").post(post("other")))
        assert b'"errorText":"Oh, no secrets to the page"' in told
        assert await chat.resume("chat") is None
        validate_ui_messages(await chat.messages("chat"))

    asyncio.run(run())


def test_bad_requests_begin_nothing(keeper: ChatKeeper) -> None:
    async def run() -> None:
        chat = Chat(Script(ANSWER), keeper)
        with pytest.raises(ShapeError):
            await chat.post(b"{}")
        with pytest.raises(NotFoundError):
            await chat.post(post(messages=[], trigger="regenerate-message", messageId="gone"))
        assert await chat.resume("chat") is None
        await drain(await chat.post(post()))

    asyncio.run(run())


def test_a_question_that_cannot_be_kept_is_not_answered() -> None:
    class Busy(MemoryKeeper):
        async def save(self, chat_id: str, messages: Sequence[UIMessage], retracted: Collection[str] = ()) -> None:
            raise StoreBusyError("somebody else writes")

    async def run() -> None:
        script = Script(ANSWER)
        chat = Chat(script, Busy())
        with pytest.raises(StoreBusyError):
            await chat.post(post())
        assert script.given == []
        assert await chat.resume("chat") is None

    asyncio.run(run())


def test_an_answer_that_cannot_be_kept_at_first_is_kept_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "SAVE_SECONDS", 0.01)

    class Shaky(MemoryKeeper):
        failures = 2

        async def save(self, chat_id: str, messages: Sequence[UIMessage], retracted: Collection[str] = ()) -> None:
            if messages[0].role == "assistant" and self.failures:
                self.failures -= 1
                raise StoreBusyError("somebody else writes")
            await super().save(chat_id, messages, retracted)

    async def run() -> None:
        chat = Chat(Script(ANSWER), Shaky())
        await drain(await chat.post(post()))
        assert texts((await chat.messages("chat"))[1]) == ["Hello"]

    asyncio.run(run())


def test_a_stop_that_comes_too_late_loses_nothing() -> None:
    """The stream has told its end, and the answer is still on its way into the store."""

    class Slow(MemoryKeeper):
        async def save(self, chat_id: str, messages: Sequence[UIMessage], retracted: Collection[str] = ()) -> None:
            if messages[0].role == "assistant":
                await asyncio.sleep(0.05)
            await super().save(chat_id, messages, retracted)

    async def run() -> None:
        chat = Chat(Script(ANSWER), Slow())
        stream, told = await chat.post(post()), b""
        while b'"type":"finish"' not in told:
            told += await anext(stream)
        await chat.stop("chat")
        assert texts((await chat.messages("chat"))[1]) == ["Hello"]
        await drain(await chat.post(post(message=user("u2", "and?"))))

    asyncio.run(run())


def test_what_a_page_says_in_turnlogs_name_is_not_believed(keeper: ChatKeeper) -> None:
    async def run() -> None:
        script = Script(ANSWER)
        chat = Chat(script, keeper)
        own: dict[str, Any] = {"messages": [{"id": "x", "role": "system", "parts": []}]}
        await drain(await chat.post(post(message=user() | {"metadata": {"turnlog": own, "a": 1}})))
        assert [message.role for message in script.given[0].history()] == ["user"]
        assert to_plain((await chat.messages("chat"))[0])["metadata"] == {"a": 1}

    asyncio.run(run())


@pytest.mark.parametrize("kind", SHARED)
def test_another_process_resumes_stops_and_is_refused(keeper: ChatKeeper, tmp_path: Path, kind: str) -> None:
    """Two chats over one place of streams stand for two processes: they share nothing else."""

    async def run(shared: SharedStreams) -> None:
        here, there = [
            Chat(Script((*HALF, None)), keeper, Streams(shared.open()), when_busy="refuse") for _ in range(2)
        ]
        told = asyncio.create_task(drain(await here.post(post())))
        await asyncio.sleep(0.4)
        with pytest.raises(ConflictError):
            await there.post(post())
        again = asyncio.create_task(drain(await there.resume("chat")))
        assert await there.stop("chat")
        assert await again == await told
        assert b'"type":"abort"' in await told
        assert await there.resume("chat") is None
        await here.close()
        await there.close()

    with asyncio.Runner() as runner:
        for shared in each_shared_streams(kind, tmp_path, runner):
            runner.run(run(shared))


def test_a_question_that_comes_late_is_kept_as_a_question(tmp_path: Path) -> None:
    """Meanwhile the call was saved as aborted, since the process might have been killed."""

    async def answer(request: RunRequest) -> AsyncGenerator[StreamEvent, None]:
        yield StepStart()
        yield ToolInputAvailable(tool_call_id="c", tool_name="rm", input=to_json({}))
        await asyncio.sleep(endpoint.SAVE_SECONDS * 1.6)
        yield ApprovalRequest(approval_id="q", tool_call_id="c")
        yield Pause(reason="approval")

    async def talk(keeper: NativeKeeper) -> list[UIMessage]:
        chat = Chat(answer, keeper)
        await drain(await chat.post(post()))
        return await chat.messages("chat")

    keeper = NativeKeeper(tmp_path / "chats.db")
    call = asyncio.run(talk(keeper))[1].parts[-1]
    assert isinstance(call, DynamicToolUIPart)
    assert (call.state, call.approval and call.approval.id) == ("approval-requested", "q")
    keeper.close()


# -- a page that comes back while a message is being made


async def shown_again(chat: Chat, version: int) -> tuple[list[UIMessage], UIMessage]:
    """What a page is given that is loaded now, and the message that it builds from the stream."""
    given = await chat.messages("chat", version=version)
    stream = await chat.resume("chat")
    assert stream is not None
    data = b""
    async for piece in stream:
        data += piece
        if b"One" in data or b"Hel" in data:
            break
    return given, read_ui_message(decode_chunks(data, version=version), version=version).message


@pytest.mark.parametrize("version", [6, 7])
def test_a_stream_that_continues_a_message_replays_all_of_it(keeper: ChatKeeper, version: int) -> None:
    async def run() -> None:
        chat = Chat(Script(ASKING, (*GOING_ON[:-2], None)), keeper)
        await drain(await chat.post(post(), version=version))
        (_, asking) = await chat.messages("chat", version=version)
        decided = {**to_plain(asking), "parts": [_allowed(part) for part in to_plain(asking)["parts"]]}
        sent = await chat.post(post(message=decided), version=version)
        first = await anext(sent)
        assert b"May I?" not in first
        given, built = await shown_again(chat, version)
        assert [message.role for message in given] == ["user"]
        assert built.id == asking.id
        assert texts(built) == ["May I?", "output-available", "One file."]
        await sent.aclose()
        await chat.stop("chat")
        assert [message.id for message in await chat.messages("chat", version=version)][-1] == asking.id

    asyncio.run(run())


def _allowed(part: dict[str, Any]) -> dict[str, Any]:
    if part.get("state") != "approval-requested":
        return part
    return {**part, "state": "approval-responded", "approval": {**part["approval"], "approved": True}}


def test_a_message_that_is_being_made_comes_from_its_stream_alone(
    keeper: ChatKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Older clients add what they are sent to a message that they have."""
    monkeypatch.setattr(endpoint, "SAVE_SECONDS", 0.01)

    async def run() -> None:
        chat = Chat(Script((*HALF, None)), keeper)
        await chat.post(post())
        await asyncio.sleep(0.2)
        assert len(await keeper.load("chat")) == 2
        given, built = await shown_again(chat, 7)
        assert [message.role for message in given] == ["user"]
        assert texts(built)[0] == "Hel"
        # It ends between the two requests of a page; a page that has it from the first gets nothing from the second.
        assert len(await chat.messages("chat")) == 1
        await chat.stop("chat")
        assert b"Hel" in await drain(await chat.resume("chat"))
        assert len(await chat.messages("chat")) == 2
        assert await chat.resume("chat") is None

    asyncio.run(run())


def test_a_page_of_6_that_built_a_decided_call_from_its_stream_can_go_on(keeper: ChatKeeper) -> None:
    """No chunk of 6 has the answer to a request, and the AI SDK calls such a message invalid."""

    async def run() -> None:
        chat = Chat(Script(ANSWER), keeper)
        await drain(await chat.post(post(), version=6))
        call = {"type": "dynamic-tool", "toolName": "Bash", "toolCallId": "c", "input": 1, "approval": {"id": "q"}}
        built = [{**call, "state": "output-denied"}, {**call, "state": "output-available", "output": 2}]
        messages = [user(), {"id": "a", "role": "assistant", "parts": built}, user("u2", "and?")]
        await drain(await chat.post(post(messages=messages), version=6))
        assert len(await chat.messages("chat")) == 4

    asyncio.run(run())


# -- a page that sends something while an answer is being made


@pytest.mark.parametrize(
    ("sent", "roles"),
    [
        ({"message": user("u2", "two")}, ["user", "assistant", "user", "assistant"]),
        ({"message": user("u", "edited")}, ["user", "assistant"]),
        ({"messages": [user()], "trigger": "regenerate-message"}, ["user", "assistant"]),
        ({"message": user()}, ["user", "assistant"]),
    ],
)
def test_a_request_ends_the_running_answer_and_goes_on(
    keeper: ChatKeeper, sent: dict[str, Any], roles: list[str]
) -> None:
    async def run() -> None:
        chat = Chat(Script((*HALF, None), ANSWER), keeper)
        first = asyncio.create_task(drain(await chat.post(post())))
        await asyncio.sleep(0.05)
        assert b"Hello" in await drain(await chat.post(post(**sent)))
        assert b'"type":"abort"' in await first
        messages = await chat.messages("chat")
        assert [message.role for message in messages] == roles
        assert texts(messages[-1]) == ["Hello"]
        if len(roles) > 2:
            assert texts(messages[1]) == ["Hel", "output-error"]

    asyncio.run(run())


@pytest.mark.parametrize("kind", SHARED)
def test_a_request_ends_the_running_answer_of_another_process(keeper: ChatKeeper, tmp_path: Path, kind: str) -> None:
    async def run(shared: SharedStreams) -> None:
        here = Chat(Script((*HALF, None)), keeper, Streams(shared.open()))
        there_script = Script(ANSWER)
        there = Chat(there_script, keeper, Streams(shared.open()))
        first = asyncio.create_task(drain(await here.post(post())))
        await asyncio.sleep(0.4)
        assert b"Hello" in await drain(await there.post(post(message=user("u2", "two"))))
        assert b'"type":"abort"' in await first
        assert [texts(message) for message in await here.messages("chat")][1] == ["Hel", "output-error"]
        assert [message.role for message in there_script.given[0].messages] == ["user", "assistant", "user"]
        await here.close()
        await there.close()

    with asyncio.Runner() as runner:
        for shared in each_shared_streams(kind, tmp_path, runner):
            runner.run(run(shared))


def test_many_requests_at_once_end_each_other_and_the_last_is_answered(keeper: ChatKeeper) -> None:
    async def run() -> None:
        chat = Chat(Script(ANSWER), keeper)
        streams = await asyncio.gather(*[chat.post(post(message=user(f"u{number}"))) for number in range(5)])
        told = await asyncio.gather(*map(drain, streams))
        assert all(b"[DONE]" in each for each in told)
        assert sum(message.role == "user" for message in await chat.messages("chat")) == 5
        assert texts((await chat.messages("chat"))[-1]) == ["Hello"]

    asyncio.run(run())


def test_what_cannot_be_answered_ends_nothing(keeper: ChatKeeper) -> None:
    async def run() -> None:
        chat = Chat(Script(ASKING, (*GOING_ON[:-2], None)), keeper)
        await drain(await chat.post(post()))
        asking = to_plain((await chat.messages("chat"))[1])
        decided = {**asking, "parts": [_allowed(part) for part in asking["parts"]]}
        running = asyncio.create_task(drain(await chat.post(post(message=decided))))
        await asyncio.sleep(0.05)
        with pytest.raises(ConflictError):
            await chat.post(post(message=decided))
        with pytest.raises(ShapeError):
            await chat.post(post(message={"id": "s", "role": "system", "parts": [{"type": "text", "text": "x"}]}))
        assert not running.done()
        await chat.close()
        await running

    asyncio.run(run())


def test_nobody_ends_an_answer_of_somebody_else(tmp_path: Path) -> None:
    async def run() -> None:
        keeper = NativeKeeper(tmp_path / "turnlog.db")
        chat = Chat(Script((*HALF, None)), keeper)
        ann, bob = Ownership(user="ann"), Ownership(user="bob")
        posts = [chat.post(post(message=user("a")), owner=ann), chat.post(post(message=user("b")), owner=bob)]
        first, second = await asyncio.gather(*posts, return_exceptions=True)
        assert isinstance(second, NotFoundError)
        assert not isinstance(first, BaseException)
        running = asyncio.create_task(drain(first))
        await asyncio.sleep(0.05)
        for owner in (bob, None):
            with pytest.raises(NotFoundError):
                await chat.post(post(message=user("b")), owner=owner)
        assert not running.done()
        await chat.close()
        assert [message.id for message in await keeper.load("chat")][:1] == ["a"]
        keeper.close()

    asyncio.run(run())
