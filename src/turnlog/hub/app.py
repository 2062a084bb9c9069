"""The hub's ASGI application: the API for each caller, the hub's own addresses, the page, and health."""

from __future__ import annotations

import errno
import hmac
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from fastapi import FastAPI, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.types import Receive, Scope, Send

from turnlog.errors import StoreBusyError, StoreError, StoreFullError, StoreUnreachableError
from turnlog.hub import bodies
from turnlog.hub.access import Access, bearer
from turnlog.hub.blobs import NO_BLOBS, BlobStore, BlobStoreError, WatchedBlobs
from turnlog.hub.budgets import Budgets
from turnlog.hub.callers import Caller
from turnlog.hub.contexts import FORGET, TAKE_BACK, CallerContext, Contexts
from turnlog.hub.metrics import TYPE, Metrics
from turnlog.hub.observing import Observer, Reads
from turnlog.hub.openid import OpenId
from turnlog.hub.pages import router as pages_router
from turnlog.hub.pages.errors import ErrorPages
from turnlog.hub.people.audit import note_in
from turnlog.hub.people.figures import TeamUsage
from turnlog.hub.people.machines import DeviceCode, Enrolment, Joined
from turnlog.hub.people.registry import People
from turnlog.hub.people.rules import HighestLevel, Retention
from turnlog.hub.people.sharing import SessionSharing
from turnlog.hub.people.tables import HubTransaction
from turnlog.hub.people.teams import Member, NotAllowedError, Team
from turnlog.hub.people.trash import TrashedSession
from turnlog.hub.rates import RequestRates
from turnlog.hub.readers import SharedSessions
from turnlog.hub.readiness import Readiness
from turnlog.hub.retention import RetentionKeeper
from turnlog.hub.routes import ROUTERS
from turnlog.hub.routes.base import HubState
from turnlog.hub.routes.sign_in import pages
from turnlog.hub.settings import HubSettings
from turnlog.hub.sync.admission import SendingMachine
from turnlog.hub.sync.routes import Sync, routes
from turnlog.server import STATIC_FOLDER, openapi
from turnlog.server.addresses import is_loopback
from turnlog.server.app import Heads, add_web_app, new_app
from turnlog.server.bodies import Bodies
from turnlog.server.context import CONTEXT
from turnlog.server.errors import error_response, handle_errors
from turnlog.server.mcp import ADDRESS
from turnlog.server.routes import SHARED
from turnlog.server.routes.router import add_routes
from turnlog.store.feed.taking import Taken
from turnlog.store.postgres.connection import TeamConnection, WrongRowsError
from turnlog.store.postgres.database import Database
from turnlog.store.postgres.store import PostgresStore

BODIES: Final[tuple[type[Any], ...]] = (
    bodies.AuditPage,
    Budgets,
    DeviceCode,
    Enrolment,
    Joined,
    bodies.MachineList,
    bodies.Me,
    Member,
    bodies.Members,
    bodies.NewLink,
    bodies.NewToken,
    bodies.OpenedLink,
    bodies.Pushers,
    SessionSharing,
    SharedSessions,
    bodies.SignInChoices,
    Retention,
    Team,
    bodies.TeamRules,
    TeamUsage,
    bodies.Tokens,
    TrashedSession,
    bodies.TrashedSessions,
)
"""Bodies of answers about people."""

_log = logging.getLogger(__name__)

FAILURES_PER_SECOND: Final = 0.2
MOST_FAILURES: Final = 20
"""Wrong secrets of one address: so many at once, and then one in five seconds."""


def create_hub(
    database: Database,
    settings: HubSettings,
    cache: Path,
    blobs: BlobStore | None = None,
    static_folder: Path = STATIC_FOLDER,
) -> FastAPI:
    """The application of a hub over a database, which it closes when it shuts down.

    Args:
        database: With the schema and its policies (`store.postgres.visibility`).
        settings: How it is set up.
        cache: A folder for search replicas, which may be deleted when no hub runs.
        blobs: Where large contents are kept; None: in the database.
        static_folder: The built web app.
    """
    watched = None if blobs is None else WatchedBlobs(blobs)
    if watched is not None:
        database.load_outside = watched.get
    people = People(database)
    contexts = Contexts(database, people, cache)
    failures = RequestRates(FAILURES_PER_SECOND, MOST_FAILURES)
    provider = None if settings.openid is None else OpenId(settings.openid, people.secrets)
    metrics = Metrics(people.budgets.measured)
    readiness = Readiness(database, people, watched)

    def open_team(team: int) -> PostgresStore:
        """The store of a team, to write to."""
        return PostgresStore(database, team=team)

    retention = RetentionKeeper(people, open_team, partial(_drop_garbage, watched))

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        retention.start()
        readiness.has_blobs()  # what is set up wrong is in the log before somebody needs it
        yield
        await run_in_threadpool(retention.close)
        await run_in_threadpool(contexts.close)
        database.close()

    app = new_app(lifespan, "turnlog hub")
    app.state.hub = HubState(settings, people, failures, provider, retention)
    app.state.contexts = contexts
    app.state.sync = _sync(open_team, people, contexts, watched)
    add_routes(app, (*SHARED, *ROUTERS, pages, pages_router))
    app.router.routes.append(Mount("/hub/v1", routes=routes()))
    app.router.routes.append(Route(ADDRESS, endpoint=_Mcp(), include_in_schema=False))
    _add_health(app, metrics, settings, readiness)
    handle_errors(app)
    app.add_exception_handler(NotAllowedError, _not_allowed)
    for kind in (StoreError, OSError):
        app.add_exception_handler(kind, _failed)
    for kind in _FAILURES:
        app.add_exception_handler(kind, _failed)
    add_web_app(app, static_folder, SHARED)
    openapi.describe_responses(app, BODIES)
    app.add_middleware(Heads)
    app.add_middleware(Bodies)
    app.add_middleware(Reads, people=people)
    app.add_middleware(Access, settings=settings, people=people, contexts=contexts, failures=failures)
    app.add_middleware(ErrorPages)
    app.add_middleware(Observer, metrics=metrics)
    return app


def _drop_garbage(blobs: BlobStore | None, store: PostgresStore) -> None:
    """Delete contents beside the database that nothing refers to any more."""
    if blobs is not None:
        with suppress(StoreError):  # they go when it can be used again
            store.drop_garbage(partial(blobs.delete, store.team))


def _sync(
    open_team: Callable[[int], PostgresStore], people: People, contexts: Contexts, blobs: BlobStore | None
) -> Sync:
    """What the routes of machines work with."""

    def writing(caller: Caller) -> PostgresStore:
        return open_team(caller.team_key)

    def machine_name(caller: Caller) -> str:
        known = people.machines.all_of(caller.team_key, user=caller.user)
        return next((each.name for each in known if each.id == caller.machine), "")

    def highest_level(caller: Caller) -> HighestLevel:
        return people.rulebook.rules(caller.team_key).highest_level

    def note(connection: TeamConnection, taken: Taken, machine: SendingMachine) -> None:
        user, transaction = machine.owner.user, HubTransaction(connection.driver)
        for action, session_ids in ((FORGET, taken.forgotten), (TAKE_BACK, taken.withdrawn)):
            for session_id in session_ids:
                note_in(transaction, connection.team, user, action, session_id, owner=user, detail=f"on {machine.name}")

    def reading(caller: Caller) -> PostgresStore:
        return contexts.of(caller).stored

    return Sync(writing, reading, machine_name, blobs, highest_level=highest_level, note=note)


class _Mcp:
    """Passes requests on to what their caller sees."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        context: CallerContext = scope[CONTEXT]
        await context.mcp(scope, receive, send)


async def _not_allowed(request: Request, error: Exception) -> Response:
    return error_response(403, "forbidden", str(error))


_NOT_READY: Final[dict[type[StoreError], str]] = {
    StoreUnreachableError: "the database does not answer",
    StoreBusyError: "all connections to the database are in use",
    StoreFullError: "the disk of the database is full",
    StoreError: "the database cannot be used: the hub's log has the reason",
}


class _Failure(NamedTuple):
    status: int
    type: str
    message: str
    retry_after: int | None = None
    """Seconds."""


_FAILURES: Final[dict[type[Exception], _Failure]] = {
    StoreUnreachableError: _Failure(503, "unavailable", "the database does not answer", 5),
    StoreBusyError: _Failure(503, "busy", "the database is busy", 1),
    StoreFullError: _Failure(507, "no_space", "the disk of the database is full", 60),
    WrongRowsError: _Failure(422, "invalid_parameter", "a value is too large, or not as the database has it"),
    BlobStoreError: _Failure(503, "unavailable", NO_BLOBS, 5),
    StoreError: _Failure(500, "store", "the database cannot be used: the hub's log has the reason"),
}
"""Answers that say nothing of what the database says: that names its address, and rows of others."""

_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})

_WRONG_PATHS: Final = frozenset({errno.ENAMETOOLONG, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.EINVAL})


async def _failed(request: Request, error: Exception) -> Response:
    found = next((found for kind, found in _FAILURES.items() if isinstance(error, kind)), None)
    if found is None:
        assert isinstance(error, OSError)
        found = _of_files(error)
    if not isinstance(error, BlobStoreError):  # which is there already
        _log.warning("%s", error)
    headers = {} if found.retry_after is None else {"Retry-After": str(found.retry_after)}
    return error_response(found.status, found.type, found.message, headers=headers)


def _of_files(error: OSError) -> _Failure:
    """What is answered where the hub cannot read or write a file; its path is nobody's business."""
    reason = error.strerror or type(error).__name__
    if error.errno in _FULL:
        return _Failure(507, "no_space", f"the hub has no room for files: {reason}", 60)
    if error.errno in _WRONG_PATHS:
        return _Failure(409, "conflict", f"these files cannot be written with the paths that they have: {reason}")
    return _Failure(500, "files", f"the hub cannot read or write a file: {reason}")


def _add_health(app: FastAPI, metrics: Metrics, settings: HubSettings, readiness: Readiness) -> None:
    async def healthz(request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def readyz(request: Request) -> Response:
        try:
            await run_in_threadpool(readiness.check)
        except StoreError as error:
            # Not what the database says: that names its address, and anybody may ask.
            reason = next(reason for kind, reason in _NOT_READY.items() if isinstance(error, kind))
            return JSONResponse({"status": "not ready", "reason": reason}, 503, {"Retry-After": "5"})
        # Ready all the same: all but large contents is read and pushed, and another process has the same blobs.
        if not readiness.has_blobs():
            return JSONResponse({"status": "degraded", "blobs": NO_BLOBS})
        return JSONResponse({"status": "ok"})

    async def get_metrics(request: Request) -> Response:
        peer = request.client.host if request.client else ""
        token = bearer(request.headers)
        if not (
            settings.metrics_token and hmac.compare_digest(token.encode(), settings.metrics_token.encode())
        ) and not (is_loopback(peer) and "x-forwarded-for" not in request.headers):
            return error_response(404, "not_found", "there is no such address")
        return Response(await run_in_threadpool(metrics.text), media_type=TYPE)

    app.add_route("/healthz", healthz, methods=["GET"], include_in_schema=False)
    app.add_route("/readyz", readyz, methods=["GET"], include_in_schema=False)
    app.add_route("/metrics", get_metrics, methods=["GET"], include_in_schema=False)
