"""What is noted of every request: figures, a line of the log, and who read a session of somebody else."""

from __future__ import annotations

import json
import logging
import time
from typing import Any, Final

from starlette.concurrency import run_in_threadpool
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from turnlog.hub.callers import CALLER, Caller
from turnlog.hub.contexts import noting
from turnlog.hub.metrics import Metrics
from turnlog.hub.people.registry import People
from turnlog.server.context import CONTEXT

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
        if scope["type"] != "http" or caller is None or CONTEXT not in scope or scope["method"] != "GET":
            await self._app(scope, receive, send)
            return

        read: set[str] = set()

        async def send_noted(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] in (200, 304):
                named = scope.get("path_params", {}).get("session_id")
                await run_in_threadpool(self._note, scope, caller, read | ({named} if named else set()))
            await send(message)

        with noting(read):
            await self._app(scope, receive, send_noted)

    def _note(self, scope: Scope, caller: Caller, sessions: set[str]) -> None:
        if not sessions:
            return
        action = "search" if route_of(scope) == "/api/search" else "read"
        for session_id, owned in self._people.sharing.owners(caller.team_key, sessions).items():
            if owned.owner != caller.user:
                self._people.audit.note(caller.team_key, caller.user, action, session_id, owner=owned.owner)


class JsonLineFormatter(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record."""
        fields: dict[str, Any] = {
            "at": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03}Z",
            "level": record.levelname.lower(),
            "what": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info and record.exc_info[0] is not None:
            # Values that an error names may be of a session: its kind and place are enough to find the cause.
            fields["error"] = record.exc_info[0].__name__
            fields["place"] = _place(record.exc_info[2])
        return json.dumps(fields, ensure_ascii=False)


def _place(traceback: Any) -> str | None:
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    return None if traceback is None else f"{traceback.tb_frame.f_code.co_filename}:{traceback.tb_lineno}"
