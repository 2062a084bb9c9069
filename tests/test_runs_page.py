"""What docs/how-to/runs.md shows is true: its code runs, and it names every command and every field."""

from __future__ import annotations

import re
from pathlib import Path

import click

from turnlog.chat.runtimes import AgentRuntime
from turnlog.cli.runs import runs
from turnlog.store.values import Run

PAGE = (Path(__file__).parent.parent / "docs" / "how-to" / "runs.md").read_text()


def test_the_code_makes_runtimes() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names: dict[str, object] = {"__name__": "example"}
    exec(compile(code, "docs/how-to/runs.md", "exec"), names)
    assert isinstance(names["claude"], AgentRuntime)
    assert isinstance(names["codex"], AgentRuntime)


def test_every_command_is_described() -> None:
    names = runs.list_commands(click.Context(runs))
    assert names
    assert [name for name in names if f"turnlog runs {name}" not in PAGE] == []


def test_every_field_of_a_run_is_described() -> None:
    assert [name for name in Run.__struct_fields__ if f"`{name}`" not in PAGE] == []
