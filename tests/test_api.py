"""The public surface: what `import turnlog` offers, and what it must not load."""

from __future__ import annotations

import subprocess
import sys

import pytest

import turnlog

NAMES = [
    "DiagnosticFilter",
    "SessionFilter",
    "SessionHistory",
    "Store",
    "ToolCallFilter",
    "TurnlogError",
    "UsageFilter",
    "__version__",
    "discover",
    "extract_tool_calls",
    "open_store",
    "parse_log_file",
    "parse_log_stream",
    "read_session",
]

HEAVY = ("click", "fastapi", "genai_prices", "msgspec", "pydantic", "rich", "sqlite3", "starlette", "zstandard")


def loaded_by(code: str) -> set[str]:
    """Which of the heavy packages are there after the code."""
    script = f"import sys; {code}; print(*[name for name in {HEAVY!r} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(result.stdout.split())


def test_the_surface_is_this() -> None:
    assert turnlog.__all__ == NAMES
    assert sorted(turnlog.__all__) == turnlog.__all__


@pytest.mark.parametrize("name", NAMES)
def test_every_name_is_there(name: str) -> None:
    assert getattr(turnlog, name) is not None
    assert name in dir(turnlog)


def test_every_name_is_documented_where_it_is_defined() -> None:
    assert all(getattr(turnlog, name).__doc__ for name in NAMES if name != "__version__")


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nothing"):
        turnlog.nothing  # noqa: B018  # the look itself must raise


def test_importing_the_package_loads_nothing_heavy() -> None:
    assert loaded_by("import turnlog") == set()


def test_the_store_is_loaded_when_it_is_opened() -> None:
    assert loaded_by("from turnlog import open_store") == set()


def test_reading_a_log_loads_no_web_or_command() -> None:
    assert loaded_by("from turnlog import read_session") <= {"msgspec", "sqlite3", "zstandard"}
