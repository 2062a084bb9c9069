"""Chats: a backend for `useChat` pages, resumable streams, and stored sessions as UI messages.

`Chat` combines a runtime, a keeper and streams; its routes are in `turnlog.chat.http` and `turnlog.chat.fastapi`.
Messages and chunks are those of `turnlog.aisdk`. Only `turnlog.chat.runtimes` knows agents.
"""

from turnlog.chat.endpoint import Chat, FinishedAnswer
from turnlog.chat.keepers import (
    ChatDirectory,
    ChatKeeper,
    ChatPage,
    MemoryKeeper,
    NativeKeeper,
    StoredChat,
    session_id_of,
)
from turnlog.chat.loading import (
    UIMessageStore,
    UIPage,
    load_all_ui_messages,
    load_ui_json,
    load_ui_messages,
)
from turnlog.chat.requests import AnswerPlan, ChatRequest, parse_chat_request, plan_answer
from turnlog.chat.runtime import AnswerFunction, FunctionRuntime, Listeners, RunRequest, Runtime
from turnlog.chat.runtimes.provider import Limits, ProviderRuntime, Retry, Tool, keep_turns
from turnlog.chat.stream_stores import MemoryStreamStore, RedisStreamStore, SqliteStreamStore, StoredFrames, StreamStore
from turnlog.chat.streams import Streams
from turnlog.chat.tail import Tail, open_tail

__all__ = [
    "AnswerFunction",
    "AnswerPlan",
    "Chat",
    "ChatDirectory",
    "ChatKeeper",
    "ChatPage",
    "ChatRequest",
    "FinishedAnswer",
    "FunctionRuntime",
    "Limits",
    "Listeners",
    "MemoryKeeper",
    "MemoryStreamStore",
    "NativeKeeper",
    "ProviderRuntime",
    "RedisStreamStore",
    "Retry",
    "RunRequest",
    "Runtime",
    "SqliteStreamStore",
    "StoredChat",
    "StoredFrames",
    "StreamStore",
    "Streams",
    "Tail",
    "Tool",
    "UIMessageStore",
    "UIPage",
    "keep_turns",
    "load_all_ui_messages",
    "load_ui_json",
    "load_ui_messages",
    "open_tail",
    "parse_chat_request",
    "plan_answer",
    "session_id_of",
]
