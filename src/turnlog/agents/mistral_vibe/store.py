"""One session's folder in the store of Mistral Vibe 3: its files, and what they say together.

`CURRENT` names a generation. Its manifest lists chunks, named by the hash of their content. Their concatenation is the
history as it is shown (entries) and the context as the model reads it. The journal continues the entries. The newest
two generations stay, with the journal between them. Older ones are deleted, and with them the tokens of each call.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from turnlog.agents.base import Version
from turnlog.agents.decoding import list_of, object_of, text_of
from turnlog.agents.file_rows import version_of_files
from turnlog.agents.files import entries, is_file, is_folder
from turnlog.agents.mistral_vibe import CURRENT
from turnlog.errors import SourceError

Json = dict[str, Any]

_DOCUMENTS = ("checkpoint", "projection_state", "runtime_state")
"""What a manifest names: a file each, and of some the chunks of its lists."""

_FOLDERS = ("", "journal", "chunks", "generations")
_LONGEST = 200
"""Characters of a name that are shown: a damaged file may name another of any length."""

_ANSWERS = "agent"
"""The purpose of calls of the model whose answers are shown."""

_ATTEMPTS = 3
"""How often a folder is read whose generation changes meanwhile."""


class Completion(NamedTuple):
    """One call of the model, as the journal has it."""

    action: str
    purpose: str
    turn: str
    result: Json
    """`parts`, `finish_reason` and `usage`; empty for one that failed."""
    at: object
    """When it ended, in Unix milliseconds."""


class VibeSession(NamedTuple):
    """What the files of a session say."""

    name: str
    """That of its folder: the session's id."""
    entries: list[Json]
    """The history as it is shown, oldest first."""
    context: list[Json]
    """The messages that the model reads, oldest first; without those before the last compaction."""
    settled: frozenset[str | None]
    """Ids of the entries that are as old as the context."""
    completions: list[Completion]
    """Calls of the model that are still in the journal, oldest first."""
    calls: dict[str, str]
    """Action of a tool -> the id of its call, as far as the journal has it."""
    state: Json
    """What is known about the session and its newest turn."""
    identity: Json
    metadata: Json
    parent: Json
    """The metadata of the session that started a subagent."""


def session_files(folder: Path) -> Iterator[str]:
    """The files of a session, relative to its folder, in the order of their names. Temporary ones are left out."""
    for inner in _FOLDERS:
        for entry in entries(os.fspath(folder / inner)):
            if entry.name.startswith(".") or entry.name.endswith(".tmp"):
                continue
            if is_file(entry):
                yield f"{inner}/{entry.name}" if inner else entry.name
            elif inner == "generations" and is_folder(entry):
                found = filter(is_file, entries(entry.path))
                yield from (f"{inner}/{entry.name}/{each.name}" for each in found)


def version_of(folder: Path) -> Version:
    """The version of all files of a session, from their sizes and times. None is opened. Raises OSError."""
    (folder / CURRENT).stat()
    return version_of_files(folder, session_files(folder))


def read_files(folder: Path) -> dict[str, bytes]:
    """The files of a session by their names, all of one generation. Raises OSError."""
    for _ in range(_ATTEMPTS):
        before = (folder / CURRENT).read_bytes()
        found: dict[str, bytes] = {}
        for name in session_files(folder):
            try:
                found[name] = (folder / name).read_bytes()
            except FileNotFoundError:
                continue  # A generation that is being deleted.
        if (folder / CURRENT).read_bytes() == before:
            return found
    raise OSError(f"{folder}: changes while it is read")


def parse_session(files: dict[str, bytes], folder: Path) -> VibeSession:
    """What the files say. Raises SourceError where the newest generation cannot be read.

    A copy of a home that is not finished has only a part of it, in which calls have other ids. The generation is read
    when it is whole.
    """
    generation = text_of(_json(files, CURRENT).get("generation"))
    if generation is None:
        raise _unreadable(CURRENT, folder)
    place = f"generations/{generation}/manifest.json"
    manifest = _json(files, place)
    if not manifest:
        raise _unreadable(place, folder)
    named = {name: _named(files, name, folder) for name in _named_in(manifest, generation)}
    checkpoint, projection, runtime = (
        object_of(named.get(_document(generation, manifest, kind))) for kind in _DOCUMENTS
    )
    state = object_of(projection.get("snapshot"))
    shown = [
        *_chunks(named, manifest, "projection_state"),
        *list_of(object_of(state.get("history")).get("entries")),
    ]
    context = [
        *_chunks(named, manifest, "checkpoint"),
        *list_of(object_of(checkpoint.get("context")).get("messages")),
    ]
    sequence = manifest.get("snapshot_sequence")
    settled = frozenset(text_of(object_of(entry).get("id")) for entry in shown)
    journal = _Journal([object_of(entry) for entry in shown], state, sequence if isinstance(sequence, int) else 0)
    for record in _records(files):
        journal.read(record)
    journal.show_answers()
    return VibeSession(
        name=folder.name,
        entries=journal.entries,
        context=[object_of(message) for message in context],
        settled=settled,
        completions=journal.finished(),
        calls=journal.calls,
        state=journal.state,
        identity=object_of(runtime.get("identity")) | {"metadata": object_of(runtime.get("session_metadata"))},
        metadata=_json(files, "meta.json"),
        parent=_parent_of(object_of(runtime.get("identity")), folder),
    )


def _parent_of(identity: Json, folder: Path) -> Json:
    parent = text_of(identity.get("parent_session_id"))
    if identity.get("kind") != "subagent" or parent is None:
        return {}
    try:
        return _object((folder.parent / Path(parent).name / "meta.json").read_bytes())
    except OSError:
        return {}


def _json(files: dict[str, bytes], name: str) -> Json:
    return _object(files.get(name, b""))


def _object(data: bytes) -> Json:
    try:
        return object_of(msgspec.json.decode(data))
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return {}


def _named_in(manifest: Json, generation: str) -> Iterator[str]:
    """The files that a manifest consists of."""
    for kind in _DOCUMENTS:
        if kind in manifest:
            yield _document(generation, manifest, kind)
            yield from _chunk_names(manifest, kind)


def _named(files: dict[str, bytes], name: str, folder: Path) -> Any:
    try:
        return msgspec.json.decode(files.get(name, b""))
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise _unreadable(name, folder) from error


def _unreadable(name: str, folder: Path) -> SourceError:
    # The file's name is in the words, too: the source of a session is `CURRENT`, and problems are those of sources.
    place = name if len(name) <= _LONGEST else f"{name[:_LONGEST]}…"
    return SourceError(f"a file of the newest generation is missing or damaged: {place}", path=folder / name)


def _document(generation: str, manifest: Json, kind: str) -> str:
    return f"generations/{generation}/{text_of(object_of(manifest.get(kind)).get('path'))}"


def _chunk_names(manifest: Json, kind: str) -> list[str]:
    return [f"chunks/{chunk}.json" for chunk in list_of(object_of(manifest.get(kind)).get("chunks"))]


def _chunks(named: dict[str, Any], manifest: Json, kind: str) -> Iterator[Any]:
    for name in _chunk_names(manifest, kind):
        yield from list_of(named[name])


def _records(files: dict[str, bytes]) -> Iterator[Json]:
    for name in sorted(files):
        if name.startswith("journal/"):
            # The last line may be cut off, because it is being written.
            yield from filter(None, map(_object, files[name].split(b"\n")))


class _Journal:
    """What the records of the journal add to a generation."""

    def __init__(self, shown: list[Json], state: Json, sequence: int) -> None:
        self.entries = shown
        self.state = state
        self.calls: dict[str, str] = {}
        self._sequence = sequence
        self._requested: dict[str, tuple[str, str]] = {}
        """Action of a call of the model -> its purpose and its turn."""
        self._results: dict[str, Json] = {}
        self._times: dict[str, object] = {}
        self._shown = {text_of(entry.get("id")) for entry in shown}
        """Ids of all entries that are there or were."""

    def read(self, record: Json) -> None:
        payload, kind = object_of(record.get("payload")), record.get("type")
        action = text_of(payload.get("action_id"))
        if kind == "action_intent" and action:
            self._read_intent(action, object_of(payload.get("request")))
        elif kind == "action_result" and action:
            self._read_result(action, object_of(object_of(payload.get("result")).get("result")))
        elif kind == "core_input":
            given = object_of(payload.get("input"))
            ended = text_of(object_of(given.get("command")).get("action_id"))
            if ended is not None:
                self._times[ended] = object_of(given.get("determinism")).get("time_unix_ms")
        elif kind == "projection_delta":
            for change in map(object_of, list_of(payload.get("delta"))):
                entries = (change.get("entry"), *list_of(change.get("entries")))
                self._shown |= {text_of(object_of(entry).get("id")) for entry in entries}
                if _number(record.get("sequence")) > self._sequence:
                    self._apply(change)

    def finished(self) -> list[Completion]:
        return [
            Completion(action, *requested, self._results[action], self._times.get(action))
            for action, requested in self._requested.items()
            if action in self._results
        ]

    def show_answers(self) -> None:
        """Add the entries of answers that came before the program was killed, and were never shown."""
        shown = " ".join(filter(None, self._shown))
        for completion in self.finished():
            if completion.purpose == _ANSWERS and completion.action not in shown:
                of_turn = [at for at, entry in enumerate(self.entries) if entry.get("turnId") == completion.turn]
                place = of_turn[-1] + 1 if of_turn else len(self.entries)
                self.entries[place:place] = _entries_of(completion)

    def _read_intent(self, action: str, request: Json) -> None:
        call = text_of(request.get("call_id"))
        if request.get("type") == "llm_call":
            self._requested[action] = text_of(request.get("purpose")) or "", text_of(request.get("turn_id")) or ""
        elif call:
            self.calls[action] = call

    def _read_result(self, action: str, result: Json) -> None:
        # A generation may be written while the model answers: the intent is in the journal before it, which is gone.
        makes_calls = any(object_of(part).get("type") == "tool_call" for part in list_of(result.get("parts")))
        if makes_calls and action not in self._requested and self.entries:
            self._requested[action] = _ANSWERS, text_of(self.entries[-1].get("turnId")) or ""
        if action in self._requested:
            self._results[action] = result

    def _apply(self, change: Json) -> None:
        match change.get("op"):
            case "append_entry":
                self.entries.append(object_of(change.get("entry")))
            case "replace_entry":
                changed = object_of(change.get("entry"))
                self.entries = [changed if one.get("id") == change.get("id") else one for one in self.entries]
            case "remove_entry":
                self.entries = [one for one in self.entries if one.get("id") != change.get("id")]
            case "set_history_entries":
                self.entries = [object_of(one) for one in list_of(change.get("entries"))]
            case "set_envelope":
                self.state = object_of(change.get("state"))
            case _:
                pass


def _entries_of(completion: Completion) -> Iterator[Json]:
    """Thoughts and text of an answer, as the program shows them."""
    facts = {"turnId": completion.turn, "createdAt": completion.at}
    parts = [object_of(part) for part in list_of(completion.result.get("parts"))]
    for number, thought in enumerate(part for part in parts if part.get("type") == "reasoning"):
        name = f"reasoning-{completion.action}-{number}"
        yield {"type": "reasoning", "id": name, "text": texts_of(thought.get("content")), **facts}
    text = [part for part in parts if part.get("type") == "text"]
    if text:
        yield {"type": "message", "role": "assistant", "id": f"assistant-{completion.action}", "content": text, **facts}


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0


def texts_of(content: object) -> str:
    """The texts of a list of blocks, one after the other."""
    blocks: Iterable[Json] = (object_of(block) for block in list_of(content))
    return "".join(text_of(block.get("text")) or "" for block in blocks if block.get("type") == "text")
