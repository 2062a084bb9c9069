"""`turnlog serve`: the web app and the HTTP API, on this machine."""

from __future__ import annotations

from pathlib import Path

import click
from click.core import ParameterSource

from turnlog import paths
from turnlog.cli.options import examples, store_option


@click.command(
    epilog=examples(
        "turnlog serve",
        "turnlog serve --port 9000 --no-browser",
        "turnlog serve --host 0.0.0.0 --token s3cret    # for others: they need the token",
    )
)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), help="The port to listen on.  [default: 8765, or a free one]")
@click.option("--token", help="Require this token. By default one is generated where it is needed.")
@click.option("--sync/--no-sync", default=True, help="Read logs while the server runs, or do not.")
@click.option("--prompts", is_flag=True, help="Allow prompts in the page, which the session's agent answers.")
@click.option("--browser/--no-browser", default=True, help="Open the page, or do not.")
@store_option
@click.pass_context
def serve(
    ctx: click.Context,
    host: str,
    port: int | None,
    token: str | None,
    sync: bool,
    prompts: bool,
    browser: bool,
    store_path: Path,
) -> None:
    """Open turnlog in the browser, and keep it up to date until Ctrl-C.

    Only this machine can reach the server, and nothing leaves the machine. With --host, others who know the token can.

    With --prompts you can continue a session in the page: its agent is started in its folder, without a terminal, and
    may do what its own settings allow. Claude Code and Codex ask for other permissions in the page.

    If no agent has written a log yet, a small sample is shown, in a store of its own.
    """
    from turnlog.runs.lifecycle import close_abandoned_runs
    from turnlog.server import serve as run
    from turnlog.server.sample import ensure_sample, is_sample_due

    close_abandoned_runs(store_path)
    # With --store the user gets that store, even if it is empty.
    is_own = ctx.get_parameter_source("store_path") is ParameterSource.DEFAULT
    sample = is_own and is_sample_due(store_path)
    if sample:
        store_path = paths.sample_path()
        ensure_sample(store_path)
        click.echo("No agent's logs were found: this is the sample that comes with turnlog.", err=True)
        click.echo("Once an agent has run, start turnlog again to see what it did.", err=True)
    run(
        store_path,
        host=host,
        port=port,
        token=token,
        sync=sync and not sample,
        sample=sample,
        prompts=prompts and not sample,
        open_browser=browser,
        announce=lambda address: click.echo(f"turnlog is at {address}"),
    )
