"""`/api/tasks`: tasks, to which sessions of one or several agents belong."""

from __future__ import annotations

from fastapi import Depends, Request
from starlette.responses import Response

from turnlog.plain_text import refuse_controls
from turnlog.server.context import ContextOf, write
from turnlog.server.errors import judging
from turnlog.server.openapi import creates, responds_with, takes
from turnlog.server.requests import TaskBody, TaskNameBody
from turnlog.server.responses import TasksResponse
from turnlog.server.routes.native import BodyOf, decode, may_write
from turnlog.server.routes.router import api_router
from turnlog.server.routes.sessions import takes_json
from turnlog.store.values import Task

router = api_router()
_WRITES = [Depends(may_write)]
_TAKES = [*_WRITES, Depends(takes_json)]


@router.get("/tasks", tags=["tasks"], responses=responds_with(TasksResponse))
def list_tasks(request: Request, context: ContextOf) -> Response:
    """Tasks that were created and tasks that sessions name, the last used first."""
    return write(request, TasksResponse(items=context.store.tasks()))


@router.post(
    "/tasks",
    tags=["tasks"],
    status_code=201,
    responses=creates(Task),
    openapi_extra=takes(TaskBody),
    dependencies=_TAKES,
)
def create_task(request: Request, context: ContextOf, data: BodyOf) -> Response:
    """Create a task; 409 for an id that is taken. Sessions join it by `ownership.task`."""
    body = decode(data, TaskBody)
    with judging("name"):
        refuse_controls(body.name)
    task = context.store.create_task(body.name, task_id=body.id, user=context.user)
    answer = write(request, task)
    answer.status_code = 201
    return answer


@router.get("/tasks/{task_id:path}", tags=["tasks"], responses=responds_with(Task))
def get_task(request: Request, context: ContextOf, task_id: str) -> Response:
    """A task; its sessions are `/api/sessions?task=`."""
    return write(request, context.store.task(task_id))


@router.patch(
    "/tasks/{task_id:path}",
    tags=["tasks"],
    responses=responds_with(Task),
    openapi_extra=takes(TaskNameBody),
    dependencies=_TAKES,
)
def rename_task(request: Request, context: ContextOf, task_id: str, data: BodyOf) -> Response:
    """Give a task another name; its id stays."""
    body = decode(data, TaskNameBody)
    with judging("name"):
        refuse_controls(body.name)
    context.require_own_task(task_id)
    return write(request, context.store.rename_task(task_id, body.name, user=context.user))


@router.delete(
    "/tasks/{task_id:path}", tags=["tasks"], status_code=204, responses=responds_with(None), dependencies=_WRITES
)
def delete_task(context: ContextOf, task_id: str) -> Response:
    """Delete a task; its sessions stay, in no task."""
    context.require_own_task(task_id)
    context.store.delete_task(task_id, user=context.user)
    context.live_topics.wake()
    return Response(status_code=204)
