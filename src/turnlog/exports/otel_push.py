"""Traces of sessions to a receiver, over OTLP/HTTP: in batches, and again where it is busy or away."""

from __future__ import annotations

import gzip
import json
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import suppress
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from importlib import import_module
from socket import SHUT_RDWR, gaierror, socket
from typing import Any, Final, NamedTuple
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPHandler, HTTPRedirectHandler, HTTPSHandler, Request, build_opener

import msgspec

import turnlog
from turnlog.errors import TurnlogError
from turnlog.exports.formats import grouped
from turnlog.exports.source import ExportSource
from turnlog.formats.otel import OtelConversation, omitted, resource_spans, to_protobuf
from turnlog.store.base import Store

BATCH: Final = 1_000
"""Spans of a request."""

LARGEST: Final = 4 << 20
"""Bytes of JSON in a request, before they are compressed; one span alone may have more."""

TRIES: Final = 5

_TIMEOUT: Final = 30
"""Seconds without a byte."""

_LONGEST_TRY: Final = 60
"""Seconds until an answer is whole: one that comes a byte at a time is never late."""

_LONGEST_WAIT: Final = 60
"""Seconds before another try, whatever the receiver says."""

_LONGEST: Final = 300
"""Seconds after which a request is not tried again."""

_LARGEST_ANSWER: Final = 1 << 20
"""Bytes of an answer that are read."""

_ADDRESS: Final = re.compile(r"[!-~]+")
_NAME: Final = re.compile(r"[!-9;-~]+")
_VALUE: Final = re.compile(r"[\t -~\x80-\xff]*")

_AGAIN: Final = frozenset(
    {
        HTTPStatus.TOO_MANY_REQUESTS,
        HTTPStatus.BAD_GATEWAY,
        HTTPStatus.SERVICE_UNAVAILABLE,
        HTTPStatus.GATEWAY_TIMEOUT,
    }
)
"""Answers after which OTLP lets a sender try again."""


class RefusedError(TurnlogError):
    """A receiver does not take a request, and would not take it later."""

    def __init__(self, reason: str, status: int = 0) -> None:
        """Keep the answer's status."""
        super().__init__(reason)
        self.status = status


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

    def check(self) -> None:
        """Raise TurnlogError for what HTTP cannot send, ImportError for the binary form without its extra."""
        _, has_name, place = self.endpoint.rpartition("@")
        # What is before the @ may be a password.
        shown = f"…@{place}" if has_name else self.endpoint
        if self.endpoint.partition("://")[0].lower() not in ("http", "https"):
            raise TurnlogError(f"{shown} does not begin with http:// or https://")
        if not _is_address(self.endpoint):
            more = ": a name and a password go into a header" if has_name else ""
            raise TurnlogError(f"{shown} is no address of a receiver, such as http://localhost:6006{more}")
        for name, value in self.headers.items():
            # The value may be a secret.
            if not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
                raise TurnlogError(f"a header {name!r} with this value cannot be sent")
        if not self.as_json:
            import_module("opentelemetry.proto.collector.trace.v1.trace_service_pb2")


def _is_address(endpoint: str) -> bool:
    """Whether HTTP can send there. A name and a password in an address are not sent: a header has them."""
    try:
        parts = urlsplit(endpoint)
        # What sockets do with a name: it refuses one with an empty part, or a part of more than 63 characters.
        name = (parts.hostname or "").encode("idna")
        return bool(name) and parts.port != 0 and parts.username is None and bool(_ADDRESS.fullmatch(endpoint))
    except ValueError:
        return False


class Pushed(NamedTuple):
    """What was sent."""

    sessions: int
    spans: int
    requests: int
    rejected: int
    """Spans that the receiver refused, as it said."""
    losses: tuple[str, ...] = ()
    """What the traces have no place for: a line a kind."""


class _NoRedirect(HTTPRedirectHandler):
    """A redirected POST would become a GET, whose success says nothing."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


class _Opener:
    """Opens requests, each with an end.

    A timeout of sockets begins anew with every byte and with every address of a name, and there is none while a name is
    looked up.
    """

    def __init__(self) -> None:
        self._sockets: list[socket] = []
        self._is_over = False
        keeping = self._keeping

        class Http(HTTPHandler):
            def do_open(self, http_class: Any, req: Request, **arguments: Any) -> Any:
                return super().do_open(keeping(http_class), req, **arguments)

        class Https(HTTPSHandler):
            def do_open(self, http_class: Any, req: Request, **arguments: Any) -> Any:
                return super().do_open(keeping(http_class), req, **arguments)

        self._opener = build_opener(_NoRedirect, Http, Https)

    def answer(self, request: Request, seconds: float) -> bytes:
        """The beginning of an answer. Raises TimeoutError where it is not whole in time, and what `urllib` raises.

        To be called once: a request that is late is never sent after that.
        """
        end = time.monotonic() + seconds
        asked: Future[bytes] = Future()
        # In a thread of its own, since nothing ends a look-up of a name but the system. It ends with the process.
        threading.Thread(target=self._ask, args=(request, end, asked), daemon=True, name="otel request").start()
        try:
            return asked.result(seconds)
        except HTTPError:
            raise
        except (OSError, HTTPException) as error:
            if time.monotonic() < end:
                raise
            raise self._late(seconds) from error
        finally:
            # What is raised holds this frame, and the future what is raised.
            del asked

    def _ask(self, request: Request, end: float, asked: Future[bytes]) -> None:
        try:
            with self._opener.open(request, timeout=_TIMEOUT) as answer:
                asked.set_result(_beginning(answer, end))
        except BaseException as error:  # it is raised where the answer is waited for
            asked.set_exception(error)
        finally:
            del asked

    def _keeping(self, http_class: Any) -> Callable[..., HTTPConnection]:
        """Connections whose sockets are kept here, and which send nothing once it is too late."""

        def made(*arguments: Any, **named: Any) -> HTTPConnection:
            connection: HTTPConnection = http_class(*arguments, **named)
            connect = connection.connect

            def connect_in_time() -> None:
                connect()
                self._sockets.append(connection.sock)
                if self._is_over:
                    connection.close()
                    raise TimeoutError

            # urllib makes it, connects and closes it; only this is between connecting and sending.
            vars(connection)["connect"] = connect_in_time
            return connection

        return made

    def _late(self, seconds: float) -> TimeoutError:
        """Break off what is under way."""
        self._is_over = True
        for found in self._sockets:
            with suppress(OSError):
                # Not the method of TLS, which is not to be called while another thread reads.
                socket.shutdown(found, SHUT_RDWR)
        what = "its answer was not whole" if self._sockets else "there was no connection"
        return TimeoutError(f"{what} after {seconds:.0f} seconds")


def _beginning(answer: Any, end: float) -> bytes:
    found, piece = bytearray(), b"_"
    while piece and len(found) < _LARGEST_ANSWER:
        # Before the first piece too: headers that were broken off look whole.
        if time.monotonic() >= end:
            raise TimeoutError
        piece = answer.read1(_LARGEST_ANSWER - len(found))
        found += piece
    return bytes(found)


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
        TurnlogError: The receiver refused a request, did not take it after five tries or five minutes, or nothing
            listens there.
            What was sent before stays.
        ImportError: The binary form without the extra `otel`.
    """
    receiver.check()
    sessions = spans = requests = rejected = 0
    left: dict[tuple[str, str], None] = {}

    def counted() -> Iterator[str]:
        nonlocal sessions
        for session_id in session_ids:
            sessions += 1
            yield session_id

    for batch, count in batches(_resources(store, counted(), left, content=content)):
        # Before the first answer the address may be wrong, and whoever has typed it waits.
        rejected += send(receiver, batch, sleep, needs_listener=not requests)
        spans += count
        requests += 1
    return Pushed(sessions, spans, requests, rejected, tuple(grouped(left)))


def _resources(
    store: Store, session_ids: Iterable[str], left: dict[tuple[str, str], None], *, content: bool
) -> Iterator[dict[str, Any]]:
    """The spans of sessions; `left` gets what they have no place for, once each."""
    for session_id in session_ids:
        source = ExportSource(store, session_id, redact=content, content=content)
        conversations = [OtelConversation(each.session, each.priced()) for each in source.with_subagents()]
        left.update(dict.fromkeys(omitted(conversations, content=content)))
        yield from resource_spans(conversations, source.root_id(), turnlog.__version__, content=content)


def batches(resources: Iterable[dict[str, Any]]) -> Iterator[tuple[bytes, int]]:
    """Requests of at most `BATCH` spans and `LARGEST` bytes, in OTLP's JSON, and how many spans each has."""
    batch: list[dict[str, Any]] = []
    count = size = 0
    for resource in resources:
        (scope,) = resource["scopeSpans"]
        taken: list[msgspec.Raw] = []
        for span in map(msgspec.json.encode, scope["spans"]):
            if count == BATCH or (count and size + len(span) > LARGEST):
                yield _request([*batch, _part(resource, taken)]), count
                batch, taken, count, size = [], [], 0, 0
            taken.append(msgspec.Raw(span))
            count, size = count + 1, size + len(span)
        batch.append(_part(resource, taken))
    if count:
        yield _request(batch), count


def _part(resource: dict[str, Any], spans: list[msgspec.Raw]) -> dict[str, Any]:
    (scope,) = resource["scopeSpans"]
    return resource | {"scopeSpans": [scope | {"spans": spans}]}


def _request(resources: list[dict[str, Any]]) -> bytes:
    return msgspec.json.encode({"resourceSpans": [each for each in resources if each["scopeSpans"][0]["spans"]]})


def send(receiver: Receiver, document: bytes, sleep: Callable[[float], None], *, needs_listener: bool = False) -> int:
    """Send a request, in OTLP's JSON, until it is taken; the number of spans that were rejected.

    Raises RefusedError, or TurnlogError after five tries or five minutes; with `needs_listener`, at once where nothing
    listens.
    """
    body = gzip.compress(document if receiver.as_json else to_protobuf(document), 5)
    kind = "application/json" if receiver.as_json else "application/x-protobuf"
    headers = {**receiver.headers, "Content-Type": kind, "Content-Encoding": "gzip"}
    end = time.monotonic() + _LONGEST
    for attempt in range(1, TRIES + 1):
        # Made again each time: an opener changes it.
        request = Request(receiver.url, data=body, headers=headers)
        wait = float(2 ** (attempt - 1))
        try:
            answer = _Opener().answer(request, _LONGEST_TRY)
            return _rejected(answer, as_json=receiver.as_json)
        except HTTPError as error:
            error.close()
            if error.code not in _AGAIN:
                raise RefusedError(f"{receiver.url} answered {error.code} {error.reason}", error.code) from error
            wait = _asked_wait(error, wait)
            if attempt == TRIES or time.monotonic() + wait > end:
                raise TurnlogError(f"{receiver.url} answered {error.code} {error.reason}") from error
        except HTTPException as error:
            raise TurnlogError(f"{receiver.url} does not answer as HTTP does: {type(error).__name__}") from error
        except (URLError, OSError) as error:
            reason = error.reason if isinstance(error, URLError) else error
            is_last = attempt == TRIES or time.monotonic() + wait > end
            if is_last or (needs_listener and isinstance(reason, (ConnectionRefusedError, gaierror))):
                raise TurnlogError(f"{receiver.url} does not answer: {reason}") from error
        sleep(wait)
    raise AssertionError("the last try returns or raises")


def _asked_wait(error: HTTPError, otherwise: float) -> float:
    wanted = error.headers.get("Retry-After", "")
    return min(float(wanted), _LONGEST_WAIT) if wanted.isdecimal() else otherwise


def _rejected(answer: bytes, *, as_json: bool) -> int:
    """How many spans were rejected; none where the answer cannot be read, because the request was taken."""
    try:
        if as_json:
            return int(json.loads(answer)["partialSuccess"]["rejectedSpans"])
        return _rejected_in_binary(answer)
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return 0


def _rejected_in_binary(answer: bytes) -> int:
    from google.protobuf.message import DecodeError
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

    try:
        return ExportTraceServiceResponse.FromString(answer).partial_success.rejected_spans
    except DecodeError:
        return 0
