"""What a provider says when it refuses a request: for the server's log, without keys, and never for a page."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from threading import BoundedSemaphore, Thread
from typing import Any, Final, cast
from urllib.parse import unquote_plus, urlsplit

from turnlog import paths
from turnlog.plain_text import one_line

MOST_BYTES: Final = 65_536
"""Of a body that are looked at. Secrets are replaced in all of it, so that none is cut in two before it is found."""

_MOST_CHARACTERS: Final = 4096
"""Of a body in the log: a provider says why in a sentence or two, a proxy on a whole page."""

_SECONDS: Final = 5.0
"""How long the body of a refusal is waited for."""

_MOST_READS: Final = 16
"""Bodies that are waited for at once."""

_SHORTEST_KEY: Final = 8

_reads = BoundedSemaphore(_MOST_READS)


async def refusal_text(error: Exception) -> str | None:
    """The body of the response that is in an exception of an HTTP client; None if there is none.

    That of urllib is the response itself. Those of httpx, requests and the providers' packages have it in `response`: a
    streamed one has a body only if it was read before the exception was raised.
    """
    try:
        body = await asyncio.wait_for(_read(error), _SECONDS)
    except TimeoutError:
        return None
    return None if not body else shown(body, _keys_of(error))


def shown(body: str | bytes, keys: Iterable[str] = ()) -> str:
    """What a provider sent, for the log: its beginning in one line, without secrets."""
    text = body if isinstance(body, str) else body.decode(errors="replace")
    return one_line(without_keys(text, keys), _MOST_CHARACTERS)


def without_keys(text: str, keys: Iterable[str] = ()) -> str:
    """The text without these keys, those of the environment, and all that looks like a secret."""
    from turnlog.redact import mask_text

    for key in (*_keys_of_environment(), *keys):
        text = text.replace(key, "[a key]")
    return mask_text(text)


def hide_keys(error: BaseException) -> None:
    """Take keys out of what an exception says, and what led to it: its log has the address, which may have a key."""
    keys = list(_keys_of(error))
    for each in _chain(error):
        args = tuple([without_keys(arg, keys) if isinstance(arg, str) else arg for arg in each.args])
        if args != each.args:
            with suppress(AttributeError):  # A class of the caller's may not let them be set.
                each.args = args


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An exception, and those that led to it."""
    seen = set[int]()
    each: BaseException | None = error
    while each is not None and id(each) not in seen:
        seen.add(id(each))
        yield each
        each = each.__cause__ or each.__context__


def _read(error: Exception) -> asyncio.Future[str | bytes | None]:
    """The body, from a thread of its own.

    A body that never comes holds up its thread for as long as the client waits. The threads of `asyncio.to_thread` are
    few, and tools and requests need them.
    """
    loop = asyncio.get_running_loop()
    found: asyncio.Future[str | bytes | None] = loop.create_future()

    def put(body: str | bytes | None) -> None:
        if not found.done():
            found.set_result(body)

    def read() -> None:
        try:
            body = _body_of(error)
        except Exception:  # A client's own error, as for a body that was not read: the request's error is what counts.
            body = None
        finally:
            _reads.release()
        with suppress(RuntimeError):  # The loop may have ended meanwhile.
            loop.call_soon_threadsafe(put, body)

    if _reads.acquire(blocking=False):
        Thread(target=read, name="turnlog-refusal", daemon=True).start()
    else:
        found.set_result(None)
    return found


def _body_of(error: Exception) -> str | bytes | None:
    response = getattr(error, "response", None)
    if response is not None:
        text = getattr(response, "text", None)
        return _cut(text, len(text)) if isinstance(text, str) else None
    # urllib: looked at without taking it away from who handles the exception later.
    file = getattr(error, "fp", None)
    peek = getattr(file, "peek", None)
    if not callable(peek):
        return None
    body = cast("bytes", peek(MOST_BYTES))
    return _cut(body.decode(errors="replace"), cast("int | None", getattr(file, "length", None)), len(body))


def _cut(text: str, whole: int | None, found: int | None = None) -> str:
    """The beginning of a text, without the word in which it may have been cut: a piece of a key is not known as one."""
    if len(text) <= MOST_BYTES and whole == (len(text) if found is None else found):
        return text
    return _LAST_WORD.sub("…", text[:MOST_BYTES])


_LAST_WORD: Final = re.compile(r"[^\s\"'<>,;]*\Z")


def _keys_of(error: BaseException) -> Iterator[str]:
    """The keys with which a request was sent, as far as exceptions know it: in headers, or in the address."""
    for each in _chain(error):
        request = _attribute(each, "request") or _attribute(_attribute(each, "response"), "request")
        headers = _attribute(request, "headers")
        if isinstance(headers, Mapping):
            yield from _secret_values(cast("Mapping[str, str]", headers))
        address = str(_attribute(request, "url") or _attribute(each, "url") or "")
        for written in urlsplit(address).query.split("&"):
            name, _, value = written.partition("=")
            # In the message as it is written, and decoded where a provider repeats it.
            yield from _secret_values({name: value})
            yield from _secret_values({name: unquote_plus(value)})


def _attribute(value: object, name: str) -> Any:
    """None too where it cannot be had: httpx raises RuntimeError for a request that was never set."""
    try:
        return getattr(value, name, None)
    except Exception:
        return None


def _keys_of_environment() -> Iterator[str]:
    return _secret_values(paths.variables())


def _secret_values(values: Mapping[str, str]) -> Iterator[str]:
    from turnlog.redact.names import secret_name

    for name, value in values.items():
        key = str(value).rpartition(" ")[2]  # behind `Bearer`
        is_secret = name.lower() in _NAMES_OF_KEYS or secret_name(name) is not None
        if len(key) >= _SHORTEST_KEY and is_secret:
            yield key


_NAMES_OF_KEYS: Final = frozenset({"authorization", "key"})
"""Of headers and parameters; Gemini's address has `?key=`."""
