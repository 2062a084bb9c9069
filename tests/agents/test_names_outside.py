"""Nothing outside of an agent's package knows its name: whatever differs between agents is in their descriptions.

Tests and pages may take some agents as examples. They list them nowhere, so a new agent brings only files of its own:
its package, `tests/agents/<package>`, `tests/data/<package>`, its page in `docs/formats`, its sample, and its entry in
`BUILT_IN`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar, cast

import pytest

from support.agent_cases import CASES
from turnlog.agents import agent
from turnlog.agents.built_in import BUILT_IN

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
    if CASES[name].is_word:
        return {CASES[name].package}
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


WORDS = sorted({word for name in BUILT_IN for word in spellings(name)})
NAMES = re.compile("|".join(map(pattern, WORDS)), re.IGNORECASE)


def has_name(code: str) -> bool:
    """The same as `NAMES.search(code)` in a twentieth of the time."""
    letters = code.lower()
    return any(word in letters and (len(word) >= LONG or re.search(pattern(word), letters)) for word in WORDS)


def names_in_python(code: str) -> Iterator[str]:
    """Strings and identifiers that hold an agent's name; not comments, docstrings and the examples of commands."""
    if not has_name(code):
        return  # Parsing takes long, and most modules do not contain a name.
    nodes = list(_nodes(ast.parse(code)))
    passed_over: set[ast.AST] = set()
    for node in nodes:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            passed_over.add(node.value)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "examples":
            passed_over.update(node.args)
    words = [word for node in nodes if node not in passed_over for word in _own(node, str)]
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
    if not has_name(code):
        return
    for line in _COMMENT.sub("", code).splitlines():
        if NAMES.search(line):
            yield line.strip()


def test_no_module_names_an_agent() -> None:
    assert len(PYTHON) > 100
    assert {str(path): hits for path in PYTHON if (hits := list(names_in_python(path.read_text())))} == {}


def test_no_package_names_the_home_of_another() -> None:
    homes = {
        case.home.partition("/")[0]: case.package for case in CASES.values() if not case.home.startswith(".local/")
    }
    packages = [path for path in sorted((SOURCE / "agents").rglob("*.py")) if path.parent != SOURCE / "agents"]
    assert len(packages) > 50
    found: list[tuple[str, str]] = []
    for path in packages:
        package = f"turnlog.agents.{path.relative_to(SOURCE / 'agents').parts[0]}"
        others = {home for home, owner in homes.items() if owner != package}
        found += [
            (str(path), home) for home in others if re.search(rf"""["'/]{re.escape(home)}["'/]""", path.read_text())
        ]
    assert found == []


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


# -- lists in tests and pages

TESTS = ROOT / "tests"
OWN_TESTS = [folder for folder in (TESTS / "agents").iterdir() if folder.is_dir()]
SHARED_TESTS = [
    path
    for path in sorted(TESTS.rglob("*.py"))
    if "node_modules" not in path.parts and not any(path.is_relative_to(folder) for folder in OWN_TESTS)
]
SHARED_PAGES = [
    path
    for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"))
    # The rig has its own list: the programs that it can install and script.
    if path.parent != ROOT / "docs" / "formats" and path.name not in ("CHANGELOG.md", "rig.md")
]
PACKAGES = {name: built_in.target.partition(":")[0] for name, built_in in BUILT_IN.items()}

LISTED = 5
"""So many packages in one value are a list of agents; fewer are examples."""


def lists_in_tests(code: str) -> Iterator[int]:
    """Lines of values that list agents."""
    for node in _nodes(ast.parse(code)):
        if isinstance(node, ast.Dict | ast.List | ast.Set | ast.Tuple):
            words = [each.value for each in _nodes(node) if isinstance(each, ast.Constant)]
            if len({PACKAGES[word] for word in words if isinstance(word, str) and word in PACKAGES}) >= LISTED:
                yield node.lineno


def packages_in_page(text: str) -> set[str]:
    """The packages of the agents that a page names as people do."""
    return {PACKAGES[name] for name in BUILT_IN if re.search(rf"\b{re.escape(agent(name).display_name)}\b", text)}


def test_no_shared_test_lists_the_agents() -> None:
    assert len(SHARED_TESTS) > 100
    # Parsing takes long; most files do not contain that many names.
    texts = {path: path.read_text() for path in SHARED_TESTS}
    named = {path: text for path, text in texts.items() if sum(f'"{name}"' in text for name in BUILT_IN) >= LISTED}
    assert {str(path): lines for path, text in named.items() if (lines := list(lists_in_tests(text)))} == {}


def test_no_shared_page_lists_the_agents() -> None:
    assert len(SHARED_PAGES) > 20
    most = len(set(PACKAGES.values())) / 2
    assert [str(path) for path in SHARED_PAGES if len(packages_in_page(path.read_text())) > most] == []


def test_a_list_in_a_test_or_on_a_page_is_seen() -> None:
    first = list({package: name for name, package in PACKAGES.items()}.values())[:LISTED]
    assert list(lists_in_tests(f"x = 1\nHOMES = {dict.fromkeys(first, 'home')}")) == [2]
    assert list(lists_in_tests(f"CASES = {[(name, 1) for name in first]}")) == [1]
    assert list(lists_in_tests(f"CASES = {first[1:]}")) == []
    assert packages_in_page(", ".join(agent(name).display_name for name in first)) == {PACKAGES[name] for name in first}
