"""Nothing outside of an agent's package knows its name: whatever differs between agents is in their descriptions."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar, cast

import pytest

from turnlog.agents import BUILT_IN, agent

T = TypeVar("T")

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "turnlog"
PAGE = ROOT / "web" / "src"

PYTHON = [
    path
    for path in sorted(SOURCE.rglob("*.py"))
    if path.relative_to(SOURCE).parts[0] not in ("agents", "sample")
    # How a chat runs an agent. Nobody finds these by an agent's name: its description names them.
    and path.parent != SOURCE / "chat" / "runtimes"
]
PAGE_FILES = sorted(path for path in PAGE.rglob("*") if path.suffix in (".ts", ".tsx", ".css"))


def spellings(name: str) -> set[str]:
    """What may stand for an agent in code, in small letters: its names, and those of its package and its class."""
    found = agent(name)
    return {
        name,
        name.replace("-", "_"),
        name.replace("-", ""),
        found.display_name.lower(),
        type(found).__name__.lower(),
    }


LONG = 4
"""Letters from which on a name is looked for anywhere; the letters of a shorter one occur in many other words."""


def pattern(word: str) -> str:
    return re.escape(word) if len(word) >= LONG else rf"(?<![a-z0-9]){re.escape(word)}(?![a-z0-9])"


NAMES = re.compile("|".join(pattern(word) for name in BUILT_IN for word in sorted(spellings(name))), re.IGNORECASE)


def names_in_python(code: str) -> Iterator[str]:
    """Strings and identifiers that hold an agent's name; not comments, docstrings and the examples of commands."""
    nodes = list(_nodes(ast.parse(code)))
    passed_over: set[ast.AST] = set()
    for node in nodes:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            passed_over.add(node.value)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "examples":
            passed_over.update(node.args)
    words = [word for node in nodes if node not in passed_over for word in _own(node, str)]
    # One search in all of them is much faster than one in each.
    if NAMES.search("\n".join(words)):
        yield from (word for word in words if NAMES.search(word))


def _nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """The node and all below it. `ast.walk` does the same, in three times the time."""
    left = [tree]
    while left:
        node = left.pop()
        yield node
        left += _own(node, ast.AST)


def _own(node: ast.AST, kind: type[T]) -> Iterator[T]:
    """What a node itself holds of a kind: as strings its names and texts, module names included."""
    for value in vars(node).values():
        if isinstance(value, kind):
            yield value
        elif isinstance(value, list):
            yield from (each for each in cast("list[object]", value) if isinstance(each, kind))


_COMMENT = re.compile(r"/\*.*?\*/|(?<![:\w])//[^\n]*", re.DOTALL)


def names_in_page(code: str) -> Iterator[str]:
    """Lines that hold an agent's name outside of comments."""
    for line in _COMMENT.sub("", code).splitlines():
        if NAMES.search(line):
            yield line.strip()


def test_no_module_names_an_agent() -> None:
    assert len(PYTHON) > 100
    assert {str(path): hits for path in PYTHON if (hits := list(names_in_python(path.read_text())))} == {}


def test_the_page_names_no_agent() -> None:
    assert len(PAGE_FILES) > 50
    assert {str(path): hits for path in PAGE_FILES if (hits := list(names_in_page(path.read_text())))} == {}


@pytest.mark.parametrize(
    "code",
    [
        'days = 30 if agent.name == "claude-code" else None',
        'COMMANDS = {"codex": start}',
        "from turnlog.agents.gemini_cli import GeminiCli",
        "import turnlog.agents.opencode.tables",
        "def claude_code_homes(): ...",
        'note = f"{name}: Claude Code deletes it"',
        'is_pi = agent.name == "pi"',
    ],
)
def test_a_name_in_code_is_seen(code: str) -> None:
    assert list(names_in_python(code))


@pytest.mark.parametrize(
    "code", ['"""As Codex records it."""', "# Codex: 1.2", 'command(examples("codex exec"))', "x = 1", "pid = api.pipe"]
)
def test_examples_for_people_are_allowed(code: str) -> None:
    assert list(names_in_python(code)) == []


def test_a_name_in_the_page_is_seen() -> None:
    assert list(names_in_page('const NAMES = { codex: "Codex" };')) == ['const NAMES = { codex: "Codex" };']
    assert list(names_in_page('&[data-agent="gemini-cli"] {')) != []
    assert list(names_in_page("/** As Codex records them. */\nx // Claude Code\n")) == []
