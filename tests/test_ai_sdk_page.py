"""What docs/reference/ai-sdk.md shows is true: its blocks print what is below them, its table is the code's."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

from turnlog.aisdk import FEATURES, NEWEST

PAGE = (Path(__file__).parent.parent / "docs" / "reference" / "ai-sdk.md").read_text()
EXAMPLES: list[tuple[str, str]] = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", PAGE, re.DOTALL)


def test_the_examples_print_what_the_page_says() -> None:
    names: dict[str, object] = {"__name__": "example"}
    for code, output in EXAMPLES:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, "docs/reference/ai-sdk.md", "exec"), names)
        assert printed.getvalue() == output, code
    assert len(EXAMPLES) == PAGE.count("```python") > 0


def test_the_table_has_every_feature_and_its_first_releases() -> None:
    for name, first in FEATURES.items():
        row = " | ".join(str(first.get(major, "-")) for major in NEWEST)
        assert name == "base" or f"| {name} | {row} |" in PAGE, name


def test_the_releases_that_a_major_means_are_reported() -> None:
    assert all(str(release) in PAGE for release in NEWEST.values())
