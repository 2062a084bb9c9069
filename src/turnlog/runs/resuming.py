"""The commands with which the agent of a session goes on with it, and what must be there before it can."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from turnlog import agents
from turnlog.agents.base import Agent, RowAgent, SourceKind
from turnlog.agents.commands import CommandForm, prompted_command, resume_command
from turnlog.errors import NotFoundError, TurnlogError
from turnlog.model import Session
from turnlog.paths import find_program
from turnlog.plain_text import one_line, plain
from turnlog.store.base import Store


def resume_of(session: Session) -> list[str] | None:
    """The command that goes on with a session in a terminal; None if its agent has none."""
    form = _form_of(session)
    return None if form is None else resume_command(form, session.external_id)


def resume_line(session: Session) -> str | None:
    """The same as a line for a shell, which first goes to the session's folder."""
    command = resume_of(session)
    if command is None:
        return None
    return shell_line(session.cwd, command)


def shell_line(folder: str | None, command: Sequence[str]) -> str:
    """A line for a shell that starts a command in a folder, and that a terminal can show."""
    line = " ".join(map(_shell_word, command))
    return f"cd {_shell_word(folder)} && {line}" if folder else line


def _shell_word(text: str) -> str:
    """The text as a word for a shell.

    A name with what a terminal would obey, or nobody would see, is written as `$'…'`, with these characters as numbers.
    """
    if plain(text) == text and "\n" not in text:
        return shlex.quote(text)
    shown = (
        chr(byte) if 32 <= byte < 127 and chr(byte) not in "'\\" else f"\\{byte:03o}" for byte in os.fsencode(text)
    )
    return f"$'{''.join(shown)}'"


class Resumption(NamedTuple):
    """How a session is resumed in a terminal."""

    command: list[str]
    folder: Path
    """The folder to start it in."""
    home: Path | None
    """The agent's home that the session's log must be restored to; None if the log is there."""
    missing: list[Path]
    """Its files that the agent has deleted."""
    problems: Sequence[str] = ()
    """Why the command cannot be started here as things are, though it is right."""


def plan_resumption(store: Store, session: Session) -> Resumption:
    """What resumes a session. Nothing is changed. Raises NotFoundError if its agent has no command for it.

    It cannot be started, and `problems` says so, if the agent is not installed, or has lost what the store cannot give
    back: the folder of the session, a session of a database, a home that has moved.
    """
    agent = agents.agent(session.agent)
    command = resume_of(session)
    if command is None:
        reason = "as a subagent, only its parent can be" if is_subagent(session) else "its agent has no command for it"
        raise NotFoundError(f"{session.id} cannot be resumed: {reason}")
    problems: list[str] = []
    if find_program(command[0]) is None:
        problems.append(f"{agent.display_name} is not installed here: there is no program {command[0]!r}")
    home: Path | None = None
    missing: list[Path] = []
    try:
        home, missing = _what_is_missing(store, session, agent)
    except NotFoundError as error:
        problems.append(str(error))
    gone = folder_problem(session)
    if gone is not None:
        problems.append(gone)
    return Resumption(command, Path(session.cwd or Path.cwd()), home, missing, problems)


def folder_problem(session: Session) -> str | None:
    """Why the agent cannot be started where the session was, if its folder is gone, and what can be done."""
    if session.cwd is None or Path(session.cwd).is_dir():
        return None
    hint = "`turnlog resume SESSION --folder DIR` goes on in another one, as a new session"
    if not _takes_sessions(session.agent):
        hint = "`turnlog resume SESSION --in AGENT --folder DIR` goes on in another one, with another agent"
    return f"the folder of the session is gone: {one_line(session.cwd)}; {hint}"


def _takes_sessions(name: str) -> bool:
    """Whether sessions can be handed to an agent; not to one that is not installed."""
    agent = _agent(name)
    return agent is not None and agent.handoff is not None


def _what_is_missing(store: Store, session: Session, agent: Agent) -> tuple[Path | None, list[Path]]:
    """The home to restore the session's files to, and the files that are gone; (None, []) if its log is there."""
    sources = [each for each in store.sources(session.id) if each.kind != SourceKind.HOOKS]
    # A source that the session shares with others names another; Gemini CLI's name none.
    own = [each for each in sources if each.kind == SourceKind.SESSION and each.session_id in (session.id, None)]
    if not own or any(each.vanished_at is None for each in own):
        return None, []
    if isinstance(agent, RowAgent):
        raise NotFoundError(
            f"{agent.display_name} has deleted {session.id} from its database;"
            f" `turnlog restore {shlex.quote(session.id)} --to DIR` writes a database with it"
        )
    log = Path(own[0].path)
    home = next((root for root in agent.roots() if root in log.parents), None)
    if home is None:
        raise NotFoundError(f"{log} was deleted, and is in no home of {agent.display_name} any more")
    return home, [Path(each.path) for each in sources if each.vanished_at is not None]


def is_subagent(session: Session) -> bool:
    """Whether a session is that of a subagent."""
    return any(link.kind == "subagent" for link in session.relationships)


def prompt_of(session: Session) -> list[str] | None:
    """The command that answers a prompt in a session without a screen; None if its agent has none."""
    form = _form_of(session)
    return None if form is None else prompted_command(form, session.external_id)


def _form_of(session: Session) -> CommandForm | None:
    """How its agent goes on with it; a subagent's session goes on only within its parent's."""
    if is_subagent(session):
        return None
    agent = _agent(session.agent)
    return None if agent is not None and not agent.resumes(session) else _command_form(session.agent)


def _command_form(name: str) -> CommandForm | None:
    """How the agent's command line is read; None for one that is not installed, or has none that is known."""
    agent = _agent(name)
    return None if agent is None else agent.command


@cache
def _agent(name: str) -> Agent | None:
    """The agent; None if it is not installed."""
    try:
        return agents.agent(name)
    except TurnlogError:
        return None
