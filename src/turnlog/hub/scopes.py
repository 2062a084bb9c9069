"""Which scopes each address of the API takes: one table, which is looked at before anything is answered.

An address that is not in the table is not answered, so that a new one cannot be forgotten.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from turnlog.hub.callers import ROLES, Power, Role
from turnlog.hub.people.secrets import ALLOWED

Need: TypeAlias = tuple[frozenset[Power], ...]
"""Any one of these sets is enough."""

ANYBODY: Final[Literal["anybody"]] = "anybody"

KNOWN: Final[Need] = (frozenset(),)
"""Whoever is known, with whatever scope."""

READ: Final[Need] = (frozenset({"read"}),)
PUSH: Final[Need] = (frozenset({"push"}),)
ADMIN: Final[Need] = (frozenset({"admin"}),)

SHARE: Final[Need] = (frozenset({"push", "read"}),)
"""It shows what is there to others, or says something of it: pushing alone is not enough."""

TEAM: Final[Need] = (frozenset({"read"}), frozenset({"admin"}))

BROWSER: Final[Need] = (frozenset({"browser"}),)
"""A person decides it: a token never becomes a browser that is signed in, nor another machine."""

KEYS: Final[Need] = (frozenset({"browser"}), frozenset({"admin"}))
"""Tokens, machines and memberships: a person, or a token that may change the team."""

NEEDS: Final[Mapping[str, Need | Literal["anybody"]]] = {
    # -- the API of sessions
    "GET /api/agents": READ,
    "GET /api/blobs/{sha256}": READ,
    "GET /api/diagnostics": READ,
    "GET /api/events": READ,
    "GET /api/files": READ,
    "GET /api/files/touched": READ,
    "GET /api/insights": READ,
    "GET /api/mcp": READ,
    "POST /api/mcp": READ,
    "DELETE /api/mcp": READ,
    "GET /api/messages/{message_id:path}": READ,
    "GET /api/messages/{message_id:path}/raw": READ,
    "GET /api/models": READ,
    "GET /api/parts/{part_id:path}": READ,
    "GET /api/projects": READ,
    "PATCH /api/projects": ADMIN,
    "GET /api/runs": READ,
    "GET /api/runs/{run_id}": READ,
    "GET /api/runs/{run_id}/messages": READ,
    "GET /api/search": READ,
    "GET /api/sessions": READ,
    "POST /api/sessions": PUSH,
    "GET /api/sessions/{session_id}": READ,
    "PATCH /api/sessions/{session_id}": PUSH,
    "DELETE /api/sessions/{session_id}": PUSH,
    "GET /api/sessions/{session_id}/chat/stream": READ,
    "GET /api/sessions/{session_id}/commits": READ,
    "GET /api/sessions/{session_id}/context": READ,
    "GET /api/sessions/{session_id}/events": READ,
    "GET /api/sessions/{session_id}/events/{position}": READ,
    "GET /api/sessions/{session_id}/export": READ,
    "GET /api/sessions/{session_id}/files": READ,
    "POST /api/sessions/{session_id}/forget": PUSH,
    "POST /api/sessions/{session_id}/messages": PUSH,
    "GET /api/sessions/{session_id}/outline": READ,
    "PUT /api/sessions/{session_id}/ownership": PUSH,
    "GET /api/sessions/{session_id}/prompt": READ,
    "POST /api/sessions/{session_id}/prompt": SHARE,
    "DELETE /api/sessions/{session_id}/prompt": SHARE,
    "POST /api/sessions/{session_id}/prompt/answer": SHARE,
    "GET /api/sessions/{session_id}/replay": READ,
    "GET /api/sessions/{session_id}/spills/{name:path}": READ,
    "POST /api/sessions/{session_id}/tool-calls": PUSH,
    "GET /api/sessions/{session_id}/ui-messages": READ,
    "GET /api/sessions/{session_id}/window": READ,
    "GET /api/status": READ,
    "GET /api/tasks": READ,
    "POST /api/tasks": PUSH,
    "GET /api/tasks/{task_id:path}": READ,
    "PATCH /api/tasks/{task_id:path}": PUSH,
    "DELETE /api/tasks/{task_id:path}": PUSH,
    "GET /api/tool-calls": READ,
    "GET /api/tools": READ,
    "GET /api/usage": READ,
    "GET /api/usage/comparison": READ,
    # -- signing in
    "GET /hub/pages/{name}": ANYBODY,
    "GET /hub/v1/sign-in": ANYBODY,
    "POST /hub/v1/sign-in": ANYBODY,
    "POST /hub/v1/sign-in/links": BROWSER,
    "POST /hub/v1/sign-out": ANYBODY,
    "POST /hub/v1/invitations/accept": ANYBODY,
    "POST /hub/v1/links/open": ANYBODY,
    "GET /hub/v1/me": KNOWN,
    "POST /hub/v1/me/team": BROWSER,
    # -- the team
    "GET /hub/v1/team": TEAM,
    "PATCH /hub/v1/team": ADMIN,
    "POST /hub/v1/teams": ADMIN,
    "GET /hub/v1/people": READ,
    "GET /hub/v1/shared": READ,
    "GET /hub/v1/members": TEAM,
    "PATCH /hub/v1/members/{user_id}": ADMIN,
    "DELETE /hub/v1/members/{user_id}": KEYS,
    "GET /hub/v1/invitations": ADMIN,
    "POST /hub/v1/invitations": ADMIN,
    "DELETE /hub/v1/invitations/{invitation_id}": ADMIN,
    "GET /hub/v1/rules": TEAM,
    "PATCH /hub/v1/rules": ADMIN,
    "GET /hub/v1/rules/retention": ADMIN,
    "POST /hub/v1/rules/agreement": BROWSER,
    "GET /hub/v1/usage": ADMIN,
    "GET /hub/v1/budgets": TEAM,
    "POST /hub/v1/budgets": ADMIN,
    "DELETE /hub/v1/budgets/{budget_id}": ADMIN,
    "GET /hub/v1/audit": READ,
    "GET /hub/v1/audit/team": ADMIN,
    # -- tokens and machines
    "GET /hub/v1/tokens": TEAM,
    "POST /hub/v1/tokens": KEYS,
    "DELETE /hub/v1/tokens/{token_id}": KEYS,
    "GET /hub/v1/machines": TEAM,
    "DELETE /hub/v1/machines/{machine_id}": KEYS,
    "POST /hub/v1/device": ANYBODY,
    "POST /hub/v1/device/token": ANYBODY,
    "GET /hub/v1/device/{code}": BROWSER,
    "POST /hub/v1/device/{code}": BROWSER,
    # -- sharing
    "GET /hub/v1/sessions/{session_id}/sharing": READ,
    "PUT /hub/v1/sessions/{session_id}/sharing": SHARE,
    "POST /hub/v1/sessions/{session_id}/links": SHARE,
    "DELETE /hub/v1/sessions/{session_id}/links/{link_id}": SHARE,
    "GET /hub/v1/trash": READ,
    "PUT /hub/v1/sessions/{session_id}/trash": SHARE,
    "DELETE /hub/v1/sessions/{session_id}/trash": SHARE,
    # -- the API of machines
    "GET /hub/v1/position": PUSH,
    "POST /hub/v1/batches": PUSH,
    "POST /hub/v1/archives": PUSH,
    "POST /hub/v1/archives/sizes": PUSH,
    "POST /hub/v1/blobs/missing": PUSH,
    "PUT /hub/v1/blobs/{sha256}": PUSH,
    "GET /hub/v1/blobs/{sha256}": READ,
    "GET /hub/v1/logs": READ,
    "GET /hub/v1/sessions/{session_id:path}/logs": READ,
}
"""Method and address -> what it takes. Roles and ownership are asked for besides."""


OWNERS: Final = frozenset({"PATCH /hub/v1/rules", "GET /hub/v1/rules/retention", "POST /hub/v1/teams"})
"""What only owners may, with whatever scope."""


def roles_for(method: str, path: str, need: Need) -> tuple[Role, ...]:
    """The roles that may do what needs this, at least with a browser; from most to least."""
    if f"{method} {path}" in OWNERS:
        return ("owner",)
    return tuple(role for role in ROLES if has(ALLOWED[role] | {"browser"}, need))


def need_of(method: str, path: str) -> Need | Literal["anybody", "another method", "nothing"]:
    """What a request takes; `nothing` for a path without an address, which is none of the API."""
    found = [needs for pattern, needs in _PATTERNS if pattern.fullmatch(path)]
    if exact := _EXACT.get(path):
        found.insert(0, exact)
    if not found:
        return "nothing"
    for needs in found:
        if method in needs:
            return needs[method]
    return "another method"


def has(powers: frozenset[str], need: Need) -> bool:
    """Whether somebody may do what needs this."""
    return any(each <= powers for each in need)


_Needs: TypeAlias = dict[str, Need | Literal["anybody"]]
"""Method -> what it takes."""


def _addresses() -> dict[str, _Needs]:
    found: dict[str, _Needs] = {}
    for operation, need in NEEDS.items():
        method, _, template = operation.partition(" ")
        found.setdefault(template, {})[method] = need
    return found


def _pattern(template: str) -> re.Pattern[str]:
    pieces = re.split(r"(\{[^}]*\})", template)
    values = [".*" if piece.endswith(":path}") else "[^/]+" if piece.startswith("{") else None for piece in pieces]
    return re.compile(
        "".join([value or re.escape(piece) for value, piece in zip(values, pieces, strict=True)]), re.DOTALL
    )


_EXACT: Final = {template: needs for template, needs in _addresses().items() if "{" not in template}

# What says more of a path goes first, as the routes do.
_PATTERNS: Final = [
    (_pattern(template), needs)
    for template, needs in sorted(_addresses().items(), key=lambda each: (":path" in each[0], -len(each[0])))
    if "{" in template
]
