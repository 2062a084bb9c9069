"""`turnlog otel push`: traces of sessions to a receiver of OpenTelemetry."""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from turnlog.cli import formatting
from turnlog.cli.export import sessions_in
from turnlog.cli.filters import agent_option, project_option
from turnlog.cli.fresh_store import fresh_store_option, open_fresh
from turnlog.cli.options import examples, period_options
from turnlog.errors import TurnlogError
from turnlog.plain_text import one_line
from turnlog.store.names import find_agent, find_project

if TYPE_CHECKING:
    from turnlog.exports.otel_push import Receiver


def receiver_at(
    endpoint: str | None, headers: Mapping[str, str] | None = None, *, as_json: bool = False
) -> Receiver | None:
    """The receiver at an address, or the one in the settings; None where neither is named.

    Headers in the settings go only to the address that is there: they may hold a secret.
    """
    from turnlog.settings import load_settings

    own = load_settings().otel
    chosen = endpoint or own.endpoint
    if chosen is None:
        return None
    from turnlog.exports.otel_push import Receiver

    return Receiver(chosen, {**(own.headers if chosen == own.endpoint else {}), **(headers or {})}, as_json)


@contextmanager
def needs_binary(reason: str) -> Generator[None]:
    """Give this reason where the extra `otel` is missing."""
    try:
        yield
    except ImportError as error:
        if error.name is None or error.name.startswith("turnlog"):
            raise
        raise TurnlogError(reason) from error


def _wait(seconds: float) -> None:
    click.echo(f"The receiver is busy or does not answer: it is tried again in {seconds:g} seconds.", err=True)
    time.sleep(seconds)


@click.group()
def otel() -> None:
    """Send sessions to a receiver of OpenTelemetry, as traces. `turnlog serve --otel` sends turns as they end."""


@otel.command(
    epilog=examples(
        "turnlog otel push --endpoint http://localhost:6006 --since 7d",
        "turnlog otel push --endpoint https://otel.example.com --header 'Authorization=Bearer …' --content",
    )
)
@click.option(
    "--endpoint",
    metavar="URL",
    help="The receiver; `/v1/traces` is added to its path.  [default: the one in the settings]",
)
@click.option("--header", "headers", multiple=True, metavar="NAME=VALUE", help="A header of every request.")
@click.option("--content", is_flag=True, help="Send prompts, answers, inputs and outputs too, without secrets.")
@click.option("--json", "as_json", is_flag=True, help="Send JSON; by default the binary form, with turnlog[otel].")
@agent_option
@project_option
@period_options()
@fresh_store_option
def push(
    endpoint: str | None,
    headers: tuple[str, ...],
    content: bool,
    as_json: bool,
    agent: str | None,
    project: str | None,
    since: datetime | None,
    until: datetime | None,
    store_path: Path,
) -> None:
    """Send sessions with their subagents'. A session that is sent again keeps its ids.

    Times, models, tokens, costs and the names of tools are sent; what was said only with --content. Standard error
    lists what was lost.
    """
    from turnlog.exports.otel_push import push as push_sessions
    from turnlog.store.base import SessionFilter

    named = [header.partition("=") for header in headers]
    if not all(name and equals for name, equals, _ in named):
        raise click.UsageError("--header is NAME=VALUE.")
    receiver = receiver_at(endpoint, {name: value for name, _, value in named}, as_json=as_json)
    if receiver is None:
        raise click.UsageError("Name the receiver with --endpoint, or in the settings.")
    with open_fresh(store_path) as store:
        chosen = SessionFilter(
            agent=find_agent(store, agent), project=find_project(store, project), since=since, until=until
        )
        ids = [session.id for session in sessions_in(store, chosen)]
        with needs_binary("OTLP's binary form needs more packages: pip install 'turnlog[otel]', or give --json"):
            pushed = push_sessions(store, ids, receiver, content=content, sleep=_wait)
    sessions, spans, requests = (
        formatting.plural(count, name)
        for count, name in ((pushed.sessions, "session"), (pushed.spans, "span"), (pushed.requests, "request"))
    )
    rejected = f"; {formatting.plural(pushed.rejected, 'span')} rejected" if pushed.rejected else ""
    click.echo(f"Sent {sessions} ({spans}) to {one_line(receiver.url)} in {requests}{rejected}.")
    for loss in pushed.losses:
        click.echo(f"lost: {one_line(loss)}", err=True)
