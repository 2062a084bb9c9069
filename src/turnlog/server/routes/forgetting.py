"""Removing a session for good, with a dry run that says what will go. For programs and for the page."""

from __future__ import annotations

from fastapi import Depends, Request
from pydantic import BaseModel, ConfigDict, Field, StrictBool
from starlette.responses import Response

from turnlog.server.context import ContextOf, write
from turnlog.server.openapi import responds_with
from turnlog.server.responses import ForgetResponse
from turnlog.server.routes.native import may_write
from turnlog.server.routes.router import api_router
from turnlog.server.routes.sessions import takes_json


class ForgetBody(BaseModel):
    """Whether to remove, or only to say what would be removed."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    # Required: nothing is removed because a field was left out.
    dry_run: StrictBool = Field(description="`true`: remove nothing.")


router = api_router(dependencies=[Depends(may_write)])


@router.post(
    "/sessions/{session_id}/forget",
    tags=["sessions"],
    responses=responds_with(ForgetResponse),
    dependencies=[Depends(takes_json)],
)
def forget_session(request: Request, context: ContextOf, session_id: str, body: ForgetBody) -> Response:
    """Remove a session for good, with its subagents, archived logs and words; or say what would be removed."""
    context.require_own(session_id)
    store = context.store
    plan = store.plan_forgetting(session_id) if body.dry_run else store.forget(session_id)
    if not body.dry_run:
        context.live_topics.wake()
    return write(request, ForgetResponse.of(plan, forgotten=not body.dry_run))
