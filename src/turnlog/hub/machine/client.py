"""Speaks to the hub: requests with the machine's token, compressed, tried again where that helps."""

from __future__ import annotations

import http.client
import json
import re
import socket
import ssl
import time
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Required, Self, TypedDict, TypeVar, cast
from urllib.parse import quote, urlsplit

from turnlog import __version__
from turnlog.errors import ConflictError, NotFoundError, StoreBusyError, StoreError, TurnlogError
from turnlog.hub.sync.wire import SHAPE_HEADER, content_digest
from turnlog.store import zstd
from turnlog.store.feed.values import SHAPE, ArchivedBytes, ArchivedSizes, FeedBatch, FeedPosition

if TYPE_CHECKING:
    from turnlog.hub.budgets import TeamBudget
    from turnlog.hub.readers import SharedSessions

_T = TypeVar("_T")

SECONDS_TO_ANSWER: Final = 120

SECONDS_TO_TRY: Final = 60
"""How long a request is tried again where the hub is busy."""

_LONGEST_WAIT: Final = 10.0

_MOMENT: Final = 2.0
"""Seconds that a request may wait without a word."""

_JSON: Final = "application/json"
_BYTES: Final = "application/octet-stream"

_AGAIN: Final = frozenset({429, 502, 503, 504})

_NO_HUB: Final = frozenset({404, 405, 501})
"""A hub gives every machine a code. `turnlog serve` has pages below every address, which take no POST."""

_NOBODY_THERE: Final = (ConnectionRefusedError, socket.gaierror)

_CLOSED: Final = (ConnectionResetError, ConnectionAbortedError, BrokenPipeError, http.client.IncompleteRead)

_REASONS: Final[dict[type[Exception] | tuple[type[Exception], ...], str]] = {
    ConnectionRefusedError: "nothing answers there",
    socket.gaierror: "its name is not known, or names cannot be looked up now",
    TimeoutError: "it does not answer in time",
    _CLOSED: "it closed the connection before it had answered",
    http.client.HTTPException: "what answers does not speak HTTP",
    ssl.SSLError: "what answers does not speak https",
}
"""Why there is no answer, in place of the system's words."""


class HubUnreachableError(StoreError):
    """No hub answers now."""


class NotAHubError(StoreError):
    """Something answers that is no hub, such as `turnlog serve`."""


class HubRefusedError(StoreError):
    """The hub does not take it: status, and what it says."""

    def __init__(self, status: int, message: str) -> None:
        """Keep the status of the answer."""
        super().__init__(f"the hub refuses ({status}): {message}")
        self.status = status


class BehindError(ConflictError):
    """The hub is somewhere else in the feed than this machine believed."""

    def __init__(self, position: FeedPosition, generation: int) -> None:
        """Keep where it is."""
        super().__init__("the hub is somewhere else in the feed")
        self.position = position
        self.generation = generation


class Progress(NamedTuple):
    """How far a hub has taken a store."""

    position: FeedPosition
    generation: int
    ids_secret: str
    """What ids are hashed with at the level `metrics`; empty of a hub of an earlier version."""


class Accepted(NamedTuple):
    """What the hub says of a batch."""

    position: FeedPosition
    refused: tuple[str, ...]


class PushedSessions(NamedTuple):
    """Ids of the sessions of a person on the hub, without subagents."""

    with_logs: list[str]
    others: list[str]
    """Those of which the hub has no log file."""


class _Answer(NamedTuple):
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    def json(self) -> Any:
        return self.read(cast("type[object]", Any))

    def read(self, kind: type[_T]) -> _T:
        """The JSON of the answer, as values of a type. Raises StoreError for anything else."""
        import msgspec

        try:
            return msgspec.json.decode(self.body, type=kind)
        except msgspec.ValidationError as error:
            raise StoreError(f"the hub answers with something else than was asked for: {error}") from error
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise StoreError("the hub answers with something that is no JSON") from error


class DeviceCode(TypedDict, total=False):
    """A code that a person enters in a browser, so that a machine may join."""

    user_code: Required[str]
    verification_uri: Required[str]
    device_code: Required[str]
    interval: float
    """Seconds between two questions whether somebody has said yes."""
    expires_in: float
    """Seconds."""


class _Progress(TypedDict):
    position: FeedPosition
    generation: int


class _Position(_Progress, total=False):
    ids_secret: str


class _Taken(TypedDict):
    position: FeedPosition
    refused: list[str]


class _Needed(TypedDict, total=False):
    absence: list[str]
    copies: list[str]
    messages: list[str]


class _Missing(TypedDict):
    missing: list[str]


class _Logs(TypedDict, total=False):
    sessions: Required[list[str]]
    others: list[str]
    """An older hub does not name them."""


class _Person(TypedDict, total=False):
    name: str | None


class _Me(TypedDict, total=False):
    user: _Person | None
    machine_name: str | None


class HubClient:
    """A hub at a URL. One thread at a time uses it."""

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        seconds: float = SECONDS_TO_TRY,
        sleep: Callable[[float], object] = time.sleep,
        announce: Callable[[str], object] = lambda _: None,
    ) -> None:
        """`seconds` is how long a request is tried again while the hub is busy or away.

        Where nothing listens at first, or no machine has the name, it is not tried again: the address may be wrong.
        `announce` gets a sentence when a request waits for longer than a moment: for each cause once.

        Raises TurnlogError for a URL that is none, or that would send the token where others can read it.
        """
        parts = urlsplit(url.rstrip("/"))
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise TurnlogError(f"{url} is no address of a hub; one looks like this: https://hub.example")
        if parts.scheme == "http" and not _is_local(parts.hostname):
            raise TurnlogError(f"{url} would send the token in the open: use https")
        self.url = parts.geturl()
        self._parts = parts
        self._token = token
        self._seconds = seconds
        self._sleep = sleep
        self._announce = announce
        self._announced: set[str] = set()
        """Causes of waiting that were said."""
        self._connection: http.client.HTTPConnection | None = None
        self._has_answered = False

    def __enter__(self) -> Self:
        """The client itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    # -- joining

    def begin_device(self, machine: str, platform: str) -> DeviceCode:
        """Ask for a code that a person enters in a browser. Raises NotAHubError if something else answers."""
        body = json.dumps({"machine": machine, "platform": platform}).encode()
        answer = self._request("POST", "/hub/v1/device", body, kind=_JSON)
        if answer.status in _NO_HUB:
            raise NotAHubError(f"{self.url} is not a hub ({answer.status}): a hub is run with `turnlog hub serve`")
        begun = self._checked(answer).read(dict[str, Any])
        if not DeviceCode.__required_keys__ <= begun.keys():
            raise NotAHubError(f"{self.url} is not a hub: a hub is run with `turnlog hub serve`")
        return answer.read(DeviceCode)

    def poll_device(self, device_code: str) -> dict[str, Any] | str:
        """The token, or why there is none (yet): `authorization_pending`, `slow_down` and so on."""
        answer = self._request(
            "POST", "/hub/v1/device/token", json.dumps({"device_code": device_code}).encode(), kind=_JSON
        )
        body = answer.read(dict[str, Any])
        if answer.status == 200:
            if lacking := {"access_token", "team", "user", "machine"} - body.keys():
                raise StoreError(f"the hub answers without {', '.join(sorted(lacking))}")
            return body
        error = body.get("error")
        if answer.status == 400 and isinstance(error, str):
            return error
        raise HubRefusedError(answer.status, _message(answer))

    # -- pushing

    def position(self, store: str) -> Progress:
        """How far a store was taken, and in which generation."""
        body = self._ask("GET", f"/hub/v1/position?store={quote(store)}").read(_Position)
        return Progress(body["position"], body["generation"], body.get("ids_secret", ""))

    def push(self, store: str, packed: bytes) -> Accepted:
        """Send what `pack` makes. Raises BehindError if the hub is elsewhere, MoreNeededError if it needs more."""
        answer = self._request("POST", f"/hub/v1/batches?store={quote(store)}", packed, packed=True)
        if answer.status == 409:
            # Reads bodies, for which it imports much: most commands ask a hub for something else.
            from turnlog.store.feed.copies import AbsenceNeededError, CopiesNeededError, MessagesNeededError

            said = answer.read(dict[str, Any])
            for error in (AbsenceNeededError, CopiesNeededError, MessagesNeededError):
                if error.needed in said:
                    raise error(answer.read(_Needed).get(error.needed, ()))
            known = answer.read(_Progress)
            raise BehindError(known["position"], known["generation"])
        taken = self._checked(answer).read(_Taken)
        return Accepted(taken["position"], tuple(taken["refused"]))

    def archived_sizes(self, paths: list[str]) -> ArchivedSizes:
        """How much of the bytes of files the hub has."""
        return self._ask("POST", "/hub/v1/archives/sizes", paths).read(ArchivedSizes)

    def push_archived(self, archived: list[ArchivedBytes]) -> None:
        """Send bytes of files."""
        import msgspec

        self._checked(self._request("POST", "/hub/v1/archives", msgspec.msgpack.encode(archived)))

    def missing_blobs(self) -> list[str]:
        """Hashes of large contents that the hub lacks."""
        found: list[str] = []
        while page := self._missing_after(found[-1] if found else ""):
            if found and page[0] <= found[-1]:  # an older hub answers with the first ones again
                break
            found += page
        return found

    def _missing_after(self, sha256: str) -> list[str]:
        after = {"after": sha256} if sha256 else {}
        return self._ask("POST", "/hub/v1/blobs/missing", after).read(_Missing)["missing"]

    def push_blob(self, sha256: str, data: bytes) -> None:
        """Send a large content."""
        packed = zstd.compress(data)
        smaller = len(packed) < len(data)
        self._checked(self._request("PUT", f"/hub/v1/blobs/{sha256}", packed if smaller else data, packed=smaller))

    def pushed_sessions(self) -> PushedSessions:
        """The sessions of this person that the hub has."""
        body = self._ask("GET", "/hub/v1/logs").read(_Logs)
        return PushedSessions(body["sessions"], body.get("others", []))

    def logs(self, session_id: str) -> bytes:
        """The log files of a session, as a tar in zstd."""
        return self._checked(self._request("GET", f"/hub/v1/sessions/{quote(session_id)}/logs")).body

    def get(self, path: str) -> Any:
        """What the hub answers at an address, as JSON. Raises NotFoundError, HubRefusedError."""
        return self._ask("GET", path).json()

    def me(self) -> tuple[str, str]:
        """Names of this machine's person and of the machine; empty where the hub says none."""
        body = self._ask("GET", "/hub/v1/me").read(_Me)
        user = body.get("user") or _Person()
        return user.get("name") or "", body.get("machine_name") or ""

    def budgets(self) -> list[TeamBudget]:
        """Budgets that concern this person; none of a hub that knows no budgets yet."""
        from turnlog.hub.budgets import Budgets

        answer = self._request("GET", "/hub/v1/budgets")
        if answer.status in _NO_HUB:
            return []
        return self._checked(answer).read(Budgets).items

    def shared_sessions(self) -> SharedSessions | None:
        """The sessions of this person that others may read; None of a hub that does not say it."""
        from turnlog.hub.readers import SharedSessions

        answer = self._request("GET", "/hub/v1/shared")
        if answer.status in _NO_HUB:
            return None
        return self._checked(answer).read(SharedSessions)

    # -- requests

    def _ask(self, method: str, path: str, value: Any = None) -> _Answer:
        body = None if value is None else json.dumps(value).encode()
        return self._checked(self._request(method, path, body, kind=_JSON))

    def _checked(self, answer: _Answer) -> _Answer:
        if answer.status == 404:
            raise NotFoundError(_message(answer))
        if answer.status == 401:
            reason = f"this machine was removed there, or its token has ended: turnlog hub connect {self.url}"
            raise HubRefusedError(answer.status, reason)
        if answer.status >= 300:
            raise HubRefusedError(answer.status, _message(answer))
        return answer

    def _request(
        self, method: str, path: str, body: bytes | None = None, *, packed: bool = False, kind: str = _BYTES
    ) -> _Answer:
        """Ask, and ask again while the hub is busy or away. Raises HubUnreachableError, or StoreBusyError at last."""
        until, wait = time.monotonic() + self._seconds, 0.5
        said: StoreBusyError | None = None
        while True:
            retry_after: float | None = None
            try:
                answer = self._once(method, path, body, packed=packed, kind=kind)
                self._has_answered = True
                if answer.status not in _AGAIN:
                    return answer
                retry_after = _seconds(answer.headers.get("Retry-After"))
                failure: TurnlogError = StoreBusyError(f"the hub {self.url} cannot do this now: {_message(answer)}")
                said = failure
            except (OSError, http.client.HTTPException) as error:
                self.close()
                failure = HubUnreachableError(f"cannot reach the hub {self.url}: {_reason(error)}")
                if isinstance(error, _NOBODY_THERE) and not self._has_answered:
                    raise failure from error
                # A hub that refuses a body may close before it has it: what it said before is the reason.
                if said is not None and isinstance(error, _CLOSED):
                    failure = said
            wait = min(wait * 2, _LONGEST_WAIT)
            pause = wait if retry_after is None else min(retry_after, _LONGEST_WAIT * 3)
            left = until - time.monotonic()
            if pause > left:
                raise failure
            if self._seconds - left + pause > _MOMENT:
                self._announce_once(str(failure), left)
            # The hub would close it meanwhile, and what it says next time would not be heard.
            self.close()
            self._sleep(pause)

    def _announce_once(self, reason: str, seconds: float) -> None:
        # `wait 3 seconds` and `wait 2 seconds` are one cause.
        cause = re.sub(r"\d+", "", reason)
        if cause not in self._announced:
            self._announced.add(cause)
            self._announce(f"{reason}; tried again for {seconds:.0f} seconds")

    def _once(self, method: str, path: str, body: bytes | None, *, packed: bool, kind: str) -> _Answer:
        if self._connection is None:
            self._connection = self._connect()
        headers = {"User-Agent": f"turnlog/{__version__}", "Accept-Encoding": "identity", SHAPE_HEADER: str(SHAPE)}
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        if body is not None:
            headers |= {"Content-Type": kind, "Content-Digest": content_digest(body)}
        if packed:
            headers["Content-Encoding"] = "zstd"
        connection = self._connection
        try:
            connection.request(method, f"{self._parts.path}{path}", body, headers)
        except (BrokenPipeError, ConnectionResetError):
            # A hub that does not want a body may answer, and close, before it has all of it.
            with suppress(OSError, http.client.HTTPException):
                return _read_answer(connection)
            raise
        return _read_answer(connection)

    def _connect(self) -> http.client.HTTPConnection:
        host, port = self._parts.hostname or "", self._parts.port
        if self._parts.scheme == "https":
            context = ssl.create_default_context()
            return http.client.HTTPSConnection(host, port, timeout=SECONDS_TO_ANSWER, context=context)
        return http.client.HTTPConnection(host, port, timeout=SECONDS_TO_ANSWER)


def pack(batch: FeedBatch) -> bytes:
    """A batch as it is sent."""
    from turnlog.store.feed import taking

    return zstd.compress(taking.encode(batch))


def _is_local(host: str) -> bool:
    return host in ("localhost", "::1") or host.startswith("127.")


def _message(answer: _Answer) -> str:
    try:
        error = json.loads(answer.body)["error"]
        return str(error if isinstance(error, str) else error["message"])[:500]
    except (ValueError, KeyError, TypeError, RecursionError):
        return http.client.responses.get(answer.status, "no reason")


def _seconds(value: str | None) -> float | None:
    try:
        return None if value is None else max(0.0, float(value))
    except ValueError:
        return None


def _reason(error: Exception) -> str:
    """Why there is no answer, without the numbers of the system."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not accepted: {error.verify_message}"
    found = next((reason for kind, reason in _REASONS.items() if isinstance(error, kind)), None)
    return found or getattr(error, "strerror", None) or type(error).__name__


def _read_answer(connection: http.client.HTTPConnection) -> _Answer:
    response = connection.getresponse()
    return _Answer(response.status, response.headers, response.read())
