"""What a chat page needs beside the messages themselves: its requests taken in, stored sessions, resumable streams.

Streams outlive their readers. The messages and chunks are `turnlog.aisdk`'s; nothing here knows an agent or a provider.
"""

from turnlog.chat.loading import (
    UIMessageStore,
    UIPage,
    load_all_ui_messages,
    load_ui_json,
    load_ui_messages,
)
from turnlog.chat.requests import ChatRequest, ChatTurn, parse_chat_request, take_in
from turnlog.chat.runtime import Answer, AnswerRuntime, Listeners, RunRequest, Runtime
from turnlog.chat.stream_stores import MemoryStreamStore, SqliteStreamStore, StoredFrames, StreamStore
from turnlog.chat.streams import Streams

__all__ = [
    "Answer",
    "AnswerRuntime",
    "ChatRequest",
    "ChatTurn",
    "Listeners",
    "MemoryStreamStore",
    "RunRequest",
    "Runtime",
    "SqliteStreamStore",
    "StoredFrames",
    "StreamStore",
    "Streams",
    "UIMessageStore",
    "UIPage",
    "load_all_ui_messages",
    "load_ui_json",
    "load_ui_messages",
    "parse_chat_request",
    "take_in",
]
