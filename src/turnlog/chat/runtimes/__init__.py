"""The runtimes that answer chats: coding agents, models, Open Harness.

A coding agent's command runs as a process, without a shell, and what it prints is the answer (`AgentRuntime`). Names
are imported on first use, so that a model behind a chat needs nothing of the agents and their logs.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from turnlog.chat.runtimes.agent import AgentRuntime
    from turnlog.chat.runtimes.claude_code import ClaudeCodeCommand
    from turnlog.chat.runtimes.codex import CodexCommand, CodexServerCommand
    from turnlog.chat.runtimes.command import AgentCommand, AgentStream, SessionPoint
    from turnlog.chat.runtimes.langchain import LangChainRuntime
    from turnlog.chat.runtimes.open_harness import OpenHarnessRuntime, OpenHarnessTransport, TransportOptions
    from turnlog.chat.runtimes.openai_agents import OpenAIAgentsRuntime
    from turnlog.chat.runtimes.provider import ProviderRuntime, Tool
    from turnlog.chat.runtimes.pydantic_ai import PydanticAIRuntime

__all__ = [
    "AgentCommand",
    "AgentRuntime",
    "AgentStream",
    "ClaudeCodeCommand",
    "CodexCommand",
    "CodexServerCommand",
    "LangChainRuntime",
    "OpenAIAgentsRuntime",
    "OpenHarnessRuntime",
    "OpenHarnessTransport",
    "ProviderRuntime",
    "PydanticAIRuntime",
    "SessionPoint",
    "Tool",
    "TransportOptions",
]

_MODULES = {
    "AgentCommand": "command",
    "AgentRuntime": "agent",
    "AgentStream": "command",
    "ClaudeCodeCommand": "claude_code",
    "CodexCommand": "codex",
    "CodexServerCommand": "codex",
    "LangChainRuntime": "langchain",
    "OpenAIAgentsRuntime": "openai_agents",
    "OpenHarnessRuntime": "open_harness",
    "OpenHarnessTransport": "open_harness",
    "ProviderRuntime": "provider",
    "PydanticAIRuntime": "pydantic_ai",
    "SessionPoint": "command",
    "Tool": "provider",
    "TransportOptions": "open_harness",
}


_EXTRAS = {
    "LangChainRuntime": "pip install 'turnlog[langchain]'",
    "OpenAIAgentsRuntime": "pip install 'turnlog[openai-agents]'",
    "PydanticAIRuntime": "pip install 'turnlog[pydantic-ai]'",
}
"""What brings the frameworks of these runtimes."""


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
    except ModuleNotFoundError as error:
        if name not in _EXTRAS or (error.name or "turnlog").startswith("turnlog"):
            raise
        raise ImportError(f"{name} needs more packages: {_EXTRAS[name]}", name=error.name) from error
