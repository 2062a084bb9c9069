"""Which version of an agent's program is installed, as the program itself says it."""

from __future__ import annotations

import re
import shutil
import subprocess

_SECONDS = 10

_VERSION = re.compile(r"\b(\d+)\.(\d+)\.(\d+)\b")


def installed_version(program: str) -> tuple[int, ...] | None:
    """What `program --version` says; None when there is no such program, or it says none."""
    path = shutil.which(program)
    if path is None:
        return None
    try:
        said = subprocess.run(
            [path, "--version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = _VERSION.search(said.stdout.decode(errors="replace"))
    return tuple(int(number) for number in found.groups()) if found else None
