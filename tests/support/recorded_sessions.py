"""Every recorded session of every agent, as canonical messages."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from support.costs import for_all
from turnlog.errors import FormatError, SourceError
from turnlog.logs import SessionHistory, read_session
from turnlog.model import Message

DATA = Path(__file__).parents[1] / "data"


@cache
def recorded_history(path: Path) -> SessionHistory | None:
    """What is read of a recorded log, once for all tests of a process; None for a file that is no session."""
    with for_all():
        try:
            return read_session(path)
        except (FormatError, SourceError):
            return None


@cache
def recorded_sessions() -> dict[str, tuple[Message, ...]]:
    """File and session id -> its messages; subagents are sessions of their own. Files beside sessions are none."""
    files = [path for path in sorted(DATA.glob("*/**/*.jsonl")) if path.stat().st_size]
    return {name: messages for path in files for name, messages in _sessions_of(path)}


def _sessions_of(path: Path) -> Iterator[tuple[str, tuple[Message, ...]]]:
    read = recorded_history(path)
    pending = [] if read is None else [read]
    while pending:
        history = pending.pop()
        pending.extend(history.children)
        yield f"{path.relative_to(DATA)} {history.session.id}", history.messages
