"""`turnlog hub`: one place for the sessions of many machines and people."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import click

from turnlog.cli.options import examples
from turnlog.errors import TurnlogError


class _Entry(NamedTuple):
    module: str
    function: str
    summary: str


COMMANDS = {
    "serve": _Entry("hub_serve", "serve", "Run a hub."),
    "sign-in": _Entry("hub_serve", "sign_in", "Print a link that signs a person's browser in."),
    "connect": _Entry("hub_machine", "connect", "Connect this machine with a hub."),
    "push": _Entry("hub_machine", "push", "Send what has changed to the hub."),
    "level": _Entry("hub_levels", "level", "Choose how much of a project leaves this machine."),
    "agent": _Entry("hub_machine", "agent", "Send what changes, until Ctrl-C."),
    "status": _Entry("hub_machine", "status", "Show the hub of this machine, and how far it is."),
    "pull": _Entry("hub_machine", "pull", "Write a session's log files from the hub here."),
    "disconnect": _Entry("hub_machine", "disconnect", "Forget the hub on this machine."),
}
"""Command -> where it is, and what it does; in the order of `--help`."""


class _Commands(click.Group):
    """A group that imports a command when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All commands, in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name, imported now."""
        entry = COMMANDS.get(cmd_name)
        return None if entry is None else getattr(import_module(f"turnlog.cli.{entry.module}"), entry.function)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The table of commands, without importing one of them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.summary) for name, entry in COMMANDS.items()])


@click.group(
    cls=_Commands, epilog=examples("turnlog hub serve", "turnlog hub connect https://hub.example", "turnlog hub push")
)
def hub() -> None:
    """One place for the sessions of all your machines, or of a team."""


def require_extra() -> None:
    """Raise TurnlogError where the extra is not installed."""
    from importlib.util import find_spec

    missing = [
        name for name in ("psycopg", "psycopg_pool", "sqlglot", "authlib", "prometheus_client") if not find_spec(name)
    ]
    if missing:
        raise TurnlogError(f"a hub needs {', '.join(missing)}: pip install 'turnlog[hub]'")


ConfigPath = click.Path(path_type=Path, dir_okay=False)
