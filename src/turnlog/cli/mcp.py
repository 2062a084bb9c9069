"""`turnlog mcp`: let coding agents search and read earlier sessions (Model Context Protocol)."""

from __future__ import annotations

from pathlib import Path

import click

from turnlog.cli.filters import find_project
from turnlog.cli.fresh_store import fresh_store_option, open_fresh, refresher
from turnlog.cli.options import examples
from turnlog.errors import TurnlogError


@click.command(
    epilog=examples(
        "claude mcp add turnlog -- turnlog mcp                 # Claude Code",
        "codex mcp add turnlog -- turnlog mcp                  # Codex",
        "gemini mcp add turnlog turnlog mcp                    # Gemini CLI",
        "turnlog mcp --all-projects",
    )
)
@click.option("--project", metavar="PROJECT", help="Show this project only, given by path or name.")
@click.option("--all-projects", is_flag=True, help="Show all projects, not only that of the current folder.")
@click.option("--no-redact", is_flag=True, help="Keep secrets in what is shown.")
@fresh_store_option
def mcp(*, project: str | None, all_projects: bool, no_redact: bool, store_path: Path) -> None:
    """Let a coding agent search and read earlier sessions, over standard input and output.

    The agent starts this command itself. It sees the sessions of the project that it works in, without secrets, and can
    change nothing. Tools: search_history, list_sessions, read_session, read_output, file_history, usage.
    """
    if project and all_projects:
        raise click.UsageError("--project and --all-projects exclude each other.")
    try:
        from turnlog.mcp.server import make_server
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith(("mcp", "pydantic")):
            raise
        raise TurnlogError("turnlog mcp needs the extra `mcp`: install `turnlog[mcp]` where turnlog is") from error
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
