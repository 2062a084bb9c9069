"""Spools of hook events next to a store: one file per session, read like any other source.

A spool is our own file: when all of it is archived and nothing has come for a week, it is deleted.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from turnlog.agents import agent as registered_agent
from turnlog.agents.base import Agent, Source, SourceKind
from turnlog.agents.files import entries, folders, is_file
from turnlog.hooks import send
from turnlog.store.connection import Connection, write_transaction
from turnlog.store.sources import Fingerprint, hooks_folder, known_versions, mark_vanished

KEPT_SECONDS = 7 * 86400


def find_spools(store_path: Path, agents: Sequence[Agent] | None = None) -> Iterator[tuple[Agent, Source]]:
    """Every spool next to the store, of the given agents or of all that can be loaded; no other is imported."""
    for folder in folders(os.fspath(hooks_folder(store_path))):
        agent = _named(folder.name, agents)
        for entry in entries(folder.path) if agent is not None else ():
            if agent is not None and is_file(entry) and entry.name.endswith(".jsonl"):
                yield agent, spool_source(store_path, agent.name, entry.path)


def _named(name: str, agents: Sequence[Agent] | None) -> Agent | None:
    if agents is not None:
        return next((agent for agent in agents if agent.name == name), None)
    # A spool may be of an agent whose package is no longer installed, or fails.
    with suppress(Exception):
        return registered_agent(name)
    return None


def spool_source(store_path: Path, agent: str, path: str) -> Source:
    """A spool as a source; the file is named after its session."""
    external_id = Path(path).stem
    return Source(
        agent=agent,
        path=path,
        root=os.fspath(hooks_folder(store_path)),
        kind=SourceKind.HOOKS,
        session_id=f"{agent}:{external_id}",
    )


def spool_event(store_path: Path, agent: str, payload: bytes, at: float, task: str = "") -> Source:
    """Append a hook event of `agent` from `at` (Unix milliseconds) to its spool, and return the spool.

    `task` is the id of the task that the agent's environment names; empty for none.

    Raises ValueError when the payload is not a JSON object that names its session, OSError when it cannot be written.
    """
    folder = os.fspath(hooks_folder(store_path).parent)
    found = _named(agent, None)
    field = found.hooks.session_field if found is not None and found.hooks is not None else send.SESSION_FIELD
    return spool_source(store_path, agent, send.spool(folder, agent, at, payload, task, field))


def drop_old_spools(connection: Connection, store_path: Path) -> list[str]:
    """Delete spools that are archived and unchanged for a week; returns their paths."""
    oldest = (time.time() - KEPT_SECONDS) * 1e9
    at_rest = {path: found for path, found in _spools(store_path) if found.mtime_ns < oldest}
    known = known_versions(connection) if at_rest else {}
    # The fingerprint of the last pass: then the archive has every byte of it.
    dropped: list[str] = []
    for path in (path for path, found in at_rest.items() if known.get(path) == found):
        # One that cannot be deleted is tried again by the next pass.
        with suppress(OSError):
            Path(path).unlink()
            dropped.append(path)
    if dropped:
        with write_transaction(connection):
            mark_vanished(connection, dropped, int(time.time() * 1000))
    return dropped


def _spools(store_path: Path) -> Iterator[tuple[str, Fingerprint]]:
    for agent in entries(os.fspath(hooks_folder(store_path))):
        for entry in entries(agent.path):
            with suppress(FileNotFoundError):
                if is_file(entry):
                    yield entry.path, Fingerprint.of(entry.stat())
