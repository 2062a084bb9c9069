"""Which price table holds: the one that comes with turnlog, or one made from a newer genai-prices.

Importing genai-prices takes longer than a small sync does, so `prices.json` is its snapshot. It is used as it is
while the installed genai-prices has the version that it was made from (or none is installed); after an upgrade a
table is made once and kept in the cache.
"""

from __future__ import annotations

import warnings
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import msgspec

from turnlog import paths
from turnlog.pricing.rules import REVISION
from turnlog.pricing.table import PriceTable

BUNDLED = Path(__file__).with_name("prices.json")


@cache
def read_table() -> PriceTable:
    """The table for this process."""
    bundled = msgspec.json.decode(BUNDLED.read_bytes(), type=PriceTable)
    installed = _installed_version()
    if installed is None or (installed, REVISION) == (bundled.source, bundled.rules):
        return bundled
    return _read_cached(_cache_path(installed), installed) or _generate(_cache_path(installed)) or bundled


def _installed_version() -> str | None:
    try:
        return version("genai-prices")
    except PackageNotFoundError:
        return None


def _cache_path(installed: str) -> Path:
    return paths.data_dir() / "cache" / f"prices-{installed}-{REVISION}.json"


def _read_cached(path: Path, installed: str) -> PriceTable | None:
    try:
        table = msgspec.json.decode(path.read_bytes(), type=PriceTable)
    except (OSError, msgspec.MsgspecError):
        return None
    return table if (table.source, table.rules) == (installed, REVISION) else None


def _generate(path: Path) -> PriceTable | None:
    """A table from the installed genai-prices; None, with a warning, when that one no longer has the shape we know."""
    try:
        from turnlog.pricing.generate import generate_table

        data = generate_table()
    except Exception as error:
        # Another package's data in another shape may fail in any way, and yesterday's prices are better than none.
        warnings.warn(f"cannot read the prices of the installed genai-prices: {error!r}", RuntimeWarning, stacklevel=2)
        return None
    _save(path, data)
    return msgspec.json.decode(data, type=PriceTable)


def _save(path: Path, data: bytes) -> None:
    """Keep the table for the next process; without a place to keep it, it is made again each time."""
    from turnlog.atomic_files import write_atomically

    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, data)
