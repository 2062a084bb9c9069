"""Telling a process from another that later got its number: by the boot of the machine, and by when it began."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Final, NamedTuple

_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")

_START_FIELD: Final = 19
"""Of `/proc/PID/stat`, counted from the field behind the program's name: when the process began, in clock ticks."""


class ProcessIdentity(NamedTuple):
    """A process of this machine, past or present."""

    pid: int
    boot_id: str | None
    """None where the system does not tell: `start` then is a date."""
    start: str | None


def this_process() -> ProcessIdentity:
    """The process that asks."""
    pid = os.getpid()
    return ProcessIdentity(pid, _boot_id(), _start_of(pid))


def is_alive(identity: ProcessIdentity) -> bool:
    """Whether it is a process that runs now, on this machine and since this boot."""
    return identity.boot_id == _boot_id() and identity.start is not None and _start_of(identity.pid) == identity.start


def _boot_id() -> str | None:
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return None


def _start_of(pid: int) -> str | None:
    """When a process began; None for one that is not there, or has ended and only waits for its parent to notice."""
    if not _BOOT_ID.exists():
        return _date_of(pid)
    try:
        # The program's name stands in brackets and may hold anything, brackets too.
        state, *fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b") ")[2].decode().split()
    except (OSError, ValueError):
        return None
    return None if state in "ZX" else fields[_START_FIELD - 1]


def _date_of(pid: int) -> str | None:
    ask = ["env", "LC_ALL=C", "ps", "-o", "lstart=", "-p", str(pid)]
    found = subprocess.run(ask, capture_output=True, check=False)
    return found.stdout.decode(errors="replace").strip() or None
