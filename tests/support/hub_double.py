"""A hub with the real API of machines, and people that a token names: `<user>/<machine>`. Runs as a process, too."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from turnlog.hub.blobs import BlobStore, open_blobs
from turnlog.hub.callers import CALLER, Caller
from turnlog.hub.sync.receiving import Load
from turnlog.hub.sync.routes import Sync, routes
from turnlog.store.postgres.store import PostgresStore


class _Access:
    """Knows callers by their token."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            token = dict(scope["headers"]).get(b"authorization", b"").decode().removeprefix("Bearer ")
            user, _, machine = token.partition("/")
            if user and machine:
                scopes = frozenset({"read"} if machine == "reader" else {"push", "read"})
                scope[CALLER] = Caller(team="1", user=user, role="member", machine=machine, scopes=scopes)
        await self._app(scope, receive, send)


def hub_app(store: PostgresStore, blobs: BlobStore | None = None, load: Load | None = None) -> Starlette:
    """The application. Its devices are approved by the second question."""
    calls: dict[str, int] = {}

    async def device(request: Request) -> JSONResponse:
        body = await request.json()
        code = f"{body['machine']}-code"
        calls[code] = 0
        answer = {"user_code": "ABCD-EFGH", "verification_uri": f"{request.base_url}connect", "interval": 0}
        return JSONResponse({"device_code": code, "expires_in": 60, **answer})

    async def token(request: Request) -> JSONResponse:
        code = (await request.json())["device_code"]
        calls[code] = calls.get(code, -5) + 1
        if calls[code] == 1:
            return JSONResponse({"error": "authorization_pending"}, 400)
        if calls[code] < 1:
            return JSONResponse({"error": "expired_token"}, 400)
        machine = code.removesuffix("-code")
        names = {"user_name": "Ana Maria", "machine_name": f"{machine} (2)" if machine == "vm" else machine}
        return JSONResponse({"access_token": f"ana/{machine}", "team": "1", "user": "ana", "machine": machine, **names})

    def stored(caller: Caller) -> PostgresStore:
        return store

    devices = [
        Route("/hub/v1/device", device, methods=["POST"]),
        Route("/hub/v1/device/token", token, methods=["POST"]),
    ]
    app = Starlette(routes=[*devices, Mount("/hub/v1", routes=routes())], middleware=[Middleware(_Access)])
    app.state.sync = Sync(stored, stored, lambda caller: caller.machine or "", blobs, load)
    if blobs is not None:
        store.database.load_outside = blobs.get
    return app


class HubProcess:
    """The hub in a process of its own, which can be killed and started again at the same address."""

    def __init__(self, database: str, blobs: str = "") -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._command = [sys.executable, "-m", "support.hub_double", database, str(self.port), blobs]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Of the process."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start it, and wait until it answers."""
        folder = Path(__file__).parents[1]
        environment = {**os.environ, "PYTHONPATH": f"{folder}:{folder.parent / 'src'}"}
        self._process = subprocess.Popen(self._command, env=environment)
        until = time.monotonic() + 60
        while time.monotonic() < until:
            with socket.socket() as tried:
                if tried.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.05)
        raise RuntimeError("the hub did not start")

    def end(self, how: int = signal.SIGKILL) -> None:
        """End it."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(20)
            self._process = None


@contextmanager
def hub_process(database: str, blobs: str = "") -> Generator[HubProcess]:
    """A hub that runs."""
    hub = HubProcess(database, blobs)
    hub.start()
    try:
        yield hub
    finally:
        hub.end()


def main() -> None:
    """Serve a database at a port."""
    database, port, place = sys.argv[1:4]
    store = PostgresStore(database)
    app = hub_app(store, open_blobs(place) if place else None)
    uvicorn.run(app, host="127.0.0.1", port=int(port), log_level="warning")


if __name__ == "__main__":
    main()
