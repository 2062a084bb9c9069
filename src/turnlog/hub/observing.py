"""What is noted of every request: figures, a line of the log, and who read a session of somebody else."""

from __future__ import annotations

import json
import logging
import time
from typing import Any, Final

from starlette.concurrency import run_in_threadpool
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from turnlog.hub.callers import CALLER, Caller
from turnlog.hub.contexts import Reading, noting
from turnlog.hub.metrics import Metrics
from turnlog.hub.people.registry import People
from turnlog.server.context import CONTEXT
from turnlog.server.mcp import ADDRESS
from turnlog.store.postgres.database import secret_texts

_log = logging.getLogger("turnlog.hub.requests")

_QUIET: Final = frozenset({"/healthz", "/readyz", "/metrics"})


class Observer:
    """ASGI middleware that notes requests, without what they ask for or are answered."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        """Count in these figures."""
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = time.perf_counter()
        status = 500
        taken = 0.0

        async def send_noted(message: Message) -> None:
            nonlocal status, taken
            if message["type"] == "http.response.start":
                status, taken = message["status"], time.perf_counter() - begun
            await send(message)

        self._metrics.under_way.inc()
        try:
            await self._app(scope, receive, send_noted)
        finally:
            self._metrics.under_way.dec()
            route = route_of(scope)
            self._metrics.note(scope["method"], route, status, taken)
            if route not in _QUIET:
                caller: Caller | None = scope.get(CALLER)
                _log.info(
                    "request",
                    extra={
                        "fields": {
                            "method": scope["method"],
                            "route": route,
                            "status": status,
                            "ms": round(taken * 1000, 1),
                            "team": None if caller is None else caller.team,
                            "caller": None if caller is None else caller.machine or caller.user,
                        }
                    },
                )


def route_of(scope: Scope) -> str:
    """The address with names in the place of values: `/api/sessions/{session_id}`. No id is in it."""
    path: str = scope["path"]
    parameters: dict[str, str] = scope.get("path_params", {})
    if "route" not in scope and path not in _QUIET:
        return "none"
    if "path" in parameters and len(parameters) == 1:
        return "page"
    for name, value in parameters.items():
        path = path.replace(f"/{value}", f"/{{{name}}}", 1)
    return path


class Reads:
    """ASGI middleware behind `Access` that notes who has read a session of somebody else."""

    def __init__(self, app: ASGIApp, people: People) -> None:
        """Note in the audit log of these people."""
        self._app = app
        self._people = people

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on; a read is noted before its answer is sent."""
        caller: Caller | None = scope.get(CALLER)
        # Tools of MCP are called by POST. Log files are below the hub's own addresses.
        if scope["type"] != "http" or caller is None or (scope["method"] != "GET" and scope["path"] != ADDRESS):
            await self._app(scope, receive, send)
            return

        read: set[tuple[Reading, str]] = set()

        async def send_noted(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] in (200, 304):
                named = scope.get("path_params", {}).get("session_id") if CONTEXT in scope else None
                if named is not None:
                    read.add(("read", named))
                await run_in_threadpool(self._note, caller, read, is_search=route_of(scope) == "/api/search")
            await send(message)

        with noting(read):
            await self._app(scope, receive, send_noted)

    def _note(self, caller: Caller, sessions: set[tuple[Reading, str]], *, is_search: bool) -> None:
        if not sessions:
            return
        owners = self._people.sharing.owners(caller.team_key, {session_id for _, session_id in sessions})
        for how, session_id in sorted({("search", each) for _, each in sessions} if is_search else sessions):
            owned = owners.get(session_id)
            if owned is not None and owned.owner != caller.user:
                self._people.audit.note(caller.team_key, caller.user, how, session_id, owner=owned.owner)


class JsonLineFormatter(logging.Formatter):
    """One JSON object a line, without texts that are secret."""

    def __init__(self) -> None:
        """Hide nothing yet."""
        super().__init__()
        self._hidden: list[str] = []

    def hide(self, url: str) -> None:
        """Write neither this address of a database nor its password, whoever names them in a message."""
        self._hidden = sorted({*self._hidden, *secret_texts(url)}, key=len, reverse=True)

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record."""
        fields: dict[str, Any] = {
            "at": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03}Z",
            "level": record.levelname.lower(),
            "what": self._without_secrets(record.getMessage()),
            **getattr(record, "fields", {}),
        }
        if record.exc_info and record.exc_info[0] is not None:
            # Values that an error names may be of a session: its kind and place are enough to find the cause.
            fields["error"] = record.exc_info[0].__name__
            fields["place"] = _place(record.exc_info[2])
        return json.dumps(fields, ensure_ascii=False)

    def _without_secrets(self, text: str) -> str:
        for each in self._hidden:
            text = text.replace(each, "…")
        return text


def _place(traceback: Any) -> str | None:
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    return None if traceback is None else f"{traceback.tb_frame.f_code.co_filename}:{traceback.tb_lineno}"
