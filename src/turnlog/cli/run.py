"""`turnlog run`: run an agent in this process's place, and record the run.

The agent keeps its standard input and standard error. It also keeps standard output if that is a terminal; otherwise
its bytes are copied through this process, unchanged and at once, so that they can be kept. Signals are forwarded,
except those of a terminal: the agent has received these already.
"""

from __future__ import annotations

import errno
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from turnlog import paths
from turnlog.cli.options import examples, store_option
from turnlog.errors import TurnlogError
from turnlog.hooks.send import TASK_VARIABLE, task_of
from turnlog.plain_text import plain
from turnlog.platforms.programs import exit_like, run_process
from turnlog.store.write_lock import reporting_waits

if TYPE_CHECKING:
    from turnlog.store.values import Run


NOT_FOUND, NOT_STARTED = 127, 126
"""Exit codes of shells for a program that does not exist or cannot be run."""


@click.command(
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    epilog=examples(
        "turnlog run -- claude -p 'fix the tests'",
        "turnlog run -- codex exec --json 'fix the tests' | jq .",
        "turnlog run --agent claude-code -- ./nightly.sh",
        "turnlog runs                               # what became of them",
    ),
)
@click.option("--agent", "agent_name", help="Record this agent, if the command does not show which it is.")
@click.option("--task", envvar="TURNLOG_TASK", help="The task that the session belongs to, also that of hooks.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@store_option
def run(command: tuple[str, ...], agent_name: str | None, task: str | None, store_path: Path) -> None:
    """Run COMMAND, an agent without a terminal interface, and record the run.

    Input, output, errors, signals and the exit code are those of COMMAND, byte for byte. When it has ended, turnlog
    reads the log that the agent wrote and links the run to its session.
    """
    # Standard error is the command's.
    with reporting_waits(None):
        _run_recorded(command, agent_name, task_of(task or ""), store_path)


def _run_recorded(command: tuple[str, ...], agent_name: str | None, task: str, store_path: Path) -> None:
    from turnlog.runs.lifecycle import OutputKeeper, ended, new_run, output_path

    if agent_name is not None:
        _check_agent(agent_name)
    if task:
        # The agent inherits it, and its hooks from the agent.
        paths.set_variable(TASK_VARIABLE, task)
    record = _Record(store_path, new_run("command", agent=agent_name, command=command, cwd=_cwd()))
    keeper = OutputKeeper(output_path(store_path, record.run.id))
    try:
        ending = run_process(command, keeper.add if record.is_kept else _discard, record.note_start)
    except OSError as error:
        click.echo(f"turnlog: {plain(command[0])}: {error.strerror}", err=True)
        record.keep(ended(record.run, None, error=f"{command[0]}: {error.strerror}"))
        exit_like(NOT_FOUND if error.errno == errno.ENOENT else NOT_STARTED)
    finally:
        keeper.close()
    record.keep(ended(record.run, ending.exit_code, stopped=ending.stopped, at=ending.at))
    record.link()
    record.join(task)
    exit_like(ending.exit_code)


def _discard(data: bytes) -> None:
    """Keep nothing."""


def _check_agent(name: str) -> None:
    from turnlog.agents import agent

    try:
        agent(name)
    except TurnlogError as error:
        raise click.UsageError(str(error)) from error


def _cwd() -> str | None:
    with suppress(OSError):
        return str(Path.cwd())
    return None


class _Record:
    """The stored run. An error is reported once and never delays the agent."""

    def __init__(self, store_path: Path, run: Run) -> None:
        self.run = run
        self.is_kept = True
        self._store_path = store_path
        self.keep(run)

    def keep(self, run: Run) -> None:
        """Write the row."""
        from turnlog.runs.lifecycle import save

        self.run = run
        if self.is_kept:
            try:
                save(self._store_path, run)
            except TurnlogError as error:
                self.is_kept = False
                click.echo(f"turnlog: this run is not recorded: {plain(str(error))}", err=True)

    def note_start(self) -> None:
        """Record the start, and what the command line shows; the agent is already working meanwhile."""
        from turnlog.agents import started_agent
        from turnlog.runs.lifecycle import started

        run = started(self.run)
        found = started_agent(run.command)
        if found is not None:
            agent, facts = found
            run = msgspec.structs.replace(
                run,
                agent=run.agent or agent.name,
                prompt=facts.prompt,
                model=facts.model,
                system_prompt=facts.system_prompt,
                session_id=f"{agent.name}:{facts.session}" if facts.session else None,
            )
        self.keep(run)

    def link(self) -> None:
        """Find the session of the run."""
        from turnlog.runs.sessions import link_run

        if self.is_kept:
            with suppress(TurnlogError):
                # The run is stored without its session; `turnlog runs link` can look again.
                self.run = link_run(self._store_path, self.run)

    def join(self, task: str) -> None:
        """Put the session of the run into a task; nothing for an empty one."""
        from turnlog.store import open_store

        if task and self.run.session_id is not None:
            with suppress(TurnlogError), open_store(self._store_path) as store:
                # An agent that does not start has no session.
                session = store.session(self.run.session_id)
                store.change_owner(session.id, msgspec.structs.replace(session.ownership, task=task))
