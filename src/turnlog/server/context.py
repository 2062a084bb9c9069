"""What all routes share: the store, the sync state, and functions that write response bodies.

A window consists of frames that were compressed when they were stored. A client that accepts zstd gets them
concatenated; for all others they are decompressed, and compressed with gzip if the client accepts that.
"""

from __future__ import annotations

import re
import secrets
import threading
import zlib
from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar

import msgspec
from fastapi import Depends, Request
from starlette.datastructures import Headers
from starlette.responses import Response

from turnlog import __version__
from turnlog.errors import NotFoundError, StoreError
from turnlog.model import Ownership, Session
from turnlog.server import Settings
from turnlog.server.access import SignIn
from turnlog.server.background import PassProgress
from turnlog.server.health import KeptCheck
from turnlog.server.hooks import HookReader
from turnlog.server.items import SessionItems
from turnlog.server.live import POLL_SECONDS, LiveTopics
from turnlog.server.prompts import Prompts
from turnlog.server.reports import SyncProgress
from turnlog.store.base import Store
from turnlog.store.disk import why_not_written
from turnlog.store.dollars import to_json_number
from turnlog.store.search.searcher import Searcher
from turnlog.store.values import StoreCounts
from turnlog.store.window import FrameWindow


class Context:
    """A store and settings, shared by requests that may see the same."""

    is_hub: ClassVar[bool] = False
    """Whether the store is one of several people."""

    def __init__(
        self,
        store: Store,
        searcher: Searcher,
        settings: Settings,
        progress: PassProgress,
        prompts: Prompts | None = None,
        *,
        poll_seconds: float = POLL_SECONDS,
    ) -> None:
        """Keep them; store and searcher are closed with `close`. `poll_seconds` is that of `LiveTopics`."""
        self.store = store
        self.searcher = searcher
        self.settings = settings
        self.prompts = prompts
        self.items = SessionItems(store, self.prompts, are_here=not self.is_hub)
        self.live_topics = LiveTopics(store, self.items, poll_seconds)
        self.read_next: Callable[[str], bool] = lambda session_id: False
        """Has a session read before all others while a sync runs; returns whether it is in the store now."""
        self._progress = progress
        self._lock = threading.Lock()
        self._counts: tuple[int, StoreCounts] | None = None
        self._counted_at = 0
        # Another store at the same address must have another ETag.
        self._run = f"{__version__}-{secrets.token_hex(4)}"

    def claim(self, session_id: str) -> None:
        """Called before a session is created or changed by its program's id: on a hub, it may be another person's."""

    def require_own(self, session_id: str) -> None:
        """Called before a session is changed: on a hub, only its owner may.

        Raises NotFoundError for a session that is not shown to the caller, a 403 for one that is another's.
        """

    def ownership(self, given: Ownership | None) -> Ownership | None:
        """Whose a session becomes for which a program says this: on a hub, its caller's. None changes nothing."""
        return given

    def owners(self, session_ids: Collection[str]) -> Mapping[str, str]:
        """Session -> id of the person whose it is, on a hub."""
        return {}

    @property
    def user(self) -> str | None:
        """Who asks, on a hub; None where everything is one person's."""
        return None

    def require_own_task(self, task_id: str) -> None:
        """Called before a task is changed: on a hub, only who created it may, or who has sessions in it.

        Raises NotFoundError for a task that is not shown to the caller, a 403 for one that is another's.
        """

    def require_project(self, path: str) -> None:
        """Called before a project is changed for everybody: on a hub, only an admin may who sees it.

        Raises a 403, or NotFoundError for a project that is not shown to the caller.
        """

    def session(self, session_id: str) -> Session:
        """A session. One that no sync has reached yet is read first. Raises NotFoundError."""
        try:
            return self.store.session(session_id)
        except NotFoundError:
            if not self.read_next(session_id):
                raise
            return self.store.session(session_id)

    def etag(self) -> str:
        """The ETag of the store, which is equal as long as nothing in the store changed."""
        return f'W/"{self._run}-{self.change_sequence()}"'

    def not_modified(self, headers: Headers, etag: str, session_id: str) -> Response | None:
        """304 if the client has a session at this ETag, otherwise None.

        Raises NotFoundError where the caller may read it no longer, although nothing else has changed.
        """
        known = not_modified(headers, etag)
        if known is not None:
            self.store.session(session_id)
        return known

    def change_sequence(self) -> int:
        """The number of the last change of the store."""
        return self.store.last_change()

    def version(self) -> int:
        """A number that is another one after every change of what is answered. It is not sent."""
        return self.change_sequence()

    def unindexed(self) -> int | None:
        """Number of messages that are not searchable yet; None if the index cannot be read."""
        try:
            return self.searcher.unindexed()
        except StoreError:
            # The index is disposable, and the next sync rebuilds it: the status must not fail because of it.
            return None

    def unwritable(self) -> str | None:
        """Why the store cannot be written now; None if it can, and on a hub, which has `/readyz`."""
        return None

    def close(self) -> None:
        """Close what was opened for the requests."""
        if self.prompts is not None:
            self.prompts.close()
        self.live_topics.close()
        self.searcher.close()
        self.store.close()

    def sync(self) -> SyncProgress:
        """The progress of the background sync."""
        return self._progress.current()

    def counts(self) -> tuple[int, StoreCounts]:
        """The change sequence and the store's counts, counted again only after a change."""
        version = self.version()
        with self._lock:
            if self._counts is None or self._counted_at != version:
                status = self.store.status()
                counts = {name: getattr(status, name) for name in StoreCounts.__struct_fields__}
                self._counts = (status.change_sequence, StoreCounts(**counts))
                self._counted_at = version
            return self._counts


class LocalContext(Context):
    """What the application of one user has besides: the agents' hooks, and links that sign browsers in."""

    def __init__(
        self, store: Store, searcher: Searcher, settings: Settings, progress: PassProgress, store_path: Path
    ) -> None:
        """Keep them; store and searcher are closed with `close`."""
        prompts = Prompts(store_path, self._touch) if settings.prompts else None
        super().__init__(store, searcher, settings, progress, prompts)
        folder = settings.folder or store_path.absolute().parent
        # Agents' hooks have nothing to do with the sample: they use the user's own store.
        store_of_hooks = folder / store_path.name if settings.sample else store_path
        self.hooks = HookReader(store_of_hooks, self.live_topics.wake, only_keep=settings.sample or settings.read_only)
        self.sign_in = SignIn(settings.token, folder) if settings.token else None
        self._write_check = KeptCheck(partial(why_not_written, store_path))

    def unwritable(self) -> str | None:
        """As `Context.unwritable`; None also where nothing is to be written."""
        return None if self.settings.read_only else self._write_check.result()

    def _touch(self, session_id: str) -> None:
        self.live_topics.touch(session_id)

    def close(self) -> None:
        """Close what was opened for the application."""
        if self.sign_in is not None:
            self.sign_in.close()
        super().close()
        self.hooks.close()


def write(request: Request, body: Any, etag: str | None = None) -> Response:
    """A body as JSON."""
    return json_response(msgspec.json.encode(body, enc_hook=to_json_number), request.headers, etag)


CONTEXT = "turnlog.context"
"""Key of an ASGI scope: the `Context` of whoever makes this request, where callers see different things."""


async def context_of(request: Request) -> Context:
    """What the request may see."""
    found: Context | None = request.scope.get(CONTEXT)
    return request.app.state.context if found is None else found


async def _local_context(request: Request) -> LocalContext:
    return request.app.state.context


ContextOf = Annotated[Context, Depends(context_of)]

LocalContextOf = Annotated[LocalContext, Depends(_local_context)]


def window_response(window: FrameWindow, headers: Headers, etag: str) -> Response:
    """A window in the best coding that the client accepts."""
    if takes(headers, "zstd"):
        return _response(window.to_zstd(), "zstd", etag)
    return json_response(window.to_json(), headers, etag)


def json_response(body: bytes, headers: Headers, etag: str | None = None) -> Response:
    """JSON, compressed with gzip if it is large and the client accepts that."""
    if len(body) >= SMALLEST_PACKED and takes(headers, "gzip"):
        return _response(gzip(body), "gzip", etag)
    return _response(body, None, etag)


def not_modified(headers: Headers, etag: str) -> Response | None:
    """304 if the client has this state already (`If-None-Match`), otherwise None."""
    known = headers.get("if-none-match", "")
    if known == "*" or etag in (item.strip() for item in known.split(",")):
        return Response(status_code=304, headers=_caching(etag))
    return None


def takes(headers: Headers, coding: str) -> bool:
    """Whether the request's `Accept-Encoding` allows a coding (RFC 9110, 12.5.3)."""
    qualities: dict[str, float] = {}
    for item in headers.get("accept-encoding", "").lower().split(","):
        name, _, parameter = item.partition(";")
        quality = _QUALITY.fullmatch(parameter)
        qualities[name.strip()] = float(quality[1]) if quality else 1.0
    return qualities.get(coding, qualities.get("*", 0.0)) > 0


def gzip(body: bytes, level: int = 1) -> bytes:
    """The body as one gzip member, the same for the same bytes."""
    packer = zlib.compressobj(level, wbits=_GZIP)
    return packer.compress(body) + packer.flush()


def _response(body: bytes, coding: str | None, etag: str | None) -> Response:
    response = Response(body, headers=_caching(etag), media_type="application/json")
    if coding is not None:
        response.headers["Content-Encoding"] = coding
    return response


def _caching(etag: str | None) -> dict[str, str]:
    """Cached by this browser only, and revalidated every time."""
    headers = {"Cache-Control": "private, no-cache", "Vary": "Accept-Encoding"}
    return headers if etag is None else {**headers, "ETag": etag}


SMALLEST_PACKED = 1024
"""Bytes below which compressing a response is not worth the work."""

_QUALITY = re.compile(r"\s*q\s*=\s*([01](?:\.[0-9]{0,3})?)\s*", re.IGNORECASE)

_GZIP = zlib.MAX_WBITS | 16
"""zlib's word for its largest window inside a gzip envelope."""
