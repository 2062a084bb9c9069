"""`/api/projects`: the list, and the user's names and merges."""

from __future__ import annotations

from typing import Annotated, Self

from fastapi import Depends, Request
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from starlette.responses import Response

from turnlog.plain_text import refuse_controls
from turnlog.server.context import ContextOf, write
from turnlog.server.openapi import responds_with
from turnlog.server.responses import ProjectsResponse
from turnlog.server.routes.router import api_router
from turnlog.server.routes.sessions import may_annotate, takes_json
from turnlog.store.usage_report import ProjectSummary


class ProjectBody(BaseModel):
    """A change of one project: what is left out stays as it is."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: str = Field(min_length=1, description="The project's path.")
    name: Annotated[str, AfterValidator(refuse_controls)] | None = Field(
        None, max_length=200, description="Its name; null or nothing restores the folder's."
    )
    merged_into: str | None = Field(
        None, min_length=1, description="Path of the project that its sessions count to; null undoes the merge."
    )

    @model_validator(mode="after")
    def _changes_something(self) -> Self:
        if not self.model_fields_set - {"path"}:
            raise ValueError("give name or merged_into")
        return self


router = api_router()


@router.get("/projects", tags=["inventory"], responses=responds_with(ProjectsResponse))
def list_projects(request: Request, context: ContextOf) -> Response:
    """All projects, the last used first."""
    return write(request, ProjectsResponse(items=context.store.projects()))


@router.patch(
    "/projects",
    tags=["inventory"],
    responses=responds_with(ProjectSummary),
    dependencies=[Depends(takes_json), Depends(may_annotate)],
)
def patch_project(request: Request, context: ContextOf, body: ProjectBody) -> Response:
    """Rename a project, merge it into another, or undo the merge; the project that has its sessions then."""
    context.require_project(body.path)
    if body.merged_into is not None:
        context.require_project(body.merged_into)
    store = context.store
    project = store.rename_project(body.path, body.name) if "name" in body.model_fields_set else None
    if body.merged_into is not None:
        project = store.merge_projects(body.path, body.merged_into)
    elif "merged_into" in body.model_fields_set:
        project = store.split_project(body.path)
    context.live_topics.wake()
    return write(request, project)
