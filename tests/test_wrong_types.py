"""What is given in place of the right thing fails at once, with a sentence that names the fix."""

from __future__ import annotations

import re
import warnings
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import pytest

from turnlog import DiagnosticFilter, SessionFilter, ToolCallFilter, UsageFilter, open_store
from turnlog.aisdk import ToolSchema, UIMessage, from_ui_messages
from turnlog.chat import (
    Chat,
    ChatApp,
    ChatRequest,
    Limits,
    Ownership,
    ProviderRuntime,
    Retry,
    RunRequest,
    SqliteStreamStore,
    Streams,
    Tool,
    TransportOptions,
    UIMessagesApp,
    UIMessageStore,
    chat_endpoint,
    ui_messages_endpoint,
)
from turnlog.errors import StoreError
from turnlog.model import DataPart, Message, TextPart, ToolCallPart, Usage
from turnlog.model.codec import decode_part, encode, to_json
from turnlog.model.stream import DataEvent, ToolInputAvailable
from turnlog.providers import provider
from turnlog.providers.base import RequestOptions
from turnlog.store.base import FileFilter, HourOfWeek, InsightFilter, RunFilter
from turnlog.store.search.base import SearchFilter
from turnlog.store.values import AgentAnswer

OPTIONS = RequestOptions(model="m")
anything: Any = {"city": "Berlin"}


async def answer(request: RunRequest) -> AsyncGenerator[str, None]:
    yield "hi"


async def send(body: dict[str, Any]) -> AsyncGenerator[bytes, None]:
    yield b""


async def run_tool(call: ToolCallPart, request: RunRequest) -> str:
    return "done"


async def returns(request: RunRequest) -> str:
    return "hi"


def plain(request: RunRequest) -> str:
    return "hi"


def wrong(function: Callable[..., object], *given: Any, **named: Any) -> Callable[[], object]:
    return lambda: function(*given, **named)


WRONG: list[tuple[Callable[[], object], type[Exception], str]] = [
    (
        wrong(ToolCallPart, tool_call_id="c", tool_name="t", input=anything),
        TypeError,
        "input is exact JSON, not dict: use",
    ),
    (wrong(ToolInputAvailable, tool_call_id="c", tool_name="t", input=anything), TypeError, "input=to_json({…})"),
    (wrong(DataEvent, name="n", data=anything), TypeError, "data is exact JSON, not dict: use to_json(…)"),
    (wrong(DataPart, name="n", data="text"), TypeError, "data is exact JSON, not str"),
    (
        wrong(chat_endpoint, Chat(answer), "api"),
        ValueError,
        "path cannot be 'api': it begins with a slash, as in '/api'",
    ),
    (wrong(ChatApp, Chat(answer), "api"), ValueError, "path cannot be 'api': it begins with a slash"),
    (wrong(Chat, plain), TypeError, "plain is no async generator function: write `async def` and `yield`"),
    (wrong(Chat, returns), TypeError, "returns is no async generator function"),
    (wrong(Chat, "x"), TypeError, "runtime cannot be str: expected an async generator function, or a runtime"),
    (wrong(Chat, answer, "chats.db"), TypeError, "keeper cannot be 'chats.db' (str): expected NativeKeeper(path)"),
    (
        wrong(Chat, answer, None, "s.db"),
        TypeError,
        "streams cannot be 's.db' (str): expected Streams(SqliteStreamStore(path))",
    ),
    (wrong(Streams, "streams.db"), TypeError, "store cannot be 'streams.db' (str): expected SqliteStreamStore(path)"),
    (wrong(chat_endpoint, answer), TypeError, "chat cannot be answer (function): expected Chat(answer)"),
    (wrong(provider, "openai"), ValueError, "'responses' and 'openai-chat'"),
    (wrong(ProviderRuntime, "nobody", OPTIONS, send), ValueError, "there is no provider 'nobody': expected one of"),
    (
        wrong(ProviderRuntime, "anthropic", OPTIONS, send, {"t": run_tool}),
        TypeError,
        "tools['t'] cannot be run_tool (function): expected Tool(function)",
    ),
]


OPTION_VALUES: list[tuple[Any, dict[str, Any]]] = [
    (RequestOptions, {"model": "m"}),
    (Ownership, {}),
    (Limits, {}),
    (Retry, {}),
    (Tool, {"run": run_tool}),
    (TransportOptions, {}),
    (ToolSchema, {"input": dict}),
    (ChatRequest, {"chat_id": "c", "messages": ()}),
    (RunRequest, {"chat_id": "c", "messages": ()}),
    (AgentAnswer, {"log_id": "l"}),
    (HourOfWeek, {"weekday": 0, "hour": 3}),
    *((kind, {}) for kind in (SessionFilter, ToolCallFilter, FileFilter, UsageFilter, InsightFilter, RunFilter)),
    *((kind, {}) for kind in (DiagnosticFilter, SearchFilter)),
]
"""What callers make by hand, with the fields that it needs."""

FREE = {"dependencies", "extra"}
"""Fields that take anything, or that no caller gives."""


@pytest.mark.parametrize(("kind", "given"), OPTION_VALUES, ids=lambda value: getattr(value, "__name__", ""))
def test_a_field_of_the_wrong_type_is_refused_where_it_is_given(kind: Any, given: dict[str, Any]) -> None:
    assert kind(**given) == kind(**given)
    for name in set(getattr(kind, "__struct_fields__", ()) or kind._fields) - FREE:
        wrong_value = object()
        with pytest.raises(TypeError, match=rf"^{kind.__name__}\.{name} cannot be object: expected "):
            kind(**{**given, name: wrong_value})


def test_a_right_value_of_another_class_is_taken() -> None:
    assert Limits(seconds=3).seconds == 3
    assert ToolCallFilter(kind="shell").kind == "shell"
    assert RequestOptions(model="m", tools=[{"name": "t"}]).tools == [{"name": "t"}]


def _messages(**fields: Any) -> list[Message]:
    return [Message(id="m0", role="user"), Message(id="m1", role="assistant", **fields)]


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"parts": "hi"}, "messages[1].parts cannot be 'hi' (str): expected a tuple of a TextPart or"),
        ({"parts": ("hi",)}, "messages[1].parts[0] cannot be 'hi' (str): expected a TextPart or"),
        ({"parts": [TextPart(text=anything)]}, "messages[1].parts[0].text cannot be dict: expected text"),
        (
            {"parts": (ToolCallPart(tool_call_id=anything, tool_name="t"),)},
            "messages[1].parts[0].tool_call_id cannot be dict: expected text",
        ),
    ],
)
def test_a_history_that_is_made_wrongly_is_reported_where(
    fields: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    messages = _messages(**fields)
    with open_store(tmp_path / "turnlog.db", create=True) as store:
        for take in (
            lambda: store.save_messages("bot:1", messages),
            lambda: provider("anthropic").to_request(messages, OPTIONS),
            lambda: provider("responses").to_request(messages, OPTIONS),
        ):
            with pytest.raises(TypeError, match=re.escape(sentence)):
                take()


def test_a_usage_that_is_no_usage_is_not_stored(tmp_path: Path) -> None:
    with open_store(tmp_path / "turnlog.db", create=True) as store:
        for usage, sentence in (
            (anything, "usage cannot be dict: expected a Usage"),
            (Usage(input=anything), "usage.input cannot be dict"),
        ):
            with pytest.raises(TypeError, match=re.escape(f"messages[1].{sentence}")):
                store.save_messages("bot:1", _messages(usage=usage))


def test_a_ui_message_that_is_made_wrongly_is_reported_where() -> None:
    wrong_parts: Any = ("hi",)
    with pytest.raises(TypeError, match=re.escape("messages[0].parts[0] cannot be 'hi' (str): expected a TextUIPart")):
        from_ui_messages([UIMessage(id="m", role="user", parts=wrong_parts)])


@pytest.mark.parametrize(("make", "error", "sentence"), WRONG)
def test_a_wrong_type_fails_at_once(make: Callable[[], object], error: type[Exception], sentence: str) -> None:
    with pytest.raises(error, match=re.escape(sentence)):
        make()


def test_lists_say_what_they_want(tmp_path: Path) -> None:
    wrong: Any = "5"
    with open_store(tmp_path / "turnlog.db", create=True) as store:
        for ask in (store.sessions, store.tool_calls, store.runs):
            with pytest.raises(TypeError, match=r"limit cannot be '5' \(str\): expected a whole number"):
                ask(limit=wrong)
            with pytest.raises(TypeError, match=r"filter cannot be '5' \(str\): expected a \w+Filter"):
                ask(wrong)
        with pytest.raises(ValueError, match=r"sort cannot be 'newest' \(str\): expected one of 'updated'"):
            store.sessions(sort="newest")  # pyright: ignore[reportArgumentType]  # the mistake


def test_a_stream_store_needs_its_folder(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"there is no folder .*missing, make it first"):
        SqliteStreamStore(tmp_path / "missing" / "streams.db")


def test_pages_that_cannot_give_permission_are_warned_of() -> None:
    careful = Chat(ProviderRuntime("anthropic", OPTIONS, send, {"rm": Tool(run_tool, needs_permission=True)}))
    with pytest.warns(UserWarning, match="AI SDK 5 has no approvals"):
        chat_endpoint(careful, version=5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        chat_endpoint(careful, version=6)
        chat_endpoint(Chat(answer), version=5)


def test_json_is_taken_and_read_as_before() -> None:
    part = ToolCallPart(tool_call_id="c", tool_name="t", input=to_json({"a": 1}))
    assert decode_part(encode(part)) == part
    assert ToolCallPart(tool_call_id="c", tool_name="t").input_value() is None


@pytest.mark.parametrize("endpoint", [UIMessagesApp, ui_messages_endpoint])
def test_a_path_that_no_request_can_have_is_refused(endpoint: Callable[..., object], tmp_path: Path) -> None:
    with (
        open_store(tmp_path / "store.db", create=True) as store,
        pytest.raises(ValueError, match="begins with a slash"),
    ):
        endpoint(UIMessageStore(store), "api")
