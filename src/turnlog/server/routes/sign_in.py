"""`/api/sign-in`: how a browser gets what it needs to be answered, by a link that works once."""

from __future__ import annotations

import logging
from math import ceil
from typing import Annotated
from urllib.parse import quote

import msgspec
from fastapi import Query, Request
from pydantic import Field
from starlette.exceptions import HTTPException
from starlette.responses import Response

from turnlog.server.access import SignInLink, TooManyCodesError, WrongCodeError
from turnlog.server.bodies import read_body
from turnlog.server.context import LocalContextOf, write
from turnlog.server.errors import InvalidParameterError
from turnlog.server.network import peer_of
from turnlog.server.openapi import responds_with
from turnlog.server.responses import SignInLinkResponse, SignInResponse
from turnlog.server.routes.parameters import QueryParameters
from turnlog.server.routes.router import api_router

router = api_router("/sign-in", tags=["sign-in"])

_log = logging.getLogger(__name__)

_LONGEST = 1000
"""Bytes of a body with a code."""


class SignInBody(msgspec.Struct, forbid_unknown_fields=True):
    """The code of a link."""

    code: str


_BODY = {
    "required": True,
    "content": {
        "application/json": {
            "schema": {"type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"]}
        }
    },
}


@router.post("", responses=responds_with(SignInResponse), openapi_extra={"requestBody": _BODY})
async def sign_in(request: Request, context: LocalContextOf) -> Response:
    """The page's key for the code of a link. A code works once, and for ten minutes."""
    if context.sign_in is None:
        raise HTTPException(409, "this server needs no sign-in")
    peer = peer_of(request.scope)
    if await peer.is_foreign():
        _log.warning("another user of this machine tried to sign in with a code")
        raise HTTPException(403, "this link is for the user who started turnlog")
    try:
        code = msgspec.json.decode(await read_body(request, _LONGEST), type=SignInBody).code
    except msgspec.ValidationError as error:
        raise InvalidParameterError("code", str(error)) from error
    except msgspec.DecodeError as error:
        raise HTTPException(400, "the body is not JSON") from error
    try:
        key = context.sign_in.redeem(code, "" if peer.client is None else peer.client[0])
    except WrongCodeError:
        raise HTTPException(
            403, "this code is wrong, was used or is too old: `turnlog open` makes another one"
        ) from None
    except TooManyCodesError as error:
        seconds = ceil(error.seconds)
        headers = {"Retry-After": str(seconds)}
        raise HTTPException(429, f"too many wrong codes: wait {seconds} seconds", headers) from None
    response = write(request, SignInResponse(key=key))
    response.headers["Cache-Control"] = "no-store"
    return response


class LinkQuery(QueryParameters):
    """What becomes of a link."""

    opened: bool = Field(
        False, description="The server starts a program to open it, so other users may see it in the list of processes."
    )
    session: str | None = Field(None, description="Open the page of this session.")


@router.post("/links", responses=responds_with(SignInLinkResponse))
def make_link(request: Request, context: LocalContextOf, query: Annotated[LinkQuery, Query()]) -> Response:
    """A link that signs one browser in. `turnlog open` asks for it."""
    page = context.settings.page or str(request.base_url)
    if query.session is not None:
        page = f"{page.rstrip('/')}/sessions/{quote(query.session, safe=':')}"
    link = SignInLink(page) if context.sign_in is None else context.sign_in.link(page, opened=query.opened)
    body = SignInLinkResponse(address=link.address, file=None if link.file is None else str(link.file))
    response = write(request, body)
    response.headers["Cache-Control"] = "no-store"
    return response
