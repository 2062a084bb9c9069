"""What `--json` writes has the fields that are promised, and the docs list them all."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import msgspec
import pytest

from support.cli_runner import Command
from support.plain_agent import PlainAgent
from support.plain_history import OTHER
from turnlog.cli import documents
from turnlog.cli.main import COMMANDS, EXIT_CODES, cli
from turnlog.store.dollars import to_json_number
from turnlog.sync import rebuild, syncer

DOCS = (Path(__file__).parent.parent.parent / "docs/reference/cli.md").read_text()

CASES: dict[str, tuple[list[str], Any]] = {
    "sync": ([], documents.SyncDocument),
    "sessions": ([], documents.SessionsDocument),
    "annotate": ([OTHER, "--star"], documents.AnnotationsDocument),
    "project": (["list"], documents.ProjectsDocument),
    "task": (["list"], documents.TasksDocument),
    "show": ([OTHER], documents.ShowDocument),
    "search": (["post OR webshop"], documents.SessionSearchDocument),
    "search hits": (["post OR webshop", "--flat"], documents.SearchDocument),
    "files": (["--changed"], documents.FilesDocument),
    "usage": ([], documents.UsageDocument),
    "context": ([], documents.ContextDocument),
    "restore": ([OTHER, "--to", "restored"], documents.RestoreDocument),
    "forget": ([OTHER, "--yes"], documents.ForgetDocument),
    "rebuild": ([], documents.RebuildDocument),
    "doctor": ([], documents.DoctorDocument),
    "agents": ([], documents.AgentsDocument),
    "db": (["path"], documents.DatabaseDocument),
    "hooks": (["status"], documents.HooksDocument),
    "mcp": (["status"], documents.McpDocument),
}


@pytest.mark.parametrize("command", CASES)
@pytest.mark.usefixtures("store")
def test_documents_have_their_shape(
    command: str, run: Command, plain_agent: PlainAgent, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(rebuild, "registered_agents", lambda: [plain_agent])
    monkeypatch.setattr(syncer, "agents_here", lambda: [plain_agent])
    arguments, shape = CASES[command]
    result = run(command.split()[0], *arguments, "--json")
    assert result.exit_code in (0, 6), result.stderr
    document = json.loads(result.stdout)
    # Converting drops what a shape does not name and fails on what is missing or of another type.
    found = msgspec.convert(document, shape, dec_hook=lambda kind, value: kind(value))
    assert json.loads(msgspec.json.encode(found, enc_hook=to_json_number)) == document


def test_every_command_is_documented() -> None:
    assert {name for name in COMMANDS if f"turnlog {name}" not in DOCS} == set()


def commands_without_json(command: click.Command, context: click.Context) -> Iterator[str]:
    """`runs`, `runs show`: commands and those below them; a group that only holds others is none."""
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from commands_without_json(inner, click.Context(inner, context, name))
        if not command.invoke_without_command:
            return
    if not any("--json" in each.opts for each in command.params):
        yield context.command_path


def test_the_commands_without_json_are_documented() -> None:
    sentence = re.search(r"All commands have `--json`, except (.*?);", DOCS)
    assert sentence is not None
    named = set(re.findall(r"`([\w -]+)`", sentence[1]))
    # Alone it is the server, whose output is a protocol; `project` and `task` alone are their `list`.
    found = {path.strip() for path in commands_without_json(cli, click.Context(cli, info_name=""))}
    assert found - {"project", "task"} == {*named, "mcp"}


def test_every_exit_code_is_documented() -> None:
    documented = {int(code) for code in re.findall(r"^\| (\d+) \|", DOCS, re.MULTILINE)}
    assert documented == {0, 2, 6, 130, 141, *EXIT_CODES.values()}


def test_every_field_of_every_document_is_documented() -> None:
    fields = {
        field
        for shape in vars(documents).values()
        if isinstance(shape, type) and shape.__module__.startswith("turnlog.")
        for field in (shape.__struct_fields__ if issubclass(shape, msgspec.Struct) else shape.__annotations__)
    }
    assert {field for field in fields if not re.search(rf"\b{field}\b", DOCS)} == set()
