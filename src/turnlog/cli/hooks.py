"""`turnlog hooks`: install, remove and check the hooks by which agents report events as they happen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from turnlog.cli.options import CommandT, examples, json_option, store_option
from turnlog.cli.terminal import write_json
from turnlog.errors import TurnlogError
from turnlog.plain_text import plain

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from turnlog.agents.base import Agent
    from turnlog.cli.documents import AgentHooksDocument, HooksDocument
    from turnlog.hooks.settings import SettingsPlan

FAILED = 1

STATES = {
    "installed": "installed",
    "outdated": "outdated: `turnlog hooks install` renews them",
    "absent": "not installed",
}


class _Outcome(NamedTuple):
    """What was done, or would be done, to the settings of one agent."""

    program: str
    agent: Agent
    plan: SettingsPlan | None
    is_done: bool
    problem: str | None


@click.group()
def hooks() -> None:
    """Install hooks, so that agents report events before they log them.

    Only turnlog's own entries in the agents' settings change, and `remove` restores every byte.
    """


def _options(command: CommandT) -> CommandT:
    command = click.option(
        "--project",
        metavar="DIR",
        type=click.Path(path_type=Path, exists=True, file_okay=False),
        help="Use the settings in this project's folder instead of your own.",
    )(command)
    return json_option(store_option(command))


def _named_agents(ctx: click.Context, param: click.Parameter, given: tuple[str, ...]) -> dict[str, Agent]:
    """Program -> agent, of the given programs; of all agents with hooks where none is given."""
    known = _known_agents()
    choice = click.Choice(list(known))
    return {name: known[name] for name in [choice.convert(each, param, ctx) for each in given] or known}


def _complete_program(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return click.Choice(list(_known_agents())).shell_complete(ctx, param, incomplete)


def _known_agents() -> dict[str, Agent]:
    from turnlog.agents import agents_with_hooks

    return agents_with_hooks()


def _changing_options(command: CommandT) -> CommandT:
    command = click.option("--yes", is_flag=True, help="Write the change. Without this it is only shown.")(command)
    named = click.argument(
        "agents",
        metavar="AGENT...",
        nargs=-1,
        required=True,
        callback=_named_agents,
        shell_complete=_complete_program,
    )
    return named(_options(command))


@hooks.command(
    epilog=examples("turnlog hooks install claude          # shows it", "turnlog hooks install claude codex --yes")
)
@_changing_options
@click.pass_context
def install(
    ctx: click.Context, agents: Mapping[str, Agent], yes: bool, project: Path | None, as_json: bool, store_path: Path
) -> None:
    """Add turnlog's hooks to the settings of agents, or renew them."""
    from turnlog.hooks.settings import plan_install

    _run(ctx, agents, plan_install, yes=yes, project=project, as_json=as_json, store_path=store_path)


@hooks.command(epilog=examples("turnlog hooks remove claude           # shows it", "turnlog hooks remove claude --yes"))
@_changing_options
@click.pass_context
def remove(
    ctx: click.Context, agents: Mapping[str, Agent], yes: bool, project: Path | None, as_json: bool, store_path: Path
) -> None:
    """Remove turnlog's hooks from the settings of agents, and restore every byte that was there before."""
    from turnlog.hooks.settings import plan_remove

    _run(ctx, agents, plan_remove, yes=yes, project=project, as_json=as_json, store_path=store_path)


@hooks.command(epilog=examples("turnlog hooks status", "turnlog hooks status claude --project ."))
@click.argument("agents", metavar="[AGENT...]", nargs=-1, callback=_named_agents, shell_complete=_complete_program)
@_options
@click.pass_context
def status(
    ctx: click.Context, agents: Mapping[str, Agent], project: Path | None, as_json: bool, store_path: Path
) -> None:
    """List which agents have turnlog's hooks, and in which file."""
    from turnlog.hooks.settings import plan_install

    outcomes = [_plan(*named, plan_install, _folder(store_path), project) for named in agents.items()]
    if as_json:
        write_json(_document(outcomes, with_diff=False))
    else:
        for outcome in outcomes:
            _write_state(outcome)
    _exit_on_problems(ctx, outcomes)


def _run(
    ctx: click.Context,
    agents: Mapping[str, Agent],
    make_plan: Callable[[Agent, Path, Path | None], SettingsPlan],
    *,
    yes: bool,
    project: Path | None,
    as_json: bool,
    store_path: Path,
) -> None:
    folder = _folder(store_path)
    outcomes = [_plan(*named, make_plan, folder, project) for named in agents.items()]
    if yes:
        outcomes = [_carry_out(outcome, folder) for outcome in outcomes]
    if as_json:
        write_json(_document(outcomes))
    else:
        for outcome in outcomes:
            _write(outcome, is_wanted=yes)
    _exit_on_problems(ctx, outcomes)


def _folder(store_path: Path) -> Path:
    return store_path.absolute().parent


def _plan(
    program: str,
    agent: Agent,
    make_plan: Callable[[Agent, Path, Path | None], SettingsPlan],
    folder: Path,
    project: Path | None,
) -> _Outcome:
    try:
        return _Outcome(program, agent, make_plan(agent, folder, project), False, None)
    except TurnlogError as error:
        return _Outcome(program, agent, None, False, str(error))


def _carry_out(outcome: _Outcome, folder: Path) -> _Outcome:
    from turnlog.hooks.settings import carry_out

    if outcome.plan is None or not outcome.plan.is_needed:
        return outcome
    try:
        carry_out(outcome.plan, folder)
    except TurnlogError as error:
        return outcome._replace(problem=str(error))
    return outcome._replace(is_done=True)


def _document(outcomes: Iterable[_Outcome], *, with_diff: bool = True) -> HooksDocument:
    return {"hooks": [_outcome_document(outcome, with_diff=with_diff) for outcome in outcomes]}


def _outcome_document(outcome: _Outcome, *, with_diff: bool) -> AgentHooksDocument:
    plan = outcome.plan
    return {
        "agent": outcome.program,
        "path": None if plan is None else str(plan.path),
        "state": None if plan is None else plan.state,
        "changed": outcome.is_done,
        "diff": plan.diff() if plan is not None and with_diff else "",
        "problem": outcome.problem,
    }


def _write(outcome: _Outcome, *, is_wanted: bool) -> None:
    plan, name = outcome.plan, outcome.agent.display_name
    if outcome.problem is not None or plan is None:
        _write_state(outcome)
        return
    if not plan.is_needed:
        click.echo(f"{name}: nothing to do in {plain(str(plan.path))}.")
        return
    if not outcome.is_done:
        click.echo(plain(plan.diff()), nl=False)
    click.echo(f"{name}: {'changed' if is_wanted else 'would change'} {plain(str(plan.path))}.")
    if plan.entry is not None and outcome.agent.hooks is not None and outcome.agent.hooks.note:
        click.echo(outcome.agent.hooks.note)
    if not is_wanted:
        click.echo("Nothing was changed: --yes does it.")


def _write_state(outcome: _Outcome) -> None:
    name = outcome.agent.display_name
    if outcome.plan is None or outcome.problem is not None:
        click.echo(f"turnlog: {name}: {plain(outcome.problem or '')}", err=True)
    else:
        click.echo(f"{name}: {STATES[outcome.plan.state]} ({plain(str(outcome.plan.path))})")


def _exit_on_problems(ctx: click.Context, outcomes: Iterable[_Outcome]) -> None:
    if any(outcome.problem is not None for outcome in outcomes):
        ctx.exit(FAILED)
