"""OpenAI Chat Completions, and the dialects of DeepSeek, Kimi, MiniMax and Qwen."""

from turnlog.providers.openai_chat.request import to_request
from turnlog.providers.openai_chat.response import from_response
from turnlog.providers.openai_chat.stream import open_stream, read_stream

name = "openai-chat"

__all__ = ["from_response", "name", "open_stream", "read_stream", "to_request"]
