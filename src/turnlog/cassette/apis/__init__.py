"""The wire forms that a cassette is played in: one module an API, found by the end of a request's path."""

from __future__ import annotations

from turnlog.cassette.apis import anthropic, gemini, openai_chat, responses
from turnlog.cassette.apis.base import Api

_APIS: tuple[tuple[str, Api], ...] = (
    ("/messages", anthropic),
    ("/chat/completions", openai_chat),
    ("/responses", responses),
    (":generateContent", gemini),
    (":streamGenerateContent", gemini),
)
"""How paths end -> the API."""


def api_of(path: str) -> Api | None:
    """The API that a path belongs to; None for any other address."""
    return next((api for ending, api in _APIS if path.endswith(ending)), None)


__all__ = ["Api", "api_of"]
