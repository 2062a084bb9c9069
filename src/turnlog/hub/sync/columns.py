"""What every column of a pushed row may have: one table, by which rows are decoded and checked before one is written.

A value that no reader expects would end the lists, the figures or the search of the whole team.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Final, Literal, NamedTuple

import msgspec
from msgspec import Meta

from turnlog.agents.changes import RecordRef
from turnlog.model import SessionTotal, Usage
from turnlog.model.codec import decode_event
from turnlog.store import zstd
from turnlog.store.packed_columns import unpack_ids

LARGEST_JSON: Final = 64 << 20
"""Bytes of one JSON text, decompressed."""

LARGEST_EVENT: Final = 16 << 20

MOST_BRACKETS: Final = 1 << 20
"""In one JSON text: each is an object in the memory of who reads it."""

_FEW_BRACKETS: Final = 200
"""Are not too deep, whatever they are in."""

_DEEPER: Final = 300
"""Readers have this much room more for what is around a JSON text."""

_CONTROLS: Final = ("\0", "\x1f")
"""What no id has: SQL ends a text at the first, and a search replica puts the other one behind an id."""


class Kind(NamedTuple):
    """What a column may have."""

    type: Any
    """As msgspec decodes it."""
    wrong: Callable[[Sequence[Any]], int | None] | None = None
    """Finds the first of a column's values that is wrong though it has the type. None (NULL) is never wrong."""


def check_json(data: bytes) -> None:
    """Raise ValueError for bytes that are no JSON text in UTF-8, or one that is deeper than readers can read."""
    if len(data) > LARGEST_JSON:
        raise ValueError(f"a JSON text has at most {LARGEST_JSON} bytes")
    if not data.isascii():
        data.decode()
    try:
        _any_json.decode(data)
        brackets = data.count(b"[") + data.count(b"{")
        if brackets > MOST_BRACKETS:
            raise ValueError(f"a JSON text has at most {MOST_BRACKETS} brackets")
        if brackets > _FEW_BRACKETS:
            _any_json.decode(b"[" * _DEEPER + data + b"]" * _DEEPER)
    except RecursionError as error:
        raise ValueError("a JSON text is too deep") from error


_any_json: Final = msgspec.json.Decoder(msgspec.Raw)


def _first(is_right: Callable[[Any], object]) -> Callable[[Sequence[Any]], int | None]:
    """What looks at one value after the other; `is_right` raises for one that is wrong."""

    def wrong(values: Sequence[Any]) -> int | None:
        for at, value in enumerate(values):
            if value is not None:
                try:
                    is_right(value)
                except (ValueError, TypeError, RecursionError, msgspec.MsgspecError):
                    return at
        return None

    return wrong


def _json(type: Any) -> Kind:
    decoder = msgspec.json.Decoder(type)

    def check(text: str) -> None:
        data = text.encode()
        check_json(data)
        decoder.decode(data)

    return Kind(Annotated[str, Meta(max_length=4 << 20)], _first(check))


def _check_event(body: bytes) -> None:
    data = unpack_frame(body, LARGEST_EVENT)
    check_json(data)
    decode_event(data)


def _check_data(data: bytes) -> None:
    check_json(unpack_frame(data) if zstd.is_frame(data) else data)


def unpack_frame(frame: bytes, most: int = LARGEST_JSON) -> bytes:
    """The data of a frame. Raises ValueError for one that is torn, does not say its size, or has more bytes."""
    try:
        size = zstd.content_size(frame)
        # A frame that says a size is not decompressed into more than that.
        if 0 < size <= most and len(data := zstd.decompress(frame)) == size:
            return data
    except zstd.ZstdError as error:
        raise ValueError(f"a frame that is no zstd: {error}") from error
    raise ValueError(f"a frame that has not 1 to {most} bytes, or does not say so")


def _wrong_id(values: Sequence[Any]) -> int | None:
    joined = "".join([value or "" for value in values])
    if not any(each in joined for each in _CONTROLS):
        return None
    return next(at for at, value in enumerate(values) if value and any(each in value for each in _CONTROLS))


def _wrong_agent(values: Sequence[Any]) -> int | None:
    known = {value for value in set(values) if _AGENT.fullmatch(value)}
    return None if known.issuperset(values) else next(at for at, value in enumerate(values) if value not in known)


_AGENT: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
"""Names of built-in agents, of those that packages bring, and of programs that keep their own sessions."""


def _check_record_ids(packed: bytes) -> None:
    if packed[:1] == _WORDS:
        _word_decoder.decode(packed[1:])
    unpack_ids(packed, "")


_MOST_RECORDS: Final = Meta(max_length=100_000)
_record_decoder: Final = msgspec.msgpack.Decoder(Annotated[tuple[RecordRef, ...], _MOST_RECORDS])
_word_decoder: Final = msgspec.msgpack.Decoder(Annotated[tuple[str | None, ...], _MOST_RECORDS])
_WORDS: Final = b"W"

_MOST: Final = 1 << 56
"""Of a count: the sum of all tokens of a row fits a column."""

KEY: Final = Kind(Annotated[int, Meta(ge=0, le=(1 << 63) - 1)])
INTEGER: Final = Kind(Annotated[int, Meta(ge=-(1 << 63), le=(1 << 63) - 1)])
COUNT: Final = Kind(Annotated[int, Meta(ge=0, le=_MOST)])
"""Tokens, nano-dollars, milliseconds, bytes, and how many of something there are."""
NUMBER: Final = Kind(Annotated[int, Meta(ge=-_MOST, le=_MOST)])
POSITION: Final = Kind(Annotated[int, Meta(ge=-(1 << 61), le=1 << 61)])
"""Readers ask for what is before and after one."""
FLAG: Final = Kind(Annotated[int, Meta(ge=0, le=1)])
GUESS: Final = Kind(Annotated[int, Meta(ge=0, le=2)])
"""Whether something was inferred; 2 if from less than usual."""
TIME: Final = Kind(Annotated[int, Meta(ge=-62_135_596_800_000, le=253_402_300_799_999)])
"""Unix milliseconds of the years 1 to 9999."""
QUARTER_HOUR: Final = Kind(Annotated[int, Meta(ge=-69_039_552, le=281_558_111)])
"""The same, in quarter hours."""
TEXT: Final = Kind(Annotated[str, Meta(max_length=16 << 20)])
TITLE: Final = Kind(Annotated[str, Meta(max_length=10_000)])
WORD: Final = Kind(Annotated[str, Meta(max_length=100)])
ID: Final = Kind(TEXT.type, _wrong_id)
AGENT: Final = Kind(str, _wrong_agent)
BYTES: Final = Kind(bytes)
HASH: Final = Kind(Annotated[bytes, Meta(min_length=32, max_length=32)])
RECORDS: Final = Kind(bytes, _first(_record_decoder.decode))
RECORD_IDS: Final = Kind(bytes, _first(_check_record_ids))
EVENT: Final = Kind(bytes, _first(_check_event))
DATA: Final = Kind(bytes, _first(_check_data))
STRINGS: Final = _json(list[str])
TITLES: Final = _json(dict[str, str])
FACTS: Final = _json(dict[str, Any])
TOTALS: Final = _json(dict[str, SessionTotal])
USAGE: Final = _json(Usage)
ROLE: Final = Kind(Literal["assistant", "user", "developer", "system"])
FATE: Final = Kind(Literal["active", "compacted", "rewound", "retracted", "superseded", "sidecar"])
RELATIONSHIP: Final = Kind(Literal["subagent", "fork", "continuation"])
PART: Final = Kind(
    Literal["tool-call", "text", "reasoning", "file", "source-url", "source-document", "data", "unknown"]
)
RUN_ORIGIN: Final = Kind(Literal["command", "runtime", "import"])
RUN_STATUS: Final = Kind(Literal["pending", "running", "completed", "failed", "cancelled"])

_BUCKETS: Final = "input cache_read cache_write_5m cache_write_1h cache_write output reasoning tool_prompt"

_COLUMNS: Final[dict[str, tuple[tuple[Kind, str], ...]]] = {
    "owners": ((KEY, "key"), (TEXT, "user team task machine")),
    "projects": ((KEY, "key repository_key? merged_key?"), (ID, "path"), (TEXT, "name worktree?")),
    "models": ((KEY, "key"), (TEXT, "name")),
    "price_versions": ((KEY, "key"), (TEXT, "name")),
    "sources": (
        *((KEY, "key"), (AGENT, "agent"), (ID, "path session_id?"), (TEXT, "root problem?"), (WORD, "kind")),
        *((FLAG, "appendable"), (COUNT, "size generation cursor parser_version lines")),
        *((INTEGER, "mtime_ns device inode"), (BYTES, "head_hash? tail_hash?"), (TIME, "vanished_at? read_at?")),
    ),
    "sessions": (
        *((KEY, "key owner_key project_key? parent_key? folder_key?"), (AGENT, "agent"), (ID, "external_id")),
        *((FLAG, "native shares has_branches"), (TITLE, "title?"), (WORD, "title_source?")),
        (TEXT, "cwd? git_branch? git_commit? agent_version? active_leaf?"),
        *((TIME, "created_at? updated_at? active_since? active_until?"), (RELATIONSHIP, "relationship?")),
        *((INTEGER, "facts_position project_at? titled_at?"), (TITLES, "titles?"), (FACTS, "metadata?")),
        (COUNT, "turns messages prompts steps tool_calls failed_tool_calls reasoning_parts files events calls"),
        (COUNT, f"unknown_calls unpriced_calls {_BUCKETS} lower_bound cost reported_cost? active_ms?"),
        *((COUNT, "covered_calls session_totals"), (TOTALS, "totals?")),
    ),
    "messages": (
        *((KEY, "key model_key? price_key? billed_key?"), (AGENT, "agent"), (ID, "external_id"), (ROLE, "role")),
        *((WORD, "origin? stop_reason? exactness?"), (TIME, "created_at? completed_at?"), (COUNT, "revision")),
        *((FLAG, "has_tool_calls has_reasoning has_files"), (TITLE, "text_preview")),
        *((COUNT, " ".join([f"{name}?" for name in _BUCKETS.split()])), (COUNT, "cost? reported_cost? body_size")),
    ),
    "parts": (
        *(
            (KEY, "message_key"),
            (COUNT, "sequence text_size output_size duration_ms?"),
            (NUMBER, "exit_code?"),
            (PART, "type"),
        ),
        *((TEXT, "tool_name? tool_call_id? path? media_type? spill? command?"), (WORD, "tool_kind? tool_state?")),
        (TIME, "started_at? completed_at?"),
    ),
    "more_paths": ((TEXT, "path"), (KEY, "message_key"), (COUNT, "sequence")),
    "blobs": ((HASH, "sha256"), (COUNT, "size"), (TEXT, "media_type?"), (FLAG, "compressed"), (BYTES, "data")),
    "blob_uses": ((HASH, "sha256"), (KEY, "message_key")),
    "memberships": (
        *((KEY, "session_key message_key source_key?"), (POSITION, "position"), (COUNT, "generation turn? step?")),
        *((TEXT, "parent_id? parent_record? fate_cause?"), (FATE, "fate"), (FLAG, "copied"), (RECORDS, "records?")),
        (RECORD_IDS, "record_ids?"),
    ),
    "superseded": (
        *((KEY, "session_key message_key source_key?"), (POSITION, "position"), (COUNT, "generation turn? step?")),
        *((TEXT, "parent_id? fate_cause?"), (FATE, "fate?"), (RECORDS, "records?")),
    ),
    "events": (
        *((KEY, "session_key source_key?"), (POSITION, "position"), (ID, "external_id"), (WORD, "type")),
        *((TEXT, "kind? record_id? parent_id?"), (FLAG, "known"), (TIME, "created_at?")),
        *((COUNT, "generation length? start?"), (EVENT, "body?"), (DATA, "data?")),
    ),
    "usage": (
        *((QUARTER_HOUR, "quarter_hour"), (KEY, "model_key session_key"), (FLAG, "is_total")),
        (COUNT, f"calls unknown_calls unpriced_calls {_BUCKETS} lower_bound cost reported_cost covered_calls"),
        (COUNT, "session_totals"),
    ),
    "call_totals": (
        *((TEXT, "tool_name tool_kind command"), (KEY, "model_key session_key"), (QUARTER_HOUR, "quarter_hour")),
        (COUNT, "calls failed denied aborted open duration_ms unknown_durations"),
    ),
    "edit_totals": ((TEXT, "path"), (KEY, "session_key"), (QUARTER_HOUR, "quarter_hour"), (COUNT, "edits")),
    "streams": ((KEY, "session_key source_key"),),
    "links": (
        *((ID, "child_id parent_id"), (WORD, "kind"), (AGENT, "agent"), (GUESS, "inferred"), (FACTS, "metadata?")),
        (TEXT, "tool_call_id? message_id? found_call_id? found_message_id?"),
    ),
    "annotations": (
        *((ID, "session_id"), (TITLE, "title?"), (FLAG, "starred archived"), (TEXT, "note?"), (STRINGS, "tags? pins?")),
        (TIME, "changed_at"),
    ),
    "answers": ((ID, "message_id session_id log_id"), (TEXT, "run_id?")),
    "diagnostics": (
        *((KEY, "source_key"), (COUNT, "generation offset length line?"), (TEXT, "reason json_path?")),
        (WORD, "severity"),
    ),
    "generations": (
        *((KEY, "source_key"), (COUNT, "generation size shared_prefix mode?"), (INTEGER, "mtime_ns?")),
        (TIME, "started_at"),
    ),
    "spills": ((ID, "session_id"), (TEXT, "name media_type"), (KEY, "source_key"), (COUNT, "size")),
    "runs": (
        *((ID, "id session_id?"), (RUN_ORIGIN, "origin"), (RUN_STATUS, "status"), (STRINGS, "command?")),
        (TEXT, "agent? cwd? prompt? model? system_prompt? error? result? log_path? log_problem? boot_id?"),
        *((TEXT, "process_start?"), (TIME, "created_at started_at? ended_at?"), (USAGE, "usage?")),
        *((COUNT, "cost? tool_calls? pid?"), (NUMBER, "exit_code?"), (FACTS, "metadata?")),
    ),
}
"""Table -> kinds, with the columns that have them; `?` is behind one that may be NULL."""


def _kinds_of(table: str) -> dict[str, Kind]:
    found: dict[str, Kind] = {}
    for kind, names in _COLUMNS[table]:
        for name in names.split():
            found[name.removesuffix("?")] = Kind(kind.type | None, kind.wrong) if name.endswith("?") else kind
    return found


KINDS: Final[dict[str, dict[str, Kind]]] = {table: _kinds_of(table) for table in _COLUMNS}
"""Table -> column -> what it may have."""
