"""`/api/mcp`: the tools of `turnlog mcp` over HTTP, behind the server's token like everything below `/api`.

Every request stands for itself (no session of the protocol is kept). Its address says what it may see: `project=` with
a path or a name, or `all_projects=true`; `redact=false` keeps secrets. It needs the extra `turnlog[mcp]`.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Final

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import QueryParams
from starlette.types import Receive, Scope, Send

from turnlog.server.errors import error_response
from turnlog.store.base import Store

if TYPE_CHECKING:
    from turnlog.mcp.history import History, HistoryScope
    from turnlog.store.search.searcher import Searcher

ADDRESS: Final = "/api/mcp"

_FLAGS: Final = {"true": True, "false": False}

_NO_PROJECT: Final = "name the sessions that may be seen: project=PATH, or all_projects=true"


class McpEndpoint:
    """An ASGI application that answers requests of the Model Context Protocol."""

    def __init__(self, store: Store, searched: Path | Searcher, *, has_clones: bool = True) -> None:
        """Answer from this store, searched as `History` does. Nothing is imported before the first request.

        Without `has_clones`, no question is about repositories on this machine.
        """
        self._store = store
        self._searched = searched
        self._has_clones = has_clones
        self._histories: dict[HistoryScope, History] = {}
        self._lock = Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        try:
            # It takes a second, in which other requests are answered.
            await run_in_threadpool(import_module, "turnlog.mcp.server")
        except ModuleNotFoundError:
            reason = "this server has no MCP: pip install 'turnlog[mcp]'"
            await error_response(501, "not_installed", reason)(scope, receive, send)
            return
        try:
            wanted = self._scope(QueryParams(scope["query_string"]))
        except ValueError as error:
            await error_response(400, "invalid_parameter", str(error))(scope, receive, send)
            return
        from mcp.server.transport_security import TransportSecuritySettings

        from turnlog.mcp.server import make_server

        # A server's manager runs once, in the task that has started it: each request has its own.
        server = make_server(self._history(wanted), has_clones=self._has_clones)
        server.streamable_http_app(
            json_response=True,
            stateless_http=True,
            # The guard before it checks hosts and sites, for all of the API.
            transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        )
        async with server.session_manager.run():
            await server.session_manager.handle_request(scope, receive, send)

    def close(self) -> None:
        """Close what the requests have opened; the store stays open."""
        with self._lock:
            for history in self._histories.values():
                history.close()
            self._histories.clear()

    def _scope(self, query: QueryParams) -> HistoryScope:
        """What a request may see. Raises ValueError if its address does not say so."""
        from turnlog.mcp.history import HistoryScope, project_of

        for name in ("all_projects", "redact"):
            if query.get(name, "true") not in _FLAGS:
                raise ValueError(f"{name} is either true or false")
        is_redacted = _FLAGS[query.get("redact", "true")]
        project = query.get("project")
        if _FLAGS[query.get("all_projects", "false")]:
            if project:
                raise ValueError("project and all_projects exclude each other")
            return HistoryScope(None, is_redacted)
        if not project:
            raise ValueError(_NO_PROJECT)
        projects = self._store.projects()
        named = [each.path for each in projects if project in (each.path, each.name)]
        if len(named) > 1:
            raise ValueError(f"several projects are called {project}: give its path")
        return HistoryScope(named[0] if named else project_of(projects, Path(project)), is_redacted)

    def _history(self, wanted: HistoryScope) -> History:
        from turnlog.mcp.history import History

        with self._lock:
            if wanted not in self._histories:
                if len(self._histories) >= _MOST_HISTORIES:
                    self._histories.pop(next(iter(self._histories))).close()
                self._histories[wanted] = History(self._store, self._searched, wanted)
            return self._histories[wanted]


_MOST_HISTORIES: Final = 32
"""So many projects have their connections to the search index kept."""
