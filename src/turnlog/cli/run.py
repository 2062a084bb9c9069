"""`turnlog run`: an agent as it is, and a record of it."""

from __future__ import annotations

import errno
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from turnlog.cli.options import examples, store_option
from turnlog.cli.terminal import plain
from turnlog.errors import TurnlogError
from turnlog.store.write_lock import reporting_waits

if TYPE_CHECKING:
    from turnlog.store.runs import Run

NOT_FOUND, NOT_STARTED = 127, 126
"""Exit codes of a program that is not there, or cannot be run: as shells have them."""


@click.command(
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    epilog=examples(
        "turnlog run -- claude -p 'fix the tests'",
        "turnlog run -- codex exec --json 'fix the tests' | jq .",
        "turnlog run --agent claude-code -- ./nightly.sh",
        "turnlog runs                               # what became of them",
    ),
)
@click.option("--agent", "agent_name", help="The agent that is run, where the command does not tell.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@store_option
def run(command: tuple[str, ...], agent_name: str | None, store_path: Path) -> None:
    """Run COMMAND, an agent without a screen of its own, and keep a record of it.

    Input, output, errors, signals and the exit code are those of the command, byte for byte. When it has ended, the
    log that the agent wrote is read, and the record names its session.
    """
    # Standard error is the command's.
    with reporting_waits(None):
        _run(command, agent_name, store_path)


def _run(command: tuple[str, ...], agent_name: str | None, store_path: Path) -> None:
    from turnlog.cli.passing import leave, run_through
    from turnlog.runs.lifecycle import OutputKeeper, ended, new_run, output_path

    if agent_name is not None:
        _check_agent(agent_name)
    record = _Record(store_path, new_run("command", agent=agent_name, command=command, cwd=_cwd()))
    keeper = OutputKeeper(output_path(store_path, record.run.id))
    try:
        ending = run_through(command, keeper.add if record.is_kept else _leave_out, record.note_start)
    except OSError as error:
        click.echo(f"turnlog: {plain(command[0])}: {error.strerror}", err=True)
        record.keep(ended(record.run, None, error=f"{command[0]}: {error.strerror}"))
        leave(NOT_FOUND if error.errno == errno.ENOENT else NOT_STARTED)
    finally:
        keeper.close()
    record.keep(ended(record.run, ending.exit_code, stopped=ending.stopped, at=ending.at))
    record.link()
    leave(ending.exit_code)


def _leave_out(piece: bytes) -> None:
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
    """The run's row. Trouble with it is told, once, and never holds the agent up."""

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
        """The agent works: meanwhile, its command line is read."""
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
                # The row is there; `turnlog runs link` looks again.
                self.run = link_run(self._store_path, self.run)
