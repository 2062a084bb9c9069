"""Chats: a backend for `useChat` pages, resumable streams, and stored sessions as UI messages.

`Chat` combines a runtime, a keeper and streams; its routes are in `turnlog.chat.http` and `turnlog.chat.fastapi`.
Messages and chunks are those of `turnlog.aisdk`. Only `turnlog.chat.runtimes` knows agents. What a backend needs of
other packages can be imported from here too. Names are imported on first use, since some need packages that are not
installed with turnlog.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from turnlog.aisdk import encode
    from turnlog.aisdk.parts import DynamicToolUIPart, FileUIPart, TextUIPart, ToolUIPart, UIMessage
    from turnlog.chat.endpoint import Chat, FinishedAnswer
    from turnlog.chat.fastapi import chat_endpoint, ui_messages_endpoint
    from turnlog.chat.http import ChatApp
    from turnlog.chat.keepers import (
        ChatDirectory,
        ChatKeeper,
        ChatPage,
        MemoryKeeper,
        NativeKeeper,
        StoredChat,
        session_id_of,
    )
    from turnlog.chat.loading import UIMessageStore, UIPage, load_all_ui_messages, load_ui_json, load_ui_messages
    from turnlog.chat.requests import AnswerPlan, ChatRequest, parse_chat_request, plan_answer
    from turnlog.chat.runtime import AnswerFunction, FunctionRuntime, Listeners, RunRequest, Runtime
    from turnlog.chat.runtimes.langchain import LangChainRuntime as LangChainRuntime
    from turnlog.chat.runtimes.open_harness import OpenHarnessRuntime, TransportOptions
    from turnlog.chat.runtimes.openai_agents import OpenAIAgentsRuntime as OpenAIAgentsRuntime
    from turnlog.chat.runtimes.provider import Limits, LossReport, ProviderRuntime, Retry, Tool, keep_turns
    from turnlog.chat.runtimes.pydantic_ai import PydanticAIRuntime as PydanticAIRuntime
    from turnlog.chat.stream_stores import (
        MemoryStreamStore,
        RedisStreamStore,
        SqliteStreamStore,
        StoredFrames,
        StreamStore,
    )
    from turnlog.chat.streams import Streams
    from turnlog.chat.tail import Tail, open_tail
    from turnlog.chat.ui_http import UIMessagesApp
    from turnlog.model import Message, Ownership, TextPart, ToolCallPart, ToolResult, Usage
    from turnlog.model.codec import to_json
    from turnlog.model.stream import (
        Abort,
        ApprovalRequest,
        ApprovalResponse,
        DataEvent,
        FileEvent,
        Pause,
        ReasoningDelta,
        ReasoningEnd,
        ReasoningStart,
        RunFinish,
        RunStart,
        SourceEvent,
        StepFinish,
        StepStart,
        StreamError,
        StreamEvent,
        TextDelta,
        TextEnd,
        TextStart,
        ToolInputAvailable,
        ToolInputDelta,
        ToolInputStart,
        ToolOutput,
    )
    from turnlog.providers.base import RequestOptions

# Runtimes of optional frameworks are not in it: `import *` would need all of them.
__all__ = [
    "Abort",
    "AnswerFunction",
    "AnswerPlan",
    "ApprovalRequest",
    "ApprovalResponse",
    "Chat",
    "ChatApp",
    "ChatDirectory",
    "ChatKeeper",
    "ChatPage",
    "ChatRequest",
    "DataEvent",
    "DynamicToolUIPart",
    "FileEvent",
    "FileUIPart",
    "FinishedAnswer",
    "FunctionRuntime",
    "Limits",
    "Listeners",
    "LossReport",
    "MemoryKeeper",
    "MemoryStreamStore",
    "Message",
    "NativeKeeper",
    "OpenHarnessRuntime",
    "Ownership",
    "Pause",
    "ProviderRuntime",
    "ReasoningDelta",
    "ReasoningEnd",
    "ReasoningStart",
    "RedisStreamStore",
    "RequestOptions",
    "Retry",
    "RunFinish",
    "RunRequest",
    "RunStart",
    "Runtime",
    "SourceEvent",
    "SqliteStreamStore",
    "StepFinish",
    "StepStart",
    "StoredChat",
    "StoredFrames",
    "StreamError",
    "StreamEvent",
    "StreamStore",
    "Streams",
    "Tail",
    "TextDelta",
    "TextEnd",
    "TextPart",
    "TextStart",
    "TextUIPart",
    "Tool",
    "ToolCallPart",
    "ToolInputAvailable",
    "ToolInputDelta",
    "ToolInputStart",
    "ToolOutput",
    "ToolResult",
    "ToolUIPart",
    "TransportOptions",
    "UIMessage",
    "UIMessageStore",
    "UIMessagesApp",
    "UIPage",
    "Usage",
    "chat_endpoint",
    "encode",
    "keep_turns",
    "load_all_ui_messages",
    "load_ui_json",
    "load_ui_messages",
    "open_tail",
    "parse_chat_request",
    "plan_answer",
    "session_id_of",
    "to_json",
    "ui_messages_endpoint",
]

_HOMES = {
    "turnlog.aisdk": ("encode",),
    "turnlog.aisdk.parts": (
        "DynamicToolUIPart",
        "FileUIPart",
        "TextUIPart",
        "ToolUIPart",
        "UIMessage",
    ),
    "turnlog.chat.endpoint": (
        "Chat",
        "FinishedAnswer",
    ),
    "turnlog.chat.fastapi": ("chat_endpoint", "ui_messages_endpoint"),
    "turnlog.chat.http": ("ChatApp",),
    "turnlog.chat.keepers": (
        "ChatDirectory",
        "ChatKeeper",
        "ChatPage",
        "MemoryKeeper",
        "NativeKeeper",
        "StoredChat",
        "session_id_of",
    ),
    "turnlog.chat.loading": (
        "UIMessageStore",
        "UIPage",
        "load_all_ui_messages",
        "load_ui_json",
        "load_ui_messages",
    ),
    "turnlog.chat.requests": (
        "AnswerPlan",
        "ChatRequest",
        "parse_chat_request",
        "plan_answer",
    ),
    "turnlog.chat.runtime": (
        "AnswerFunction",
        "FunctionRuntime",
        "Listeners",
        "RunRequest",
        "Runtime",
    ),
    # Which says what to install where their frameworks are missing.
    "turnlog.chat.runtimes": ("LangChainRuntime", "OpenAIAgentsRuntime", "PydanticAIRuntime"),
    "turnlog.chat.runtimes.open_harness": (
        "OpenHarnessRuntime",
        "TransportOptions",
    ),
    "turnlog.chat.runtimes.provider": (
        "Limits",
        "LossReport",
        "ProviderRuntime",
        "Retry",
        "Tool",
        "keep_turns",
    ),
    "turnlog.chat.stream_stores": (
        "MemoryStreamStore",
        "RedisStreamStore",
        "SqliteStreamStore",
        "StoredFrames",
        "StreamStore",
    ),
    "turnlog.chat.streams": ("Streams",),
    "turnlog.chat.tail": (
        "Tail",
        "open_tail",
    ),
    "turnlog.chat.ui_http": ("UIMessagesApp",),
    "turnlog.model": (
        "Message",
        "Ownership",
        "TextPart",
        "ToolCallPart",
        "ToolResult",
        "Usage",
    ),
    "turnlog.model.codec": ("to_json",),
    "turnlog.model.stream": (
        "Abort",
        "ApprovalRequest",
        "ApprovalResponse",
        "DataEvent",
        "FileEvent",
        "Pause",
        "ReasoningDelta",
        "ReasoningEnd",
        "ReasoningStart",
        "RunFinish",
        "RunStart",
        "SourceEvent",
        "StepFinish",
        "StepStart",
        "StreamError",
        "StreamEvent",
        "TextDelta",
        "TextEnd",
        "TextStart",
        "ToolInputAvailable",
        "ToolInputDelta",
        "ToolInputStart",
        "ToolOutput",
    ),
    "turnlog.providers.base": ("RequestOptions",),
}
"""Where the public names are defined."""

_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
