"""The entry point: which commands there are, and what becomes of errors.

Commands are imported when they are called, so that `turnlog --help` and every light command start fast.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from contextlib import suppress
from importlib import import_module
from typing import Any, NamedTuple, NoReturn

import click

from turnlog import __version__, paths
from turnlog.cli.options import STORE, examples
from turnlog.errors import ConflictError, NotFoundError, StoreBusyError, TurnlogError
from turnlog.store.write_lock import reporting_waits


class _Entry(NamedTuple):
    module: str
    summary: str
    function: str | None = None
    """Its name in the module, where that is not the command's."""


COMMANDS = {
    "sync": _Entry("sync", "Read what is new in the agents' logs."),
    "import": _Entry("imports", "Read one file, or what comes through a pipe.", "import_file"),
    "run": _Entry("run", "Run an agent, and keep a record of it."),
    "runs": _Entry("runs", "List what was run, and how it went."),
    "sessions": _Entry("sessions", "List sessions."),
    "annotate": _Entry("annotate", "Give a session a title, a star, tags, a note."),
    "show": _Entry("show", "Show a session as a transcript."),
    "replay": _Entry("replay", "Show a session again, as it came."),
    "export": _Entry("export", "Write a session as a document, or as a model's next request."),
    "search": _Entry("search", "Search in everything that was said and done."),
    "files": _Entry("files", "List who touched a file, or which files were touched."),
    "usage": _Entry("usage", "Add up tokens and costs."),
    "serve": _Entry("serve", "Open turnlog in the browser."),
    "hooks": _Entry("hooks", "Let agents tell what they do, before their logs say it."),
    "restore": _Entry("archive", "Write a session's log files as they were."),
    "forget": _Entry("archive", "Remove a session for good."),
    "rebuild": _Entry("archive", "Make all sessions anew from the archived logs."),
    "doctor": _Entry("doctor", "Say what was found, and what could not be read."),
    "agents": _Entry("agents", "List the agents whose logs are read."),
    "db": _Entry("database", "Where the store is."),
    "completion": _Entry("completion", "Print completion for a shell."),
}
"""Command -> the module that holds it and what it does; in the order of `--help`."""

EXIT_CODES: dict[type[Exception], int] = {NotFoundError: 3, ConflictError: 4, StoreBusyError: 5, TurnlogError: 1}
"""What a failure exits with, the first class that fits (docs/reference/cli.md)."""

WRONG_USE = 2

INTERRUPTED, PIPE_CLOSED = 130, 141
"""As a shell reports a process that SIGINT or SIGPIPE ended."""


class Commands(click.Group):
    """A group that imports a command when it is asked for, and turns errors into one line and an exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All commands, in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name, imported now."""
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        return getattr(import_module(f"turnlog.cli.{entry.module}"), entry.function or cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """What is called; of a name that is none, which ones are like it."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from difflib import get_close_matches

            like = " or ".join(map(repr, get_close_matches(args[0], COMMANDS)))
            if not like:
                raise
            raise click.UsageError(f"{error.message} Did you mean {like}?", ctx) from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The table of commands, without importing one of them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.summary) for name, entry in COMMANDS.items()])

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """What the command runs with; help and version are written while it is made."""
        try:
            return super().make_context(info_name, args, parent, **extra)
        except OSError as error:
            _fail_to_write(error)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that was asked for."""
        try:
            with reporting_waits(_say_that_it_waits):
                return super().invoke(ctx)
        except TurnlogError as error:
            _fail(str(error), next(code for kind, code in EXIT_CODES.items() if isinstance(error, kind)))
        except KeyboardInterrupt:
            _fail("interrupted", INTERRUPTED)
        except OSError as error:
            _fail_to_write(error)
        except UnicodeEncodeError as error:
            # A byte that the system handed over and that is no text: in an argument, or in the name of a folder.
            if not "\udc80" <= error.object[error.start] <= "\udcff":
                raise
            said = error.object[max(0, error.start - 60) : error.end].encode(errors="backslashreplace").decode()
            _fail(f"not UTF-8: {said}", WRONG_USE)
        except Exception as error:
            if not _is_of_the_store(error):
                raise
            _fail(f"cannot use the store {ctx.meta.get(STORE, '')}: {error}", EXIT_CODES[TurnlogError])


def _say_that_it_waits(path: str) -> None:
    from turnlog.cli.terminal import one_line

    click.echo(f"turnlog: waiting for another process that is writing to {one_line(path)}", err=True)


def _is_of_the_store(error: Exception) -> bool:
    """Whether SQLite could not read or write its file; what else it says is a mistake of ours, and told in full."""
    # Whoever opened a store has imported it; nobody else waits for that.
    sqlite = sys.modules.get("sqlite3")
    return sqlite is not None and (isinstance(error, sqlite.OperationalError) or type(error) is sqlite.DatabaseError)


def _fail_to_write(error: OSError) -> NoReturn:
    if error.filename is None:
        # What is still buffered could not be written at the end either, and Python would say so once more.
        with suppress(io.UnsupportedOperation):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if error.errno == errno.EPIPE:
        # Whoever read has gone: nothing more can be said.
        raise click.exceptions.Exit(PIPE_CLOSED) from error
    _fail(_reason(error), EXIT_CODES[TurnlogError])


def _reason(error: OSError) -> str:
    """What went wrong, and with which file; without one it was the output."""
    return f"{error.filename or 'cannot write the output'}: {error.strerror or error}"


def _fail(reason: str, code: int) -> NoReturn:
    from turnlog.cli.terminal import plain

    click.echo(f"turnlog: {plain(reason)}", err=True)
    raise click.exceptions.Exit(code)


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=examples(
        "turnlog sync                       read what is new",
        'turnlog search "connection reset"  find it again',
        "turnlog show 3f2a91c0              see it all",
        "turnlog usage --by model           what it cost",
        "turnlog serve                      all of it in the browser",
    ),
)
@click.version_option(__version__, message="turnlog %(version)s")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Every turn of every coding agent, kept, searchable and priced, on your machine only."""
    if not paths.wants_colour():
        ctx.color = False


def main() -> None:
    """Run the command that the shell asked for."""
    _prepare_streams()
    cli(prog_name="turnlog")


def _prepare_streams() -> None:
    """Make the standard streams what a command can write to without looking."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            # Closed by whoever started this. The first file to be opened, a store say, would take its number.
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))
    if isinstance(sys.stdout.buffer, io.RawIOBase):
        # PYTHONUNBUFFERED: what a full disk or a reader that goes away cut off would be lost without an error.
        sys.stdout = os.fdopen(sys.stdout.fileno(), "w", encoding=sys.stdout.encoding, closefd=False)
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character shows a substitute instead of failing.
        # Only a text stream of an interpreter of our own has this; typeshed knows it under another type.
        stream.reconfigure(errors="replace")  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
