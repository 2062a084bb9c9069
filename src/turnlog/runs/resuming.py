"""The commands with which the agent of a session goes on with it."""

from __future__ import annotations

import shlex
from functools import cache

from turnlog import agents
from turnlog.agents.commands import CommandForm, prompted_command, resume_command
from turnlog.errors import TurnlogError
from turnlog.model import Session


def resume_of(session: Session) -> list[str] | None:
    """The command that goes on with a session in a terminal; None if its agent has none."""
    form = _form_of(session)
    return None if form is None else resume_command(form, session.external_id)


def resume_line(session: Session) -> str | None:
    """The same as a line for a shell, which first goes to the session's folder."""
    command = resume_of(session)
    if command is None:
        return None
    line = shlex.join(command)
    return f"cd {shlex.quote(session.cwd)} && {line}" if session.cwd else line


def prompt_of(session: Session) -> list[str] | None:
    """The command that answers a prompt in a session without a screen; None if its agent has none."""
    form = _form_of(session)
    return None if form is None else prompted_command(form, session.external_id)


def _form_of(session: Session) -> CommandForm | None:
    """How its agent goes on with it; a subagent's session goes on only within its parent's."""
    if any(link.kind == "subagent" for link in session.relationships):
        return None
    return _command_form(session.agent)


@cache
def _command_form(name: str) -> CommandForm | None:
    """How the agent's command line is read; None for one that is not installed, or has none that is known."""
    try:
        return agents.agent(name).command
    except TurnlogError:
        return None
