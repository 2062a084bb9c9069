"""`/api/runs` and `/api/sessions/{id}/prompt`: runs, and prompts from a page."""

from __future__ import annotations

from typing import Annotated

import msgspec
from fastapi import Depends, HTTPException, Query, Request
from pydantic import Field
from starlette.responses import Response

from turnlog.errors import ConflictError
from turnlog.model import Session
from turnlog.model.codec import encode
from turnlog.runs.resuming import prompt_of
from turnlog.runs.states import session_states
from turnlog.server.context import Context, ContextOf, write
from turnlog.server.errors import judging
from turnlog.server.openapi import responds_with
from turnlog.server.prompts import Prompts, PromptState, can_ask
from turnlog.server.responses import PromptResponse, RunMessagePage, RunPage, RunResponse
from turnlog.server.routes.parameters import ListPage, Moment, QueryParameters
from turnlog.server.routes.router import api_router
from turnlog.server.routes.sessions import PromptAnswerBody, PromptBody, takes_json
from turnlog.store.base import RunFilter
from turnlog.store.choices import RunStatus


class RunQuery(QueryParameters):
    """Which runs."""

    agent: str | None = None
    status: RunStatus | None = None
    session: str | None = Field(None, description="Id of the session that the run made or went on with.")
    since: Moment | None = None
    until: Moment | None = None
    limit: ListPage = 50
    cursor: str | None = None

    def to_filter(self) -> RunFilter:
        """The same for the store."""
        return RunFilter(**self.model_dump(exclude={"limit", "cursor"}))


class PageQuery(QueryParameters):
    """Which page."""

    limit: ListPage = 50
    cursor: str | None = None


router = api_router()


@router.get("/runs", tags=["runs"], responses=responds_with(RunPage))
def list_runs(request: Request, context: ContextOf, query: Annotated[RunQuery, Query()]) -> Response:
    """Runs, the newest first."""
    with judging("cursor"):
        page = context.store.runs(query.to_filter(), limit=query.limit, cursor=query.cursor)
    items = [RunResponse.of_run(run) for run in page.items]
    return write(request, RunPage(items=items, next_cursor=page.next_cursor, total=page.total or 0))


@router.get("/runs/{run_id}", tags=["runs"], responses=responds_with(RunResponse))
def get_run(request: Request, context: ContextOf, run_id: str) -> Response:
    """One run, by its id or a beginning that no other run's id has."""
    return write(request, RunResponse.of_run(context.store.run(run_id)))


@router.get("/runs/{run_id}/messages", tags=["runs"], responses=responds_with(RunMessagePage))
def list_run_messages(
    request: Request, context: ContextOf, run_id: str, query: Annotated[PageQuery, Query()]
) -> Response:
    """The messages that a run added to its session, in their order; large contents are previews with a blob."""
    with judging("cursor"):
        page = context.store.run_messages(run_id, limit=query.limit, cursor=query.cursor, resolve_blobs=False)
    items = [
        # The model's own encoder keeps what this version does not know.
        {"message": msgspec.Raw(encode(placed.message)), "membership": placed.membership, "cost": placed.cost}
        for placed in page.items
    ]
    return write(request, {"items": items, "next_cursor": page.next_cursor})


@router.get("/sessions/{session_id}/prompt", tags=["sessions"], responses=responds_with(PromptResponse))
def get_prompt(request: Request, context: ContextOf, session_id: str) -> Response:
    """Whether the session can go on from here, whether it does, and how the last prompt failed."""
    session = context.store.session(session_id)
    can_go_on = context.prompts is not None and prompt_of(session) is not None
    return _state(request, context, session, can_go_on=can_go_on)


@router.post(
    "/sessions/{session_id}/prompt",
    tags=["sessions"],
    responses=responds_with(PromptResponse),
    dependencies=[Depends(takes_json)],
)
def post_prompt(request: Request, context: ContextOf, session_id: str, body: PromptBody) -> Response:
    """Let the session's agent answer a prompt."""
    prompts = _prompts(context)
    session = context.store.session(session_id)
    command = prompt_of(session)
    if command is None:
        raise HTTPException(409, f"{session.agent} cannot go on with this session")
    state = session_states(context.store, [session_id]).get(session_id)
    if state is not None and state.state == "running":
        raise HTTPException(409, "the session's agent is at work: two at once would spoil its log")
    try:
        prompts.begin(session, command, body.text)
    except ConflictError as error:
        raise HTTPException(409, str(error)) from error
    return _state(request, context, session, can_go_on=True)


@router.post(
    "/sessions/{session_id}/prompt/answer",
    tags=["sessions"],
    responses=responds_with(PromptResponse),
    dependencies=[Depends(takes_json)],
)
def post_prompt_answer(request: Request, context: ContextOf, session_id: str, body: PromptAnswerBody) -> Response:
    """Answer a permission request of the agent."""
    prompts = _prompts(context)
    session = context.store.session(session_id)
    try:
        prompts.answer(session_id, body.id, allow=body.allow, reason=body.reason)
    except ConflictError as error:
        raise HTTPException(409, str(error)) from error
    return _state(request, context, session, can_go_on=True)


@router.delete("/sessions/{session_id}/prompt", tags=["sessions"], responses=responds_with(PromptResponse))
def delete_prompt(request: Request, context: ContextOf, session_id: str) -> Response:
    """Stop the agent that answers a prompt."""
    prompts = _prompts(context)
    session = context.store.session(session_id)
    prompts.stop(session_id)
    return _state(request, context, session, can_go_on=True)


def _prompts(context: Context) -> Prompts:
    if context.prompts is None:
        raise HTTPException(403, "this server takes no prompts: it was started without --prompts")
    return context.prompts


def _state(request: Request, context: Context, session: Session, *, can_go_on: bool) -> Response:
    state = context.prompts.state(session.id) if context.prompts else PromptState()
    body = PromptResponse(
        can_go_on=can_go_on,
        can_ask=can_ask(session.agent),
        running=state.is_running,
        problem=state.problem,
        permission_requests=[each.request for each in state.permission_requests],
    )
    return write(request, body)
