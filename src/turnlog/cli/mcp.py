"""`turnlog mcp`: let coding agents search and read earlier sessions (Model Context Protocol)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from turnlog.cli.agent_settings import (
    Change,
    agents_argument,
    change_settings,
    changing_options,
    settings_options,
    show_settings,
    store_folder,
)
from turnlog.cli.fresh_store import fresh_store_option, open_fresh, refresher
from turnlog.cli.options import examples
from turnlog.errors import TurnlogError
from turnlog.store.names import find_project

if TYPE_CHECKING:
    from turnlog.agents.base import Agent

FIELD = "servers"

_MISSING = "turnlog mcp needs more packages: pip install 'turnlog[mcp]'"


def _known_agents() -> Mapping[str, Agent]:
    from turnlog.agents import agents_with_mcp

    return agents_with_mcp()


@click.group(
    invoke_without_command=True,
    epilog=examples(
        "turnlog mcp install claude codex         # shows what changes in their settings",
        "turnlog mcp install claude codex --yes",
        "turnlog mcp --all-projects               # what an agent's settings start",
    ),
)
@click.option("--project", metavar="PROJECT", help="Show this project only, given by path or name.")
@click.option("--all-projects", is_flag=True, help="Show all projects, not only that of the current folder.")
@click.option("--no-redact", is_flag=True, help="Keep secrets in what is shown.")
@fresh_store_option
@click.pass_context
def mcp(ctx: click.Context, *, project: str | None, all_projects: bool, no_redact: bool, store_path: Path) -> None:
    """Let a coding agent search and read earlier sessions, over standard input and output.

    The agent starts this command itself. It sees the sessions of the project that it works in, without secrets, and can
    change nothing. Tools: search_history, list_sessions, read_session, read_output, file_history, usage.
    """
    if ctx.invoked_subcommand is not None:
        return
    if project and all_projects:
        raise click.UsageError("--project and --all-projects exclude each other.")
    try:
        from turnlog.mcp.server import make_server
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith(("mcp", "pydantic")):
            raise
        raise TurnlogError(_MISSING) from error
    from turnlog.mcp.history import History, HistoryScope, project_of

    with open_fresh(store_path) as store:
        projects = store.projects()
        if project:
            named = find_project(store, project)
            shown = next(each.path for each in projects if named in (each.path, each.name))
        else:
            shown = project_of(projects, Path.cwd())
        scope = HistoryScope(None if all_projects else shown, is_redacted=not no_redact)
        history = History(store, store_path, scope)
        try:
            make_server(history, refresher(store_path)).run()
        finally:
            history.close()


@mcp.command(
    epilog=examples("turnlog mcp install claude            # shows it", "turnlog mcp install claude gemini --yes")
)
@changing_options(_known_agents)
@click.pass_context
def install(
    ctx: click.Context, agents: Mapping[str, Agent], yes: bool, project: Path | None, as_json: bool, store_path: Path
) -> None:
    """Add turnlog's server to the settings of agents, or renew it."""
    if find_spec("mcp") is None:
        raise TurnlogError(_MISSING)
    change_settings(ctx, FIELD, agents, _installation(store_path, project), yes=yes, as_json=as_json)


@mcp.command(epilog=examples("turnlog mcp remove claude             # shows it", "turnlog mcp remove claude --yes"))
@changing_options(_known_agents)
@click.pass_context
def remove(
    ctx: click.Context, agents: Mapping[str, Agent], yes: bool, project: Path | None, as_json: bool, store_path: Path
) -> None:
    """Remove turnlog's server from the settings of agents, and restore every byte that was there before."""
    from turnlog.mcp.settings import plan_remove

    plan = partial(plan_remove, folder=store_folder(store_path), project=project)
    removal = _installation(store_path, project)._replace(plan=plan)
    change_settings(ctx, FIELD, agents, removal, yes=yes, as_json=as_json)


@mcp.command(epilog=examples("turnlog mcp status", "turnlog mcp status claude --project ."))
@agents_argument(_known_agents, required=False)
@settings_options
@click.pass_context
def status(
    ctx: click.Context, agents: Mapping[str, Agent], project: Path | None, as_json: bool, store_path: Path
) -> None:
    """List which agents have turnlog's server, and in which file."""
    show_settings(ctx, FIELD, agents, _installation(store_path, project), as_json=as_json)


def _installation(store_path: Path, project: Path | None) -> Change:
    from turnlog.mcp.settings import carry_out, plan_install, server_command
    from turnlog.paths import database_path

    folder = store_folder(store_path)
    own = store_path.absolute() == database_path().absolute()
    return Change(
        plan=partial(
            plan_install,
            command=server_command(None if own else store_path.absolute()),
            folder=folder,
            project=project,
        ),
        carry_out=partial(carry_out, folder=folder),
        renewal="turnlog mcp install",
        absent="server not added",
        note=_note,
    )


def _note(agent: Agent) -> str:
    return agent.mcp.note if agent.mcp is not None else ""
