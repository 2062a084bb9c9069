"""`turnlog hub serve` and `turnlog hub sign-in`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from turnlog.cli.hub import ConfigPath, require_extra
from turnlog.cli.options import WholeNumber, examples
from turnlog.errors import NotFoundError
from turnlog.plain_text import plain

if TYPE_CHECKING:
    from turnlog.hub.callers import Role
    from turnlog.hub.people.teams import User
    from turnlog.hub.settings import HubSettings


def _settings_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of every command that opens a hub's database."""
    for option in (
        click.option("--data", envvar="TURNLOG_HUB_DATA", metavar="FOLDER", help="The hub's own folder."),
        click.option(
            "--postgres-user",
            envvar="TURNLOG_HUB_POSTGRES_USER",
            metavar="NAME",
            help="The user as whom the hub's own PostgreSQL runs, if the hub runs as root.",
        ),
        click.option(
            "--database",
            envvar="TURNLOG_HUB_DATABASE",
            metavar="URL",
            help="A PostgreSQL database.  [default: one of the hub's own]",
        ),
        click.option(
            "--config", envvar="TURNLOG_HUB_CONFIG", type=ConfigPath, help="A TOML file with the settings of the hub."
        ),
    ):
        command = option(command)
    return command


@click.command(
    epilog=examples(
        "turnlog hub serve                                          # with a database of its own",
        "turnlog hub serve --database postgresql://turnlog@db/turnlog --blobs s3://turnlog",
        "turnlog hub serve --url https://turnlog.example --config /etc/turnlog-hub.toml",
    )
)
@_settings_options
@click.option(
    "--blobs",
    envvar="TURNLOG_HUB_BLOBS",
    metavar="PLACE",
    help="Where large contents are kept: a folder, or s3://bucket/prefix.  [default: a folder of the hub's own]",
)
@click.option("--host", envvar="TURNLOG_HUB_HOST", help="The address to listen on.  [default: 127.0.0.1]")
@click.option("--port", envvar="TURNLOG_HUB_PORT", type=WholeNumber(0, 65535), help="The port.  [default: 8765]")
@click.option(
    "--url", envvar="TURNLOG_HUB_URL", help="Where browsers and machines find the hub, if a proxy is in front of it."
)
@click.option("--log-level", envvar="TURNLOG_HUB_LOG_LEVEL", type=click.Choice(["debug", "info", "warning", "error"]))
def serve(config: Path | None, **given: Any) -> None:
    """Run a hub, until Ctrl-C or SIGTERM.

    Without options it starts a PostgreSQL of its own below turnlog's data folder, and prints a link that makes you its
    owner. With --database and --blobs it keeps nothing, and may run many times.
    """
    require_extra()
    from turnlog.hub.settings import load_hub_settings

    settings = load_hub_settings(config, **given)
    # It takes seconds to import, which nobody waits for whose settings cannot be used.
    from turnlog.hub.serve import serve as run

    run(settings, _announce)


def _announce(address: str, link: str | None) -> None:
    click.echo(f"The hub is at {address}")
    if link is not None:
        click.echo(f"Become its owner, within an hour, once: {link}")


@click.command("sign-in", epilog=examples("turnlog hub sign-in ann@example.com"))
@_settings_options
@click.argument("person")
@click.option(
    "--url",
    envvar="TURNLOG_HUB_URL",
    help="Where browsers find the hub.  [default: where the hub of this machine runs]",
)
@click.option(
    "--rejoin",
    type=click.Choice(["owner", "admin", "member", "viewer"]),
    help="Make a person who was removed from the team a member again, as this, with all that was theirs.",
)
def sign_in(person: str, rejoin: Role | None, config: Path | None, **given: Any) -> None:
    """Print a link that signs a browser of PERSON (an id, a name or an address of mail) in, once, within ten minutes.

    For whoever runs the hub: it opens its database.
    """
    require_extra()
    from turnlog.hub.settings import load_hub_settings

    settings = load_hub_settings(config, **given)
    from turnlog.hub.serve import opened, running_address

    address = settings.url or running_address(settings)
    if address is None:
        raise NotFoundError(
            "no hub runs here with this data folder: start it, or say with --url where browsers find it"
        )
    click.echo(f"{address.rstrip('/')}/sign-in#code={_code(settings, person, rejoin, opened)}")


def _code(settings: HubSettings, person: str, rejoin: Role | None, opened: Any) -> str:
    from turnlog.hub.people.registry import People

    with opened(settings, beside=True) as database:
        people = People(database)
        found = people.teams.called(person)
        if len(found) != 1:
            raise NotFoundError(_not_one(person, found))
        user = found[0].id
        teams = [int(team.id) for team, _ in people.teams.teams_of(user)]
        if teams and rejoin is not None:
            raise NotFoundError(f"{plain(person)} is in a team: leave --rejoin out")
        if not teams and rejoin is not None:
            teams = [team for team in (people.teams.take_back(user, rejoin),) if team is not None]
        if not teams:
            raise NotFoundError(f"{plain(person)} is in no team; --rejoin member makes one a member again")
        code, _ = people.secrets.make("attempt", team=teams[0], user=user, seconds=600)
        return code


def _not_one(person: str, found: list[User]) -> str:
    if not found:
        return f"nobody is called {plain(person)}: give an id"
    ids = ", ".join(f"{each.id} ({plain(each.email)})" if each.email else each.id for each in found)
    return f"more than one person is called {plain(person)}: give an id, one of {ids}"
