"""Chats that a coding agent answers: its command runs as a process, without a shell, and its stream is the answer."""

from turnlog.chat.runtimes.claude_code import ClaudeCodeCommand
from turnlog.chat.runtimes.codex import CodexCommand
from turnlog.chat.runtimes.codex_server import CodexServerCommand
from turnlog.chat.runtimes.command import AgentCommand, AgentStream, SessionPoint
from turnlog.chat.runtimes.runtime import AgentRuntime

__all__ = [
    "AgentCommand",
    "AgentRuntime",
    "AgentStream",
    "ClaudeCodeCommand",
    "CodexCommand",
    "CodexServerCommand",
    "SessionPoint",
]
