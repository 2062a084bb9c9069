"""OpenRouter: Chat Completions for the models of many providers."""

from turnlog.providers.openrouter.request import to_request
from turnlog.providers.openrouter.response import from_response
from turnlog.providers.openrouter.stream import open_stream, read_stream

name = "openrouter"

__all__ = ["from_response", "name", "open_stream", "read_stream", "to_request"]
