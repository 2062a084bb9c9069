"""Signing browsers in and out, and who is signed in."""

from __future__ import annotations

import logging
from typing import Annotated, Final

from fastapi import APIRouter, Request
from pydantic import Field
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from turnlog.hub.access import BROWSER_COOKIE, LINK_COOKIE
from turnlog.hub.bodies import Me, NewLink, OpenedLink, SignInChoices, TeamRole
from turnlog.hub.callers import CALLER, LINK, Caller
from turnlog.hub.openid import OpenIdError
from turnlog.hub.people.secrets import Secret
from turnlog.hub.people.teams import User
from turnlog.hub.routes.base import JSON, Body, CallerOf, HubOf, HubState, Name, UserOf, refuse_guesses
from turnlog.plain_text import one_line
from turnlog.server.context import write
from turnlog.server.openapi import responds_with

router = APIRouter(default_response_class=Response, prefix="/hub/v1", tags=["signing in"])

_log = logging.getLogger(__name__)

BROWSER_SECONDS: Final = 30 * 24 * 3600

SIGN_IN_SECONDS: Final = 600

PROVIDER: Final = "/sign-in/openid"
CALLBACK: Final = "/sign-in/openid/callback"

Code = Annotated[str, Field(min_length=1, max_length=200)]


class InvitationBody(Body):
    """The code of an invitation, and how its guest wants to be called."""

    code: Code
    name: Name


class CodeBody(Body):
    """The code of a link."""

    code: Code


class TeamBody(Body):
    """A team that the caller is in."""

    team: Annotated[str, Field(pattern=r"^[1-9]\d{0,8}$")]


@router.get("/sign-in", responses=responds_with(SignInChoices))
def get_choices(request: Request, hub: HubOf) -> Response:
    """How somebody can sign in."""
    openid = hub.settings.openid
    return write(request, SignInChoices(None if openid is None else openid.name))


@router.post("/sign-in", responses=responds_with(Me), dependencies=JSON)
def sign_in(request: Request, hub: HubOf, body: CodeBody) -> Response:
    """Sign this browser in with a link that another browser of the same person made."""
    secret = hub.people.secrets.redeem(body.code, "attempt")
    if secret is None or secret.user_id is None:
        refuse_guesses(request, hub)
        raise HTTPException(403, "this link is wrong, was used or is too old")
    return _signed_in(request, hub, hub.people.teams.user(secret.user_id), secret.team_key)


@router.post("/invitations/accept", responses=responds_with(Me), dependencies=JSON)
def accept_invitation(request: Request, hub: HubOf, body: InvitationBody) -> Response:
    """Become a member by an invitation, which works once, and sign this browser in."""
    caller: Caller | None = request.scope.get(CALLER)
    if caller is not None and caller.kind in ("token", "machine"):
        raise HTTPException(403, "a token accepts no invitation: open it in a browser")
    known = None if caller is None or caller.is_link else caller.user
    invitation = hub.people.secrets.find(body.code, "invitation")
    user = hub.people.teams.accept(body.code, body.name.strip() or "?", user=known)
    if user is None or invitation is None:
        refuse_guesses(request, hub)
        raise HTTPException(403, "this invitation is wrong, was used or is too old")
    assert invitation.team_key is not None
    hub.people.audit.note(invitation.team_key, user.id, "join", user.id, detail=invitation.role)
    return _signed_in(request, hub, user, invitation.team_key)


@router.get("/me", responses=responds_with(Me))
def get_me(request: Request, hub: HubOf, caller: CallerOf) -> Response:
    """Who makes this request, in which team."""
    teams = hub.people.teams
    session = None
    if caller.is_link:
        session = next(
            (
                each.session_id
                for each in hub.people.secrets.all_of(caller.team_key, ["link"])
                if each.id in caller.user
            ),
            None,
        )
    return write(
        request,
        Me(
            user=None if caller.is_link else teams.user(caller.user),
            team=teams.team(caller.team_key),
            role=caller.role,
            scopes=sorted(caller.scopes),  # type: ignore[arg-type]  # sorted keeps the type of what is in it
            machine=caller.machine,
            teams=[] if caller.is_link else [TeamRole(*each) for each in teams.teams_of(caller.user)],
            session=session,
            machine_name=None if caller.machine is None else hub.people.machines.name(caller.team_key, caller.machine),
        ),
    )


@router.post("/sign-in/links", responses=responds_with(NewLink), dependencies=JSON)
def make_sign_in_link(request: Request, hub: HubOf, caller: UserOf) -> Response:
    """A link that signs another browser of the caller in, once, within ten minutes."""
    code, secret = hub.people.secrets.make("attempt", team=caller.team_key, user=caller.user, seconds=SIGN_IN_SECONDS)
    address = hub.address(request, f"/sign-in#code={code}")
    return _secret(write(request, NewLink(address, secret.id, secret.expires_at)))


@router.post("/sign-out", status_code=204, responses=responds_with(None))
def sign_out(request: Request, hub: HubOf) -> Response:
    """Sign this browser out."""
    for name in (BROWSER_COOKIE, LINK_COOKIE):
        if name in request.cookies:
            hub.people.secrets.end_browser(request.cookies[name])
    response = Response(status_code=204)
    response.delete_cookie(BROWSER_COOKIE)
    response.delete_cookie(LINK_COOKIE)
    return response


@router.post("/me/team", responses=responds_with(Me), dependencies=JSON)
def change_team(request: Request, hub: HubOf, caller: UserOf, body: TeamBody) -> Response:
    """Look at another team with this browser."""
    if hub.people.teams.role_of(int(body.team), caller.user) is None:
        raise HTTPException(404, "there is no such team")
    return _signed_in(request, hub, hub.people.teams.user(caller.user), int(body.team))


@router.post("/links/open", responses=responds_with(OpenedLink), dependencies=JSON)
def open_link(request: Request, hub: HubOf, body: CodeBody) -> Response:
    """Let this browser read the session of a link."""
    secret: Secret | None = hub.people.secrets.find(body.code, "link")
    # The link of a session that was forgotten shows nothing.
    if secret is None or secret.session_id is None or not _shows(hub, secret, secret.session_id):
        refuse_guesses(request, hub)
        raise HTTPException(404, "this link is wrong, has expired or was revoked")
    response = write(request, OpenedLink(secret.session_id))
    _set_cookie(response, hub, request, LINK_COOKIE, body.code)
    return _secret(response)


def _shows(hub: HubState, link: Secret, session_id: str) -> bool:
    return link.team_key is not None and hub.people.sharing.may_read(link.team_key, f"{LINK}{link.id}", session_id)


# -- OpenID Connect, which is no part of the API: browsers are sent there and back

pages = APIRouter()


@pages.get(PROVIDER, include_in_schema=False)
async def go_to_provider(request: Request, hub: HubOf, code: str | None = None) -> Response:
    """Send the browser to the provider, with an invitation if it has one."""
    if hub.openid is None:
        raise HTTPException(404, "this hub has no OpenID Connect")
    try:
        address, state = await hub.openid.begin(hub.address(request, CALLBACK), code)
    except OpenIdError as error:
        return _not_signed_in(error)
    response = RedirectResponse(address, 303)
    _set_cookie(response, hub, request, _STATE_COOKIE, state, seconds=SIGN_IN_SECONDS)
    return _secret(response)


@pages.get(CALLBACK, include_in_schema=False)
async def come_back(request: Request, hub: HubOf) -> Response:
    """Sign in the browser that comes back from the provider."""
    if hub.openid is None:
        raise HTTPException(404, "this hub has no OpenID Connect")
    try:
        identity, code = await hub.openid.finish(
            dict(request.query_params), request.cookies.get(_STATE_COOKIE, ""), hub.address(request, CALLBACK)
        )
    except OpenIdError as error:
        await run_in_threadpool(refuse_guesses, request, hub)
        return _not_signed_in(error)

    def sign() -> Response:
        people = hub.people
        user = None
        if code is not None:
            user = people.teams.accept(code, identity.name, identity)
        if user is None:
            assert hub.settings.openid is not None
            user = people.known(identity, hub.settings.openid.joins)
        if user is None or not people.teams.teams_of(user.id):
            return RedirectResponse("/sign-in?reason=not-invited", 303)
        response = RedirectResponse("/", 303)
        _start_browser(response, request, hub, user, None)
        response.delete_cookie(_STATE_COOKIE)
        return _secret(response)

    return await run_in_threadpool(sign)


def _not_signed_in(error: OpenIdError) -> Response:
    """Back to the page of signing in, which says why: nobody but a browser asks these addresses."""
    _log.warning("nobody was signed in: %s", one_line(str(error)))
    return _secret(RedirectResponse(f"/sign-in?reason={error.reason}", 303))


_STATE_COOKIE: Final = "turnlog_attempt"


def _signed_in(request: Request, hub: HubState, user: User, team: int | None) -> Response:
    caller = hub.people.caller(user, team)
    if caller is None:
        raise HTTPException(403, "you are in no team of this hub")
    teams = hub.people.teams
    response = write(
        request,
        Me(
            user=user,
            team=teams.team(caller.team_key),
            role=caller.role,
            scopes=sorted(caller.scopes),  # type: ignore[arg-type]  # sorted keeps the type of what is in it
            machine=None,
            teams=[TeamRole(*each) for each in teams.teams_of(user.id)],
        ),
    )
    _start_browser(response, request, hub, user, caller.team_key)
    return _secret(response)


def _start_browser(response: Response, request: Request, hub: HubState, user: User, team: int | None) -> None:
    caller = hub.people.caller(user, team)
    assert caller is not None
    # The browser that was signed in before, if any, is another one from here on.
    if BROWSER_COOKIE in request.cookies:
        hub.people.secrets.end_browser(request.cookies[BROWSER_COOKIE])
    text, _ = hub.people.secrets.make("browser", team=caller.team_key, user=user.id, seconds=BROWSER_SECONDS)
    _set_cookie(response, hub, request, BROWSER_COOKIE, text)


def _set_cookie(
    response: Response, hub: HubState, request: Request, name: str, value: str, seconds: int = BROWSER_SECONDS
) -> None:
    is_secure = hub.address(request, "").startswith("https:")
    response.set_cookie(name, value, max_age=seconds, httponly=True, samesite="lax", secure=is_secure, path="/")


def _secret(response: Response) -> Response:
    response.headers["Cache-Control"] = "no-store"
    return response
