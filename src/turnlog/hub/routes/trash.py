"""The caller's trash: deleting a session in a way that can be undone for some days."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from turnlog.hub.bodies import TrashedSessions
from turnlog.hub.people.trash import TrashedSession
from turnlog.hub.routes.base import HubOf, UserOf
from turnlog.hub.routes.sharing import require_own
from turnlog.server.context import write
from turnlog.server.openapi import responds_with

router = APIRouter(default_response_class=Response, prefix="/hub/v1", tags=["sharing"])


@router.get("/trash", responses=responds_with(TrashedSessions))
def list_trash(request: Request, hub: HubOf, caller: UserOf) -> Response:
    """What the caller has in the trash, the newest first."""
    return write(request, TrashedSessions(hub.people.trash.of(caller.team_key, caller.user)))


@router.put("/sessions/{session_id}/trash", responses=responds_with(TrashedSession))
def put_into_trash(request: Request, hub: HubOf, caller: UserOf, session_id: str) -> Response:
    """Hide the session and its subagents from everybody, at once; they are forgotten 30 days later."""
    require_own(hub, caller, session_id)
    trashed = hub.people.trash.put(caller.team_key, session_id, caller.user)
    hub.note(caller, "put into trash", session_id, owner=caller.user)
    return write(request, trashed)


@router.delete("/sessions/{session_id}/trash", status_code=204, responses=responds_with(None))
def take_out_of_trash(hub: HubOf, caller: UserOf, session_id: str) -> Response:
    """Show the session again to whom it was shown; links stay invalid."""
    hub.people.trash.take_out(caller.team_key, session_id, caller.user)
    hub.note(caller, "take out of trash", session_id, owner=caller.user)
    return Response(status_code=204)
