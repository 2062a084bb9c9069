"""What a provider says when it refuses a request: for the server's log, without keys, and never for a page."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from turnlog import paths
from turnlog.plain_text import one_line

MOST_BYTES: Final = 4096
"""Of a body: a provider says why in a sentence or two, a proxy on a whole page."""

_SECONDS: Final = 5.0
"""How long the body of a refusal is waited for."""

_SHORTEST_KEY: Final = 8


async def refusal_text(error: Exception) -> str | None:
    """The body of the response that is in an exception of an HTTP client; None if there is none.

    That of urllib is the response itself. Those of httpx, requests and the providers' packages have it in `response`: a
    streamed one has a body only if it was read before the exception was raised.
    """
    try:
        # What is not there yet is waited for, which must not hold up other chats.
        body = await asyncio.wait_for(asyncio.to_thread(_body_of, error), _SECONDS)
    except Exception:  # A client's own error, as for a body that was not read: the request's error is what counts.
        return None
    return None if not body else shown(body, _keys_of(error))


def shown(body: str | bytes, keys: Iterator[str] | None = None) -> str:
    """What a provider sent, for the log: its beginning in one line, without secrets."""
    from turnlog.redact import mask_text

    text = body if isinstance(body, str) else body.decode(errors="replace")
    for key in (*_keys_of_environment(), *(keys or ())):
        text = text.replace(key, "[a key]")
    return one_line(mask_text(text), MOST_BYTES)


def _body_of(error: Exception) -> str | bytes | None:
    response = getattr(error, "response", None)
    if response is not None:
        text = getattr(response, "text", None)
        return text[:MOST_BYTES] if isinstance(text, str) else None
    # urllib: looked at without taking it away from who handles the exception later.
    peek = getattr(getattr(error, "fp", None), "peek", None)
    return cast("bytes", peek(MOST_BYTES))[:MOST_BYTES] if callable(peek) else None


def _keys_of(error: Exception) -> Iterator[str]:
    """The keys with which a request was sent, as far as its exception knows it."""
    request = getattr(error, "request", None) or getattr(getattr(error, "response", None), "request", None)
    headers: Any = getattr(request, "headers", None)
    return _secret_values(cast("Mapping[str, str]", headers)) if isinstance(headers, Mapping) else iter(())


def _keys_of_environment() -> Iterator[str]:
    return _secret_values(paths.variables())


def _secret_values(values: Mapping[str, str]) -> Iterator[str]:
    from turnlog.redact.names import secret_name

    for name, value in values.items():
        key = str(value).rpartition(" ")[2]  # behind `Bearer`
        if len(key) >= _SHORTEST_KEY and (name.lower() == "authorization" or secret_name(name) is not None):
            yield key
