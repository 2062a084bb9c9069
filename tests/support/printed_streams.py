"""What every agent's printed streams must pass: read in any split, and given beside the log of the same session."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from support.claude_files import Gathered
from turnlog.agents import agent, detect
from turnlog.agents.base import Source, SourceKind
from turnlog.model import Message, RecordEvent, ToolCallPart
from turnlog.store import open_store
from turnlog.sync.importing import import_stream
from turnlog.sync.syncer import sync


def source_at(path: Path) -> Source:
    found = detect(path).source
    assert found is not None
    return found


def read(path: Path, *, by_line: bool = False) -> tuple[Gathered, bytes]:
    """What a stream brings and the state it leaves, in one feed or in one for each line."""
    gathered, state, offset = Gathered(), None, 0
    source, data = source_at(path), path.read_bytes()
    for piece in data.splitlines(keepends=True) if by_line else [data]:
        fold = agent(source.agent).fold(source, state)
        gathered.add(fold.feed(piece, offset))
        state, offset = fold.state(), offset + len(piece)
    assert state is not None
    return gathered, state


def messages(gathered: Gathered) -> list[Message]:
    return list(gathered.messages.values())


def calls(gathered: Gathered) -> list[ToolCallPart]:
    return [part for message in messages(gathered) for part in message.parts if isinstance(part, ToolCallPart)]


def check_every_line_is_accounted_for(path: Path) -> None:
    """No line is lost and no kind unknown, and reading line by line gives what the whole gives (R-S34, R-S43)."""
    whole, state = read(path)
    assert whole.counts.total == len(path.read_bytes().splitlines())
    assert whole.diagnostics == []
    assert unknown_kinds(whole) == []
    pieces, state_of_pieces = read(path, by_line=True)
    assert pieces.as_json() == whole.as_json()
    assert state_of_pieces == state


def unknown_kinds(gathered: Gathered) -> list[str]:
    events = [change.event for change in gathered.events.values()]
    return [event.kind for event in events if isinstance(event, RecordEvent) and not event.known]


def check_is_recognised(path: Path, name: str) -> None:
    """The content shows whose stream it is (R-S21)."""
    detection = detect(path)
    assert (detection.agent, detection.version) == (name, None)
    assert detection.source is not None
    assert detection.source.kind is SourceKind.STREAM


def check_adds_nothing_beside_its_log(tmp_path: Path, home: Path, path: Path, *, log_first: bool) -> None:
    """A store that was given the log and the stream, in either order, has what the log alone gives."""
    alone, store = tmp_path / "alone.db", tmp_path / "data" / "turnlog.db"
    sync(alone, roots=[home])
    steps: list[Callable[[], object]] = [lambda: sync(store, roots=[home]), lambda: give(store, path)]
    for step in steps if log_first else reversed(steps):
        step()
    with open_store(alone) as one, open_store(store) as other:
        assert [known.id for known in other.sessions().items] == [known.id for known in one.sessions().items]
        for known in one.sessions().items:
            found = other.session(known.id)
            assert (found.counts, found.usage, found.cost, found.title) == (
                *(known.counts, known.usage, known.cost, known.title),
            )
            assert list(other.messages(known.id)) == list(one.messages(known.id))


def give(store: Path, path: Path) -> None:
    """Import a stream as from a pipe."""
    with path.open("rb") as file:
        import_stream(store, file, path.name)
