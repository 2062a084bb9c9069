"""Traces of sessions to a receiver, over OTLP/HTTP: in batches, and again where it is busy or away."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from http import HTTPStatus
from typing import Any, Final, NamedTuple
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

import turnlog
from turnlog.errors import TurnlogError
from turnlog.exports.source import ExportSource
from turnlog.formats.otel import OtelConversation, resource_spans, to_protobuf
from turnlog.store.base import Store

BATCH: Final = 1_000
"""Spans of a request."""

TRIES: Final = 5

_TIMEOUT: Final = 30
_LONGEST_WAIT: Final = 60

_AGAIN: Final = frozenset(
    {
        HTTPStatus.TOO_MANY_REQUESTS,
        HTTPStatus.BAD_GATEWAY,
        HTTPStatus.SERVICE_UNAVAILABLE,
        HTTPStatus.GATEWAY_TIMEOUT,
    }
)
"""Answers after which OTLP lets a sender try again."""


class Receiver(NamedTuple):
    """Where traces go, and how."""

    endpoint: str
    headers: Mapping[str, str]
    as_json: bool
    """In OTLP's JSON; else in its binary form, which needs the extra `otel`."""

    @property
    def url(self) -> str:
        """The address of traces: the endpoint itself if it names that, or its path for traces."""
        whole = self.endpoint.rstrip("/")
        return whole if urlsplit(whole).path.endswith("/v1/traces") else f"{whole}/v1/traces"


class Pushed(NamedTuple):
    """What was sent."""

    sessions: int
    spans: int
    requests: int
    rejected: int
    """Spans that the receiver refused, as it said."""


class _NoRedirect(HTTPRedirectHandler):
    """A redirected POST would become a GET, whose success says nothing."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def push(
    store: Store,
    session_ids: Iterable[str],
    receiver: Receiver,
    *,
    content: bool = False,
    sleep: Callable[[float], None] = time.sleep,
) -> Pushed:
    """Send the traces of sessions, their subagents' included.

    Args:
        store: Where they are.
        session_ids: Sessions that no other started.
        receiver: Where they go.
        content: Whether prompts, answers, inputs and outputs go too, without secrets.
        sleep: Waits so many seconds before another try.

    Raises:
        TurnlogError: The receiver refused a request, or did not take it after five tries. What was sent before stays.
        ImportError: The binary form without the extra `otel`.
    """
    if urlsplit(receiver.endpoint).scheme not in ("http", "https"):
        raise TurnlogError(f"{receiver.endpoint} is no address of HTTP")
    sessions = spans = requests = rejected = 0

    def counted() -> Iterator[str]:
        nonlocal sessions
        for session_id in session_ids:
            sessions += 1
            yield session_id

    for batch, count in _batches(_resources(store, counted(), content=content)):
        rejected += _send(receiver, json.dumps({"resourceSpans": batch}).encode(), sleep)
        spans += count
        requests += 1
    return Pushed(sessions, spans, requests, rejected)


def _resources(store: Store, session_ids: Iterable[str], *, content: bool) -> Iterator[dict[str, Any]]:
    for session_id in session_ids:
        source = ExportSource(store, session_id, redact=content, content=content)
        said = [OtelConversation(each.session, each.priced()) for each in source.with_subagents()]
        yield from resource_spans(said, source.root_id(), turnlog.__version__, content=content)


def _batches(resources: Iterable[dict[str, Any]]) -> Iterator[tuple[list[dict[str, Any]], int]]:
    """Requests of at most `BATCH` spans, and how many each has."""
    batch: list[dict[str, Any]] = []
    count = 0
    for resource in resources:
        (scope,) = resource["scopeSpans"]
        left: list[dict[str, Any]] = scope["spans"]
        while left:
            taken, left = left[: BATCH - count], left[BATCH - count :]
            batch.append(resource | {"scopeSpans": [scope | {"spans": taken}]})
            count += len(taken)
            if count == BATCH:
                yield batch, count
                batch, count = [], 0
    if batch:
        yield batch, count


def _send(receiver: Receiver, document: bytes, sleep: Callable[[float], None]) -> int:
    """Send a request until it is taken; the number of spans that were rejected."""
    body = document if receiver.as_json else to_protobuf(document)
    kind = "application/json" if receiver.as_json else "application/x-protobuf"
    opener = build_opener(_NoRedirect)
    for attempt in range(1, TRIES + 1):
        # Made again each time: an opener changes it.
        request = Request(receiver.url, data=body, headers={**receiver.headers, "Content-Type": kind})
        wait = float(2 ** (attempt - 1))
        try:
            with opener.open(request, timeout=_TIMEOUT) as answer:
                return _rejected(answer.read(), as_json=receiver.as_json)
        except HTTPError as error:
            if error.code not in _AGAIN or attempt == TRIES:
                raise TurnlogError(f"{receiver.url} answered {error.code} {error.reason}") from error
            wait = _asked_wait(error, wait)
        except (URLError, OSError) as error:
            if attempt == TRIES:
                reason = error.reason if isinstance(error, URLError) else error
                raise TurnlogError(f"{receiver.url} does not answer: {reason}") from error
        sleep(wait)
    raise AssertionError("the last try returns or raises")


def _asked_wait(error: HTTPError, otherwise: float) -> float:
    asked = error.headers.get("Retry-After", "")
    return min(float(asked), _LONGEST_WAIT) if asked.isdecimal() else otherwise


def _rejected(answer: bytes, *, as_json: bool) -> int:
    """How many spans were rejected; none where the answer cannot be read, because the request was taken."""
    try:
        if as_json:
            return int(json.loads(answer)["partialSuccess"]["rejectedSpans"])
        return _rejected_in_binary(answer)
    except (ValueError, KeyError, TypeError):
        return 0


def _rejected_in_binary(answer: bytes) -> int:
    from google.protobuf.message import DecodeError
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

    try:
        return ExportTraceServiceResponse.FromString(answer).partial_success.rejected_spans
    except DecodeError:
        return 0
