"""All rows of one session as one look at them found them, in one shape for databases and files of any version."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import msgspec

from turnlog.agents.changes import SessionChange
from turnlog.agents.decoding import list_of, object_of, text_of
from turnlog.agents.handoffs import MARK, carried_origin, read_mark
from turnlog.agents.opencode import NAME
from turnlog.agents.opencode.rows import (
    SESSION,
    Row,
    TimelineEntry,
    bytes_of,
    document_of,
    message_position,
    own_id,
    time_at,
    time_of,
    time_position,
    to_datetime,
    to_int,
)
from turnlog.model import Origin
from turnlog.model.codec import to_json


class RowSource(Protocol):
    """The rows of one session, in a database, in files, in an export or in a stream."""

    @property
    def external_id(self) -> str:
        """The session's id."""
        ...

    def read(self, events_after: int) -> Snapshot:
        """The rows as they are now; of the events only those with a greater sequence number."""
        ...

    def find_originals(self, messages: Sequence[ListedMessage], session: Row) -> dict[str, MessageCopy]:
        """By key, the originals of those messages that a fork copied.

        Args:
            messages: Messages that are older than their session.
            session: The session's JSON.
        """
        ...


class Snapshot(msgspec.Struct, kw_only=True):
    """All rows of a session."""

    session: Row | None = None
    session_table: str = SESSION
    """The table that has the session's row."""
    info: Row = {}
    """The session's JSON, as OpenCode's files and exports have it."""
    messages: list[MessageRows] = []
    removed: list[MessageRows] = []
    """Messages that have no rows any more, and that OpenCode's events still have."""
    todo: tuple[Row, ...] | None = None
    others: list[tuple[str, str, Row]] = []
    """Other rows: table, key, row."""
    shared: frozenset[str] = frozenset()
    """Keys that another session may use too, although they look like OpenCode's: see `rows.own_id`."""


class MessageRows(NamedTuple):
    """The row of a message, and the rows of its parts in order."""

    key: str
    row: Row
    parts: tuple[Row, ...] = ()
    position: int | None = None
    """Its position, if rows around it decide that: those of 2.x are numbered."""


class ListedMessage(NamedTuple):
    """A message as the timeline needs it."""

    key: str
    info: Row
    parts: Sequence[Row]
    deleted: bool = False
    position: int | None = None
    """See `MessageRows`."""

    @property
    def created(self) -> int:
        """When it was created (Unix milliseconds). A fork's copies keep this time."""
        return time_of(self.info, "created")

    @property
    def entered(self) -> int:
        """When it came into the conversation (Unix milliseconds): a prompt may have to wait for a step to end."""
        if self.position is not None:
            return time_at(self.position)
        return max(self.created, time_of(self.info, "entered"))

    @property
    def order(self) -> tuple[int, int, str]:
        """OpenCode's own order of messages."""
        return self.entered, self.position or 0, self.key

    def place(self, *, is_shared: bool = False) -> int:
        """Its position in the session; `is_shared`: see `rows.own_id`."""
        found = self.position
        return message_position(self.entered, self.key, is_shared=is_shared) if found is None else found


class MessageCopy(NamedTuple):
    """The original of a message that a fork copied: its id and that of its session."""

    message: str
    session: str


def list_message(message: MessageRows, *, deleted: bool = False) -> ListedMessage:
    """The message as the timeline needs it. What of it is no JSON object counts as empty."""
    try:
        info, parts = documents_of(message.row, message.parts)
    except (ValueError, RecursionError):
        info, parts = _document(message.row), [_document(part) for part in message.parts]
    return ListedMessage(message.key, info, parts, deleted, message.position)


def _document(row: Row) -> Row:
    try:
        return documents_of(row, ())[0]
    except (ValueError, RecursionError):
        return {}


# -- the timeline of a session: the order of its messages, turns, steps, what a compaction kept, what was reverted
#
# It is a function of all rows of the session, in whichever form OpenCode had them. Messages that were removed are among
# them, so that numbers do not change when a row disappears.


SHELL_NOTE = "The following tool was executed by the user"
"""The prompt that OpenCode writes when the user runs a command with `!`."""

_TURN_ORIGINS = (Origin.PROMPT, Origin.SHELL, Origin.SUBAGENT_PROMPT)


def build_timeline(
    session: str,
    messages: Iterable[ListedMessage],
    *,
    is_subagent: bool,
    copies: Mapping[str, MessageCopy],
    shared: frozenset[str] = frozenset(),
) -> list[tuple[ListedMessage, TimelineEntry]]:
    """Every message with its timeline entry, in order.

    Args:
        session: External id of the session.
        messages: All messages of the session, removed ones included.
        is_subagent: Whether the session is a subagent's.
        copies: By key, the originals of messages that a fork copied.
        shared: Keys that another session may use too: see `Snapshot`.
    """
    ordered = sorted(messages, key=lambda message: message.order)
    originals = {key: own_id(copy.session, copy.message) for key, copy in copies.items()}
    ids = {
        key: originals.get(key) or own_id(session, key, is_shared=key in shared)
        for key in (message.key for message in ordered)
    }
    last_answer = max(
        (index for index, message in enumerate(ordered) if message.info.get("role") == "assistant"), default=-1
    )
    timeline: list[tuple[ListedMessage, TimelineEntry]] = []
    turns: dict[str, int] = {}
    steps: dict[int, int] = {}
    turn, parent = 0, None
    for index, message in enumerate(ordered):
        origin, step = origin_of(message.info, message.parts, is_subagent=is_subagent), None
        if origin in _TURN_ORIGINS:
            turn += 1
        turns[message.key] = turn
        # An answer belongs to the turn of the prompt that it names, which need not be the last one before it.
        own_turn = turns.get(str(message.info.get("parentID")), turn)
        count = 1
        if message.info.get("role") == "assistant":
            # Before 0.6 one message holds all steps of a turn.
            count = len(step_ranges(message.parts))
            step = steps.get(own_turn, 0) + 1
            steps[own_turn] = step + count - 1
        copy = copies.get(message.key)
        entry = TimelineEntry(
            position=message.place(is_shared=message.key in shared),
            turn=own_turn or None,
            step=step,
            parent=parent,
            origin=origin,
            # A killed run leaves its call `running` for ever. A later answer shows that the agent continued.
            is_over=index < last_answer,
            **_compaction(message, ordered[:index], ids),
            copy_of=originals.get(message.key),
            copied_from=copy.session if copy else None,
            own_id=None if copy or ids[message.key] == message.key else ids[message.key],
        )
        timeline.append((message, entry))
        parent = step_message_id(ids[message.key], count - 1)
    return timeline


def origin_of(info: Row, parts: Sequence[Row], *, is_subagent: bool) -> Origin | None:
    """The origin of a message that no model wrote; None for an answer."""
    if info.get("role") != "user":
        return None
    carried = read_mark(info.get(MARK))
    if carried is not None:
        return carried_origin(carried, _TURN_ORIGINS)
    others = [part for part in parts if part.get("type") != "compaction"]
    if len(others) < len(parts):
        return Origin.COMPACTION
    # OpenCode marks its own texts. A message with nothing else was not typed, except the note of a `!` command.
    if others and all(part.get("synthetic") is True for part in others):
        return Origin.SHELL if others[0].get("text") == SHELL_NOTE else Origin.HARNESS
    return Origin.SUBAGENT_PROMPT if is_subagent or "agentID" in info else Origin.PROMPT


_MAIN = "main"
"""What MiMo Code calls the agent that the user talks to. Its subagents write into the same session."""


def subagent_of(row: Row) -> Row:
    """What the row of a message adds to its JSON: `agentID`, where a subagent wrote it."""
    name = text_of(row.get("agent_id"))
    return {} if name in (None, _MAIN) else {"agentID": name}


def _compaction(message: ListedMessage, before: Sequence[ListedMessage], ids: Mapping[str, str]) -> dict[str, Any]:
    """Of the summary of a finished compaction: what it replaced, and what it kept. Of any other message nothing.

    Args:
        message: The message.
        before: The messages before it, in order.
        ids: By key, the ids of messages in the model.
    """
    info = message.info
    if info.get("compacted") is True:
        # A row of `session_message` holds request and summary of a compaction at once.
        automatic = message.parts[0].get("auto") is True
        return {"compacts": message.place(), "automatic": automatic}
    # `summary: true` is set when the compaction begins. Without `finish` it was stopped, and replaced nothing.
    if info.get("summary") is not True or not info.get("finish") or info.get("error"):
        return {}
    request = next((earlier for earlier in reversed(before) if earlier.key == info.get("parentID")), None)
    details = next((part for part in (request.parts if request else ()) if part.get("type") == "compaction"), None)
    if request is None or details is None:
        return {}
    keys = [earlier.key for earlier in before if earlier.order < request.order]
    tail = details.get("tail_start_id")
    return {
        "compacts": message_position(request.created, request.key),
        "automatic": details.get("auto") is True,
        "kept": tuple(ids[key] for key in keys[keys.index(tail) :]) if tail in keys else (),
    }


def step_ranges(parts: Sequence[Row]) -> list[tuple[int, int]]:
    """The steps in a message, as ranges of its parts: one, except where early versions kept a whole turn in one."""
    ends: list[int] = []
    finished = False
    for index, part in enumerate(parts):
        kind = part.get("type")
        if kind == "step-start" and finished:
            ends.append(index)
        finished = kind == "step-finish" or (finished and kind != "step-start")
    bounds = [0, *ends, len(parts)]
    return list(pairwise(bounds))


def step_message_id(message_id: str, number: int) -> str:
    """The id of the message that a step becomes; `number` counts from 0."""
    return message_id if number == 0 else f"{message_id}.{number + 1}"


class RevertPoint(NamedTuple):
    """Where a session was reverted to, which was not continued since."""

    leaf: str
    """Id of the last message that counts; "" when none does."""
    position: int
    """Position of the first message that does not count."""


def find_revert_point(revert: object, timeline: Sequence[tuple[ListedMessage, TimelineEntry]]) -> RevertPoint | None:
    """The revert point that the `revert` of a session names; None if the session is not reverted."""
    if not isinstance(revert, dict):
        return None
    facts = object_of(revert)  # pyright: ignore[reportUnknownArgumentType]  # JSON of any shape
    for message, entry in timeline:
        if message.key == facts.get("messageID"):
            last = step_message_id(entry.id_of(message.key), len(step_ranges(message.parts)) - 1)
            return RevertPoint(last if facts.get("partID") else entry.parent or "", entry.position)
    return None


# -- messages in rows of `session_message`
#
# OpenCode's next generation keeps a whole message in one row of `session_message`. Such a row becomes the JSON of a
# message and of its parts as `message` and `part` rows have them, so that one reader serves both. What a row says and
# that JSON has no place for stays in the message's metadata.


SESSION_MESSAGE = "session_message"
SESSION_V2 = "session_v2"
"""The table of sessions since 2.0."""

_CONVERTED = frozenset(
    {"content", "model", "text", "files", "agents", "command", "output", "recent", "reason", "summary"}
)
"""Fields that are converted to parts or to other fields of the message."""


ASKED_MODEL = "asked_model"
"""In the JSON of an answer: a model was asked. Rows of `message` say so with a part, `session_message` has none."""


def is_message(row: Row) -> bool:
    """Whether a row of `session_message` is a message; others say that a setting was changed."""
    return text_of(row.get("type")) in _READERS


def is_session_message(row: Row) -> bool:
    """Whether the row of a message is of `session_message`: the table `message` has no column `type`."""
    return is_message(row) and "session_id" in row


def documents_of(row: Row, parts: Sequence[Row]) -> tuple[Row, list[Row]]:
    """The JSON of a message and that of its parts, from rows of either table.

    Raises:
        ValueError: A row has no JSON object.
    """
    if not is_session_message(row):
        info = document_of(row) if row else {}
        return info | subagent_of(row), [document_of(part) for part in parts]
    data = document_of(row)
    info, found = _READERS[row["type"]](data)
    if info["role"] == "user":
        # A prompt may wait until a step or a turn has ended. Its row is written when the agent continues with it.
        info["time"] = {"entered": row.get("time_updated"), **object_of(data.get("time"))}
    return info, found


def _info(role: str, data: Row, **more: Any) -> Row:
    kept = {name: value for name, value in data.items() if name not in _CONVERTED}
    return {"role": role, **kept, **more}


def _read_user(data: Row) -> tuple[Row, list[Row]]:
    parts: list[Row] = [{"type": "text", "text": data.get("text")}]
    parts += [_file(object_of(file)) for file in list_of(data.get("files"))]
    parts += [{"type": "agent", **object_of(agent)} for agent in list_of(data.get("agents"))]
    return _info("user", data), parts


def _read_injected(data: Row) -> tuple[Row, list[Row]]:
    return _info("user", data), [{"type": "text", "text": data.get("text"), "synthetic": True}]


def _read_shell(data: Row) -> tuple[Row, list[Row]]:
    """Read a command that the user ran. `message` rows have a prompt for it, and an answer with the call."""
    # 2.x has an object with the first page of the output.
    output = object_of(data.get("output")).get("output") or text_of(data.get("output")) or ""
    shown = f"{data.get('command') or ''}\n{output}".rstrip("\n")
    texts = [SHELL_NOTE, shown]
    return _info("user", data), [{"type": "text", "text": text, "synthetic": True} for text in texts]


def _read_compaction(data: Row) -> tuple[Row, list[Row]]:
    """Read a compaction: its summary, and a text with the newest messages. From here on the model sees only these.

    One that still runs or has failed has replaced nothing. A failed one has tokens, too.
    """
    request: Row = {"type": "compaction", "auto": data.get("reason") == "auto"}
    texts = [text for text in (data.get("summary"), data.get("recent")) if text]
    info = _info("user", data)
    if data.get("status") in (None, "completed"):
        info["compacted"] = True
    info |= _model_of(data) | _error_of(data)
    return info, [request, *({"type": "text", "text": text} for text in texts)]


def _read_assistant(data: Row) -> tuple[Row, list[Row]]:
    info = _info("assistant", data) | {"modelID": None, "providerID": None, ASKED_MODEL: True}
    info |= _model_of(data) | _error_of(data)
    provider = text_of(info["providerID"]) or "provider"
    return info, [_part(object_of(part), provider) for part in list_of(data.get("content"))]


def _model_of(data: Row) -> Row:
    """The model that a row names, as rows of `message` name it."""
    model = object_of(data.get("model"))
    named: Row = {"modelID": model.get("id"), "providerID": model.get("providerID")} if model else {}
    return named | ({"variant": model["variant"]} if model.get("variant") not in (None, "default") else {})


def _error_of(data: Row) -> Row:
    """The error in a row, as rows of `message` have it."""
    error = object_of(data.get("error"))
    if not error:
        return {}
    facts = {"message": error.get("message"), "statusCode": error.get("status")}
    return {"error": {"name": error.get("type"), "data": facts}}


_READERS: dict[str, Callable[[Row], tuple[Row, list[Row]]]] = {
    "user": _read_user,
    "assistant": _read_assistant,
    "synthetic": _read_injected,
    "system": _read_injected,
    "skill": _read_injected,
    "shell": _read_shell,
    "compaction": _read_compaction,
}


def _part(part: Row, provider: str) -> Row:
    if part.get("type") == "tool":
        return _call(part, provider)
    native = _native(part, provider, "native", "state")
    if part.get("type") == "reasoning":
        found = part.get("providerMetadata") or native or None
        return {**_without_native(part), "metadata": found, "time": _span(part, "created")}
    if part.get("type") == "text" and native:
        return {**_without_native(part), "metadata": native}
    return part


def _without_native(part: Row) -> Row:
    return {name: value for name, value in part.items() if name not in ("native", "state")}


def _native(part: Row, provider: str, *names: str) -> Row:
    """What a provider needs back, by the name of the provider, as the metadata of a part has it.

    2.x stores it as the provider sent it, or already by the provider's name. The field had other names before.
    """
    found = next((facts for facts in (object_of(part.get(name)) for name in names) if facts), Row())
    is_named = any(isinstance(value, dict) for value in found.values())
    return found if is_named or not found else {provider: found}


def _span(part: Row, start: str) -> Row:
    """When a part began and ended; `start` is the name of its beginning."""
    time = object_of(part.get("time"))
    return {
        name: time[old]
        for name, old in (("start", start), ("end", "completed"), ("compacted", "pruned"))
        if time.get(old)
    }


def _call(part: Row, named: str) -> Row:
    provider, state = object_of(part.get("provider")), object_of(part.get("state"))
    metadata = {**object_of(provider.get("metadata")), **object_of(provider.get("resultMetadata"))}
    metadata |= _native(part, named, "native", "providerState") | _native(part, named, "providerResultState")
    executed = provider.get("executed") if part.get("executed") is None else part["executed"]
    # 2.x calls the state of a call whose arguments still come `streaming`.
    status = "pending" if state.get("status") == "streaming" else state.get("status")
    call_input: Row = {"raw": state.get("input")} if status == "pending" else {"input": state.get("input")}
    return {
        "type": "tool",
        "callID": part.get("id"),
        "tool": part.get("name"),
        "metadata": {"providerExecuted": executed, **metadata},
        "state": {"status": status, **call_input, **_result(state), "time": _span(part, "ran")},
    }


def _result(state: Row) -> Row:
    """The result of a call. A tool without any text gives the model its structured result."""
    content = [object_of(item) for item in list_of(state.get("content"))]
    texts = [item["text"] for item in content if isinstance(item.get("text"), str)]
    files = [*(item for item in content if "uri" in item), *map(object_of, list_of(state.get("attachments")))]
    paths = list_of(state.get("outputPaths"))
    facts = object_of(state.get("structured")) or object_of(state.get("metadata"))
    if not content and "structured" in state and facts and state.get("status") == "completed":
        texts = [bytes(to_json(facts)).decode()]
    error = object_of(state.get("error"))
    kind = {"errorType": error["type"]} if text_of(error.get("type")) else {}
    return {
        "output": "\n".join(texts) if texts else None,
        "error": text_of(error.get("message")),
        **kind,
        "attachments": [_file(file) for file in files],
        "metadata": facts | ({"outputPath": paths[0]} if paths else {}),
    }


def _file(file: Row) -> Row:
    source, data = object_of(file.get("source")), text_of(file.get("data"))
    inline = None if data is None else f"data:{file.get('mime') or ''};base64,{data}"
    return {
        "type": "file",
        "url": inline or file.get("uri") or source.get("uri"),
        "mime": file.get("mime"),
        "filename": file.get("name"),
        "source": file.get("source"),
    }


# -- facts about the session


def session_info(row: Row) -> Row:
    """The JSON of a session, as files and exports have it, from a row of the table `session` or `session_v2`."""
    info: Row = {name: row[column] for column, name in _SESSION_COLUMNS.items() if row.get(column) is not None}
    info["time"] = {name: row[column] for column, name in _SESSION_TIMES.items() if row.get(column) is not None}
    for column in _SESSION_JSON:
        if row.get(column) is not None:
            info[column] = _parsed(row[column])
    if row.get("share_url"):
        info["share"] = {"url": row["share_url"]}
    summary = {name: row[f"summary_{name}"] for name in _SUMMARY if row.get(f"summary_{name}") is not None}
    if row.get("summary_diffs") is not None:
        summary["diffs"] = _parsed(row["summary_diffs"])
    return info | ({"summary": summary} if summary else {})


_SESSION_COLUMNS = {
    "id": "id",
    "slug": "slug",
    "project_id": "projectID",
    "workspace_id": "workspaceID",
    "parent_id": "parentID",
    "fork_session_id": "forkSessionID",
    "idle_outcome": "idleOutcome",
    "directory": "directory",
    "path": "path",
    "title": "title",
    "version": "version",
    "agent": "agent",
    "cost": "cost",
}

_SESSION_TIMES = {
    "time_created": "created",
    "time_updated": "updated",
    "time_compacting": "compacting",
    "time_archived": "archived",
}

_SESSION_JSON = ("revert", "permission", "model", "metadata", "fork_boundary")

_SUMMARY = ("additions", "deletions", "files")


def _parsed(text: Any) -> Any:
    try:
        return msgspec.json.decode(text) if isinstance(text, str) else text
    except (msgspec.MsgspecError, RecursionError):
        return text


_DEFAULT_TITLE = re.compile(r"(?:New|Child) session - \d{4}-\d\d-\d\dT")
"""The title of a session until it has one of its own."""

_MODELLED = frozenset({"id", "title", "version", "time", "directory", "cost", "tokens", "parentID"})

_REMOVABLE = ("revert", "share")
"""Facts that may disappear again. They are stored as None then, so that a later version replaces an earlier one."""


def read_session(row: Row, session_id: str) -> tuple[SessionChange, str | None] | None:
    """The facts in a session's row or file, and the external id of its parent; None if it cannot be read."""
    try:
        info = session_info(row) if "time_created" in row else document_of(row)
    except (ValueError, RecursionError):
        return None
    return _session_change(info, session_id), text_of(info.get("parentID"))


def _session_change(info: Row, session_id: str) -> SessionChange:
    time = object_of(info.get("time"))
    title, cost = text_of(info.get("title")), info.get("cost")
    updated = to_int(time.get("updated"))
    facts = {name: value for name, value in info.items() if name not in _MODELLED}
    facts |= {name: time[name] for name in ("archived", "compacting") if time.get(name)}
    facts |= {name: None for name in _REMOVABLE if name not in facts}
    facts["summary"] = _without_diffs(facts["summary"]) if "summary" in facts else None
    return SessionChange(
        session_id=session_id,
        position=time_position(updated),
        project_path=text_of(info.get("directory")),
        cwd=text_of(info.get("directory")),
        agent_version=text_of(info.get("version")),
        titles={"generated": title} if title and not _DEFAULT_TITLE.match(title) else {},
        first_at=to_datetime(to_int(time.get("created")) or None),
        last_at=to_datetime(updated or None),
        reported_cost=float(cost) if isinstance(cost, int | float) and cost > 0 else None,
        metadata={NAME: {name: facts[name] for name in sorted(facts) if facts[name] is not None or name in _REMOVABLE}},
    )


def todo_facts(rows: Sequence[Row]) -> tuple[int, list[Any]]:
    """The position at which the to-do list was last written, and its items."""
    items: list[Any] = []
    for row in rows:
        if "content" in row:
            items.append({name: row[name] for name in ("content", "status", "priority") if name in row})
        else:
            items += _todo_items(row)
    return time_position(max((to_int(row.get("time_updated")) for row in rows), default=0)), items


def project_facts(row: Row) -> Row:
    """The facts about a project that its sessions have as metadata."""
    try:
        info = row if "worktree" in row else document_of(row)
    except (ValueError, RecursionError):
        return {}
    return {name: info[name] for name in ("id", "worktree", "vcs", "name") if info.get(name) is not None}


def _todo_items(row: Row) -> list[Any]:
    """The items in a file of the JSON storage."""
    data = bytes_of(row.get("text"))
    try:
        found: object = msgspec.json.decode(data or b"[]")
    except (msgspec.MsgspecError, RecursionError):
        return []
    return list_of(found)


def _without_diffs(summary: object) -> Row:
    return {name: value for name, value in object_of(summary).items() if name != "diffs"}
