"""Machines, and how one joins: RFC 8628, with the page `/connect`."""

from __future__ import annotations

from typing import Annotated

import msgspec
from fastapi import APIRouter, Query, Request
from pydantic import Field, StrictBool
from starlette.exceptions import HTTPException
from starlette.responses import Response

from turnlog.hub.access import CLIENT
from turnlog.hub.bodies import MachineList
from turnlog.hub.people.machines import DeviceCode, Enrolment, Joined
from turnlog.hub.routes.base import JSON, Body, HubOf, Label, Name, UserOf, refuse_guesses
from turnlog.hub.routes.tokens import Whose
from turnlog.server.context import write
from turnlog.server.openapi import responds_with

router = APIRouter(default_response_class=Response, prefix="/hub/v1", tags=["machines"])


class DeviceBody(Body):
    """The machine that wants to join."""

    machine: Name
    platform: Label = ""


class DeviceTokenBody(Body):
    """The answer to the machine."""

    device_code: Annotated[str, Field(min_length=1, max_length=200)]


class AnswerBody(Body):
    """Whether the machine may push."""

    allow: StrictBool


class DeviceRefusal(msgspec.Struct, frozen=True):
    """Why there is no token: `authorization_pending`, `slow_down`, `expired_token` or `access_denied`."""

    error: str


@router.post("/device", responses=responds_with(DeviceCode), dependencies=JSON)
def ask_to_join(request: Request, hub: HubOf, body: DeviceBody) -> Response:
    """Begin to join: a code for the machine, and one for its person."""
    wait = hub.failures.take(f"device {request.scope[CLIENT]}")
    if wait:
        raise HTTPException(429, "too many machines at once", {"Retry-After": str(int(wait) + 1)})
    found = hub.people.machines.ask(body.machine, body.platform, hub.address(request, "/connect"))
    return _secret(write(request, found))


@router.post("/device/token", responses=responds_with(Joined), dependencies=JSON)
def get_device_token(request: Request, hub: HubOf, body: DeviceTokenBody) -> Response:
    """The machine's token, once its person said yes; else 400 and why there is none (RFC 8628)."""
    found = hub.people.machines.poll(body.device_code)
    if isinstance(found, Joined):
        hub.people.audit.note(int(found.team), found.user, "connect machine", found.machine, owner=found.user)
        return _secret(write(request, found))
    if found == "expired_token":
        refuse_guesses(request, hub)
    return _secret(Response(msgspec.json.encode(DeviceRefusal(found)), 400, media_type="application/json"))


@router.get("/device/{code}", responses=responds_with(Enrolment))
def get_enrolment(request: Request, hub: HubOf, caller: UserOf, code: str) -> Response:
    """Which machine shows this code."""
    found = hub.people.machines.enrolment(code)
    if found is None:
        refuse_guesses(request, hub)
        raise HTTPException(404, "no machine shows this code")
    return _secret(write(request, found))


@router.post("/device/{code}", responses=responds_with(Enrolment), dependencies=JSON)
def answer_enrolment(request: Request, hub: HubOf, caller: UserOf, code: str, body: AnswerBody) -> Response:
    """Say yes or no to the machine that shows this code; with a yes, it pushes for the caller."""
    if "push" not in caller.scopes:
        raise HTTPException(403, "you may not push here")
    found = hub.people.machines.answer(code, caller.team_key, caller.user, allow=body.allow)
    if found is None:
        refuse_guesses(request, hub)
        raise HTTPException(404, "no machine shows this code")
    return write(request, found)


@router.get("/machines", responses=responds_with(MachineList))
def list_machines(request: Request, hub: HubOf, caller: UserOf, query: Annotated[Whose, Query()]) -> Response:
    """The caller's machines, or everybody's for an admin."""
    if query.everybody and "admin" not in caller.scopes:
        raise HTTPException(403, "only an admin sees the machines of others")
    user = None if query.everybody else caller.user
    return write(request, MachineList(hub.people.machines.all_of(caller.team_key, user=user)))


@router.delete("/machines/{machine_id}", status_code=204, responses=responds_with(None))
def end_machine(hub: HubOf, caller: UserOf, machine_id: str) -> Response:
    """Let a machine push and read no more, at once. What it pushed stays."""
    user = None if "admin" in caller.scopes else caller.user
    owners = {each.id: each.user for each in hub.people.machines.all_of(caller.team_key, user=user)}
    if not hub.people.machines.end(caller.team_key, machine_id, user=user):
        raise HTTPException(404, "there is no such machine")
    hub.note(caller, "end machine", machine_id, owner=owners.get(machine_id, ""))
    return Response(status_code=204)


def _secret(response: Response) -> Response:
    response.headers["Cache-Control"] = "no-store"
    return response
