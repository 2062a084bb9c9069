"""Every cell of the table in docs/how-to/agent-frameworks.md of what a runtime carries to its model."""

from __future__ import annotations

import asyncio
from itertools import product
from pathlib import Path

import pytest

from support.carried import PROMPTS, RESULTS, RUNTIMES

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "agent-frameworks.md"


def cells() -> dict[tuple[str, str], str]:
    lines = PAGE.read_text().partition("## What goes back to the model")[2].splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return {(row[0], name): cell for row in rows[2:] for name, cell in zip(rows[0][1:], row[1:], strict=True)}


def test_the_table_has_every_row_and_runtime() -> None:
    rows = [*[f"a tool returns {kind}" for kind in RESULTS], *[f"a user attaches {kind}" for kind in PROMPTS]]
    assert list(cells()) == list(product(rows, RUNTIMES))


@pytest.mark.parametrize(("kind", "runtime"), list(product(RESULTS, RUNTIMES)))
def test_what_a_tool_returns(kind: str, runtime: str) -> None:
    expected, values = RESULTS[kind]
    value = values[list(RUNTIMES).index(runtime)]
    _, within, after = asyncio.run(RUNTIMES[runtime](value, [{"type": "text", "text": "look"}]))
    assert within.result == expected
    carried = "yes" if after.result == expected else "no"
    assert cells()[f"a tool returns {kind}", runtime] == carried


@pytest.mark.parametrize(("kind", "runtime"), list(product(PROMPTS, RUNTIMES)))
def test_what_a_user_attaches(kind: str, runtime: str) -> None:
    expected, part, options = PROMPTS[kind]
    seen = asyncio.run(RUNTIMES[runtime]("rain", [part], **options))
    carried = "yes" if [call.prompt for call in seen] == [expected] * 3 else "no"
    assert cells()[f"a user attaches {kind}", runtime] == carried
