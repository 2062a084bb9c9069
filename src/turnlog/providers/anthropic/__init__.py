"""Anthropic Messages API, and servers that speak it."""

from turnlog.providers.anthropic.request import to_request
from turnlog.providers.anthropic.response import from_response
from turnlog.providers.anthropic.stream import open_stream, read_stream

name = "anthropic"

__all__ = ["from_response", "name", "open_stream", "read_stream", "to_request"]
