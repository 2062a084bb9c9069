"""What became of a session in a repository, and where it can go on: commits, lines of files, hand-overs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

from fastapi import Depends, HTTPException, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from turnlog.commits.links import LineRange, LinkFinder
from turnlog.commits.repository import Repository
from turnlog.commits.work import SessionWork, session_work
from turnlog.errors import HandoffError, NotFoundError
from turnlog.handoff import plan, targets
from turnlog.server.context import ContextOf, write
from turnlog.server.openapi import responds_with
from turnlog.server.responses import FileLinesResponse, HandoffResponse, HandoffTarget, HandoffTargetsResponse
from turnlog.server.routes.parameters import QueryParameters
from turnlog.server.routes.router import api_router
from turnlog.server.routes.sessions import takes_json

router = api_router()

local_router = api_router()
"""What needs the agents and the files of this machine."""


class FileLinesQuery(QueryParameters):
    """Which file."""

    path: str = Field(min_length=1, max_length=4096, description="Absolute path of a file in a project of the store.")


class HandoffBody(BaseModel):
    """Which agent gets the session."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    agent: str = Field(min_length=1, max_length=100)


@router.get("/sessions/{session_id}/commits", tags=["sessions"], responses=responds_with(SessionWork))
def get_commits(request: Request, context: ContextOf, session_id: str) -> Response:
    """The commits that a session made or pushed, and the pull requests that it opened, as its own commands printed."""
    return write(request, session_work(context.store, context.searcher, session_id))


@local_router.get("/files/lines", tags=["files"], responses=responds_with(FileLinesResponse))
def get_file_lines(request: Request, context: ContextOf, query: Annotated[FileLinesQuery, Query()]) -> Response:
    """The sessions that the lines of a file came from. The clone that the file is in is only read."""
    file = Path(os.path.normpath(query.path))
    # Logs name any path. Only files of projects are looked at.
    if not any(Path(each.path) in file.parents for each in context.store.projects()):
        raise NotFoundError(f"{file} is in no project")
    if not file.is_file():
        raise NotFoundError(f"there is no file {file} any more")
    repository = Repository(file.parent)
    finder = LinkFinder(context.store, context.searcher, repository)
    lines: list[LineRange] = finder.of_file(repository.relative(file))
    return write(request, FileLinesResponse(path=query.path, lines=lines))


@local_router.get("/handoffs", tags=["sessions"], responses=responds_with(HandoffTargetsResponse))
def list_targets(request: Request) -> Response:
    """The agents that a session can be handed to."""
    items = [
        HandoffTarget(agent=each.name, display_name=each.display_name, is_installed=each.is_installed)
        for each in targets()
    ]
    return write(request, HandoffTargetsResponse(items=items))


@local_router.post(
    "/sessions/{session_id}/handoff",
    tags=["sessions"],
    responses=responds_with(HandoffResponse),
    dependencies=[Depends(takes_json)],
)
def hand_over(request: Request, context: ContextOf, session_id: str, body: HandoffBody) -> Response:
    """Write the session as a session of another agent. Only a server that takes prompts does it."""
    if context.prompts is None:
        raise HTTPException(403, "this server hands no session over: start it with --prompts")
    try:
        planned = plan(context.store, session_id, body.agent)
        written = planned.write()
    except HandoffError as error:
        raise HTTPException(409, str(error)) from error
    context.live_topics.wake()
    return write(
        request,
        HandoffResponse(
            session_id=written,
            losses=[each.sentence for each in planned.summary],
            notes=list(planned.notes),
        ),
    )
