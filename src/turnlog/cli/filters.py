"""Options that select by agent, project, model or tool: one spelling, completed by the shell.

`store.names` finds what a value means, and refuses one that nothing has.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import click

from turnlog import paths
from turnlog.cli.options import CommandT, open_existing
from turnlog.errors import TurnlogError
from turnlog.store.names import model_names, project_names, stored_agents, tool_names

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from turnlog.store.base import Store


def _complete(
    names: Callable[[Store], list[str]], ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """What the store has that begins with the word on the command line; nothing where there is no store."""
    from click.shell_completion import CompletionItem

    try:
        with open_existing(ctx.params.get("store_path") or paths.database_path()) as store:
            return [CompletionItem(name) for name in names(store) if name.startswith(incomplete)]
    except TurnlogError:
        return []


def agent_option(command: CommandT) -> CommandT:
    """`--agent NAME`; pass it through `find_agent`."""
    return click.option(
        "--agent",
        shell_complete=partial(_complete, stored_agents),
        help="Only this agent: a name from `turnlog agents`, or the beginning of one.",
    )(command)


def project_argument(name: str, *, required: bool = True) -> Callable[[CommandT], CommandT]:
    """A project as an argument; pass it through `find_project`."""
    return click.argument(name, required=required, shell_complete=partial(_complete, project_names))


def project_option(command: CommandT) -> CommandT:
    """`--project NAME`; pass it through `find_project`."""
    return click.option(
        "--project",
        shell_complete=partial(_complete, project_names),
        help="Only this project: its path, that of one of its git worktrees, its name, or the beginning of its name.",
    )(command)


def model_option(help: str = "Only this model.") -> Callable[[CommandT], CommandT]:
    """`--model NAME`; pass it through `find_model`."""
    return click.option("--model", shell_complete=partial(_complete, model_names), help=help)


def tool_option(command: CommandT) -> CommandT:
    """`--tool NAME`."""
    return click.option("--tool", shell_complete=partial(_complete, tool_names), help="Only calls of this tool.")(
        command
    )
