"""Codex's files: where they are, whether a file is one of them, and what its sidecars say.

Rollouts are in folders by day, archived ones in their own folder; some are compressed. An index of thread names is
next to them. Folders are listed, nothing is opened, and no symbolic link is followed, so nothing outside the root is
ever named. Of a rollout that exists compressed and plain only the plain one is read, to which Codex still appends.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Raw

from turnlog.agents.base import Detection, Source, SourceKind
from turnlog.agents.changes import Changes, LeafTitle
from turnlog.agents.codex import BRANCH, FOLDERS, NAME
from turnlog.agents.codex.record_kinds import ITEM_TYPES, TYPES
from turnlog.agents.codex.records import CodexLine, Meta, read_lines, thread_named_in
from turnlog.agents.files import SUFFIX, decompress, entries, is_compressed, is_file, is_folder
from turnlog.agents.jsonl import JsonLines, count_lines, whole_lines

INDEX = "session_index.jsonl"

PROMPTS = "history.jsonl"

SIDECARS = (INDEX, PROMPTS)


# -- finding files


_ROLLOUT = re.compile(
    rf"rollout-(?:\d{{4}}-\d\d-\d\dT\d\d-\d\d-\d\d-)?(?P<id>[^/]+?)\.jsonl(?:{re.escape(SUFFIX)})?", re.DOTALL
)

_MOST_NESTED = 8
"""Levels of folders below `sessions` that are searched; a day is three levels deep."""


def find_sources(root: Path) -> Iterator[Source]:
    """Every file of Codex below its home `root`, in the order of their names."""
    for folder in FOLDERS:
        yield from _rollouts(os.fspath(root / folder), root, _MOST_NESTED)
    for entry in entries(os.fspath(root)):
        if entry.name in SIDECARS and is_file(entry):
            yield _sidecar(entry.path, root)


def _rollouts(folder: str, root: Path, depth: int) -> Iterator[Source]:
    found_here = entries(folder)
    names = {entry.name for entry in found_here}
    for entry in found_here:
        if is_file(entry):
            plain = entry.name.removesuffix(SUFFIX)
            found = rollout_source(entry.path, root)
            if found and (plain == entry.name or plain not in names):
                yield found
        elif depth and is_folder(entry):
            yield from _rollouts(entry.path, root, depth - 1)


def source_of(path: Path) -> Source | None:
    """What the file at `path` is by its place and name; None if it is not Codex's. The file is not opened."""
    absolute = path.absolute()
    if absolute.name in SIDECARS:
        return _sidecar(os.fspath(absolute), absolute.parent)
    root = next((folder.parent for folder in absolute.parents if folder.name in FOLDERS), absolute.parent)
    return rollout_source(os.fspath(absolute), root)


def rollout_source(path: str, root: Path) -> Source | None:
    """The source of a rollout, by its name; None for any other file."""
    match = _ROLLOUT.fullmatch(path.rpartition(os.sep)[2])
    if match is None:
        return None
    return Source(
        agent=NAME,
        path=path,
        root=os.fspath(root),
        session_id=session_id(match["id"]),
        appendable=not is_compressed(path),
    )


def _sidecar(path: str, root: Path) -> Source:
    return Source(agent=NAME, path=path, root=os.fspath(root), kind=SourceKind.SIDECAR, appendable=True)


def session_id(thread: str) -> str:
    """The id of a thread's session. `/` separates nothing in it."""
    return f"{NAME}:{thread.replace('/', '_')}"


def thread_of(external_id: str) -> str:
    """The thread of a session, which may be a branch of it."""
    return re.sub(f"{BRANCH}$", "", external_id)


# -- whether a file is Codex's, and of which version


_BEFORE_ENVELOPES = "0.3x or older"
"""The version of logs without envelopes, which name none."""


def detect_log(path: Path, head: bytes) -> Detection:
    """Whether a file is a rollout or a sidecar. The version is that of the first record which names one."""
    source = source_of(path)
    if source is not None and source.kind is SourceKind.SIDECAR:
        # Kimi Code has an index of the same name.
        entries_read = [entry for entry, *_ in _read_lines(whole_lines(head), 0, 1, Changes())]
        if entries_read and not any(map(_names_a_thread, entries_read)):
            return Detection(reason="no line names a thread")
        return Detection(agent=NAME, source=source)
    head = decompress(str(path), head).data
    beginning = whole_lines(head)
    records = [record for record, *_ in read_lines(beginning, 0, 1, Changes())]
    if not records:
        return Detection(reason="no line is a JSON object")
    bare = _is_bare(records)
    if not bare and not any(_is_ours(record) for record in records):
        return Detection(reason="no record has a known type and a payload")
    version = _BEFORE_ENVELOPES if bare else next(filter(None, map(_version_in, records)), None)
    return Detection(agent=NAME, version=version, source=_source(path, source, beginning))


def _is_ours(record: CodexLine) -> bool:
    return record.type in TYPES and isinstance(record.payload, Raw)


def _is_bare(records: list[CodexLine]) -> bool:
    """Whether it is a log without envelopes: an id and a time, then marks and items."""
    first, *others = records
    if first.type or first.id is None or first.timestamp is None or first.payload is not msgspec.UNSET:
        return False
    return all(record.record_type == "state" or record.type in ITEM_TYPES for record in others)


def _version_in(record: CodexLine) -> str | None:
    if record.type != "session_meta" or not isinstance(record.payload, Raw):
        return None
    try:
        return msgspec.json.decode(record.payload, type=Meta).cli_version
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _source(path: Path, known: Source | None, head: bytes) -> Source:
    """The source. Of a log that was copied under another name, the records name the thread.

    When the beginning was lost and no record names a thread, the file's name takes its place.
    """
    if known is not None:
        return known
    place = path.absolute()
    found = Source(agent=NAME, path=str(place), root=str(place.parent), appendable=not is_compressed(path.name))
    return renamed(found, thread_named_in(head) or path.stem)


def renamed(source: Source, thread: str | None) -> Source:
    """The source with another thread than its name says; None: with no session."""
    return msgspec.structs.replace(source, session_id=None if thread is None else session_id(thread))


# -- sidecars: the names that the user gave to threads, and what was typed into the terminal


class _Entry(msgspec.Struct):
    id: str | None = None
    thread_name: str | None = None
    session_id: str | None = None
    text: str | None = None


def _names_a_thread(entry: _Entry) -> bool:
    return bool(entry.id or entry.session_id)


_read_lines = JsonLines(_Entry, first_keys=("id", "session_id"), plausible=_names_a_thread).read


class CodexSidecarFold:
    """Reads `session_index.jsonl` and `history.jsonl`, which are appended to. The last name of a thread counts.

    The prompts of `history.jsonl` are in the rollouts too, so they are only archived.
    """

    def __init__(self, source: Source, state: bytes | None) -> None:
        self._is_index = source.path.endswith(INDEX)
        self._lines = int(state) if state else 0

    def feed(self, data: bytes, offset: int) -> Changes:
        """See `turnlog.agents.base.Fold.feed`."""
        changes = Changes()
        for entry, *_ in _read_lines(data, offset, self._lines + 1, changes):
            if self._is_index and entry.id and entry.thread_name:
                changes.leaf_titles.append(LeafTitle(record_id=session_id(entry.id), title=entry.thread_name))
                changes.counts.events += 1
            else:
                changes.counts.duplicates += 1
        self._lines += count_lines(data)
        return changes

    def state(self) -> bytes:
        """See `turnlog.agents.base.Fold.state`."""
        return str(self._lines).encode()
