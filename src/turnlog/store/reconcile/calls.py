"""Tool calls: which call started a subagent, and which calls will never get a result.

What an agent's records say about a child and its call wins. Only children without a call and calls without a child are
matched here (`link_spawn_calls`), for each parent that was touched itself or through a child or a link.

Claude Code 1.0 resumes a killed session into a new file, without the call that was running. If a session that shares
the call's message continues after it with another turn, the call is aborted. A subagent's unfinished call is aborted
once the call that started the subagent has ended, or its process. A result that arrives later still counts.

`turnlog.logs` also uses the functions over messages. Those over the store are pure functions of the stored rows, so the
order in which sources are read does not matter.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

import msgspec

from turnlog.agents.changes import ENDED_AT, RUN, Link
from turnlog.model import Message, Origin, TextPart, ToolCallPart, ToolKind, ToolState
from turnlog.model.parts import OPEN_STATES
from turnlog.store import bodies
from turnlog.store.external_content import BlobLoader
from turnlog.store.frames import BODY_COLUMNS, BodyReader
from turnlog.store.rows import milliseconds

_PROMPT_FIELDS = ("prompt", "objective", "request", "question", "query", "task")
"""Names of the field with the prompt in the inputs of subagent tools."""

_LOOKUP_SIZE = 500

_STARTED = (
    "SELECT child_id, parent_id, coalesce(tool_call_id, found_call_id) , metadata FROM links"
    " WHERE kind = 'subagent' AND coalesce(tool_call_id, found_call_id) IS NOT NULL"
)
_OPEN = tuple(sorted(str(state) for state in OPEN_STATES))


class SpawnCall(NamedTuple):
    """A call of a subagent tool without a known child."""

    tool_call_id: str
    message_id: str
    started_at: int | None
    """Unix milliseconds."""
    completed_at: int | None
    """Unix milliseconds of its last result; None if it has none, or none with a time."""
    prompts: tuple[str, ...]
    """Texts in its input that may be the prompt."""
    runs: tuple[str, ...] = ()
    """Runs of several subagents that it started, named in its results (`agents.changes.RUN`)."""


class SpawnedSession(NamedTuple):
    """A subagent session without a known call."""

    session_id: str
    started_at: int | None
    """Unix milliseconds."""
    prompt: str
    run: str | None = None
    """The run in which it was started together with others."""


def spawn_calls(message: Message) -> list[SpawnCall]:
    """The calls in a message that start subagents."""
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
    """The run named in the metadata of a link or a result, under the agent's name."""
    named = (cast("dict[str, Any]", facts).get(RUN) for facts in metadata.values() if isinstance(facts, dict))
    return next((run for run in named if isinstance(run, str)), None)


def spawned_session(session_id: str, first: Message, run: str | None = None) -> SpawnedSession | None:
    """A subagent session, given its first message; None if that is not a subagent's prompt and no run is known."""
    if run is not None:
        return SpawnedSession(session_id, milliseconds(first.created_at), "", run)
    if first.origin is not Origin.SUBAGENT_PROMPT:
        return None
    prompt = "\n".join(part.text for part in first.parts if isinstance(part, TextPart)).strip()
    return SpawnedSession(session_id, milliseconds(first.created_at), prompt) if prompt else None


def match_spawn_calls(calls: Iterable[SpawnCall], children: Iterable[SpawnedSession]) -> dict[str, SpawnCall]:
    """Match children with the calls that started them; returns session id -> call.

    Args:
        calls: In the order of the parent.
        children: In any order.

    A call with exactly the child's prompt is preferred to one whose prompt consists of some whole lines of it: some
    agents add text of their own around the prompt. If several calls have the same prompt, the newest call before the
    child is taken. The last child is matched first, and so on backwards, because a call may have been killed before its
    child wrote anything. A call may have a later time than its child (Gemini CLI 0.30 logs a call once it has its
    result), but a call that had its result before the child began did not start it. A run has any number of children;
    if several calls started it again and again, the newest before the child is taken.
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
        # Whole lines only: a prompt of one word is a piece of many others.
        fits = [call for call in running if child.prompt in call.prompts] or [
            call for call in running if any(f"\n{text}\n" in f"\n{child.prompt}\n" for text in call.prompts)
        ]
        if fits:
            found[child.session_id] = call = _newest_before(fits, child)
            # A call starts one subagent; only a run starts several.
            free.remove(call)
    return found


def with_call(link: Link, call: SpawnCall) -> Link:
    """The link with the call that was found for it, marked as inferred."""
    return msgspec.structs.replace(link, tool_call_id=call.tool_call_id, message_id=call.message_id, inferred=True)


def _newest_before(calls: list[SpawnCall], child: SpawnedSession) -> SpawnCall:
    # Gemini CLI 0.30 logs a call once it has its result: then every call may be later than its child.
    before = [call for call in calls if not _is_before(child.started_at, call.started_at)]
    return before[-1] if before else calls[0]


def _is_before(one: int | None, other: int | None) -> bool:
    """Whether both times are known and the first is earlier."""
    return one is not None and other is not None and one < other


def _completed_at(part: ToolCallPart) -> int | None:
    # A preliminary result comes while the call runs, so it is not the end of the call.
    times = [milliseconds(result.completed_at) for result in part.results if not result.preliminary]
    return max((time for time in times if time is not None), default=None)


def _prompts(part: ToolCallPart) -> tuple[str, ...]:
    value = part.input_value()
    fields = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    texts = (fields.get(name) for name in _PROMPT_FIELDS)
    return tuple(text.strip() for text in texts if isinstance(text, str) and text.strip())


def link_spawn_calls(connection: sqlite3.Connection, session_ids: set[str]) -> None:
    """Find calls for the subagents without one among these sessions and their children (`links.found_call_id`)."""
    for parent_id, children in _without_call(connection, sorted(session_ids)).items():
        spawned = [found for child in children if (found := _spawned(connection, *child)) is not None]
        calls = match_spawn_calls(_free_calls(connection, parent_id), spawned) if spawned else {}
        # Matching is repeated for all children: a call that was found earlier may fit a new child better.
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
    """Parent -> its children without a call and their runs, for these sessions and their parents."""
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
        " s.message_key WHERE f.agent = ? AND f.external_id = ? ORDER BY s.position LIMIT 1",
        session_id.partition(":")[::2],
    ).fetchone()
    return None if row is None else spawned_session(session_id, _messages_at(connection, [row])[0], run)


def _free_calls(connection: sqlite3.Connection, session_id: str) -> Iterable[SpawnCall]:
    """The session's subagent calls for which no record names a child, in order."""
    taken = {
        row[0]
        for row in connection.execute(
            "SELECT tool_call_id FROM links WHERE parent_id = ? AND kind = 'subagent'", (session_id,)
        )
    }
    rows = connection.execute(
        f"SELECT {BODY_COLUMNS} FROM sessions f JOIN memberships s ON s.session_key = f.key JOIN messages m ON m.key ="
        " s.message_key WHERE f.agent = ? AND f.external_id = ? AND m.has_tool_calls = 1"
        " AND EXISTS (SELECT 1 FROM parts p WHERE p.message_key = m.key AND p.tool_kind = 'subagent')"
        " ORDER BY s.position",
        session_id.partition(":")[::2],
    )
    calls = [call for message in _messages_at(connection, rows.fetchall()) for call in spawn_calls(message)]
    return [call for call in calls if call.tool_call_id not in taken]


def _messages_at(connection: sqlite3.Connection, places: Iterable[tuple[int, int, int, int, int]]) -> list[Message]:
    read, load = BodyReader(connection), BlobLoader(connection)
    return [bodies.resolve(bodies.decode(read(*place)), load) for place in places]


class CallEnd(NamedTuple):
    """The end of a call, and its time."""

    at: int | None
    """Unix milliseconds of its last result; None if it has none, because it was aborted."""

    def ends(self, started_at: int | None) -> bool:
        """Whether a call of the subagent that began at this time has ended with it.

        A background subagent continues after the result that reports its start: only calls that began before that
        result have ended.
        """
        return self.at is None or (started_at is not None and started_at <= self.at)


ABANDONED = CallEnd(None)
"""The end of a call without a result: all calls below it have ended, whenever they began."""


def end_of_subagent(call: CallEnd | None, metadata: Mapping[str, Any]) -> CallEnd | None:
    """The end of a subagent: that of the call that started it, or of its process if the link has it (`ENDED_AT`)."""
    process_end: int | None = metadata.get(ENDED_AT)
    # An abandoned call ends everything below it, whenever that began: the end of the process adds nothing.
    if process_end is None or call == ABANDONED:
        return call
    # The later one: a background subagent continues after the result that reports its start.
    return CallEnd(process_end if call is None or call.at is None else max(call.at, process_end))


def _end_in_state(state: str, completed_at: int | None) -> CallEnd | None:
    """The end of a call in this state; None if it is still open."""
    return None if state in OPEN_STATES else CallEnd(completed_at)


def calls_in(message: Message) -> Iterator[ToolCallPart]:
    """The calls of a message."""
    return (part for part in message.parts if isinstance(part, ToolCallPart))


def end_of_call(call: ToolCallPart) -> CallEnd | None:
    """The end of a call; None if it is still open."""
    times = [moment for result in call.results if (moment := milliseconds(result.completed_at)) is not None]
    return _end_in_state(call.state, times[-1] if times else None)


def abort_open_calls(message: Message, end: CallEnd) -> Message:
    """The message, with those calls aborted that have no result and began before this end."""
    parts = tuple(
        msgspec.structs.replace(part, state=ToolState.ABORTED)
        if isinstance(part, ToolCallPart) and part.state in OPEN_STATES and end.ends(milliseconds(part.started_at))
        else part
        for part in message.parts
    )
    return message if parts == message.parts else msgspec.structs.replace(message, parts=parts)


def find_abandoned_calls(connection: sqlite3.Connection, session_keys: Iterable[int]) -> Iterator[tuple[str, int]]:
    """Session id and message key of messages with an open call, if a session that copied them continued without it."""
    # A later turn, not just a later message: in the turn of the call its result may still come.
    for session_key in sorted(session_keys):
        rows = connection.execute(
            "SELECT f.agent || ':' || f.external_id, s.message_key FROM sessions f"
            " JOIN memberships s ON s.session_key = f.key WHERE f.key = ?1 AND EXISTS"
            f" (SELECT 1 FROM parts p WHERE p.message_key = s.message_key AND p.tool_state IN {_OPEN})"
            " AND EXISTS (SELECT 1 FROM memberships o WHERE o.message_key = s.message_key AND o.session_key <> ?1)"
            " AND EXISTS (SELECT 1 FROM memberships held JOIN memberships later ON later.session_key = held.session_key"
            " AND later.position > held.position AND later.turn > held.turn WHERE held.message_key = s.message_key)",
            (session_key,),
        )
        yield from rows.fetchall()


def abort_in_subagents(
    connection: sqlite3.Connection, session_ids: set[str], abort: Callable[[str, int, CallEnd], None]
) -> None:
    """Abort the open calls of subagents that have ended, in these sessions and below them.

    Args:
        connection: The store.
        session_ids: Sessions that were touched, as a subagent or as the parent of one.
        abort: Aborts the calls of one message, given the id of its session, its key, and the end before which they
            began.
    """
    waiting = sorted(session_ids)
    while waiting:
        session_id = waiting.pop()
        links = connection.execute(
            f"{_STARTED} AND child_id = ?1 UNION {_STARTED} AND parent_id = ?1 ORDER BY 1, 2",
            (session_id,),
        ).fetchall()
        for child_id, parent_id, call_id, metadata in links:
            # Only a child in which something changed is looked below, so a circle of links ends.
            if _abort_in(connection, child_id, parent_id, call_id, metadata, abort) and child_id != session_id:
                # An aborted call may itself have started a subagent, which ended with it.
                waiting.append(child_id)


def _abort_in(
    connection: sqlite3.Connection,
    child_id: str,
    parent_id: str,
    call_id: str,
    metadata: str | None,
    abort: Callable[[str, int, CallEnd], None],
) -> bool:
    """Abort the open calls of a subagent that has ended; return whether there were any."""
    # Nearly every subagent has ended properly: the end of its call need not be looked up.
    open_calls = _open_calls(connection, child_id)
    if not open_calls:
        return False
    facts: dict[str, Any] = msgspec.json.decode(metadata) if metadata else {}
    end = end_of_subagent(_stored_end(connection, parent_id, call_id), facts)
    if end is None:
        return False
    ended = dict.fromkeys(key for key, started_at in open_calls if end.ends(started_at))
    for message_key in ended:
        abort(child_id, message_key, end)
    return bool(ended)


def _open_calls(connection: sqlite3.Connection, session_id: str) -> list[tuple[int, int | None]]:
    """Message key and start time of each call of a session without a result."""
    return connection.execute(
        "SELECT p.message_key, p.started_at FROM sessions f JOIN memberships s ON s.session_key = f.key"
        " JOIN parts p ON p.message_key = s.message_key"
        f" WHERE f.agent = ? AND f.external_id = ? AND p.tool_state IN {_OPEN}",
        session_id.partition(":")[::2],
    ).fetchall()


def _stored_end(connection: sqlite3.Connection, session_id: str, call_id: str) -> CallEnd | None:
    """The end of a call of a session; None if the call is open or not stored."""
    row = connection.execute(
        "SELECT p.tool_state, p.completed_at FROM sessions f JOIN memberships s ON s.session_key = f.key"
        " JOIN parts p ON p.message_key = s.message_key"
        " WHERE f.agent = ? AND f.external_id = ? AND p.tool_call_id = ? LIMIT 1",
        (*session_id.partition(":")[::2], call_id),
    ).fetchone()
    return None if row is None else _end_in_state(*row)
