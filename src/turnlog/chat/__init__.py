"""What a chat page needs beside the messages themselves: a backend, stored sessions, resumable streams.

`Chat` puts a runtime, a keeper and streams together; its routes are in `turnlog.chat.http` and `turnlog.chat.fastapi`.
The messages and chunks are `turnlog.aisdk`'s; nothing here knows an agent.
"""

from turnlog.chat.endpoint import Chat
from turnlog.chat.keepers import ChatKeeper, MemoryKeeper, NativeKeeper, session_id_of
from turnlog.chat.loading import (
    UIMessageStore,
    UIPage,
    load_all_ui_messages,
    load_ui_json,
    load_ui_messages,
)
from turnlog.chat.requests import AnswerPlan, ChatRequest, parse_chat_request, plan_answer
from turnlog.chat.runtime import Answer, AnswerRuntime, Listeners, RunRequest, Runtime
from turnlog.chat.runtimes.provider import ProviderRuntime, Tool
from turnlog.chat.stream_stores import MemoryStreamStore, RedisStreamStore, SqliteStreamStore, StoredFrames, StreamStore
from turnlog.chat.streams import Streams
from turnlog.chat.tail import Tail, open_tail

__all__ = [
    "Answer",
    "AnswerPlan",
    "AnswerRuntime",
    "Chat",
    "ChatKeeper",
    "ChatRequest",
    "Listeners",
    "MemoryKeeper",
    "MemoryStreamStore",
    "NativeKeeper",
    "ProviderRuntime",
    "RedisStreamStore",
    "RunRequest",
    "Runtime",
    "SqliteStreamStore",
    "StoredFrames",
    "StreamStore",
    "Streams",
    "Tail",
    "Tool",
    "UIMessageStore",
    "UIPage",
    "load_all_ui_messages",
    "load_ui_json",
    "load_ui_messages",
    "open_tail",
    "parse_chat_request",
    "plan_answer",
    "session_id_of",
]
