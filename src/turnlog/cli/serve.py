"""`turnlog serve`: the web app and the HTTP API, on this machine; `turnlog open`: the page of the running server."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from turnlog import paths
from turnlog.cli.options import WholeNumber, examples, store_option
from turnlog.errors import TurnlogError
from turnlog.plain_text import one_line, plain


@click.command(
    epilog=examples(
        "turnlog serve",
        "turnlog serve --port 9000 --no-browser",
        "turnlog serve --host 0.0.0.0                   # for other machines: `turnlog open --print` signs them in",
    )
)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=WholeNumber(0, 65535), help="The port to listen on.  [default: 8765, or a free one]")
@click.option("--token", help="The access token. Other users can read it here: use --token-file.")
@click.option(
    "--token-file",
    metavar="PATH",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Read the access token from this file.  [default: access_token next to the store]",
)
@click.option("--no-token", is_flag=True, help="Answer every program and every user of this machine.")
@click.option("--sync/--no-sync", default=True, help="Read logs while the server runs, or do not.")
@click.option("--prompts", is_flag=True, help="Allow prompts in the page, which the session's agent answers.")
@click.option("--otel", metavar="URL", help="Send turns as they end to this receiver of OpenTelemetry.")
@click.option("--otel-content", is_flag=True, help="Send it what was said too, without secrets.")
@click.option("--browser/--no-browser", default=True, help="Open the page, or do not.")
@store_option
@click.pass_context
def serve(
    ctx: click.Context,
    host: str,
    port: int | None,
    token: str | None,
    token_file: Path | None,
    no_token: bool,
    sync: bool,
    prompts: bool,
    otel: str | None,
    otel_content: bool,
    browser: bool,
    store_path: Path,
) -> None:
    """Open turnlog in the browser, and keep it up to date until Ctrl-C.

    Only your user on this machine has access: the browser by the link that is opened, which works once; your
    programs by the access token next to the store. With --host, other machines can connect too.

    With --prompts you can continue a session in the page: its agent is started in its folder, without a terminal, and
    may do what its own settings allow. Claude Code and Codex ask for other permissions in the page.

    With --otel, or a receiver in the settings, times, models, tokens, costs and names of tools go to it.

    If no agent has run yet, a small sample is shown, from a separate store, until one has.
    """
    from turnlog.runs.abandoned import close_abandoned_runs
    from turnlog.server import serve as run
    from turnlog.server.sample import has_own_sessions, is_sample_due
    from turnlog.store.connection import can_be_written

    given = _token(token, token_file, no_token=no_token)
    read_only = not can_be_written(store_path)
    if read_only:
        click.echo("turnlog: the store cannot be written: it is shown as it is, and no logs are read", err=True)
    else:
        close_abandoned_runs(store_path)
    serve_store = partial(
        run,
        host=host,
        token=given,
        use_token=not no_token,
        # Of the user's store also while the sample is shown: there hooks and `turnlog open` look.
        folder=store_path.absolute().parent,
        announce=lambda link: _announce(link, is_signing_in=not no_token),
    )
    # With --store the user gets that store, even if it is empty.
    is_own = ctx.get_parameter_source("store_path") is ParameterSource.DEFAULT
    if is_own and is_sample_due(store_path):
        click.echo("No agent's logs were found: this is the sample that comes with turnlog.", err=True)
        click.echo("Once an agent has run, its sessions take the place of the sample.", err=True)
        gave_way = serve_store(
            paths.sample_path(),
            port=port,
            sync=False,
            sample=True,
            open_browser=browser,
            gives_way=partial(has_own_sessions, store_path) if sync else None,
        )
        if gave_way is None:
            return
        port, browser = gave_way, False
        click.echo("An agent has run: these are your own sessions.", err=True)
    with (
        _pushing(store_path, sync=sync and not read_only),
        _exporting(store_path, otel, content=otel_content, read_only=read_only),
    ):
        serve_store(store_path, port=port, sync=sync, prompts=prompts, read_only=read_only, open_browser=browser)


@contextmanager
def _pushing(store_path: Path, *, sync: bool) -> Generator[None]:
    """Send what changes to the hub, where this machine has one and its user has agreed."""
    from turnlog.hub.machine.state import is_connected

    if not sync or not is_connected(store_path):
        yield
        return
    from turnlog.hub.machine.following import HubFollower

    follower = HubFollower(store_path, lambda text: click.echo(f"turnlog: {one_line(text)}", err=True))
    follower.start()
    try:
        yield
    finally:
        follower.stop()


@contextmanager
def _exporting(store_path: Path, endpoint: str | None, *, content: bool, read_only: bool) -> Generator[None]:
    """Send turns as they end to a receiver of OpenTelemetry, where one is named."""
    from turnlog.cli.otel import needs_binary, receiver_at
    from turnlog.settings import load_settings

    receiver = None if read_only else receiver_at(endpoint)
    if receiver is None:
        if not read_only:
            # What ends while the export is off is not sent when it is on again.
            paths.live_export_path(store_path).unlink(missing_ok=True)
        yield
        return
    from turnlog.exports.otel_live import LiveExport

    with needs_binary("--otel needs more packages: pip install 'turnlog[otel]'"):
        export = LiveExport(
            store_path,
            receiver,
            content=content or (endpoint is None and load_settings().otel.content),
            announce=lambda text: click.echo(f"turnlog: {one_line(text)}", err=True),
        )
    export.start()
    try:
        yield
    finally:
        export.stop()


def _token(token: str | None, token_file: Path | None, *, no_token: bool) -> str | None:
    """The access token that the user chose; None for the store's own, or none at all."""
    from turnlog.server.access import ensure_long_enough, read_token

    if no_token + (token is not None) + (token_file is not None) > 1:
        raise click.UsageError("--token, --token-file and --no-token exclude each other")
    if no_token:
        return None
    if token_file is not None:
        try:
            return read_token(token_file.resolve())
        except FileNotFoundError as error:
            raise TurnlogError(f"there is no access token at {token_file}") from error
    if token is not None:
        if not token:
            raise click.UsageError("--token is empty")
        ensure_long_enough(token, "--token")
        click.echo(
            "turnlog: other users of this machine can read --token in the list of processes:"
            " use --token-file or TURNLOG_TOKEN",
            err=True,
        )
        return token
    named = paths.access_token()
    return None if named is None else ensure_long_enough(named, "TURNLOG_TOKEN")


def _announce(link: str, *, is_signing_in: bool) -> None:
    click.echo(f"turnlog is at {link}")
    if is_signing_in:
        click.echo("This link signs one browser in, within ten minutes. `turnlog open` opens another one.", err=True)


@click.command(epilog=examples("turnlog open", "turnlog open --print      # for a browser elsewhere"))
@click.option("--print", "only_print", is_flag=True, help="Print the link instead of opening it.")
@store_option
def open_page(only_print: bool, store_path: Path) -> None:
    """Open the page of the running server, signed in.

    The link works in one browser, once, within ten minutes.
    """
    address = _open(store_path, "", print_only=only_print)
    if address is not None:
        click.echo(plain(address))


def open_session(store_path: Path, session_id: str) -> str | None:
    """Open a session on the page of the running server; None if it was opened, else the address to open.

    Raises NotFoundError where no server runs, TurnlogError where it refuses.
    """
    from urllib.parse import quote

    return _open(store_path, f"&session={quote(session_id, safe='')}", print_only=False)


def _open(store_path: Path, more: str, *, print_only: bool) -> str | None:
    """Open a link that signs in; its address if it is only to be printed, or there is no browser."""
    from turnlog.server.access import SignInLink
    from turnlog.server.run import open_link

    opened = "false" if print_only else "true"
    answer = _ask_server(store_path.absolute().parent, f"/api/sign-in/links?opened={opened}{more}")
    link = SignInLink(answer["address"], None if answer["file"] is None else Path(answer["file"]))
    return link.address if print_only or not open_link(link) else None


def _ask_server(folder: Path, address: str) -> Any:
    """What the running server answers a POST. Raises NotFoundError where none runs, TurnlogError where it refuses."""
    from turnlog.hooks.server_socket import ask_server

    status, body = ask_server(folder, "POST", address)
    if status != 200:
        raise TurnlogError(f"the server refuses: {body['error']['message']}")
    return body
