"""Google Gemini."""

from turnlog.providers.google.request import to_request
from turnlog.providers.google.response import from_response
from turnlog.providers.google.stream import open_stream, read_stream

name = "gemini"

__all__ = ["from_response", "name", "open_stream", "read_stream", "to_request"]
