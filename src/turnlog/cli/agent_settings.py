"""What `turnlog hooks` and `turnlog mcp` share: they show a change of agents' settings, and make it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import click

from turnlog.cli.options import CommandT, json_option, store_option
from turnlog.cli.terminal import write_json
from turnlog.errors import TurnlogError
from turnlog.plain_text import plain

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from turnlog.agent_settings.changes import Plan
    from turnlog.agents.base import Agent
    from turnlog.cli.documents import AgentSettingsDocument

FAILED = 1

AgentsOf: TypeAlias = Callable[[], Mapping[str, "Agent"]]
"""Program -> agent, of the agents that a command can change."""


class Change(NamedTuple):
    """What a command changes in the settings of an agent."""

    plan: Callable[[Agent], Plan]
    carry_out: Callable[[Plan], None]
    renewal: str
    """The command that renews an outdated installation."""
    absent: str
    """The state of settings without any of it."""
    note: Callable[[Agent], str] = lambda agent: ""
    """What the user must know after the installation."""


class _Outcome(NamedTuple):
    """What was done, or would be done, to the settings of one agent."""

    program: str
    agent: Agent
    plan: Plan | None
    is_done: bool
    problem: str | None


def settings_options(command: CommandT) -> CommandT:
    """Options of all commands: `--project`, `--json`, `--store`."""
    command = click.option(
        "--project",
        metavar="DIR",
        type=click.Path(path_type=Path, exists=True, file_okay=False),
        help="Use the settings in this project's folder instead of your own.",
    )(command)
    return json_option(store_option(command))


def agents_argument(agents: AgentsOf, *, required: bool) -> Callable[[CommandT], CommandT]:
    """The argument with the programs' names. Where none is given and none is required, it is all agents."""

    def convert(ctx: click.Context, param: click.Parameter, given: tuple[str, ...]) -> dict[str, Agent]:
        known = dict(agents())
        choice = click.Choice(list(known))
        return {name: known[name] for name in [choice.convert(each, param, ctx) for each in given] or known}

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return click.Choice(list(agents())).shell_complete(ctx, param, incomplete)

    metavar = "AGENT..." if required else "[AGENT...]"
    return click.argument(
        "agents", metavar=metavar, nargs=-1, required=required, callback=convert, shell_complete=complete
    )


def changing_options(agents: AgentsOf) -> Callable[[CommandT], CommandT]:
    """The argument and the options of a command that changes settings."""

    def decorate(command: CommandT) -> CommandT:
        command = click.option("--yes", is_flag=True, help="Write the change. Without this it is only shown.")(command)
        return agents_argument(agents, required=True)(settings_options(command))

    return decorate


def store_folder(store_path: Path) -> Path:
    """The folder of a store, in which the journal is."""
    return store_path.absolute().parent


def change_settings(
    ctx: click.Context, field: str, agents: Mapping[str, Agent], change: Change, *, yes: bool, as_json: bool
) -> None:
    """Show the change of each agent's settings, and make it if the user wants that; `field` is that of the JSON."""
    outcomes = [_plan(program, agent, change) for program, agent in agents.items()]
    if yes:
        outcomes = [_carry_out(outcome, change) for outcome in outcomes]
    if as_json:
        write_json({field: [_document(outcome) for outcome in outcomes]})
    else:
        for outcome in outcomes:
            _write(outcome, change, is_wanted=yes)
    _exit_on_problems(ctx, outcomes)


def show_settings(
    ctx: click.Context, field: str, agents: Mapping[str, Agent], change: Change, *, as_json: bool
) -> None:
    """Say of each agent whether the change is made, and in which file."""
    outcomes = [_plan(program, agent, change) for program, agent in agents.items()]
    if as_json:
        write_json({field: [_document(outcome) | {"diff": ""} for outcome in outcomes]})
    else:
        for outcome in outcomes:
            _write_state(outcome, change)
    _exit_on_problems(ctx, outcomes)


def _plan(program: str, agent: Agent, change: Change) -> _Outcome:
    try:
        return _Outcome(program, agent, change.plan(agent), False, None)
    except TurnlogError as error:
        return _Outcome(program, agent, None, False, str(error))


def _carry_out(outcome: _Outcome, change: Change) -> _Outcome:
    if outcome.plan is None or not outcome.plan.is_needed:
        return outcome
    try:
        change.carry_out(outcome.plan)
    except TurnlogError as error:
        return outcome._replace(problem=str(error))
    return outcome._replace(is_done=True)


def _document(outcome: _Outcome) -> AgentSettingsDocument:
    plan = outcome.plan
    return {
        "agent": outcome.program,
        "path": None if plan is None else str(plan.path),
        "state": None if plan is None else plan.state,
        "changed": outcome.is_done,
        "diff": "" if plan is None else plan.diff(),
        "problem": outcome.problem,
    }


def _write(outcome: _Outcome, change: Change, *, is_wanted: bool) -> None:
    plan, name = outcome.plan, outcome.agent.display_name
    if outcome.problem is not None or plan is None:
        _write_state(outcome, change)
        return
    if not plan.is_needed:
        click.echo(f"{name}: nothing to do in {plain(str(plan.path))}.")
        return
    if not outcome.is_done:
        click.echo(plain(plan.diff()), nl=False)
    click.echo(f"{name}: {'changed' if is_wanted else 'would change'} {plain(str(plan.path))}.")
    if plan.entry is not None and change.note(outcome.agent):
        click.echo(change.note(outcome.agent))
    if not is_wanted:
        click.echo("Nothing was changed: --yes does it.")


def _write_state(outcome: _Outcome, change: Change) -> None:
    name = outcome.agent.display_name
    if outcome.plan is None or outcome.problem is not None:
        click.echo(f"turnlog: {name}: {plain(outcome.problem or '')}", err=True)
        return
    states = {"outdated": f"outdated: `{change.renewal}` renews it", "absent": change.absent}
    state = outcome.plan.state
    click.echo(f"{name}: {states.get(state, state)} ({plain(str(outcome.plan.path))})")


def _exit_on_problems(ctx: click.Context, outcomes: Iterable[_Outcome]) -> None:
    if any(outcome.problem is not None for outcome in outcomes):
        ctx.exit(FAILED)
