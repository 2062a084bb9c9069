"""OpenAI Responses."""

from turnlog.providers.openai_responses.request import to_request
from turnlog.providers.openai_responses.response import from_response
from turnlog.providers.openai_responses.stream import open_stream, read_stream

name = "responses"

__all__ = ["from_response", "name", "open_stream", "read_stream", "to_request"]
