"""Tokens of people, and browsers that are signed in."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import APIRouter, Query, Request
from pydantic import Field
from starlette.exceptions import HTTPException
from starlette.responses import Response

from turnlog.hub.bodies import NewToken, TokenItem, Tokens
from turnlog.hub.callers import Scope
from turnlog.hub.people.secrets import Kind
from turnlog.hub.routes.base import JSON, Body, HubOf, Name, UserOf, token_of
from turnlog.server.context import write
from turnlog.server.openapi import responds_with

router = APIRouter(default_response_class=Response, prefix="/hub/v1", tags=["tokens"])

_KINDS: Final[tuple[Kind, ...]] = ("personal", "browser")


class NewTokenBody(Body):
    """What a token is for, what it allows, and for how long."""

    name: Name
    scopes: Annotated[frozenset[Scope], Field(min_length=1)] = frozenset({"read"})
    days: Annotated[int, Field(ge=1, le=3650, strict=True)] | None = 90
    """Null: without end."""


class Whose(Body):
    """Whose tokens."""

    everybody: bool = False


@router.get("/tokens", responses=responds_with(Tokens))
def list_tokens(request: Request, hub: HubOf, caller: UserOf, query: Annotated[Whose, Query()]) -> Response:
    """The caller's tokens and browsers, or everybody's for an admin."""
    if query.everybody and "admin" not in caller.scopes:
        raise HTTPException(403, "only an admin sees the tokens of others")
    user = None if query.everybody else caller.user
    found = hub.people.secrets.all_of(caller.team_key, _KINDS, user=user)
    return write(request, Tokens([TokenItem.of(each) for each in found]))


@router.post("/tokens", responses=responds_with(NewToken), dependencies=JSON)
def make_token(request: Request, hub: HubOf, caller: UserOf, body: NewTokenBody) -> Response:
    """A token of the caller. It is shown this once. One that is made with a token ends with that at the latest."""
    if not body.scopes <= caller.scopes:
        raise HTTPException(403, "a token may not allow more than you may do")
    token, secret = hub.people.secrets.make(
        "personal",
        team=caller.team_key,
        user=caller.user,
        scopes=body.scopes,
        name=body.name,
        seconds=None if body.days is None else body.days * 24 * 3600,
        made_by=token_of(caller),
    )
    hub.note(caller, "make token", secret.id, owner=caller.user, detail=" ".join(sorted(body.scopes)))
    response = write(request, NewToken(token, TokenItem.of(secret)))
    response.headers["Cache-Control"] = "no-store"
    return response


@router.delete("/tokens/{token_id}", status_code=204, responses=responds_with(None))
def end_token(hub: HubOf, caller: UserOf, token_id: str) -> Response:
    """Make a token, or a browser, invalid at once: one's own, or for an admin anybody's. What it made ends with it."""
    user = None if "admin" in caller.scopes else caller.user
    found = {each.id: each for each in hub.people.secrets.all_of(caller.team_key, _KINDS, user=user)}
    if token_id not in found or hub.people.secrets.end(caller.team_key, token_id, user=user) is None:
        raise HTTPException(404, "there is no such token")
    hub.note(caller, "end token", token_id, owner=found[token_id].user_id or "")
    return Response(status_code=204)
