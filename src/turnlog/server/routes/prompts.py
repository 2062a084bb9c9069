"""`/api/sessions/{id}/prompt`: a session goes on from the page, where the server was started for it."""

from __future__ import annotations

from fastapi import APIRouter, Depends, HTTPException, Request
from starlette.responses import Response

from turnlog.errors import ConflictError
from turnlog.runs.states import session_states
from turnlog.server.answers.runs import PromptAnswer
from turnlog.server.context import Context, ContextOf, write
from turnlog.server.items import prompt_command
from turnlog.server.openapi import answers_with
from turnlog.server.parameters.sessions import PromptBody
from turnlog.server.prompts import Prompts
from turnlog.server.routes.sessions import takes_json

router = APIRouter(prefix="/sessions/{session_id}", default_response_class=Response, tags=["sessions"])


@router.get("/prompt", responses=answers_with(PromptAnswer))
def get_prompt(request: Request, context: ContextOf, session_id: str) -> Response:
    """Whether the session can go on from here, whether it does, and how the last prompt failed."""
    session = context.store.session(session_id)
    can_go_on = context.prompts is not None and prompt_command(session) is not None
    return _answer(request, context, session_id, can_go_on=can_go_on)


@router.post("/prompt", responses=answers_with(PromptAnswer), dependencies=[Depends(takes_json)])
def post_prompt(request: Request, context: ContextOf, session_id: str, body: PromptBody) -> Response:
    """Let the session's agent answer a prompt."""
    prompts = _prompts(context)
    session = context.store.session(session_id)
    command = prompt_command(session)
    if command is None:
        raise HTTPException(409, f"{session.agent} cannot go on with this session")
    state = session_states(context.store, [session_id]).get(session_id)
    if state is not None and state.state == "running":
        raise HTTPException(409, "the session's agent is at work: two at once would spoil its log")
    try:
        prompts.begin(session, command, body.text)
    except ConflictError as error:
        raise HTTPException(409, str(error)) from error
    return _answer(request, context, session_id, can_go_on=True)


@router.delete("/prompt", responses=answers_with(PromptAnswer))
def delete_prompt(request: Request, context: ContextOf, session_id: str) -> Response:
    """Stop the agent that answers a prompt."""
    prompts = _prompts(context)
    context.store.session(session_id)
    prompts.stop(session_id)
    return _answer(request, context, session_id, can_go_on=True)


def _prompts(context: Context) -> Prompts:
    if context.prompts is None:
        raise HTTPException(403, "this server takes no prompts: it was started without --prompts")
    return context.prompts


def _answer(request: Request, context: Context, session_id: str, *, can_go_on: bool) -> Response:
    state = context.prompts.state(session_id) if context.prompts else None
    answer = PromptAnswer(
        can_go_on=can_go_on,
        running=state is not None and state.is_running,
        problem=None if state is None else state.problem,
    )
    return write(request, answer)
