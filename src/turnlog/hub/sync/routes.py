"""The API of machines below `/hub/v1`: how far a store was taken, batches, large contents, log files."""

from __future__ import annotations

import io
import tarfile
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial, wraps
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from turnlog import __version__
from turnlog.errors import ConflictError, NotFoundError, StoreBusyError, StoreError
from turnlog.hub.blobs import NO_BLOBS, BlobStore, BlobStoreError
from turnlog.hub.callers import Caller, require_scope
from turnlog.hub.people.rules import HighestLevel, is_above
from turnlog.hub.sync.admission import SendingMachine, admit, placed
from turnlog.hub.sync.columns import check_json
from turnlog.hub.sync.decoding import (
    MOST_UNPACKED,
    TooLargeError,
    WrongBatchError,
    decode_archived,
    decode_batch,
    unpack,
)
from turnlog.hub.sync.receiving import Load, Share, receive
from turnlog.hub.sync.wire import LARGEST_CONTENT, MISSING_LOGS, SHAPE_HEADER
from turnlog.store import zstd
from turnlog.store.feed import taking
from turnlog.store.feed.copies import MoreNeededError
from turnlog.store.feed.owners import Owner
from turnlog.store.feed.values import SHAPE, FeedBatch
from turnlog.store.postgres.connection import TeamConnection, WrongRowsError
from turnlog.store.postgres.logs import NOT_YET, OUTSIDE, SessionLogs
from turnlog.store.postgres.store import PostgresStore

MOST_MISSING: Final = 500
"""Large contents that one answer asks for."""

_Endpoint: TypeAlias = Callable[[Request], Awaitable[Response]]


class Sync:
    """What the routes work with: `app.state.sync`."""

    def __init__(
        self,
        writing: Callable[[Caller], PostgresStore],
        reading: Callable[[Caller], PostgresStore],
        machine_name: Callable[[Caller], str],
        blobs: BlobStore | None = None,
        load: Load | None = None,
        *,
        highest_level: Callable[[Caller], HighestLevel] = lambda caller: "full",
        note: Callable[[TeamConnection, taking.Taken, SendingMachine], None] = lambda connection, taken, machine: None,
    ) -> None:
        """Keep what opens stores.

        Args:
            writing: The store of the caller's team, to write to.
            reading: The store of the caller's team as the caller may see it.
            machine_name: What the caller's machine is called.
            blobs: Where large contents are; None for the database.
            load: How much may be under way.
            highest_level: The upload level above which the caller's team takes nothing.
            note: Writes, in the transaction of a batch, which sessions a machine has deleted.
        """
        self.writing = writing
        self.reading = reading
        self.machine_name = machine_name
        self.blobs = blobs
        self.load = load or Load()
        self.highest_level = highest_level
        self.note = note


def routes() -> list[Route]:
    """All routes, without the prefix."""
    table: tuple[tuple[str, str, _Endpoint], ...] = (
        ("GET", "/position", _position),
        ("POST", "/batches", _batch),
        ("POST", "/archives", _archive),
        ("POST", "/archives/sizes", _archive_sizes),
        ("POST", "/blobs/missing", _missing_blobs),
        ("PUT", "/blobs/{sha256}", _put_blob),
        ("GET", "/blobs/{sha256}", _get_blob),
        ("GET", "/logs", _sessions_with_logs),
        ("GET", "/sessions/{session_id:path}/logs", _logs),
    )
    return [Route(path, _with_errors(endpoint), methods=[method]) for method, path, endpoint in table]


def _with_errors(endpoint: _Endpoint) -> _Endpoint:
    """Errors as answers: one shape, and nothing of the rows in them that others could read."""

    @wraps(endpoint)
    async def answer(request: Request) -> Response:
        try:
            return await endpoint(request)
        except HTTPException as error:
            return _error(error.status_code, error.detail, error.headers)
        except ClientDisconnect:
            return _error(400, "the connection ended before the body did")
        except TooLargeError as error:
            return _error(413, str(error))
        except MoreNeededError as error:
            problem = {"type": f"{error.needed}_needed", "message": str(error)}
            return _json({"error": problem, error.needed: error.session_ids}, 409)
        except ConflictError as error:
            store, caller = request.query_params.get("store", ""), require_scope(request, "push")
            return await _conflict(_sync(request).writing(caller), store, caller, str(error))
        except NotFoundError as error:
            return _error(404, str(error))
        except StoreBusyError as error:
            return _error(503, str(error), {"Retry-After": "2"})
        except WrongRowsError:
            # What the database says may have values of the row.
            return _error(422, "a row is not as the tables have it")
        except BlobStoreError:
            return _error(503, NO_BLOBS, {"Retry-After": "5"})
        except StoreError:
            return _error(503, "the database cannot be used just now", {"Retry-After": "5"})
        except (WrongBatchError, msgspec.ValidationError, msgspec.DecodeError, ValueError) as error:
            return _error(422, str(error)[:500])

    return answer


def _error(status: int, message: str, headers: Any = None) -> Response:
    return _json({"error": {"type": _TYPES.get(status, "error"), "message": message}}, status, headers)


_TYPES: Final = {
    400: "cut_off",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    409: "conflict",
    413: "too_large",
    415: "unsupported",
    422: "invalid",
    426: "other_version",
    429: "too_many_requests",
    503: "unavailable",
}


def _json(value: Any, status: int = 200, headers: Any = None) -> Response:
    return Response(msgspec.json.encode(value), status, headers, "application/json")


async def _conflict(store: PostgresStore, name: str, caller: Caller, message: str) -> Response:
    position, generation = await run_in_threadpool(store.feed_progress, _feed(caller, name))
    error = {"type": "conflict", "message": message}
    return _json({"error": error, "position": position, "generation": generation}, 409)


def _sync(request: Request) -> Sync:
    return request.app.state.sync


def _machine(request: Request, caller: Caller) -> SendingMachine:
    name = _sync(request).machine_name(caller)
    return SendingMachine(Owner(caller.user, caller.machine or "browser"), name)


def _feed(caller: Caller, store: str) -> str:
    """The name of a machine's store: nobody names that of somebody else."""
    if not 1 <= len(store) <= 100:
        raise HTTPException(422, "`store` is the id of a store, with at most 100 characters")
    return f"{caller.user}/{store}"


def _check_shape(request: Request) -> None:
    """Raise a 426 for a machine whose batches have another shape than this hub takes."""
    shape = request.headers.get(SHAPE_HEADER, str(SHAPE))
    if shape == str(SHAPE):
        return
    is_older = shape.isdigit() and int(shape) < SHAPE
    message = (
        f"this machine has an older turnlog than the hub ({__version__}): upgrade it"
        if is_older
        else f"the hub ({__version__}) is older than this machine's turnlog: upgrade the hub"
    )
    raise HTTPException(
        426, f"{message}; nothing was sent, and nothing is lost", {"Upgrade": f"{SHAPE_HEADER}/{SHAPE}"}
    )


async def _position(request: Request) -> Response:
    caller = require_scope(request, "push")
    _check_shape(request)
    store = _sync(request).writing(caller)
    position, generation = await run_in_threadpool(
        store.feed_progress, _feed(caller, request.query_params.get("store", ""))
    )
    secret = await run_in_threadpool(store.ids_secret, caller.user)
    return _json({"position": position, "generation": generation, "ids_secret": secret})


async def _batch(request: Request) -> Response:
    caller = require_scope(request, "push")
    _check_shape(request)
    sync, feed = _sync(request), _feed(caller, request.query_params.get("store", ""))
    store, machine = sync.writing(caller), _machine(request, caller)
    highest = await run_in_threadpool(sync.highest_level, caller)
    with sync.load.of(f"{caller.team}/{feed}") as share:
        data = await receive(request, share)
        # In a thread: decoding would keep everybody else waiting.
        return await run_in_threadpool(
            _write_batch, sync, store, feed, machine, share, data, request.headers.get("content-encoding"), highest
        )


def _write_batch(
    sync: Sync,
    store: PostgresStore,
    feed: str,
    machine: SendingMachine,
    share: Share,
    data: bytes,
    encoding: str | None,
    highest: HighestLevel,
) -> Response:
    try:
        batch = decode_batch(_plain(data, encoding, share), share.add)
    except (TooLargeError, WrongBatchError) as error:
        # Raised further, it would keep what was unpacked in memory for longer.
        return _error(413 if isinstance(error, TooLargeError) else 422, str(error)[:500])
    _check_levels(batch, highest)

    def note(connection: TeamConnection, taken: taking.Taken) -> None:
        sync.note(connection, taken, machine)

    taken = store.take(feed, admit(batch, machine), machine.owner, note=note, check_body=check_json)
    blobs = sync.blobs
    if blobs is not None and (batch.forgotten or batch.withdrawn):
        # Not a reason to fail: the rows are gone, and the bytes follow with the next batch of this kind.
        with suppress(StoreError):
            store.drop_garbage(partial(blobs.delete, store.team))
    return _json(
        {
            "position": batch.until,
            "generation": batch.generation,
            "stored_as": taken.stored_as,
            "refused": [],  # older machines ask for it
        }
    )


def _plain(data: bytes, encoding: str | None, share: Share, most: int = MOST_UNPACKED) -> bytes | bytearray:
    """A body without its `Content-Encoding`. Raises a 415 for one that is not taken."""
    if encoding in (None, "", "identity"):
        return data
    if encoding != "zstd":
        raise HTTPException(415, "send a body as it is, or with Content-Encoding: zstd")
    return unpack(data, share.add, most)


def _check_levels(batch: FeedBatch, highest: HighestLevel) -> None:
    """Raise a 403 for a session of a higher level than the team takes."""
    sent = {*batch.levels.values(), *(batch.levels.get(row[0], "full") for row in batch.rows.get("sessions", ()))}
    if any(is_above(level, highest) for level in sent):
        message = f"this team takes sessions at the level {highest} at most: turnlog hub level PROJECT {highest}"
        raise HTTPException(403, message)


async def _archive(request: Request) -> Response:
    caller = require_scope(request, "push")
    sync, machine = _sync(request), _machine(request, caller)
    store = sync.writing(caller)
    with sync.load.of(f"{caller.team}/{machine.owner.machine}/archive") as share:
        data = await receive(request, share)

        def write() -> Response:
            archived = decode_archived(_plain(data, request.headers.get("content-encoding"), share), share.add)
            store.take_archived([msgspec.structs.replace(each, path=placed(each.path, machine)) for each in archived])
            return _json({})

        return await run_in_threadpool(write)


async def _archive_sizes(request: Request) -> Response:
    caller = require_scope(request, "push")
    sync, machine = _sync(request), _machine(request, caller)
    with sync.load.of(f"{caller.team}/{machine.owner.machine}/sizes") as share:
        paths = msgspec.json.decode(await receive(request, share, 1 << 20), type=list[str])
    mine = {placed(path, machine): path for path in paths}
    found = await run_in_threadpool(sync.writing(caller).archived_sizes, list(mine))
    return _json({"ends": {mine[path]: end for path, end in found.ends.items()}})


class _After(msgspec.Struct):
    """Which missing contents are asked for."""

    after: str = ""
    """Those with a SHA-256 behind this one."""


async def _missing_blobs(request: Request) -> Response:
    caller = require_scope(request, "push")
    sync = _sync(request)
    with sync.load.of(f"{caller.team}/{caller.user}/missing") as share:
        after = msgspec.json.decode(await receive(request, share, 1024) or b"{}", type=_After).after
    if after:
        _check_hash(after)
    ask = partial(sync.writing(caller).missing_blobs, Owner(caller.user), MOST_MISSING, after)
    missing = await run_in_threadpool(ask)
    return _json({"missing": [sha256 for sha256, _ in missing]})


async def _put_blob(request: Request) -> Response:
    caller = require_scope(request, "push")
    sync, sha256 = _sync(request), request.path_params["sha256"]
    _check_hash(sha256)
    store, owner = sync.writing(caller), Owner(caller.user)
    size = await run_in_threadpool(store.claimed_size, owner, sha256)
    if size > LARGEST_CONTENT:
        raise TooLargeError(f"a large content has at most {LARGEST_CONTENT} bytes")
    with sync.load.of(f"{caller.team}/{caller.user}/{sha256}") as share:
        packed = await receive(request, share, min(size + 1024, LARGEST_CONTENT))

        def write() -> Response:
            data = bytes(_plain(packed, request.headers.get("content-encoding"), share, size))
            blobs = sync.blobs
            keep = None if blobs is None else partial(blobs.put, caller.team_key, sha256)
            store.save_blob(owner, sha256, data, keep)
            return Response(status_code=204)

        return await run_in_threadpool(write)


async def _get_blob(request: Request) -> Response:
    caller = require_scope(request, "read")
    sync, sha256 = _sync(request), request.path_params["sha256"]
    _check_hash(sha256)
    content = await run_in_threadpool(sync.reading(caller).blob, sha256)
    headers = {"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "sandbox"}
    return Response(content.data, headers=headers, media_type="application/octet-stream")


def _check_hash(sha256: str) -> None:
    if len(sha256) != 64 or set(sha256) - set("0123456789abcdef"):
        raise HTTPException(422, "a SHA-256 has 64 hexadecimal digits in lower case")


async def _sessions_with_logs(request: Request) -> Response:
    caller = require_scope(request, "read")
    pushed = await run_in_threadpool(_sync(request).reading(caller).pushed_sessions, Owner(caller.user))
    ids: dict[bool, list[str]] = {True: [], False: []}
    for session_id, has_logs in pushed.items():
        ids[has_logs].append(session_id)
    return _json({"sessions": ids[True], "others": ids[False]})


async def _logs(request: Request) -> Response:
    caller = require_scope(request, "read")
    store, session_id = _sync(request).reading(caller), request.path_params["session_id"]
    data = await run_in_threadpool(_archive_of, store, session_id)
    return Response(data, media_type="application/zstd")


def _archive_of(store: PostgresStore, session_id: str) -> bytes:
    """The log files of a session and its subagents as a tar, laid out like the agent's home.

    A header of the tar names those of which the hub has not every byte. Raises NotFoundError if it has none whole.
    """
    session = store.session(session_id)
    level = store.upload_level(session.id)
    with tempfile.TemporaryDirectory(prefix="turnlog-logs-") as folder:
        try:
            logs = store.session_logs(session.id, Path(folder))
        except NotFoundError:
            if level in (None, "full"):
                raise
            logs = SessionLogs(0, ())
        if not logs.written:
            raise NotFoundError(_none_of(session.id, level, logs))
        packed = io.BytesIO()
        headers = {MISSING_LOGS: msgspec.json.encode(logs.missing).decode()} if logs.missing else {}
        with tarfile.open(fileobj=packed, mode="w", pax_headers=headers) as archive:
            for path in sorted(Path(folder).rglob("*")):
                if path.is_file():
                    archive.add(path, path.relative_to(folder).as_posix(), recursive=False)
        return zstd.compress(packed.getvalue())


def _none_of(session_id: str, level: str | None, logs: SessionLogs) -> str:
    """Why no log file of a session is here."""
    pushes = "On the machine that has them, `turnlog hub"
    reasons = {each.reason for each in logs.missing}
    if reasons == {OUTSIDE}:
        return f"the log files of {session_id} cannot be given: each {OUTSIDE}"
    if reasons - {OUTSIDE} == {NOT_YET}:
        return f"the log files of {session_id} have not arrived on the hub yet. {pushes} push` sends them"
    why = f"its upload level is {level}" if level not in (None, "full") else "they were pushed below the level full"
    return (
        f"the log files of {session_id} are not on the hub: {why}. {pushes} level PROJECT full` and"
        " `turnlog hub push` send them"
    )
