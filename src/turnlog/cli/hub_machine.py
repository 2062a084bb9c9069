"""`turnlog hub connect`, `push`, `status`, `agent`, `pull` and `disconnect`: this machine and its hub."""

from __future__ import annotations

import platform
import shlex
import sys
import time
from collections import Counter
from collections.abc import Collection
from contextlib import ExitStack
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from turnlog.cli import formatting
from turnlog.cli.budgets import write_budget_warning
from turnlog.cli.fresh_store import fresh_store_option, open_fresh
from turnlog.cli.hub_readers import write_readers
from turnlog.cli.options import WRONG_USE, examples, json_option, open_existing, store_option
from turnlog.cli.terminal import progress, write_json
from turnlog.errors import ConflictError, NotFoundError, StoreBusyError, TurnlogError
from turnlog.plain_text import one_line, plain

if TYPE_CHECKING:
    from turnlog.cli.documents import HubBudgetDocument, HubPushDocument, HubStatusDocument
    from turnlog.hub.budgets import TeamBudget
    from turnlog.hub.machine.client import DeviceCode, HubClient
    from turnlog.hub.machine.outgoing import Outgoing
    from turnlog.hub.machine.pusher import PushReport
    from turnlog.hub.machine.state import MachineState


@click.command(
    epilog=examples("turnlog hub connect https://hub.example", "turnlog hub connect http://127.0.0.1:8766 --name box")
)
@click.argument("url")
@click.option("--name", help="What this machine is called on the hub.  [default: its host name]")
@store_option
def connect(url: str, name: str | None, store_path: Path) -> None:
    """Connect this machine with a hub: a person says yes to a code in the browser.

    Nothing is sent yet. `turnlog hub push` shows what would leave, and asks.
    """
    from turnlog.hub.machine.client import HubClient
    from turnlog.hub.machine.state import HubConnection, MachineState

    is_chosen = name is not None
    with HubClient(url, announce=_announce) as client:
        name = name or platform.node() or "machine"
        device = client.begin_device(name, platform.system().lower())
        click.echo(f"Open {plain(device['verification_uri'])} and enter this code: {plain(device['user_code'])}")
        joined = _wait(client, device)
    connection = HubConnection(
        client.url,
        token=str(joined["access_token"]),
        team=str(joined["team"]),
        user=str(joined["user"]),
        machine=str(joined["machine"]),
        user_name=str(joined.get("user_name", "")),
        machine_name=str(joined.get("machine_name", name)),
    )
    with MachineState(store_path) as state:
        state.connect(connection)
    click.echo(f"Connected as {plain(connection.who())}.")
    if connection.machine_name != name:
        known = f"Another machine of yours is called {plain(name)}"
        again = "if that was this one, remove it on the hub's page Team, and connect again"
        click.echo(f"{known}; {again if is_chosen else '--name NAME gives this one a name of its own'}.", err=True)
    click.echo("`turnlog hub push` shows what would leave this machine, and sends it.", err=True)


_LONGEST_PAUSE: Final = 60.0
"""Seconds between two questions, whatever a hub asks for."""


def _announce(text: str) -> None:
    """Say why a request waits."""
    click.echo(f"turnlog: {one_line(text)}", err=True)


def _wait(client: HubClient, device: DeviceCode) -> dict[str, object]:
    """The token, once a person has said yes."""
    pause = max(0.0, min(device.get("interval", 5.0), _LONGEST_PAUSE))
    until = time.monotonic() + device.get("expires_in", 900.0)
    while time.monotonic() < until:
        time.sleep(pause)
        answer = client.poll_device(device["device_code"])
        if not isinstance(answer, str):
            return answer
        if answer == "slow_down":
            pause += 5
        elif answer != "authorization_pending":
            raise TurnlogError(
                "the hub refuses this machine" if answer == "access_denied" else f"the hub answers {answer}"
            )
    raise TurnlogError("nobody has entered the code in time")


@click.command(epilog=examples("turnlog hub push --dry-run", "turnlog hub push --yes"))
@click.option("--dry-run", is_flag=True, help="List what would leave, and send nothing.")
@click.option("--yes", is_flag=True, help="Send without asking, also the first time.")
@json_option
@fresh_store_option
@click.pass_context
def push(ctx: click.Context, dry_run: bool, yes: bool, as_json: bool, store_path: Path) -> None:
    """Send what has changed to the hub. The first time, show what would leave and ask.

    Without a terminal nobody can be asked: until you have agreed once, push then sends nothing and fails (exit code 2),
    unless `--yes` says that you agree.

    How much of a project leaves is its upload level: `turnlog hub level`. Secrets are taken out at `redacted`, which is
    the default.
    """
    from turnlog.hub.machine.client import HubClient
    from turnlog.hub.machine.pusher import StorePusher
    from turnlog.hub.machine.state import MachineState

    with ExitStack() as opened:
        state = opened.enter_context(MachineState(store_path))
        connection = state.connection()
        with open_fresh(store_path) as store:
            messages = store.status().messages
        client = opened.enter_context(HubClient(connection.url, connection.token, announce=_announce))
        pusher = StorePusher(store_path, state, client)
        write_readers(store_path, state, client)
        if dry_run or not (yes or state.is_agreed):
            report = pusher.plan()
            if as_json:
                write_json(_document(report, sent=False))
            else:
                _write_plan(report, store_path, state)
            if dry_run:
                return
            can_ask = not as_json and sys.stdin.isatty()
            if not can_ask:
                click.echo(_NOT_AGREED, err=True)
                ctx.exit(WRONG_USE)
            if not click.confirm("Send it, now and later?"):
                click.echo("Nothing was sent; --yes sends it.", err=True)
                return
        state.agree()
        # Taking out secrets makes a first push long.
        on_progress = opened.enter_context(progress(patience=1))
        try:
            report = pusher.push(lambda so_far: on_progress("push", so_far.messages, messages))
        except TurnlogError as error:
            state.note("problem", str(error))
            raise
        state.note("pushed", int(time.time() * 1000))
        state.note("problem", None)
    if as_json:
        write_json(_document(report, sent=True))
    else:
        click.echo(f"Sent {formatting.plural(report.messages, 'message')} of {_sessions(report.sessions, store_path)}.")
        if report.taken_back:
            held = _sessions(report.taken_back, store_path)
            click.echo(f"Taken back from the hub: {held}, whose level is none now.")
        if report.lowered:
            lowered = _sessions(report.lowered, store_path)
            click.echo(f"Replaced on the hub: {lowered}, whose level is lower now.")
        _write_masked(report)
        _write_in_full(report)
    for session_id in sorted(report.refused):
        click.echo(f"turnlog: {plain(session_id)} is somebody else's on the hub: it was not sent", err=True)
    if report.too_large:
        count = formatting.plural(report.too_large, "content")
        click.echo(f"turnlog: not sent: {count} larger than a hub takes; their beginnings are there", err=True)


_NOT_AGREED: Final = (
    "turnlog: nothing was sent: you have not agreed yet to what leaves. `turnlog hub push` asks you on a terminal;"
    " `turnlog hub push --yes` agrees, and sends now and later"
)


def _document(report: PushReport, *, sent: bool) -> HubPushDocument:
    return {
        "sent": sent,
        "messages": report.messages,
        "sessions": {**dict(sorted(report.sessions.items()))},
        "masked": dict(sorted(report.masked.items())),
        "in_full": {session_id: len(keys) for session_id, keys in sorted(report.in_full.items())},
        "refused": sorted(report.refused),
        "taken_back": sorted(report.taken_back),
        "lowered": sorted(report.lowered),
    }


def _write_plan(report: PushReport, store_path: Path, state: MachineState) -> None:
    """What would leave, by project and level."""
    from turnlog.hub.machine.levels import MEANINGS
    from turnlog.hub.machine.pusher import current_levels

    levels, counts = current_levels(state), Counter[str]()
    with open_existing(store_path) as store:
        for project in store.projects():
            counts[project.path] += project.sessions
            level = levels.of(project.path)
            click.echo(f"{level:9} {formatting.plural(project.sessions, 'session'):>14}  {plain(project.path)}")
    for level, meaning in MEANINGS.items():
        click.echo(f"  {level}: {meaning}")
    click.echo(
        f"{formatting.plural(report.messages, 'message')} of {_sessions(report.sessions, store_path)}"
        f" would be sent, and {formatting.plural(report.files, 'log file')}."
    )
    _write_masked(report)
    _write_in_full(report)
    click.echo("Another level: turnlog hub level PROJECT LEVEL")


def _sessions(ids: Collection[str], store_path: Path) -> str:
    """`3 sessions and 2 subagents`: projects count their sessions without subagents, too."""
    with open_existing(store_path) as store:
        subagents = len(store.parents(ids))
    sessions = formatting.plural(len(ids) - subagents, "session")
    return f"{sessions} and {formatting.plural(subagents, 'subagent')}" if subagents else sessions


def _write_masked(report: PushReport) -> None:
    if report.masked:
        every = ", ".join(f"{count} {rule}" for rule, count in report.masked.most_common())
        click.echo(f"Secrets taken out: {every}.")


def _write_in_full(report: PushReport) -> None:
    """Say what of sessions at `redacted` keeps its secrets."""
    if report.in_full:
        messages = formatting.plural(len(set[int]().union(*report.in_full.values())), "message")
        sessions = formatting.plural(len(report.in_full), "session")
        click.echo(
            f"With their secrets, as a session at the level full has them, too: {messages} of {sessions} at redacted."
        )


@click.command(epilog=examples("turnlog hub status"))
@json_option
@fresh_store_option
def status(as_json: bool, store_path: Path) -> None:
    """Show the hub of this machine, and how far it is."""
    from turnlog.hub.machine.client import HubClient
    from turnlog.hub.machine.outgoing import Outgoing, find_outgoing
    from turnlog.hub.machine.pusher import current_levels
    from turnlog.hub.machine.state import MachineState
    from turnlog.store.rows import moment

    budgets: list[TeamBudget] = []
    outgoing: Outgoing | None = None

    with MachineState(store_path) as state:
        connection = state.connection()
        problem: str | None = state.noted("problem")
        behind: int | None = None
        try:
            with open_fresh(store_path) as store:
                last_change = store.last_change()
            with HubClient(connection.url, connection.token, seconds=0) as client:
                position, generation, _ = client.position(state.store_id())
                behind = last_change - (position.sequence if generation == state.generation else 0)
                outgoing = find_outgoing(store_path, state, client)
                budgets = client.budgets()
                if not (connection.user_name and connection.machine_name):
                    # An older turnlog did not keep them.
                    connection = state.name(*client.me())
        except TurnlogError as error:
            problem = str(error)
        document: HubStatusDocument = {
            "url": connection.url,
            "user": connection.user,
            "machine": connection.machine,
            "agreed": state.is_agreed,
            "levels_changed": state.rules not in (None, current_levels(state).digest()),
            "behind": behind,
            "contents": None if outgoing is None else outgoing.contents,
            "files": None if outgoing is None else outgoing.files,
            "pushed_at": formatting.iso(moment(state.noted("pushed"))),
            "problem": problem,
            "budgets": [_budget_document(each) for each in budgets],
        }
    if as_json:
        write_json(document)
        return
    click.echo(f"{plain(connection.url)} as {plain(connection.who())}")
    if not document["agreed"]:
        click.echo("Nothing is sent yet: `turnlog hub push` shows what would leave.")
    if document["levels_changed"]:
        click.echo("Levels have changed: the next push takes back what was sent at a higher one, and sends all again.")
    elif behind is not None:
        click.echo(_to_send(max(behind, 0), outgoing or Outgoing(0, 0)))
    for each in budgets:
        spent = None if each.spent is None else Decimal(str(each.spent))
        whose = each.subject if each.scope == "project" and each.subject else _WHOSE[each.scope]
        write_budget_warning(
            f"{whose} in {each.month}", each.state, spent, Decimal(str(each.limit)), each.unpriced_calls or 0
        )
    if problem is not None:
        click.echo(f"turnlog: {one_line(problem)}", err=True)


def _to_send(changes: int, outgoing: Outgoing) -> str:
    counts = ((changes, "change"), (outgoing.contents, "large content"), (outgoing.files, "log file"))
    found = [formatting.plural(count, what) for count, what in counts if count]
    if not found:
        return "Everything is sent."
    *first, last = found
    return f"{', '.join(first)} and {last} to send." if first else f"{last} to send."


_WHOSE = {"team": "the team", "person": "you", "project": "the project"}


def _budget_document(budget: TeamBudget) -> HubBudgetDocument:
    return {
        "scope": budget.scope,
        "project": budget.subject if budget.scope == "project" else None,
        "month": budget.month,
        "limit": budget.limit,
        "spent": budget.spent,
        "unpriced_calls": budget.unpriced_calls,
        "state": budget.state,
    }


@click.command(epilog=examples("turnlog hub disconnect"))
@store_option
def disconnect(store_path: Path) -> None:
    """Forget the hub and its token on this machine. What is on the hub stays there."""
    from turnlog.hub.machine.state import MachineState

    with MachineState(store_path) as state:
        connection = state.connection()
        state.disconnect()
    click.echo(f"Disconnected from {plain(connection.url)}. Its token still holds there: revoke it on the hub's page.")


@click.command(
    epilog=examples(
        "turnlog hub pull claude-code:3f2a91c0",
        "turnlog hub pull claude-code:3f2a91c0 --to ~/pulled",
        "turnlog hub pull --all --to ~/pulled   # everything that is yours",
    )
)
@click.argument("session_id", metavar="[SESSION]", required=False)
@click.option("--all", "is_all", is_flag=True, help="All sessions of yours whose log files the hub has.")
@click.option(
    "--to",
    "folder",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write into this folder; with --all, below a folder for each agent.  [default: the home of the agent]",
)
@store_option
def pull(session_id: str | None, is_all: bool, folder: Path | None, store_path: Path) -> None:
    """Write a session's log files from the hub on this machine, byte for byte, so that its agent goes on here.

    The project must be pushed at the level `full`. A database of an agent is written only below a folder that is
    named with --to: agents may not start with one that they have not made themselves; `turnlog import` reads it.
    Files of which the hub has not every byte are named and not written; if there is no other, the command fails
    (exit code 3). An existing file is left as it is; if its content differs, the command fails (exit code 4).
    """
    from turnlog.hub.machine.client import HubClient
    from turnlog.hub.machine.state import MachineState

    if is_all is (session_id is not None):
        raise click.UsageError("name a session, or give --all")
    with MachineState(store_path) as state:
        connection = state.connection()
    with HubClient(connection.url, connection.token, announce=_announce) as client:
        if session_id is None:
            _pull_all(client, folder)
        else:
            _pull_named(client, session_id, folder)


def _pull_all(client: HubClient, folder: Path | None) -> None:
    """Pull all sessions of this person. One that fails is named, and does not keep the others; the worst is raised."""
    from turnlog.hub.machine.client import HubRefusedError, HubUnreachableError
    from turnlog.hub.machine.pulling import NoLogError

    kinds: tuple[tuple[type[TurnlogError], str], ...] = (  # the worst last
        (NotFoundError, "have no files that could be written"),
        (NoLogError, "have files that are no logs: nothing of them was written"),
        (ConflictError, "differ from what is here"),
        (StoreBusyError, "were not given, because the hub was busy"),
    )
    any_other = (TurnlogError, "could not be pulled")
    sessions, failed = client.pushed_sessions().with_logs, Counter[int]()
    for each in sessions:
        try:
            _pull(client, each, folder, is_apart=True)
        except TurnlogError as error:
            if isinstance(error, HubUnreachableError) or (isinstance(error, HubRefusedError) and error.status == 401):
                raise
            failed[next((index for index, (kind, _) in enumerate(kinds) if isinstance(error, kind)), len(kinds))] += 1
            click.echo(f"turnlog: {plain(each)}: {plain(str(error))}", err=True)
    if failed:
        kind, what = (*kinds, any_other)[max(failed)]
        raise kind(f"{failed[max(failed)]} of {formatting.plural(len(sessions), 'session')} {what}")


def _pull_named(client: HubClient, text: str, folder: Path | None) -> None:
    """Pull the session with this id, or the one of this person's whose id begins so, with its agent or without.

    Raises NotFoundError for none, or several. Where the person's own has another id on the hub, as somebody else was
    first, it names that.
    """
    has_agent = ":" in text
    failure = NotFoundError(
        f"the hub has no session of yours that begins with {plain(text)};"
        " name one of somebody else with its agent: AGENT:ID"
    )
    if has_agent:
        try:
            _pull(client, text, folder)
            return
        except NotFoundError as error:
            failure = error
    pushed = client.pushed_sessions()
    if text in (*pushed.with_logs, *pushed.others):
        raise failure
    if own := [plain(each) for each in pushed.with_logs if each.startswith(f"{text}~")]:
        raise NotFoundError(f"{failure}; on the hub, yours is {' or '.join(own)}") from failure

    def begin(ids: list[str]) -> list[str]:
        return [each for each in ids if (each if has_agent else each.partition(":")[2]).startswith(text)]

    found = begin(pushed.with_logs) or begin(pushed.others)
    if not found:
        raise failure
    if len(found) > 1:
        raise NotFoundError(f"several of your sessions begin with {plain(text)}: {', '.join(map(plain, found))}")
    _pull(client, found[0], folder)


def _pull(client: HubClient, session_id: str, folder: Path | None, *, is_apart: bool = False) -> None:
    """Write the files into the home of the agent, or into a folder, there `is_apart` from those of other agents."""
    from turnlog.hub.machine.pulling import PulledLogs, agent_of, folder_of, home_of

    agent = agent_of(session_id)
    logs = PulledLogs(client.logs(session_id))
    logs.refuse_other_than_logs(agent)
    if folder is None:
        logs.refuse_databases(agent)
        folder = home_of(agent)
    elif is_apart or agent.homes is None:
        # Of an agent without a home nobody knows which files are its logs: they get a folder of their own.
        folder /= folder_of(session_id)
    for path, size in logs.write(folder):
        click.echo(f"{plain(str(path))}  {formatting.size(size)}")
    for path in logs.databases(folder):
        click.echo(f"Read it: turnlog import {plain(shlex.quote(str(path)))}", err=True)
    for reason in dict.fromkeys(each.reason for each in logs.missing):
        names = [one_line(each.path) for each in logs.missing if each.reason == reason]
        more = f" and {formatting.plural(len(names) - _NAMED, 'more file')}" if len(names) > _NAMED else ""
        click.echo(f"turnlog: not written: {', '.join(names[:_NAMED])}{more} ({one_line(reason)})", err=True)


_NAMED = 5
"""Files that a line names."""


@click.command(epilog=examples("turnlog hub agent", "turnlog hub agent --install"))
@click.option("--install", is_flag=True, help="Start it with every login: write a systemd user unit or launchd file.")
@click.option("--sync/--no-sync", default=True, help="Read logs, too, or do not.")
@store_option
def agent(install: bool, sync: bool, store_path: Path) -> None:
    """Send what changes to the hub, within a second, until Ctrl-C.

    `turnlog serve` does the same while it runs.
    """
    from turnlog.hub.machine.following import follow
    from turnlog.hub.machine.service import install_service
    from turnlog.hub.machine.state import MachineState

    with MachineState(store_path) as state:
        connection = state.connection()
        if not state.is_agreed:
            raise TurnlogError("nothing is sent yet: `turnlog hub push` shows what would leave, and asks")
    if install:
        path, commands = install_service(store_path)
        click.echo(f"Wrote {plain(str(path))}. Start it:")
        for command in commands:
            click.echo(f"  {command}")
        return
    click.echo(f"Sending to {plain(connection.url)} until Ctrl-C.", err=True)
    follow(store_path, sync=sync, announce=_announce)
