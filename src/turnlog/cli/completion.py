"""`turnlog completion`: the script that lets a shell complete commands, options and session ids."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from turnlog.cli.options import examples


@click.command(
    epilog=examples(
        'eval "$(turnlog completion bash)"                                # in ~/.bashrc',
        'eval "$(turnlog completion zsh)"                                 # in ~/.zshrc',
        "turnlog completion fish > ~/.config/fish/completions/turnlog.fish",
    )
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the script with which a shell completes commands, options and session ids."""
    kind = get_completion_class(shell)
    assert kind is not None, shell
    click.echo(kind(ctx.find_root().command, {}, "turnlog", "_TURNLOG_COMPLETE").source())
