"""`turnlog statusline`: a line for Claude Code's status line, from what it writes to standard input and the store.

Claude Code runs it after every answer, so it opens the store only to read totals, reads no logs and never fails for a
store that it cannot use. Without options, `status_text.answer_quickly` comes before this command.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from turnlog.cli.options import examples, store_option
from turnlog.cli.status_text import status_text


@click.command(
    epilog=examples(
        "turnlog statusline < input.json",
        """In ~/.claude/settings.json: "statusLine": {"type": "command", "command": "turnlog statusline"}""",
    )
)
@store_option
def statusline(store_path: Path) -> None:
    """Write a status line for Claude Code: the model, and what the session, today and the running block cost.

    Reads the JSON that Claude Code writes to standard input. A session's cost is Claude Code's own figure; the rest is
    from the store, as `turnlog usage --no-sync` has it.
    """
    click.echo(status_text(sys.stdin.buffer.read(), store_path))
