"""The bundled price table is genai-prices' own, cheap to load, and replaced when another version is installed."""

import json
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from turnlog.model import Usage
from turnlog.pricing import generate, price_nanos, price_version, snapshot


@pytest.fixture(autouse=True)
def fresh_table() -> Iterator[None]:
    snapshot.read_table.cache_clear()
    yield
    snapshot.read_table.cache_clear()


@pytest.fixture
def other_version(monkeypatch: pytest.MonkeyPatch) -> str:
    """As if genai-prices had been upgraded."""

    def version(_: str) -> str:
        return "9.9.9"

    monkeypatch.setattr(snapshot, "version", version)
    monkeypatch.setattr(generate, "version", version)
    return "9.9.9"


def cached(home: Path) -> list[Path]:
    return list(home.rglob("prices-*"))


def test_the_bundled_table_is_what_the_installed_prices_make() -> None:
    """`make prices` after every upgrade of genai-prices."""
    assert snapshot.BUNDLED.read_bytes() == generate.generate_table()


def test_the_bundled_table_has_one_line_for_a_model() -> None:
    lines = [line for line in snapshot.BUNDLED.read_text().splitlines() if '"tariffs"' in line]
    assert len(lines) > 2000
    assert all(line.count('"tariffs"') == 1 for line in lines)


def test_pricing_imports_no_price_package() -> None:
    script = (
        "import sys; from turnlog.pricing import price; from turnlog.model import Usage;"
        "assert price(Usage(input=1, output=1), 'claude-opus-4-5');"
        "print([name for name in ('genai_prices', 'pydantic', 'httpx2') if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_another_version_makes_a_table_once_and_keeps_it(
    home: Path, other_version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert price_version().startswith(f"genai-prices-{other_version}")
    [kept] = cached(home)
    made = kept.stat().st_mtime_ns
    snapshot.read_table.cache_clear()

    def not_again() -> bytes:
        raise AssertionError("the table was made twice")

    monkeypatch.setattr(generate, "generate_table", not_again)
    assert snapshot.read_table().source == other_version
    assert kept.stat().st_mtime_ns == made


def test_a_damaged_table_in_the_cache_is_made_anew(home: Path, other_version: str) -> None:
    snapshot.read_table()
    [kept] = cached(home)
    kept.write_bytes(kept.read_bytes()[:1000])
    snapshot.read_table.cache_clear()
    assert snapshot.read_table().source == other_version
    assert json.loads(kept.read_bytes())["source"] == other_version


@pytest.mark.usefixtures("other_version")
def test_a_cache_that_cannot_be_written_costs_time_only(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "file").write_text("")
    monkeypatch.setenv("TURNLOG_DATA_DIR", str(home / "file"))
    assert snapshot.read_table().source == "9.9.9"


@pytest.mark.usefixtures("other_version")
def test_prices_in_an_unknown_shape_leave_the_bundled_table(monkeypatch: pytest.MonkeyPatch) -> None:
    def changed() -> bytes:
        raise AttributeError("no such field")

    monkeypatch.setattr(generate, "generate_table", changed)
    with pytest.warns(RuntimeWarning, match="no such field"):
        table = snapshot.read_table()
    assert table.source != "9.9.9"


def test_without_genai_prices_the_bundled_table_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(snapshot, "version", missing)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert snapshot.read_table().provider("anthropic").find("claude-opus-4-5") is not None


def test_twenty_thousand_calls_are_priced_in_no_time() -> None:
    at = datetime(2026, 11, 10, tzinfo=UTC)
    usages = [Usage(input=number, output=300, cache_write_5m=1000, cache_read=5000) for number in range(20_000)]
    price_nanos(usages[0], "claude-sonnet-4-5", at=at)
    start = time.process_time()
    for usage in usages:
        price_nanos(usage, "claude-sonnet-4-5", at=at)
    # A loose limit for slow machines; it takes about 20 ms.
    assert time.process_time() - start < 0.2
