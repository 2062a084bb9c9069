"""Which call started a subagent, where no record says so: the one that began its run, or whose prompt it was given.

What an agent's records say of a child and its call comes first: only children without a call, and calls without a
child, are matched here. The functions over messages serve `turnlog.logs` too. `link_spawn_calls` is a pure function of
the stored rows, worked out anew for a parent when it, a child of it or a link between them was touched, so the order
in which sources are read makes no difference.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, cast

import msgspec

from turnlog.agents.changes import RUN, Link
from turnlog.model import Message, Origin, TextPart, ToolCallPart, ToolKind
from turnlog.store import bodies
from turnlog.store.external_content import BlobLoader
from turnlog.store.frames import BODY_COLUMNS, BodyReader
from turnlog.store.rows import milliseconds

_FIELDS = ("prompt", "objective", "request", "question", "query", "task")
"""Names of the prompt in the inputs of subagent tools."""


class SpawnCall(NamedTuple):
    """A call of a subagent tool that no child is known of."""

    tool_call_id: str
    message_id: str
    started_at: int | None
    """Unix milliseconds."""
    completed_at: int | None
    """When its last result came, in Unix milliseconds; None while it has none, or none with a time."""
    prompts: tuple[str, ...]
    """Texts of its input that may be the prompt."""
    runs: tuple[str, ...] = ()
    """Runs of several subagents that it began, as its results name them (`agents.changes.RUN`)."""


class SpawnedSession(NamedTuple):
    """A subagent's session that no call is known of."""

    session_id: str
    started_at: int | None
    """Unix milliseconds."""
    prompt: str
    run: str | None = None
    """The run that it was started in, with others."""


def spawn_calls(message: Message) -> list[SpawnCall]:
    """The calls of a message that start subagents."""
    return [
        SpawnCall(
            part.tool_call_id,
            message.id,
            milliseconds(message.created_at),
            _completed_at(part),
            _prompts(part),
            tuple(run for result in part.results if (run := run_of(result.metadata)) is not None),
        )
        for part in message.parts
        if isinstance(part, ToolCallPart) and part.kind is ToolKind.SUBAGENT
    ]


def run_of(metadata: Mapping[str, Any]) -> str | None:
    """The run that the metadata of a link or a result names, under its agent's name."""
    named = (cast("dict[str, Any]", facts).get(RUN) for facts in metadata.values() if isinstance(facts, dict))
    return next((run for run in named if isinstance(run, str)), None)


def spawned_session(session_id: str, first: Message, run: str | None = None) -> SpawnedSession | None:
    """A subagent's session by its first message; None when that is no prompt of a subagent, and no run is known."""
    if run is not None:
        return SpawnedSession(session_id, milliseconds(first.created_at), "", run)
    if first.origin is not Origin.SUBAGENT_PROMPT:
        return None
    prompt = "\n".join(part.text for part in first.parts if isinstance(part, TextPart)).strip()
    return SpawnedSession(session_id, milliseconds(first.created_at), prompt) if prompt else None


def match_spawn_calls(calls: Iterable[SpawnCall], children: Iterable[SpawnedSession]) -> dict[str, SpawnCall]:
    """Session id -> the call that started it.

    Args:
        calls: In the order of the parent.
        children: In any order.

    A call with exactly the child's prompt is taken before one whose prompt is some whole lines of it: some agents wrap
    the prompt in text of their own. Of several calls with the same prompt the newest before the child began is taken:
    the last child gets the last call, and so on backwards, since a call may have been killed before its child wrote
    anything. A call may have a later time than its child (Gemini CLI 0.30 logs a call once it has its result), but a
    call that had its result before the child began did not start it. A run has any number of children; of several
    calls that began it (and began it again) the newest before the child is taken.
    """
    known = list(calls)
    free = [call for call in known if not call.runs]
    found: dict[str, SpawnCall] = {}
    for child in sorted(children, key=lambda child: (child.started_at or 0, child.session_id), reverse=True):
        if child.run is not None:
            began = [call for call in known if child.run in call.runs]
            if began:
                found[child.session_id] = _newest_before(began, child)
            continue
        running = [call for call in free if not _is_before(call.completed_at, child.started_at)]
        fits = [call for call in running if child.prompt in call.prompts] or [
            call for call in running if any(f"\n{text}\n" in f"\n{child.prompt}\n" for text in call.prompts)
        ]
        if fits:
            found[child.session_id] = call = _newest_before(fits, child)
            free.remove(call)
    return found


def with_call(link: Link, call: SpawnCall) -> Link:
    """The link with the call that was found for it, which makes it inferred."""
    return msgspec.structs.replace(link, tool_call_id=call.tool_call_id, message_id=call.message_id, inferred=True)


def _newest_before(calls: list[SpawnCall], child: SpawnedSession) -> SpawnCall:
    before = [call for call in calls if not _is_before(child.started_at, call.started_at)]
    return before[-1] if before else calls[0]


def _is_before(one: int | None, other: int | None) -> bool:
    """Whether both times are known, and the first comes first."""
    return one is not None and other is not None and one < other


def _completed_at(part: ToolCallPart) -> int | None:
    times = [milliseconds(result.completed_at) for result in part.results if not result.preliminary]
    return max((time for time in times if time is not None), default=None)


def _prompts(part: ToolCallPart) -> tuple[str, ...]:
    value = part.input_value()
    fields = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    texts = (fields.get(name) for name in _FIELDS)
    return tuple(text.strip() for text in texts if isinstance(text, str) and text.strip())


_LOOKUP_SIZE = 500


def link_spawn_calls(connection: sqlite3.Connection, session_ids: set[str]) -> None:
    """Find the calls of all subagents without one that these sessions are or have (`links.found_call_id`)."""
    for parent_id, children in _without_call(connection, sorted(session_ids)).items():
        spawned = [found for child in children if (found := _spawned(connection, *child)) is not None]
        calls = match_spawn_calls(_free_calls(connection, parent_id), spawned) if spawned else {}
        connection.execute(
            "UPDATE links SET found_call_id = NULL, found_message_id = NULL WHERE parent_id = ? AND kind = 'subagent'",
            (parent_id,),
        )
        connection.executemany(
            "UPDATE links SET found_call_id = ?, found_message_id = ?"
            " WHERE child_id = ? AND parent_id = ? AND kind = 'subagent'",
            [(call.tool_call_id, call.message_id, child, parent_id) for child, call in calls.items()],
        )


def _without_call(
    connection: sqlite3.Connection, session_ids: Sequence[str]
) -> dict[str, list[tuple[str, str | None]]]:
    """Parent -> all of its children without a call, each with its run, for these sessions and the parents of these."""
    parents: set[str] = set()
    for start in range(0, len(session_ids), _LOOKUP_SIZE):
        piece = session_ids[start : start + _LOOKUP_SIZE]
        marks = ",".join("?" * len(piece))
        rows = connection.execute(
            "SELECT parent_id FROM links WHERE kind = 'subagent'"
            f" AND (child_id IN ({marks}) OR parent_id IN ({marks}))",
            (*piece, *piece),
        )
        parents.update(row[0] for row in rows)
    found: dict[str, list[tuple[str, str | None]]] = defaultdict(list)
    for parent in sorted(parents):
        rows = connection.execute(
            "SELECT child_id, metadata FROM links l WHERE parent_id = ? AND kind = 'subagent' AND tool_call_id IS NULL"
            " AND NOT EXISTS (SELECT 1 FROM links other WHERE other.child_id = l.child_id AND other.kind = 'subagent'"
            " AND other.tool_call_id IS NOT NULL) ORDER BY child_id",
            (parent,),
        )
        found[parent] = [
            (child, run_of(msgspec.json.decode(metadata)) if metadata else None) for child, metadata in rows
        ]
    return found


def _spawned(connection: sqlite3.Connection, session_id: str, run: str | None) -> SpawnedSession | None:
    row = connection.execute(
        f"SELECT {BODY_COLUMNS} FROM sessions f JOIN memberships s ON s.session_key = f.key JOIN messages m ON m.key ="
        " s.message_key WHERE f.owner_key = 1 AND f.agent = ? AND f.external_id = ? ORDER BY s.position LIMIT 1",
        session_id.partition(":")[::2],
    ).fetchone()
    return None if row is None else spawned_session(session_id, _messages_at(connection, [row])[0], run)


def _free_calls(connection: sqlite3.Connection, session_id: str) -> Iterable[SpawnCall]:
    """The session's calls of subagents that no record names a child of, in order."""
    taken = {
        row[0]
        for row in connection.execute(
            "SELECT tool_call_id FROM links WHERE parent_id = ? AND kind = 'subagent'", (session_id,)
        )
    }
    rows = connection.execute(
        f"SELECT {BODY_COLUMNS} FROM sessions f JOIN memberships s ON s.session_key = f.key JOIN messages m ON m.key ="
        " s.message_key WHERE f.owner_key = 1 AND f.agent = ? AND f.external_id = ? AND m.has_tool_calls = 1"
        " AND EXISTS (SELECT 1 FROM parts p WHERE p.message_key = m.key AND p.tool_kind = 'subagent')"
        " ORDER BY s.position",
        session_id.partition(":")[::2],
    )
    calls = [call for message in _messages_at(connection, rows.fetchall()) for call in spawn_calls(message)]
    return [call for call in calls if call.tool_call_id not in taken]


def _messages_at(connection: sqlite3.Connection, places: Iterable[tuple[int, int, int, int, int]]) -> list[Message]:
    read, load = BodyReader(connection), BlobLoader(connection)
    return [bodies.resolve(bodies.decode(read(*place)), load) for place in places]
