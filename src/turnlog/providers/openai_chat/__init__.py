"""OpenAI Chat Completions, and the dialects of DeepSeek, Kimi, MiniMax and Qwen."""

from turnlog.providers.openai_chat.request import to_request

name = "openai-chat"

__all__ = ["name", "to_request"]
