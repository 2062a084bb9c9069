"""OpenAI Chat Completions, and the dialects of DeepSeek, Kimi, MiniMax and Qwen."""

from functools import partial

from turnlog.providers.base import Provider
from turnlog.providers.openai_chat.request import to_request
from turnlog.providers.openai_chat.response import SERVED_BY, ChunkAssembler, from_response

PROVIDER = Provider(
    name="openai-chat", to_request=to_request, from_response=from_response, assembler=partial(ChunkAssembler, SERVED_BY)
)
