"""A server on a real port in this process, and a client of its event streams."""

from __future__ import annotations

import json
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import uvicorn
from fastapi import FastAPI

from turnlog.server import Settings, create_app
from turnlog.server.addresses import bind
from turnlog.server.connections import Connection

TIMEOUT = httpx2.Timeout(20)


class Event(NamedTuple):
    """A server-sent event."""

    name: str
    id: int
    data: Any


@contextmanager
def listening(store: Path, settings: Settings | None = None) -> Generator[tuple[str, FastAPI]]:
    """Serve a store on a free port; its address and its application."""
    app = create_app(store, (settings or Settings())._replace(static_folder=store.parent / "no web app"))
    with bind("127.0.0.1", 0) as listener:
        config = uvicorn.Config(
            app, http=Connection, log_level="warning", access_log=False, timeout_graceful_shutdown=3
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}", app
        finally:
            app.state.context.live_topics.close()
            server.should_exit = True
            thread.join()


@contextmanager
def events(address: str, path: str, last: int | None = None, *, token: str = "") -> Generator[Iterator[Event]]:
    """The events of a stream, one by one as they come."""
    headers = {} if last is None else {"Last-Event-ID": str(last)}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    with (
        httpx2.Client(base_url=address, trust_env=False, timeout=TIMEOUT) as client,
        client.stream("GET", path, headers=headers) as answer,
    ):
        answer.raise_for_status()
        yield _parse(answer.iter_lines())


def _parse(lines: Iterator[str]) -> Iterator[Event]:
    fields: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(": ")
        if line:
            fields[name] = value
        elif "event" in fields:
            yield Event(fields["event"], int(fields["id"]), json.loads(fields["data"]))
            fields = {}
