"""What docs/reference/ui-messages.md shows is true: its blocks run in order and print what is below them."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

from support.plain_store import read_home
from turnlog.agents import agent
from turnlog.paths import database_path

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "reference" / "ui-messages.md").read_text()
EXAMPLES: list[tuple[str, str]] = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", PAGE, re.DOTALL)
RECORDED = ROOT / "tests" / "data" / "claude_code" / "scenarios" / "basic"


def test_the_examples_print_what_the_page_says(home: Path) -> None:
    """R-H2, R-H13, R-S13."""
    database_path().parent.mkdir(parents=True)
    read_home(database_path(), RECORDED, agent("claude-code"))
    names: dict[str, object] = {"__name__": "example"}
    for code, output in EXAMPLES:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, "docs/reference/ui-messages.md", "exec"), names)
        assert printed.getvalue() == output, code


def test_every_python_block_is_an_example_that_runs() -> None:
    assert len(EXAMPLES) == PAGE.count("```python") > 0
