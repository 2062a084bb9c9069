"""Every public function is given something of the wrong type for each of its parameters in turn.

Nothing may then fail inside of turnlog: what is wrong is refused by its name, with what was given and what to give.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import aclosing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, cast

import turnlog
from turnlog import aisdk, chat, open_store, providers
from turnlog.chat.runtimes.open_harness import HarnessRuntime
from turnlog.errors import TurnlogError
from turnlog.model import Fate, Message, Ownership, TextPart, ToolCallPart
from turnlog.providers import provider
from turnlog.store.base import FileFilter, InsightFilter, RunFilter
from turnlog.store.values import LookedAt, Run, SecretPlaces
from turnlog.sync.syncer import sync

SAMPLE = Path(turnlog.__file__).parent / "sample" / "claude-code"


class Stranger:
    """A value that fits nowhere."""


WRONG = {
    "stranger": Stranger(),
    "class": Stranger,
    "number": -7,
    "text": "x\x00",
    "none": None,
    "list": [5],
    "dict": {"a": 5},
}


class Case(NamedTuple):
    call: Callable[..., Any]
    given: dict[str, Any]
    anything: tuple[str, ...] = ()
    """Parameters that take any value: a writer skips what is no event, and `parse_chunk` runs once per chunk."""


async def answer(request: chat.RunRequest) -> AsyncGenerator[str, None]:
    yield "hi"


async def send(body: dict[str, Any]) -> AsyncGenerator[bytes, None]:
    yield b""


async def chunks() -> AsyncIterator[Any]:
    yield aisdk.StartChunk()


async def events() -> AsyncIterator[Any]:
    yield chat.TextStart(id="t")


async def lines() -> AsyncIterator[bytes]:
    yield b"{}\n"


def harness(chat_id: str) -> HarnessRuntime:
    """The right type for a parameter whose function no case calls."""
    raise AssertionError("no case calls it")


UI = aisdk.UIMessage(id="m", role="user", parts=(aisdk.TextUIPart(text="hi"),))
MESSAGE = Message(id="m1", role="user", parts=(TextPart(text="hi"),))
OPTIONS = chat.RequestOptions(model="m")
BODY = b'{"id":"c","messages":[{"id":"m","role":"user","parts":[{"type":"text","text":"hi"}]}]}'
VERSION = {"version": 7}


def _functions(store: Any, folder: Path) -> dict[str, Case]:
    backend = chat.Chat(answer)
    keeper = chat.NativeKeeper(store)
    streams = chat.Streams()
    sessions = chat.UIMessageStore(store)
    request = chat.parse_chat_request(BODY)
    log = next(SAMPLE.rglob("*.jsonl"))
    session = store.sessions(limit=1).items[0].id
    new = folder / "new.db"
    page: dict[str, Any] = {"session_id": session, "offset": 0, "limit": 5, "cursor": None}
    views: dict[str, Any] = {"fates": [Fate.ACTIVE], "resolve_blobs": True}
    write = {"chat_id": "c", "owner": Ownership(user="ann")}
    read: dict[str, Any] = {"chunks": [aisdk.StartChunk()], "version": 7}
    message = store.messages(session, limit=1)[0].message.id
    span: dict[str, Any] = {"session_id": session, "after": 1, "before": None, "around": None, "limit": 5}
    paged: dict[str, Any] = {"limit": 5, "cursor": None}
    stored: dict[str, Any] = {"session_id": "bot:1"}
    return {
        "turnlog.discover": Case(turnlog.discover, {"roots": SAMPLE}),
        "turnlog.extract_tool_calls": Case(turnlog.extract_tool_calls, {"messages": [MESSAGE]}),
        "turnlog.open_store": Case(turnlog.open_store, {"store": new, "create": True}),
        "turnlog.parse_log_file": Case(turnlog.parse_log_file, {"path": log}),
        "turnlog.parse_log_stream": Case(turnlog.parse_log_stream, {"stream": lines(), "agent": "claude-code"}),
        "turnlog.read_session": Case(turnlog.read_session, {"path": log, "structured": False}),
        "turnlog.chat.Chat": Case(
            chat.Chat,
            {
                "runtime": answer,
                "keeper": keeper,
                "streams": streams,
                "tools": "named",
                "error_text": str,
                "on_finish": print,
            },
        ),
        "turnlog.chat.Chat.post": Case(
            chat.Chat(answer, keeper).post,
            {"data": BODY, **VERSION, "owner": Ownership(), "dependencies": None},
            anything=("dependencies",),
        ),
        "turnlog.chat.Chat.answer": Case(
            chat.Chat(answer, keeper).answer,
            {"request": request, **VERSION, "owner": Ownership(), "dependencies": None},
            anything=("dependencies",),
        ),
        "turnlog.chat.Chat.resume": Case(backend.resume, {"chat_id": "c", "owner": None}),
        "turnlog.chat.Chat.stop": Case(backend.stop, {"chat_id": "c", "owner": None}),
        "turnlog.chat.Chat.chats": Case(chat.Chat(answer, keeper).chats, {"owner": None, **paged}),
        "turnlog.chat.Chat.rename": Case(
            chat.Chat(answer, keeper).rename, {"chat_id": "c", "title": "t", "owner": None}
        ),
        "turnlog.chat.Chat.delete": Case(chat.Chat(answer, keeper).delete, {"chat_id": "c", "owner": None}),
        "turnlog.chat.Chat.messages": Case(backend.messages, {"chat_id": "c", **VERSION, "owner": None}),
        "turnlog.chat.ChatApp": Case(
            chat.ChatApp,
            {
                "chat": backend,
                "path": "/chat",
                **VERSION,
                "max_bytes": 5,
                "key": None,
                "owner": None,
                "dependencies": None,
            },
        ),
        "turnlog.chat.chat_endpoint": Case(
            chat.chat_endpoint,
            {
                "chat": backend,
                "path": "/chat",
                **VERSION,
                "max_bytes": 5,
                "owner": None,
                "key": None,
                "dependencies": None,
            },
        ),
        "turnlog.chat.ui_messages_endpoint": Case(
            chat.ui_messages_endpoint, {"sessions": sessions, "path": "/s", "owner": None}
        ),
        "turnlog.chat.UIMessagesApp": Case(chat.UIMessagesApp, {"sessions": sessions, "path": "/s", "owner": None}),
        "turnlog.chat.FunctionRuntime": Case(chat.FunctionRuntime, {"answer": answer}),
        "turnlog.chat.ProviderRuntime": Case(
            chat.ProviderRuntime,
            {
                "provider": "anthropic",
                "options": OPTIONS,
                "send": send,
                "tools": {"t": chat.Tool(print)},  # type: ignore[arg-type]  # it is never called
                "limits": chat.Limits(),
                "retry": chat.Retry(),
                "compact": None,
            },
        ),
        "turnlog.chat.OpenHarnessRuntime": Case(
            chat.OpenHarnessRuntime, {"open_runtime": harness, "options": chat.TransportOptions()}
        ),
        "turnlog.chat.keep_turns": Case(chat.keep_turns, {"turns": 3}),
        "turnlog.chat.NativeKeeper": Case(chat.NativeKeeper, {"store": store}),
        "turnlog.chat.NativeKeeper.load": Case(keeper.load, {"chat_id": "c"}),
        "turnlog.chat.NativeKeeper.save": Case(keeper.save, {"chat_id": "c", "messages": [UI], "retracted": ["m"]}),
        "turnlog.chat.NativeKeeper.claim": Case(keeper.claim, write),
        "turnlog.chat.NativeKeeper.check": Case(keeper.check, write),
        "turnlog.chat.NativeKeeper.chats": Case(keeper.chats, {"owner": Ownership(), **paged, "title": "t"}),
        "turnlog.chat.NativeKeeper.rename": Case(keeper.rename, {**write, "title": "t"}),
        "turnlog.chat.NativeKeeper.delete": Case(keeper.delete, {**write, "chat_id": "other"}),
        "turnlog.chat.NativeKeeper.change_owner": Case(keeper.change_owner, write),
        "turnlog.chat.MemoryKeeper.load": Case(chat.MemoryKeeper().load, {"chat_id": "c"}),
        "turnlog.chat.MemoryKeeper.save": Case(
            chat.MemoryKeeper().save, {"chat_id": "c", "messages": [UI], "retracted": ["m"]}
        ),
        "turnlog.chat.Streams": Case(chat.Streams, {"store": None, "keep_alive": 1, "keep_finished": 1.5}),
        "turnlog.chat.Streams.reserve": Case(chat.Streams().reserve, {"chat_id": "c", **VERSION}),
        "turnlog.chat.Streams.resume": Case(streams.resume, {"chat_id": "c", "after": 0}),
        "turnlog.chat.Streams.stop": Case(streams.stop, {"chat_id": "c"}),
        "turnlog.chat.Streams.subscribe": Case(streams.subscribe, {"stream_id": "c", "after": 0}),
        "turnlog.chat.SqliteStreamStore": Case(chat.SqliteStreamStore, {"path": folder / "streams.db"}),
        "turnlog.chat.Tail": Case(chat.Tail, {"store": store, "session_id": session}),
        "turnlog.chat.open_tail": Case(chat.open_tail, {"store": store, "session_id": session}),
        "turnlog.chat.UIMessageStore": Case(chat.UIMessageStore, {"store": store, "version": 7}),
        "turnlog.chat.UIMessageStore.load": Case(sessions.load, page),
        "turnlog.chat.UIMessageStore.load_all": Case(sessions.load_all, {"session_id": session}),
        "turnlog.chat.UIMessageStore.load_json": Case(sessions.load_json, page),
        "turnlog.chat.UIMessageStore.session": Case(sessions.session, {"session_id": session}),
        "turnlog.chat.load_ui_messages": Case(chat.load_ui_messages, {"store": store, **page, **views, **VERSION}),
        "turnlog.chat.load_ui_json": Case(chat.load_ui_json, {"store": store, **page, **views}),
        "turnlog.chat.load_all_ui_messages": Case(
            chat.load_all_ui_messages, {"store": store, "session_id": session, **views}
        ),
        "turnlog.chat.parse_chat_request": Case(chat.parse_chat_request, {"data": BODY, **VERSION}),
        "turnlog.chat.plan_answer": Case(chat.plan_answer, {"stored": [], "request": request}),
        "turnlog.chat.session_id_of": Case(chat.session_id_of, {"chat_id": "c"}),
        "turnlog.aisdk.ChatReader": Case(
            aisdk.ChatReader,
            {"messages": [UI], "trigger": "submit-message", "message_id": None, "new_id": "n", **VERSION},
        ),
        "turnlog.aisdk.ChatReader.feed": Case(aisdk.ChatReader().feed, {"chunk": aisdk.StartChunk()}),
        "turnlog.aisdk.ChunkWriter": Case(
            aisdk.ChunkWriter,
            {**VERSION, "message_id": "m", "generate_id": str, "continued": None, "tools": "named", "strict": False},
        ),
        "turnlog.aisdk.ChunkWriter.write": Case(
            aisdk.ChunkWriter().write, {"event": chat.TextStart(id="t")}, anything=("event",)
        ),
        "turnlog.aisdk.ChunkWriter.fail": Case(aisdk.ChunkWriter().fail, {"error_text": "e"}),
        "turnlog.aisdk.ChunkWriter.abort": Case(aisdk.ChunkWriter().abort, {"reason": "r"}),
        "turnlog.aisdk.PartialJson": Case(aisdk.PartialJson, {"text": "[", **VERSION}),
        "turnlog.aisdk.PartialJson.feed": Case(aisdk.PartialJson().feed, {"text": "["}),
        "turnlog.aisdk.SseDecoder.feed": Case(aisdk.SseDecoder().feed, {"data": b"x"}),
        "turnlog.aisdk.SseEncoder.encode": Case(aisdk.SseEncoder().encode, {"chunk": aisdk.StartChunk()}),
        "turnlog.aisdk.UIMessageReader": Case(
            aisdk.UIMessageReader,
            {"message": UI, **VERSION, "reset_on_new_id": True, "reset_on_first_start": True},
        ),
        "turnlog.aisdk.UIMessageReader.feed": Case(aisdk.UIMessageReader().feed, {"chunk": aisdk.StartChunk()}),
        "turnlog.aisdk.aiter_ui_messages": Case(
            aisdk.aiter_ui_messages, {"chunks": chunks(), "message": None, **VERSION}
        ),
        "turnlog.aisdk.closing_chunks": Case(aisdk.closing_chunks, read),
        "turnlog.aisdk.decode_chunks": Case(aisdk.decode_chunks, {"data": b"", **VERSION, "strict": True}),
        "turnlog.aisdk.downgrade_chunk": Case(aisdk.downgrade_chunk, {"chunk": aisdk.StartChunk(), **VERSION}),
        "turnlog.aisdk.downgrade_ui_message": Case(aisdk.downgrade_ui_message, {"message": UI, **VERSION}),
        "turnlog.aisdk.encode": Case(aisdk.encode, {"value": UI}),
        "turnlog.aisdk.encode_chunk": Case(aisdk.encode_chunk, {"chunk": aisdk.StartChunk()}),
        "turnlog.aisdk.from_ui_messages": Case(aisdk.from_ui_messages, {"messages": [UI], "trusted": False}),
        "turnlog.aisdk.iter_ui_messages": Case(aisdk.iter_ui_messages, {**read, "message": None}),
        "turnlog.aisdk.parse_chunk": Case(
            aisdk.parse_chunk, {"data": b'{"type":"start"}', **VERSION, "strict": True}, anything=("strict",)
        ),
        "turnlog.aisdk.parse_partial_json": Case(aisdk.parse_partial_json, {"text": "[", **VERSION}),
        "turnlog.aisdk.parse_ui_message": Case(
            aisdk.parse_ui_message, {"data": aisdk.encode(UI), **VERSION, "strict": True, "require_id": True}
        ),
        "turnlog.aisdk.parse_ui_messages": Case(
            aisdk.parse_ui_messages, {"data": aisdk.encode([UI]), **VERSION, "strict": True, "require_id": True}
        ),
        "turnlog.aisdk.read_chat": Case(
            aisdk.read_chat,
            {**read, "messages": [UI], "trigger": "submit-message", "message_id": None, "new_id": "n"},
        ),
        "turnlog.aisdk.read_chunks": Case(aisdk.read_chunks, {"data": lines(), **VERSION, "strict": True}),
        "turnlog.aisdk.read_ui_message": Case(aisdk.read_ui_message, {**read, "message": None}),
        "turnlog.aisdk.sdk_version": Case(aisdk.sdk_version, VERSION),
        "turnlog.aisdk.stream_chunks": Case(
            aisdk.stream_chunks, {"source": events(), "writer": aisdk.ChunkWriter(), "error_text": str}
        ),
        "turnlog.aisdk.stream_events": Case(
            aisdk.stream_events,
            {
                "source": events(),
                "writer": aisdk.ChunkWriter(),
                "keep_alive": 1,
                "coalesce": True,
                "error_text": str,
            },
        ),
        "turnlog.aisdk.stream_sse": Case(aisdk.stream_sse, {"chunks": chunks(), "keep_alive": 1.5, "coalesce": True}),
        "turnlog.aisdk.supports": Case(aisdk.supports, {**VERSION, "feature": "approvals"}),
        "turnlog.aisdk.to_model_messages": Case(
            aisdk.to_model_messages,
            {
                "messages": [UI],
                **VERSION,
                "tools": None,
                "ignore_incomplete_tool_calls": False,
                "convert_data_part": None,
            },
        ),
        "turnlog.aisdk.to_ui_json": Case(aisdk.to_ui_json, {"bodies": [], "first_index": 0, "children": {}}),
        "turnlog.aisdk.to_ui_messages": Case(aisdk.to_ui_messages, {"history": [MESSAGE], **VERSION}),
        "turnlog.aisdk.unusual_parts": Case(aisdk.unusual_parts, {"message": UI}),
        "turnlog.aisdk.validate_ui_messages": Case(
            aisdk.validate_ui_messages,
            {"messages": [UI], **VERSION, "metadata_schema": None, "data_schemas": None, "tools": None},
        ),
        "turnlog.aisdk.write_chunks": Case(
            aisdk.write_chunks, {"stream": [chat.TextStart(id="t")], "writer": aisdk.ChunkWriter()}
        ),
        "turnlog.providers.provider": Case(provider, {"name": "anthropic"}),
        **{
            f"turnlog.providers.{name}.to_request": Case(
                provider(name).to_request, {"messages": [MESSAGE], "options": OPTIONS, "strict": False}
            )
            for name in providers.provider_names()
        },
        **{
            f"turnlog.providers.{name}.from_response": Case(
                provider(name).from_response, {"body": b'{"error":{"message":"m"}}', "requested_model": None}
            )
            for name in providers.provider_names()
        },
        "turnlog.providers.Provider.open_stream": Case(provider("anthropic").open_stream, {"requested_model": None}),
        "turnlog.Store.sessions": Case(
            store.sessions, {"filter": turnlog.SessionFilter(), "sort": "cost", **paged, "count": True}
        ),
        "turnlog.Store.session": Case(store.session, {"session_id": session}),
        "turnlog.Store.find_session": Case(store.find_session, {"agent": "a", "external_id": "b"}),
        "turnlog.Store.ids_beginning": Case(store.ids_beginning, {"beginnings": [session]}),
        "turnlog.Store.children": Case(store.children, {"session_id": session}),
        "turnlog.Store.relationships": Case(store.relationships, {"session_id": session}),
        "turnlog.Store.previews": Case(store.previews, {"session_ids": [session]}),
        "turnlog.Store.turn_facts": Case(store.turn_facts, {"session_ids": [session]}),
        "turnlog.Store.annotations": Case(store.annotations, {"session_ids": [session]}),
        "turnlog.Store.parents": Case(store.parents, {"session_ids": [session]}),
        "turnlog.Store.annotate": Case(
            store.annotate, {"session_id": session, "title": "t", "starred": True, "tags": ("a",)}
        ),
        "turnlog.Store.save_session": Case(
            store.save_session, {**stored, "title": "t", "ownership": Ownership(), "metadata": {}}
        ),
        "turnlog.Store.save_messages": Case(
            store.save_messages, {**stored, "messages": [MESSAGE], "retracted": ["m9"], "answers": None}
        ),
        "turnlog.Store.save_tool_call": Case(
            store.save_tool_call,
            {**stored, "message_id": "m2", "call": ToolCallPart(tool_call_id="c", tool_name="t")},
        ),
        "turnlog.Store.change_owner": Case(store.change_owner, {**stored, "ownership": Ownership()}),
        "turnlog.Store.messages": Case(
            store.messages, {**span, "fates": [Fate.ACTIVE], "structured": (), "resolve_blobs": True}
        ),
        "turnlog.Store.message": Case(
            store.message, {"message_id": message, "session_id": None, "structured": False, "resolve_blobs": True}
        ),
        "turnlog.Store.part": Case(store.part, {"part_id": f"{message}.0", "session_id": None}),
        "turnlog.Store.memberships": Case(store.memberships, {"message_id": message}),
        "turnlog.Store.records": Case(store.records, {"message_id": message, "session_id": None}),
        "turnlog.Store.places": Case(
            store.places, {"session_id": session, "fates": [Fate.ACTIVE], "since": 0, "limit": 5}
        ),
        "turnlog.Store.bodies": Case(
            store.bodies,
            {"session_id": session, "first": 0, "last": 9, "fates": [Fate.ACTIVE], "resolve_blobs": True},
        ),
        "turnlog.Store.child_sessions": Case(store.child_sessions, {"session_id": session}),
        "turnlog.Store.history": Case(store.history, {"session_id": session, "resolve_blobs": True}),
        "turnlog.Store.events": Case(store.events, {"session_id": session, "position": 0, "type": "error"}),
        "turnlog.Store.passage": Case(store.passage, span),
        "turnlog.Store.outline": Case(store.outline, {"session_id": session}),
        "turnlog.Store.context_steps": Case(store.context_steps, {"session_id": session}),
        "turnlog.Store.messages_at": Case(store.messages_at, {"session_id": session, "positions": [0]}),
        "turnlog.Store.secret_places": Case(store.secret_places, {"session_id": session, "rules": "r"}),
        "turnlog.Store.keep_secret_places": Case(
            store.keep_secret_places, {"session_id": session, "rules": "r", "places": NO_PLACES}
        ),
        "turnlog.Store.window": Case(store.window, span),
        "turnlog.Store.extent": Case(store.extent, {"session_id": session}),
        "turnlog.Store.tool_calls": Case(store.tool_calls, {"filter": turnlog.ToolCallFilter(), **paged}),
        "turnlog.Store.tool_usage": Case(store.tool_usage, {"filter": turnlog.ToolCallFilter()}),
        "turnlog.Store.reasoning": Case(store.reasoning, {"session_id": session}),
        "turnlog.Store.file_history": Case(store.file_history, {"path": "/a", "changed": True, **paged}),
        "turnlog.Store.touched_files": Case(store.touched_files, {"filter": FileFilter(), "limit": 5}),
        "turnlog.Store.insights": Case(store.insights, {"filter": InsightFilter(), "zone": None}),
        "turnlog.Store.spending": Case(store.spending, {"since": datetime.now(UTC)}),
        "turnlog.Store.usage": Case(
            store.usage, {"by": "day", "filter": turnlog.UsageFilter(), "then_by": "model", "zone": None}
        ),
        "turnlog.Store.merge_projects": Case(store.merge_projects, {"project": "/project", "into": "/into"}),
        "turnlog.Store.split_project": Case(store.split_project, {"project": "/project"}),
        "turnlog.Store.rename_project": Case(store.rename_project, {"project": "/project", "name": "/name"}),
        "turnlog.Store.tasks": Case(store.tasks, {}),
        "turnlog.Store.task": Case(store.task, {"task_id": "t"}),
        "turnlog.Store.create_task": Case(store.create_task, {"name": "n", "task_id": "t", "user": "u"}),
        "turnlog.Store.rename_task": Case(store.rename_task, {"task_id": "t", "name": "n", "user": "u"}),
        "turnlog.Store.delete_task": Case(store.delete_task, {"task_id": "t", "user": "u"}),
        "turnlog.Store.runs": Case(store.runs, {"filter": RunFilter(), **paged}),
        "turnlog.Store.run": Case(store.run, {"run_id": "r"}),
        "turnlog.Store.run_messages": Case(store.run_messages, {"run_id": "r", **paged, "resolve_blobs": True}),
        "turnlog.Store.newest_runs": Case(store.newest_runs, {"session_ids": [session]}),
        "turnlog.Store.run_facts": Case(
            store.run_facts, {"session_id": session, "since": None, "until": None, "stream": None}
        ),
        "turnlog.Store.save_run": Case(store.save_run, {"run": None}),
        "turnlog.Store.change_unfinished_runs": Case(store.change_unfinished_runs, {"change": _unchanged}),
        "turnlog.Store.forget_run": Case(store.forget_run, {"run_id": "r"}),
        "turnlog.Store.sources": Case(store.sources, {"session_id": session}),
        "turnlog.Store.diagnostics": Case(store.diagnostics, {"filter": turnlog.DiagnosticFilter(), **paged}),
        "turnlog.Store.diagnostic_counts": Case(store.diagnostic_counts, {"limit": 5}),
        "turnlog.Store.unknown_record": Case(store.unknown_record, {"agent": "a", "kind": "k"}),
        "turnlog.Store.record": Case(store.record, {"source": "s", "offset": 0, "length": 1}),
        "turnlog.Store.raw": Case(store.raw, {"session_id": session}),
        "turnlog.Store.restore": Case(store.restore, {"session_id": session, "to": folder / "restored"}),
        "turnlog.Store.plan_forgetting": Case(store.plan_forgetting, {"session_id": session}),
        "turnlog.Store.forget": Case(store.forget, {"session_id": "bot:nobody"}),
        "turnlog.Store.spill": Case(store.spill, {"session_id": session, "name": "n"}),
        "turnlog.Store.blob": Case(store.blob, {"sha256": "0"}),
        "turnlog.Store.changes": Case(store.changes, {"after": 0, "limit": 5}),
        "turnlog.Store.session_changes": Case(
            store.session_changes, {"session_id": session, "after": 0, "until": 9, "limit": 5}
        ),
    }


def _unchanged(run: Run) -> None:
    return None


async def _run(case: Case, given: dict[str, Any]) -> None:
    """Call a function, and read what it returns as far as its first value."""
    result = case.call(**given)
    if inspect.isawaitable(result):
        result = await result
    if inspect.isasyncgen(result):
        async with aclosing(result) as values:
            await anext(values, None)
    elif isinstance(result, Iterator):
        next(cast("Iterator[Any]", result), None)


def _fault(case: Case, name: str, kind: str) -> str | None:
    """What is wrong with the error for a wrong argument; None if nothing is."""
    try:
        asyncio.run(asyncio.wait_for(_run(case, {**case.given, name: WRONG[kind]}), 5))
    except (TypeError, ValueError, TurnlogError) as error:
        is_named = name in str(error) and "Stranger" in str(error) and "expected" in str(error)
        return None if kind != "stranger" or is_named else f"{type(error).__name__}: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None if kind != "stranger" or name in case.anything else "is taken"


def test_what_is_wrong_is_refused_by_its_name(tmp_path: Path) -> None:
    faults: list[str] = []
    with open_store(tmp_path / "turnlog.db", create=True) as store:
        sync(tmp_path / "turnlog.db", roots=[SAMPLE])
        for function, case in _functions(store, tmp_path).items():
            for name in case.given:
                for kind in WRONG:
                    fault = _fault(case, name, kind)
                    if fault is not None:
                        faults.append(f"{function}({name}={kind}): {fault}")
    assert not faults, "\n".join(faults)


NO_PLACES = SecretPlaces(None, LookedAt(frozenset(), {}), LookedAt(frozenset(), {}))

NO_ARGUMENTS = {"generate_message_id", "provider_names"}
PROTOCOLS = {"ChatDirectory", "ChatKeeper", "Listeners", "RedisStreamStore", "Runtime", "Store", "StreamStore"}
"""What others write, and what needs a server of another program."""

VALUES = {"to_json"}
"""Takes any value that JSON has."""

TYPES = {"AnswerFunction", "FinishReason", "ProviderMetadata", "Schema", "ToolPartState", "UIRole"}
"""Names of types that are no classes."""


def test_every_public_function_is_given_wrong_types(tmp_path: Path) -> None:
    with open_store(tmp_path / "turnlog.db", create=True) as store:
        sync(tmp_path / "turnlog.db", roots=[SAMPLE])
        tried = {name.removeprefix("turnlog.") for name in _functions(store, tmp_path)}
        of_store = {name for name, method in vars(turnlog.Store).items() if name[0] != "_" and _has_parameters(method)}
        missing = {f"Store.{name}" for name in of_store} - tried
        for module in (turnlog, chat, aisdk, providers):
            prefix = module.__name__.removeprefix("turnlog").lstrip(".")
            for name in getattr(module, "__all__", ["provider", "provider_names"]):
                found = getattr(module, name)
                is_value = isinstance(found, type) and not _has_parameters(found.__init__)
                names = (f"{prefix}.{name}".lstrip("."), f"chat.{name}", f"aisdk.{name}")
                if callable(found) and not is_value and not tried.intersection(names):
                    missing.add(names[0])
    assert {name.rpartition(".")[2] for name in missing} <= NO_ARGUMENTS | PROTOCOLS | VALUES | TYPES


def _has_parameters(method: Any) -> bool:
    """Whether a method is written in Python, with a parameter besides `self`."""
    return inspect.isfunction(method) and len(inspect.signature(method).parameters) > 1
