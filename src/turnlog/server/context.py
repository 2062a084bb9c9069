"""What every route works with: the store, how fresh it is, and how response bodies are written."""

from __future__ import annotations

import secrets
import sqlite3
import threading
from pathlib import Path
from typing import Annotated, Any

import msgspec
from fastapi import Depends, Request
from starlette.responses import Response

from turnlog import __version__
from turnlog.errors import StoreError
from turnlog.server.background import Progress
from turnlog.server.encoding import json_response
from turnlog.server.hooks import HookReader
from turnlog.server.items import SessionItems
from turnlog.server.live.hub import Hub
from turnlog.server.prompts import Prompts
from turnlog.server.responses import SyncProgress
from turnlog.server.settings import Settings
from turnlog.store.base import Store
from turnlog.store.search.searcher import Searcher
from turnlog.store.usage_report import to_json_number
from turnlog.store.values import StoreCounts


class Context:
    """One application's store and settings, shared by its requests."""

    def __init__(
        self, store: Store, searcher: Searcher, settings: Settings, progress: Progress, store_path: Path
    ) -> None:
        """Keep them; store and searcher are closed with `close`."""
        self.store = store
        self.searcher = searcher
        self.settings = settings
        self.prompts = Prompts(store_path, self._touch) if settings.prompts else None
        self.items = SessionItems(store, self.prompts)
        self.hub = Hub(store, self.items)
        self.hooks = HookReader(store_path, self.hub.wake)
        self._progress = progress
        self._lock = threading.Lock()
        self._counts: tuple[int, StoreCounts] | None = None
        # Another store behind the same address must not be taken for this one.
        self._run = f"{__version__}-{secrets.token_hex(4)}"

    def _touch(self, session_id: str) -> None:
        self.hub.touch(session_id)

    def etag(self) -> str:
        """Names the state of the store: equal as long as nothing in it changed."""
        return f'W/"{self._run}-{self.change_sequence()}"'

    def change_sequence(self) -> int:
        """The number of the last change of the store."""
        return self.store.last_change()

    def pending(self) -> int | None:
        """Messages that are not searchable yet; None when the index cannot be read."""
        try:
            return self.searcher.behind()
        except (StoreError, sqlite3.Error):
            # It is disposable, and the next pass makes it anew: the status must not fail with it.
            return None

    def close(self) -> None:
        """Close what was opened for the application."""
        if self.prompts is not None:
            self.prompts.close()
        self.hub.close()
        self.hooks.close()
        self.searcher.close()
        self.store.close()

    def sync(self) -> SyncProgress:
        """Where the background's reading stands."""
        return self._progress.current()

    def counts(self) -> tuple[int, StoreCounts]:
        """The change sequence and the store's figures, counted again only when something changed."""
        sequence = self.change_sequence()
        with self._lock:
            if self._counts is None or self._counts[0] != sequence:
                status = self.store.status()
                counts = {name: getattr(status, name) for name in StoreCounts.__struct_fields__}
                self._counts = (status.change_sequence, StoreCounts(**counts))
            return self._counts


def write(request: Request, body: Any, etag: str | None = None) -> Response:
    """A body as JSON."""
    return json_response(msgspec.json.encode(body, enc_hook=to_json_number), request.headers, etag)


async def _context(request: Request) -> Context:
    return request.app.state.context


ContextOf = Annotated[Context, Depends(_context)]
