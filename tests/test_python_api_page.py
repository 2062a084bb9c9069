"""What docs/reference/python-api.md shows is true: its blocks run in order and print what is below them."""

from __future__ import annotations

import contextlib
import io
import re
import shutil
from pathlib import Path

import pytest

import turnlog

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "reference" / "python-api.md").read_text()
EXAMPLES: list[tuple[str, str]] = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", PAGE, re.DOTALL)
RECORDED = ROOT / "tests" / "data" / "claude_code" / "scenarios" / "basic" / "projects"


def test_the_examples_print_what_the_page_says(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-S31 to R-S33."""
    shutil.copytree(RECORDED, home / ".claude" / "projects")
    (log,) = (home / ".claude" / "projects").glob("*/11111111-*.jsonl")
    shutil.copyfile(log, tmp_path / "session.jsonl")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "example"}
    for code, output in EXAMPLES:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, "docs/reference/python-api.md", "exec"), names)
        assert printed.getvalue() == output, code


def test_every_python_block_is_an_example_that_runs() -> None:
    assert len(EXAMPLES) == PAGE.count("```python") > 0


def test_every_public_name_is_described() -> None:
    assert [name for name in turnlog.__all__ if name not in PAGE] == []
