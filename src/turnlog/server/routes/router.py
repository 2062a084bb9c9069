"""Routers whose routes are completed when they are asked first, which saves a starting server most of their cost."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any, Final

from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute
from starlette.responses import Response
from starlette.routing import compile_path

API: Final = "/api"
"""Below it are the addresses of the API."""


def api_router(prefix: str = "", **options: Any) -> APIRouter:
    """A router below `/api` whose answers are finished bytes; options are those of `APIRouter`."""
    return APIRouter(prefix=API + prefix, default_response_class=Response, route_class=LateRoute, **options)


def add_routes(app: FastAPI, routers: Iterable[APIRouter]) -> None:
    """Add the routes of routers that have their whole address.

    `FastAPI.include_router` would make each route a second time, and look for it through each router.
    """
    for router in routers:
        app.router.routes.extend(router.routes)


class LateRoute(APIRoute):
    """A route that reads its function's parameters when it is asked first, not when its module is imported.

    FastAPI makes models and validators of the parameters: 2 to 3 ms of each route.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        """Keep what makes the route, and what it is found by; options are those of `APIRoute`."""
        self.path = path
        self.endpoint = endpoint
        self.methods = {method.upper() for method in options.get("methods") or ("GET",)}
        self.path_regex, self.path_format, self.param_convertors = compile_path(path)
        self._options: dict[str, Any] | None = options

    def __getattr__(self, name: str) -> Any:
        """Complete the route, because it is asked for something that it has not yet."""
        with _COMPLETING:
            options = self.__dict__.pop("_options", None)
            if options is not None:
                try:
                    super().__init__(self.path, self.endpoint, **options)
                except BaseException:
                    # Asked again, it tries again, or says the same reason: there may be no descriptor left just now.
                    self._options = options
                    raise
        return self.__getattribute__(name)


_COMPLETING: Final = threading.RLock()
