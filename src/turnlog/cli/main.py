"""The entry point: the table of commands, and how errors become messages and exit codes.

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
from turnlog.cli.options import STORE, WRONG_USE, examples
from turnlog.errors import ConflictError, NotFoundError, StoreBusyError, TurnlogError
from turnlog.store.write_lock import is_database_error, reporting_waits


class _Entry(NamedTuple):
    module: str
    summary: str
    function: str | None = None
    """Its name in the module, if it differs from the command's."""


COMMANDS = {
    "sync": _Entry("sync", "Read what is new in the agents' logs."),
    "import": _Entry("sync", "Read one log file, an export or a pipe.", "import_file"),
    "run": _Entry("run", "Run an agent and record the run."),
    "runs": _Entry("runs", "List recorded runs and how they ended."),
    "sessions": _Entry("sessions", "List sessions."),
    "annotate": _Entry("sessions", "Give a session a title, a star, tags or a note."),
    "project": _Entry("projects", "List, rename and merge projects."),
    "task": _Entry("tasks", "List, name and delete tasks, to which sessions belong."),
    "show": _Entry("show", "Show a session as a transcript."),
    "replay": _Entry("replay", "Play a session again, at its own pace or faster."),
    "export": _Entry("export", "Write a session as a document or as a model request."),
    "otel": _Entry("otel", "Send sessions as traces to a receiver of OpenTelemetry."),
    "search": _Entry("search", "Search prompts, answers, reasoning and tool calls."),
    "files": _Entry("files", "List who touched a file, or which files were touched."),
    "why": _Entry("why", "Show which session a line, commit or pull request came from."),
    "usage": _Entry("usage", "Add up tokens and costs."),
    "insights": _Entry("insights", "Show when you work, what it costs, and what fails."),
    "query": _Entry("query", "Ask the store in SQL."),
    "statusline": _Entry("statusline", "Write a line with costs for an agent's status line."),
    "tui": _Entry("tui", "Search, read and resume sessions on the whole terminal."),
    "serve": _Entry("serve", "Open turnlog in the browser."),
    "open": _Entry("serve", "Open the page of the running server.", "open_page"),
    "resume": _Entry("resume", "Go on with a session in its agent, or in another one."),
    "handoff": _Entry("handoff", "Write a session as a session of another agent."),
    "context": _Entry("context", "Write what a new session should know of a project."),
    "hub": _Entry("hub", "Keep the sessions of all machines in one place."),
    "mcp": _Entry("mcp", "Let agents search and read earlier sessions."),
    "hooks": _Entry("hooks", "Install hooks that report events before logs do."),
    "restore": _Entry("archive", "Write a session's original log files again."),
    "forget": _Entry("archive", "Remove a session permanently."),
    "rebuild": _Entry("archive", "Build all sessions again from the archived logs."),
    "doctor": _Entry("doctor", "Check what was found and what could not be read."),
    "agents": _Entry("agents", "List the agents whose logs are read."),
    "db": _Entry("archive", "Print where the store is, or make its files smaller."),
    "completion": _Entry("completion", "Print the completion script for a shell."),
}
"""Command -> the module that holds it and what it does; in the order of `--help`."""

_OTHER_WORDS: dict[str, str] = dict.fromkeys(("list", "ls", "history", "log"), "sessions")
"""What other programs call a command."""

EXIT_CODES: dict[type[Exception], int] = {NotFoundError: 3, ConflictError: 4, StoreBusyError: 5, TurnlogError: 1}
"""Error class -> exit code; the first class that matches counts (docs/reference/cli.md)."""

INTERRUPTED, PIPE_CLOSED = 130, 141
"""The exit codes that a shell reports for a process that SIGINT or SIGPIPE ended."""


class Commands(click.Group):
    """A group that imports a command when it is called, and turns errors into one line and an exit code."""

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
        """The command and its arguments. The usage error for an unknown name suggests similar names."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from difflib import get_close_matches

            meant = _OTHER_WORDS.get(args[0])
            like = " or ".join(map(repr, [meant] if meant else get_close_matches(args[0], COMMANDS)))
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
        """The context of the command. Help and version are written here, so write errors are handled here too."""
        try:
            return super().make_context(info_name, args, parent, **extra)
        except OSError as error:
            _fail_to_write(error)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; every error becomes a message on standard error and an exit code."""
        try:
            with reporting_waits(_report_waiting):
                return super().invoke(ctx)
        except TurnlogError as error:
            _fail(str(error), next(code for kind, code in EXIT_CODES.items() if isinstance(error, kind)))
        except KeyboardInterrupt:
            _fail("interrupted", INTERRUPTED)
        except OSError as error:
            _fail_to_write(error)
        except UnicodeEncodeError as error:
            # A byte that is not UTF-8, in an argument or in the name of a folder: Python reads it as a lone surrogate.
            if not "\udc80" <= error.object[error.start] <= "\udcff":
                raise
            excerpt = error.object[max(0, error.start - 60) : error.end].encode(errors="backslashreplace").decode()
            _fail(f"not UTF-8: {excerpt}", WRONG_USE)
        except Exception as error:
            if not is_database_error(error):
                raise
            _fail(f"cannot use the store {ctx.meta.get(STORE, '')}: {error}", EXIT_CODES[TurnlogError])


def _report_waiting(path: str) -> None:
    from turnlog.plain_text import one_line

    click.echo(f"turnlog: waiting for another process that is writing to {one_line(path)}", err=True)


def _fail_to_write(error: OSError) -> NoReturn:
    if error.filename is None:
        # Python would flush what is still buffered when it exits, fail again and report it a second time.
        with suppress(io.UnsupportedOperation):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if error.errno == errno.EPIPE:
        # The reader of the pipe has gone, so there is nowhere to write a message.
        raise click.exceptions.Exit(PIPE_CLOSED) from error
    _fail(_reason(error), EXIT_CODES[TurnlogError])


def _reason(error: OSError) -> str:
    """The file and the error of the system; an error without a file concerns the output."""
    return f"{error.filename or 'cannot write the output'}: {error.strerror or error}"


def _fail(reason: str, code: int) -> NoReturn:
    from turnlog.plain_text import plain

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
    zone = paths.unknown_zone()
    if zone is not None:
        from turnlog.plain_text import one_line

        click.echo(f"turnlog: there is no time zone {one_line(repr(zone))} (TZ): times are in UTC", err=True)


def main() -> None:
    """Run the command that the shell asked for."""
    _prepare_streams()
    arguments = sys.argv[1:]
    if not arguments and sys.stdin.isatty() and sys.stdout.isatty():
        arguments = _without_arguments()
    cli(arguments, prog_name="turnlog")


def _without_arguments() -> list[str]:
    """What `turnlog` alone does on a terminal: it shows the sessions, or the help with a line about the extra."""
    from importlib.util import find_spec

    if find_spec("textual") is not None:
        return ["tui"]
    click.echo("`turnlog` alone shows all sessions here after pip install 'turnlog[tui]'\n", err=True)
    return []


def _prepare_streams() -> None:
    """Make sure that a command can write to the standard streams without checking them."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            # Closed by the parent process. The first file to be opened, such as a store, would get its number.
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))
    if isinstance(sys.stdout.buffer, io.RawIOBase):
        # PYTHONUNBUFFERED: raw writes may be cut off by a full disk or a closed pipe without an error.
        sys.stdout = os.fdopen(sys.stdout.fileno(), "w", encoding=sys.stdout.encoding, closefd=False)
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character shows a substitute instead of failing.
        # Only a text stream of an interpreter of our own has this; typeshed knows it under another type.
        stream.reconfigure(errors="replace")  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
