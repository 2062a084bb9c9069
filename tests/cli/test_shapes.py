"""What `--json` writes has the shapes that are promised, and the docs tell them all."""

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from support.cli_runner import Command
from support.plain_agent import PlainAgent
from support.plain_history import OTHER
from turnlog.cli import shapes
from turnlog.cli.main import COMMANDS, EXIT_CODES
from turnlog.sync import rebuild, syncer

DOCS = (Path(__file__).parent.parent.parent / "docs/reference/cli.md").read_text()

CASES: dict[str, tuple[list[str], Any]] = {
    "sync": ([], shapes.SyncDocument),
    "sessions": ([], shapes.SessionsDocument),
    "annotate": ([OTHER, "--star"], shapes.AnnotationsDocument),
    "show": ([OTHER], shapes.ShowDocument),
    "search": (["post OR webshop"], shapes.SearchDocument),
    "files": (["--changed"], shapes.FilesDocument),
    "usage": ([], shapes.UsageDocument),
    "restore": ([OTHER, "--to", "restored"], shapes.RestoreDocument),
    "forget": ([OTHER], shapes.ForgetDocument),
    "rebuild": ([], shapes.RebuildDocument),
    "doctor": ([], shapes.DoctorDocument),
    "agents": ([], shapes.AgentsDocument),
    "db": (["path"], shapes.DatabaseDocument),
    "hooks": (["status"], shapes.HooksDocument),
}


@pytest.mark.parametrize("command", CASES)
@pytest.mark.usefixtures("store")
def test_documents_have_their_shape(
    command: str, run: Command, plain_agent: PlainAgent, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    for module in (rebuild, syncer):
        monkeypatch.setattr(module, "registered_agents", lambda: [plain_agent])
    arguments, shape = CASES[command]
    result = run(command, *arguments, "--json")
    assert result.exit_code in (0, 6), result.stderr
    document = json.loads(result.stdout)
    # Converting drops what a shape does not name and fails on what is missing or of another type.
    assert msgspec.to_builtins(msgspec.convert(document, shape)) == document


def test_every_command_is_documented() -> None:
    assert {name for name in COMMANDS if f"turnlog {name}" not in DOCS} == set()


def test_every_exit_code_is_documented() -> None:
    documented = {int(code) for code in re.findall(r"^\| (\d+) \|", DOCS, re.MULTILINE)}
    assert documented == {0, 2, 6, 130, 141, *EXIT_CODES.values()}


def test_every_field_of_every_document_is_documented() -> None:
    fields = {
        field
        for shape in vars(shapes).values()
        if isinstance(shape, type) and shape.__module__ == shapes.__name__
        for field in shape.__annotations__
    }
    assert {field for field in fields if not re.search(rf"\b{field}\b", DOCS)} == set()
