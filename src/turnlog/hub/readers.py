"""What a hub says of who reads a person's sessions: read by the machine's side too."""

from __future__ import annotations

from typing import Literal

import msgspec


class SharedSession(msgspec.Struct, frozen=True, kw_only=True):
    """A session of the caller that others may read, too, or may when it comes again. Its subagents go with it."""

    id: str
    visibility: Literal["people", "team", "link"]
    people: list[str]
    """Names of the people that it is shown to; with the visibility `people`."""


class SharedSessions(msgspec.Struct, frozen=True, kw_only=True):
    """The sessions of the caller that others may read."""

    items: list[SharedSession]
    new_sessions: Literal["private", "team"]
    """To whom a session is shown that comes now: the rule of the team, if the caller has agreed to it."""
