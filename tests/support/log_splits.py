"""Reading a log in pieces gives what reading it whole gives: the same history, and the same state of the fold."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from support.claude_files import gather
from turnlog.agents.base import Agent, Source
from turnlog.agents.changes import Changes


def data_of(source: Source) -> bytes:
    """The bytes of a source's file."""
    return Path(source.path).read_bytes()


def assert_pieces_agree(agent: Agent, source: Source, cuts: Iterable[int]) -> None:
    """Feed lines up to each cut (a number of lines), through a saved state each time, and compare with one feed."""
    fold = agent.fold(source)
    whole = gather(fold.feed(data_of(source), 0))
    changes, state = _feed_in_pieces(agent, source, cuts)
    assert gather(*changes).as_json() == whole.as_json()
    assert state == fold.state()


def _feed_in_pieces(agent: Agent, source: Source, cuts: Iterable[int]) -> tuple[list[Changes], bytes | None]:
    all_lines = data_of(source).splitlines(keepends=True)
    changes: list[Changes] = []
    state: bytes | None = None
    offset = start = 0
    for cut in (*sorted(cuts), len(all_lines)):
        piece = b"".join(all_lines[start:cut])
        fold = agent.fold(source, state)
        changes.append(fold.feed(piece, offset))
        state = fold.state()
        offset, start = offset + len(piece), cut
    return changes, state
