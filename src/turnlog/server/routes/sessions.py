"""`/api/sessions`: the list, one session with its relatives and outline, annotations, exports."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Depends, HTTPException, Query, Request
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictBool
from starlette.responses import Response

from turnlog.errors import ConversionError, NotFoundError
from turnlog.exports import ExportFormat, export_session
from turnlog.model import Session
from turnlog.plain_text import refuse_controls, refuse_controls_in_text
from turnlog.runs.states import sessions_of_status
from turnlog.server.context import ContextOf, context_of, write
from turnlog.server.errors import InvalidParameterError, judging
from turnlog.server.openapi import BYTES, responds_with
from turnlog.server.responses import ContextResponse, OutlineResponse, SessionItem, SessionPage, SessionResponse
from turnlog.server.routes.parameters import ListPage, Moment, QueryParameters, explain_nothing, to_zone
from turnlog.server.routes.router import api_router
from turnlog.store.base import HourOfWeek, SessionFilter, Store
from turnlog.store.choices import SessionHaving, SessionSort, SessionStatus
from turnlog.store.insights import context_to_csv
from turnlog.store.values import AnnotationsChange, Page


class SessionQuery(QueryParameters):
    """Which sessions, in which order."""

    agent: str | None = None
    project: str | None = Field(None, description="Path of the project, or its name.")
    model: str | None = None
    branch: str | None = None
    title: str | None = Field(None, description="Text that the title contains, in any case.")
    since: Moment | None = None
    until: Moment | None = None
    relationship: Literal["subagent", "fork", "continuation"] | None = None
    parent: str | None = Field(None, description="Id of the session they came out of.")
    user: str | None = Field(None, description="Whose it is; with `team` and `task`, all of them.")
    team: str | None = None
    task: str | None = None
    machine: str | None = None
    native: bool | None = Field(None, description="`true`: only those that programs wrote through turnlog.")
    starred: bool | None = None
    archived: bool | None = None
    tag: str | None = None
    having: SessionHaving | None = Field(None, description="Only sessions with one, also in their subagents.")
    status: SessionStatus | None = Field(None, description="What they are doing now, as people read it.")
    hour: str | None = Field(
        None,
        pattern=r"^[1-7]-([01]?\d|2[0-3])$",
        description="An hour of the week in which something happened: `6-02` is Saturday (Monday is 1) from two.",
    )
    zone: str = Field("UTC", description="Time zone of `hour`: `Europe/Berlin`.")
    subagents: bool = Field(False, description="Whether subagents are listed too.")
    sort: SessionSort = "updated"
    limit: ListPage = 50
    cursor: str | None = None

    def to_filter(self) -> SessionFilter:
        """The same for the store."""
        values = self.model_dump(exclude={"sort", "limit", "cursor", "status", "hour", "zone"})
        return SessionFilter(**values, hour=self._hour())

    def _hour(self) -> HourOfWeek | None:
        if self.hour is None:
            return None
        weekday, _, hour = self.hour.partition("-")
        with judging("zone"):
            return HourOfWeek(int(weekday), int(hour), to_zone(self.zone))


class ExportQuery(QueryParameters):
    """Which document is made of a session."""

    as_: ExportFormat = Field(alias="as", description="The format, as in `turnlog export --as`.")
    redact: bool = Field(False, description="Whether secrets are taken out.")
    model: str | None = Field(None, description="The model that a request asks; by default the last that answered.")


class ContextQuery(QueryParameters):
    """How the steps are written."""

    format: Literal["json", "csv"] = "json"


Tag = Annotated[str, Field(min_length=1, max_length=100), AfterValidator(refuse_controls)]
MessageId = Annotated[str, Field(min_length=1, max_length=1000)]


class PromptBody(BaseModel):
    """What the agent is asked."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    text: str = Field(min_length=1, max_length=1_000_000)


class PromptAnswerBody(BaseModel):
    """Whether the agent may do what it asks leave for."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str = Field(description="Of the question.")
    allow: bool
    reason: str | None = Field(None, max_length=10_000, description="The message to the agent where it may not.")


class AnnotationsBody(BaseModel):
    """What is said about a session from now on: what is left out stays as it is, null and nothing empty it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: Annotated[str, AfterValidator(refuse_controls)] | None = Field(None, max_length=1000)
    starred: StrictBool = False
    archived: StrictBool = False
    tags: Annotated[tuple[Tag, ...], Field(max_length=100)] = ()
    note: Annotated[str, AfterValidator(refuse_controls_in_text)] | None = Field(None, max_length=100_000)
    pins: Annotated[tuple[MessageId, ...], Field(max_length=1000, description="Ids of pinned messages.")] = ()

    def to_change(self) -> AnnotationsChange:
        """The same for the store."""
        return AnnotationsChange(**self.model_dump(exclude_unset=True))


router = api_router()


@router.get("/sessions", tags=["sessions"], responses=responds_with(SessionPage))
def list_sessions(request: Request, context: ContextOf, query: Annotated[SessionQuery, Query()]) -> Response:
    """Sessions, page by page."""
    sequence = context.change_sequence()
    wanted = query.to_filter()

    def list_sessions(limit: int, cursor: str | None, *, count: bool = False) -> Page[Session]:
        return context.store.sessions(wanted, sort=query.sort, limit=limit, cursor=cursor, count=count)

    with judging("cursor"):
        if query.status is None:
            page = list_sessions(query.limit, query.cursor, count=True)
        else:
            page = sessions_of_status(list_sessions, context.items.states, query.status, query.limit, query.cursor)
    if not page.items and not query.cursor:
        explain_nothing(context, query)
    items = context.items.of(page.items)
    body = SessionPage(items=items, next_cursor=page.next_cursor, total=page.total, change_sequence=sequence)
    return write(request, body)


@router.get("/sessions/{session_id}", tags=["sessions"], responses=responds_with(SessionResponse))
def get_session(request: Request, context: ContextOf, session_id: str) -> Response:
    """A session and its relatives."""
    store, sequence = context.store, context.change_sequence()
    session = context.session(session_id)
    parent = _parent(store, session)
    children = store.children(session_id)
    items = {item.id: item for item in context.items.of([session, *children, *([parent] if parent else [])])}
    subagents = {child.id for child in children if _came_as_subagent(child, session_id)}
    first, last = store.extent(session_id) or (None, None)
    body = SessionResponse(
        session=items[session.id],
        parent=items[parent.id] if parent else None,
        children=[items[child.id] for child in children if child.id in subagents],
        forks=[items[child.id] for child in children if child.id not in subagents],
        first_position=first,
        last_position=last,
        change_sequence=sequence,
    )
    return write(request, body)


@router.get("/sessions/{session_id}/outline", tags=["sessions"], responses=responds_with(OutlineResponse))
def get_outline(request: Request, context: ContextOf, session_id: str) -> Response:
    """Prompts, compactions, rewinds and failures, in order."""
    etag = context.etag()
    entries = context.store.outline(session_id)
    if known := context.not_modified(request.headers, etag, session_id):
        return known
    return write(request, OutlineResponse(items=entries), etag)


@router.get(
    "/sessions/{session_id}/context",
    tags=["sessions"],
    responses=responds_with(ContextResponse, besides={"text/csv": {"schema": {"type": "string"}}}),
)
def get_context(
    request: Request, context: ContextOf, session_id: str, query: Annotated[ContextQuery, Query()]
) -> Response:
    """The model calls of a session, each with the size of what the model was sent."""
    steps = context.store.context_steps(session_id)
    if query.format == "csv":
        headers = {"Content-Disposition": 'attachment; filename="context.csv"'}
        return Response(context_to_csv(steps), headers=headers, media_type="text/csv")
    return write(request, ContextResponse(items=steps))


async def takes_json(request: Request) -> None:
    """Refuse a body of any other kind: a form of another site can send those."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise HTTPException(415, "the body must be application/json")


async def may_annotate(request: Request) -> None:
    """Refuse where nothing may be changed; the sample may be tried out."""
    if (await context_of(request)).settings.read_only:
        raise HTTPException(403, "this server is for reading only")


@router.patch(
    "/sessions/{session_id}",
    tags=["sessions"],
    responses=responds_with(SessionItem),
    dependencies=[Depends(takes_json), Depends(may_annotate)],
)
def patch_session(request: Request, context: ContextOf, session_id: str, body: AnnotationsBody) -> Response:
    """Change what is said about a session: its title, star, tags, note, pinned messages, and whether it is archived."""
    context.require_own(session_id)
    context.store.annotate(session_id, **body.to_change())
    context.live_topics.wake()
    (item,) = context.items.of([context.store.session(session_id)])
    return write(request, item)


def _parent(store: Store, session: Session) -> Session | None:
    """The session it came out of; None when there is none, or when it was never read."""
    if not session.relationships:
        return None
    try:
        return store.session(session.relationships[0].parent_session_id)
    except NotFoundError:
        return None


def _came_as_subagent(child: Session, session_id: str) -> bool:
    return any(link.kind == "subagent" and link.parent_session_id == session_id for link in child.relationships)


@router.get("/sessions/{session_id}/export", tags=["sessions"], responses=BYTES)
def get_export(context: ContextOf, session_id: str, query: Annotated[ExportQuery, Query()]) -> Response:
    """The document as a download; headers count what was lost, repaired (kinds) and masked (secrets)."""
    try:
        made = export_session(context.store, session_id, query.as_, redact=query.redact, model=query.model)
    except ConversionError as error:
        raise InvalidParameterError("model", str(error)) from error
    headers = {
        "Cache-Control": "private, no-cache",
        "Content-Disposition": f'attachment; filename="session.{made.format.extension}"',
        "X-Turnlog-Losses": str(len(made.losses)),
        "X-Turnlog-Repairs": str(len(made.repairs)),
        "X-Turnlog-Masked": str(sum(found.times for found in made.masked)),
    }
    return Response(made.data, headers=headers, media_type=made.format.media_type)
