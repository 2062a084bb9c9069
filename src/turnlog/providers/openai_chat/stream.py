"""The stream of a response of Chat Completions, of OpenAI or a compatible server."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from turnlog.providers.openai_chat.chunks import ChunkAssembler
from turnlog.providers.openai_chat.response import PROVIDER, from_response
from turnlog.providers.streaming import ResponseStream, StreamReading


def open_stream(*, requested_model: str | None = None) -> ResponseStream:
    """A response that is fed as it comes."""
    return ResponseStream(ChunkAssembler(PROVIDER), lambda body: from_response(body, requested_model=requested_model))


def read_stream(pieces: Iterable[bytes | Mapping[str, Any]], *, requested_model: str | None = None) -> StreamReading:
    """The events of a response stream, then its message."""
    return StreamReading(open_stream(requested_model=requested_model), pieces)
