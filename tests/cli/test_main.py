"""The command as a whole: its help, its exit codes, and what it imports."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import click
import pytest

from support.cli_runner import Command, command, in_pipe
from support.plain_history import SESSION
from turnlog import __version__, paths
from turnlog.cli.main import COMMANDS, INTERRUPTED, PIPE_CLOSED
from turnlog.cli.runs import runs
from turnlog.errors import ConflictError, NotFoundError, SchemaTooNewError, StoreBusyError, TurnlogError

HEAVY = ["fastapi", "genai_prices", "pydantic", "rich", "starlette", "turnlog.model", "uvicorn"]


def commands() -> dict[str, click.Command]:
    """Every command that can be called, by its words."""
    found: dict[str, click.Command] = {}
    for name, entry in COMMANDS.items():
        command = getattr(import_module(f"turnlog.cli.{entry.module}"), entry.function or name)
        if isinstance(command, click.Group):
            found |= {f"{name} {child}": each for child, each in command.commands.items()}
        else:
            found[name] = command
    return found


def test_help_lists_every_command_and_imports_none() -> None:
    script = "import sys; from turnlog.cli.main import main\ntry: main()\nfinally: print(sorted(sys.modules))"
    result = subprocess.run([sys.executable, "-c", script, "--help"], capture_output=True, text=True, check=True)
    *help, modules = result.stdout.splitlines()
    for name, entry in COMMANDS.items():
        assert any(name in line and entry.summary in line for line in help)
        assert f"turnlog.cli.{entry.module}'" not in modules


@pytest.mark.parametrize("name", commands())
def test_every_command_has_help_with_examples(name: str, run: Command) -> None:
    result = run(*name.split(), "--help")
    assert result.exit_code == 0
    assert f"turnlog {name}" in result.stdout.partition("Examples:")[2]
    writes_no_json = name in ("completion", "context", "export", "mcp", "open", "serve", "statusline", "tui")
    assert writes_no_json or "--json" in result.stdout


def test_the_manual_names_every_option() -> None:
    manual = (Path(__file__).parents[2] / "docs/reference/cli.md").read_text(encoding="utf-8")
    parameters = [parameter for each in (runs, *commands().values()) for parameter in each.params]
    options = [(*each.opts, *each.secondary_opts) for each in parameters if isinstance(each, click.Option)]
    assert [names for names in options if not any(f"{name}`" in manual or f"{name} " in manual for name in names)] == []


def test_the_version_is_reported(run: Command) -> None:
    assert run("--version").stdout == f"turnlog {__version__}\n"


def test_wrong_use_exits_with_2(run: Command) -> None:
    for arguments in (["nonsense"], ["usage", "--by", "mood"], ["show"], ["usage", "--since", "soon"]):
        assert run(*arguments).exit_code == 2


@pytest.mark.parametrize("arguments", [("usage", "--csv"), ("doctor", "--report"), ("show", SESSION, "--raw")])
def test_what_is_no_json_cannot_be_requested_as_json(arguments: tuple[str, ...], run: Command, store: Path) -> None:
    result = run(*arguments, "--json")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--json cannot be combined" in result.stderr


@pytest.mark.parametrize("name", ["sessions", "search", "files", "runs", "doctor"])
def test_more_than_any_number_can_count_is_wrong_use(name: str, run: Command, store: Path) -> None:
    result = run(name, "--limit", "9" * 30)
    assert (result.exit_code, result.stdout) == (2, "")


def test_without_a_store_reading_says_how_to_make_one(run: Command, home: Path) -> None:
    for arguments in (
        ["usage", "--no-sync"],
        ["show", "x", "--no-sync"],
        ["annotate", "x"],
        ["restore", "x", "--to", "d"],
        ["rebuild"],
    ):
        result = run(*arguments)
        assert (result.exit_code, result.stdout) == (3, "")
        assert "turnlog sync" in result.stderr
    assert list(home.rglob("*.db")) == []


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (TurnlogError("broken"), 1, "broken"),
        (SchemaTooNewError("too new"), 1, "too new"),
        (NotFoundError("not there"), 3, "not there"),
        (ConflictError("changed"), 4, "changed"),
        (StoreBusyError("busy"), 5, "busy"),
        (PermissionError(13, "Permission denied", "/x"), 1, "/x: Permission denied"),
        (sqlite3.DatabaseError("malformed"), 1, "cannot use the store {store}: malformed"),
        (sqlite3.OperationalError("disk I/O error"), 1, "cannot use the store {store}: disk I/O error"),
        (OSError(28, "No space left on device"), 1, "cannot write the output: No space left on device"),
        (KeyboardInterrupt(), INTERRUPTED, "interrupted"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_each_kind_of_failure_has_its_exit_code_and_one_line(
    error: BaseException, code: int, message: str, run: Command, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("turnlog.store.sqlite.usage.UsageStore.usage", fail)
    result = run("usage")
    assert (result.exit_code, result.stdout) == (code, "")
    assert result.stderr == f"turnlog: {message.format(store=store)}\n"


@pytest.mark.usefixtures("store")
def test_a_mistake_of_our_own_is_reported_in_full(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise sqlite3.IntegrityError("UNIQUE constraint failed")

    monkeypatch.setattr("turnlog.store.sqlite.usage.UsageStore.usage", fail)
    with pytest.raises(sqlite3.IntegrityError):
        run("usage")


def test_what_a_failure_quotes_is_harmless(run: Command, store: Path) -> None:
    result = run("show", "\x1b[31mx", "--store", str(store))
    assert result.exit_code == 3
    assert "\x1b" not in result.stderr


@pytest.mark.parametrize("arguments", [("show", "1\udcff"), ("files", "a\udcff"), ("runs", "show", "\udcff")])
def test_an_argument_that_is_no_text_is_wrong_use(arguments: tuple[str, ...], run: Command, store: Path) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith("turnlog: not UTF-8: ")
    assert result.stderr.count("\n") == 1


def test_the_error_for_a_misspelt_command_names_similar_ones(run: Command) -> None:
    result = run("sesions")
    assert result.exit_code == 2
    assert "No such command 'sesions'. Did you mean 'sessions'?" in result.stderr
    assert "Did you mean" not in run("xyzzy").stderr
    assert "No such command 'list'. Did you mean 'sessions'?" in run("list").stderr


@pytest.mark.parametrize("command", ["sessions", "sync", "serve"])
def test_the_address_of_a_database_is_no_path_of_a_store(command: str, run: Command, home: Path) -> None:
    result = run(command, "--store", "postgresql://localhost/turnlog")
    assert result.exit_code == 2
    assert "turnlog hub serve --database" in result.stderr
    assert not Path("postgresql:").exists()


def test_a_file_that_is_no_store_is_a_clear_error(run: Command, tmp_path: Path) -> None:
    path = tmp_path / "notes.db"
    path.write_text("no database" * 1000)
    result = run("usage", "--store", str(path))
    assert result.exit_code == 1
    assert str(path) in result.stderr


def test_a_reader_that_goes_away_ends_the_command_quietly(store: Path) -> None:
    process = subprocess.Popen(
        command("show", SESSION, "--json", "--store", str(store)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    errors = process.stderr.read()
    process.stderr.close()
    assert (process.wait(), errors) == (PIPE_CLOSED, b"")


def test_a_reader_that_leaves_is_noticed_without_buffers_too(store: Path) -> None:
    """Python itself loses the rest of a piece then, and a full disk loses it in silence."""
    process = subprocess.Popen(
        command("export", SESSION, "--as", "html", "--store", str(store)),
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
        pipesize=4096,
    )
    assert process.stdout is not None
    assert os.read(process.stdout.fileno(), 10) == b"<!doctype "
    process.stdout.close()
    assert process.wait() == PIPE_CLOSED


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], ["usage", "--help"], ["completion", "bash"], ["db", "path"], ["usage"]]
)
@pytest.mark.usefixtures("store")
def test_what_a_full_disk_does_not_take_is_reported_in_one_line(arguments: list[str]) -> None:
    with Path("/dev/full").open("wb") as full:
        result = subprocess.run(command(*arguments), stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert result.returncode == 1
    assert "turnlog: cannot write the output: No space left on device\n" in result.stderr
    assert "Traceback" not in result.stderr
    assert "Exception ignored" not in result.stderr


def test_help_that_nobody_reads_any_more_ends_quietly() -> None:
    process = subprocess.Popen(command("--help"), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.close()
    assert (process.communicate()[1], process.returncode) == (b"", PIPE_CLOSED)


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_takes_what_is_said_to_nobody(closed: str, store: Path) -> None:
    shell = ["sh", "-c", f'"$0" "$@" {closed}', *command("usage", "--store", str(store))]
    assert subprocess.run(shell, check=False, capture_output=True).returncode == 0
    assert subprocess.run([*shell, "--nonsense"], check=False, capture_output=True).returncode == 2


def test_output_that_no_encoding_can_hold_is_replaced(store: Path) -> None:
    result = in_pipe("sessions", "--store", str(store), PYTHONIOENCODING="ascii")
    assert result.returncode == 0
    assert "Write a post" in result.stdout


def test_usage_imports_nothing_heavy(store: Path) -> None:
    script = (
        "import sys\nfrom turnlog.cli.main import main\n"
        f"try: main()\nfinally: print([name for name in {HEAVY} if name in sys.modules], file=sys.stderr)"
    )
    result = subprocess.run(
        [sys.executable, "-c", script, "usage", "--json"], capture_output=True, text=True, check=True
    )
    assert json.loads(result.stdout)["totals"]["calls"] == 4
    assert result.stderr.strip() == "[]"


@pytest.mark.parametrize("arguments", [["sessions"], ["sessions", "--json"], ["show", "3f2"]])
def test_lists_and_transcripts_import_no_reports(arguments: list[str], store: Path) -> None:
    reports = ["turnlog.store.usage_report", "turnlog.store.sqlite.store", "statistics", "subprocess"]
    script = (
        "import sys\nfrom turnlog.cli.main import main\n"
        f"try: main()\nfinally: print([name for name in {reports} if name in sys.modules], file=sys.stderr)"
    )
    result = subprocess.run(
        [sys.executable, "-c", script, *arguments, "--no-sync"], capture_output=True, text=True, check=True
    )
    assert result.stderr.strip().endswith("[]")


def test_completion_is_printed_for_each_shell(run: Command) -> None:
    for shell in ("bash", "zsh", "fish"):
        assert "_TURNLOG_COMPLETE" in run("completion", shell).stdout
    assert run("completion", "tcsh").exit_code == 2


def complete(*words: str) -> list[str]:
    """What bash is offered for the last of these words."""
    line = " ".join(("turnlog", *words))
    result = in_pipe(_TURNLOG_COMPLETE="bash_complete", COMP_WORDS=line, COMP_CWORD=str(len(words)))
    return [answer.partition(",")[2] for answer in result.stdout.splitlines() if "," in answer]


def test_commands_and_options_complete() -> None:
    assert complete("sea") == ["search"]
    assert "--by" in complete("usage", "--")


def test_session_ids_complete_from_the_store(store: Path) -> None:
    assert complete("show", "3f2") == ["3f2a91c0-1111-4111-8111-000000000001"]
    assert complete("restore", "77") == ["77aa0000-1111-4111-8111-000000000002"]
    assert complete("show", "zz") == []
    assert complete("sessions", "--parent", "3f2") == complete("files", "--session", "3f2") == complete("show", "3f2")
    assert complete("show", "plain:3f2") == [SESSION]


@pytest.mark.usefixtures("home")
def test_without_a_store_nothing_completes() -> None:
    assert complete("show", "3f") == []


def test_an_interrupt_ends_a_process_as_shells_expect(store: Path) -> None:
    script = (
        "import os, signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from turnlog.cli import usage; from turnlog.cli.main import main\n"
        "usage.open_fresh = lambda path: os.kill(os.getpid(), signal.SIGINT)\nmain()"
    )
    result = subprocess.run([sys.executable, "-c", script, "usage"], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (128 + signal.SIGINT, "turnlog: interrupted\n")


def test_errors_name_an_extra_as_the_command_that_installs_it() -> None:
    """One wording, which can be pasted into a shell."""
    package = Path(paths.__file__).parent
    lines = [line for file in package.rglob("*.py") for line in file.read_text(encoding="utf-8").splitlines()]
    named = [line for line in lines if re.search(r"install\w*\W{1,3}turnlog\[", line)]
    assert len(named) >= 8
    assert [line for line in named if "pip install 'turnlog[" not in line] == []


def test_a_time_zone_that_does_not_exist_is_said(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """The C library takes UTC without a word, and every day of a report would be another one."""
    monkeypatch.setenv("TZ", "Europe/Berln")
    result = run("agents", "--json")
    assert "there is no time zone 'Europe/Berln' (TZ): times are in UTC" in result.stderr
    assert "Berln" not in result.stdout
