"""Chats that a coding agent answers: its command runs as a process, without a shell, and its stream is the answer."""

from turnlog.chat.runtimes.claude_code import ClaudeCodeCommand
from turnlog.chat.runtimes.codex import CodexCommand
from turnlog.chat.runtimes.runtime import AgentCommand, AgentRuntime, AgentStream, SessionPoint

__all__ = ["AgentCommand", "AgentRuntime", "AgentStream", "ClaudeCodeCommand", "CodexCommand", "SessionPoint"]
