"""Runs the real agents against the script, reads what they wrote, and says in a table what is not as scripted.

Each run has a HOME of its own that is removed afterwards, and no environment but what the agent needs. Exit code 0:
all as scripted and no unknown kind; 1: something is not; 2: there is no such agent.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cassettes import check_cassette
from chats import COMMANDS, check_chats
from clis import CLIS, Cli
from compare import compare, unknown_kinds
from history_server import check_history_server
from model_server import ModelServer
from script import Answer, conversation

from turnlog.agents import agent
from turnlog.agents.base import SourceKind
from turnlog.errors import TurnlogError
from turnlog.logs import SessionHistory, read_session

MODULES = Path(__file__).parent.parent / ".build/rig/node_modules"
ENVIRONMENTS = Path(__file__).parent.parent / ".build/rig/python"
SECONDS = 90
COLUMNS = (
    *("agent", "version", "order", "inputs", "outputs", "states", "tokens", "unknown kinds", "cassette", "chat"),
    "history",
)


class Trouble(Exception):
    """A run that gave nothing to compare."""


def main(words: list[str]) -> int:
    known = [cli.name for cli in CLIS]
    parser = argparse.ArgumentParser(description="Run the real agents against a scripted model (docs/how-to/rig.md).")
    parser.add_argument("names", nargs="*", metavar="AGENT", help=f"{', '.join(known)}; without one, all of them")
    names: list[str] = parser.parse_args(words).names
    if strangers := [name for name in names if name not in known]:
        parser.error(f"no such agent: {', '.join(strangers)}; there are {', '.join(known)}")
    rows: list[list[str]] = []
    findings: list[str] = []
    for cli in CLIS:
        if not names and not program_of(cli).exists():
            # Not every agent can be installed on every day, and on every version of Node and Python.
            rows.append([cli.name, "missing", *["-"] * (len(COLUMNS) - 2)])
        elif not names or cli.name in names:
            row, found = check(cli)
            chat, more = chat_with(cli)
            history, others = look_into_history(cli)
            rows.append([cli.name, version(cli), *row, chat, history])
            found += [*more, *others]
            findings += [f"{cli.name}: {finding}" for finding in found]
    print_table(rows)
    for finding in findings:
        print(finding)
    return 1 if findings else 0


def version(cli: Cli) -> str:
    if cli.is_python:
        found = list((ENVIRONMENTS / cli.package / "lib").glob(f"python*/site-packages/{_file_name(cli)}-*.dist-info"))
        return found[0].name.removesuffix(".dist-info").rpartition("-")[2] if found else "missing"
    package = MODULES / cli.package / "package.json"
    return json.loads(package.read_bytes())["version"] if package.exists() else "missing"


def _file_name(cli: Cli) -> str:
    return cli.package.replace("-", "_")


def program_of(cli: Cli) -> Path:
    """Where the agent's program is, if it is installed."""
    if not cli.is_python:
        return MODULES / ".bin" / cli.program
    place = ENVIRONMENTS / cli.package
    # Some packages hold a program and no script that starts it.
    return next(place.glob(f"lib/python*/site-packages/*/bin/{cli.program}"), place / "bin" / cli.program)


def check(cli: Cli) -> tuple[list[str], list[str]]:
    """The agent's cells of the table, and what is not as it should be."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        try:
            answers, sent = run(cli, Path(name))
            history = read(cli, Path(name))
            cells, found = judge(cli, answers, sent, history)
            again, more = play_again(cli, history) if cli.replays else ("-", [])
            return [*cells, again], [*found, *more]
        except Trouble as trouble:
            return ["-"] * 7, [str(trouble)]


def play_again(cli: Cli, history: SessionHistory) -> tuple[str, list[str]]:
    """The cell of the table: whether the agent goes through its own recorded conversation."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        try:
            found = check_cassette(history, lambda url: start(cli, Path(name), url))
        except (TurnlogError, Trouble) as error:
            found = [str(error)]
    return "DIFFERS" if found else "ok", [f"cassette: {each}" for each in found]


def chat_with(cli: Cli) -> tuple[str, list[str]]:
    """The cell of the table: whether the agent answers a chat as it should."""
    if cli.name not in COMMANDS:
        return "-", []
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        try:
            found = check_chats(cli, program_of(cli), Path(name))
        except (TurnlogError, OSError) as error:
            found = [f"chat: {error}"]
    return "DIFFERS" if found else "ok", found


def look_into_history(cli: Cli) -> tuple[str, list[str]]:
    """The last cell of the table: whether the agent gets an answer from turnlog's own server."""
    if not cli.history_tool:
        return "-", []
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        home = Path(name)

        def launch_here(url: str) -> None:
            launch(cli, home, url, cli.history_arguments or cli.arguments)

        try:
            found = check_history_server(cli, home, lambda url: prepare(cli, home, url), launch_here)
        except (TurnlogError, Trouble) as error:
            found = [str(error)]
    return "DIFFERS" if found else "ok", [f"history: {each}" for each in found]


def run(cli: Cli, home: Path) -> tuple[list[Answer], list[dict[str, Any]]]:
    """Let the agent talk with the scripted model; returns the script and the agent's requests.

    Raises Trouble when the script was not gone through.
    """
    answers = conversation(
        cli.tool,
        cli.argument,
        cli.extra,
        failing=cli.failing,
        in_list=cli.takes_list,
        at_once=cli.makes_calls_at_once,
        asked_again=cli.asks_again,
    )
    with ModelServer(answers) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            start(cli, home, server.url)
        finally:
            server.shutdown()
    if server.asked != len(answers):
        raise Trouble(f"asked the model {server.asked} times; the script has {len(answers)} answers")
    return answers, server.bodies


def start(cli: Cli, home: Path, url: str) -> None:
    prepare(cli, home, url)
    launch(cli, home, url, cli.arguments)


def prepare(cli: Cli, home: Path, url: str) -> None:
    for name, text in cli.files.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text.replace("{URL}", url))
    (home / "work").mkdir(parents=True, exist_ok=True)


def launch(cli: Cli, home: Path, url: str, arguments: list[str], seconds: float = SECONDS) -> None:
    program = program_of(cli)
    if not program.exists():
        raise Trouble(f"{program} is not there: make rig installs it")
    with (home / "printed").open("w+") as printed:
        process = subprocess.Popen(
            [program, *arguments],
            cwd=home / "work",
            env=environment_of(cli, home, url),
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        wait(process, seconds)
        printed.seek(0)
        if process.returncode:
            raise Trouble(f"exit code {process.returncode}: {printed.read()[-600:]}")


def environment_of(cli: Cli, home: Path, url: str) -> dict[str, str]:
    """What the agent gets of the environment: as little as it needs."""
    own = {name: value.replace("{URL}", url) for name, value in cli.environment.items()}
    return {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8", "TERM": "dumb"} | own


def wait(process: subprocess.Popen[bytes], seconds: float) -> None:
    """Wait for the end, or end it with all that it started: the programs of npm are parents of the real ones."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise Trouble(f"did not end within {seconds:.0f} seconds") from None


def read(cli: Cli, home: Path) -> SessionHistory:
    sources = agent(cli.name).discover([home / cli.home])
    logs = [source.path for source in sources if source.kind is SourceKind.SESSION]
    if len(logs) != 1:
        raise Trouble(f"one conversation left {len(logs)} session logs: {logs}")
    return read_session(logs[0])


def judge(
    cli: Cli, answers: list[Answer], sent: list[dict[str, Any]], history: SessionHistory
) -> tuple[list[str], list[str]]:
    compared = compare(cli, answers, sent, history)
    unknown = unknown_kinds(history)
    cells = ["ok" if pair is None else "DIFFERS" for pair in compared.values()]
    findings = [f"{name}\n  script {pair[0]}\n  read   {pair[1]}" for name, pair in compared.items() if pair]
    findings += [f"unknown kind {kind}" for kind in unknown]
    findings += [f"diagnostic {diagnostic}" for diagnostic in history.diagnostics]
    return [*cells, ", ".join(unknown) or "none"], findings


def print_table(rows: list[list[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(COLUMNS, *rows, strict=True)]
    for line in lines([list(COLUMNS), *rows], widths):
        print(line)


def lines(rows: list[list[str]], widths: list[int]) -> Iterator[str]:
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
