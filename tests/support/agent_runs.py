"""Runs of agents in tests: `turnlog run` as a process, and what it left."""

from __future__ import annotations

import subprocess

from support.cli_runner import command
from turnlog import paths
from turnlog.store import open_store
from turnlog.store.values import Run


def wrapped(*arguments: str, input: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """`turnlog run -- ...` as a process."""
    return subprocess.run(command("run", "--", *arguments), input=input, capture_output=True, check=False)


def runs() -> list[Run]:
    """The runs of the user's store, the newest first."""
    with open_store(paths.database_path()) as store:
        return list(store.runs().items)
