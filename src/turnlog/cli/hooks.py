"""`turnlog hooks`: install, remove and check the hooks by which agents report events as they happen."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
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
from turnlog.cli.options import examples

if TYPE_CHECKING:
    from turnlog.agents.base import Agent

FIELD = "hooks"


def _known_agents() -> Mapping[str, Agent]:
    from turnlog.agents import agents_with_hooks

    return agents_with_hooks()


@click.group()
def hooks() -> None:
    """Install hooks, so that agents report events before they log them.

    Only turnlog's own entries in the agents' settings change, and `remove` restores every byte.
    """


@hooks.command(
    epilog=examples("turnlog hooks install claude          # shows it", "turnlog hooks install claude codex --yes")
)
@changing_options(_known_agents)
@click.pass_context
def install(
    ctx: click.Context, agents: Mapping[str, Agent], yes: bool, project: Path | None, as_json: bool, store_path: Path
) -> None:
    """Add turnlog's hooks to the settings of agents, or renew them."""
    change_settings(ctx, FIELD, agents, _installation(store_path, project), yes=yes, as_json=as_json)


@hooks.command(epilog=examples("turnlog hooks remove claude           # shows it", "turnlog hooks remove claude --yes"))
@changing_options(_known_agents)
@click.pass_context
def remove(
    ctx: click.Context, agents: Mapping[str, Agent], yes: bool, project: Path | None, as_json: bool, store_path: Path
) -> None:
    """Remove turnlog's hooks from the settings of agents, and restore every byte that was there before."""
    from turnlog.hooks.settings import plan_remove

    plan = partial(plan_remove, folder=store_folder(store_path), project=project)
    removal = _installation(store_path, project)._replace(plan=plan)
    change_settings(ctx, FIELD, agents, removal, yes=yes, as_json=as_json)


@hooks.command(epilog=examples("turnlog hooks status", "turnlog hooks status claude --project ."))
@agents_argument(_known_agents, required=False)
@settings_options
@click.pass_context
def status(
    ctx: click.Context, agents: Mapping[str, Agent], project: Path | None, as_json: bool, store_path: Path
) -> None:
    """List which agents have turnlog's hooks, and in which file."""
    show_settings(ctx, FIELD, agents, _installation(store_path, project), as_json=as_json)


def _installation(store_path: Path, project: Path | None) -> Change:
    from turnlog.hooks.settings import carry_out, plan_install

    folder = store_folder(store_path)
    return Change(
        plan=partial(plan_install, folder=folder, project=project),
        carry_out=partial(carry_out, folder=folder),
        renewal="turnlog hooks install",
        absent="no hooks of turnlog",
        note=_note,
    )


def _note(agent: Agent) -> str:
    return agent.hooks.note if agent.hooks is not None else ""
