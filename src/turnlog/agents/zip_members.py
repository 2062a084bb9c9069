"""How much of a zip is unpacked: a few bytes may claim to be any number."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Final

from turnlog.errors import SourceError

ALWAYS: Final = 64 << 20
"""Bytes that are unpacked however few they were."""

DENSEST: Final = 200
"""Bytes for each packed one: JSON of conversations has 3 to 30, a file made to fill the memory about 1,000."""


def refuse_too_large(info: zipfile.ZipInfo, path: Path, largest: int) -> None:
    """Raise SourceError for a file in a zip that is not unpacked: it is larger than this, or packed too densely."""
    size, name = info.file_size, info.filename
    if size > largest:
        raise SourceError(f"{name} is larger than {largest >> 30} GB", path=path)
    if size > ALWAYS and size > DENSEST * info.compress_size:
        packed = f"{info.compress_size / 1e6:,.1f} MB that claim to be {size / 1e6:,.0f} MB"
        raise SourceError(f"{name} is not unpacked: {packed}. Unpack it yourself if you trust it", path=path)
