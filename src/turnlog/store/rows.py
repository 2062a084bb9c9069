"""Messages as columns, and sums of columns as values of the model: pure functions, without a database.

The writers store what they return, and take what an older reading of a message added out of the counts by the same
functions. A column says which file a call touches: only calls whose kind is about files are looked at, since a command
that is run may touch anything.
"""

from __future__ import annotations

import math
import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple, cast

import msgspec
from msgspec import UNSET

from turnlog.model import (
    Cost,
    FilePart,
    Message,
    Origin,
    ReasoningPart,
    SessionTotal,
    TextPart,
    ToolCallPart,
    ToolState,
    Usage,
    UsageTotal,
)
from turnlog.model.message import command_line, is_counted_call
from turnlog.model.usage import BUCKETS
from turnlog.store.commands import call_head
from turnlog.store.dollars import NANO, counted, exactness_of

PREVIEW_LENGTH = 200
"""Characters of `messages.text_preview` (R-S25)."""

MESSAGE_COUNTS = ("messages", "prompts", "steps", "tool_calls", "failed_tool_calls", "reasoning_parts", "files")
"""What a membership adds to its session, billed or not."""

USAGE_COUNTS = (
    "calls",
    "unknown_calls",
    "unpriced_calls",
    *BUCKETS,
    "lower_bound",
    "cost",
    "covered_calls",
    "session_totals",
)
"""What a message adds to the billed session and to its quarter hour."""

TURN_ORIGINS = frozenset({Origin.PROMPT, Origin.COMMAND, Origin.SHELL, Origin.SUBAGENT_PROMPT})

_TYPED = frozenset({Origin.COMMAND, Origin.SHELL})
"""Origins of text that the user typed and the agent wrapped in tags; previews show it as typed."""

_MOST = 1 << 46
"""Larger counts are ignored, so that sums of a hundred thousand fit a column: 7e13 tokens, 70,000 dollars."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


MESSAGE_COLUMNS = (
    "key",
    "agent",
    "external_id",
    "role",
    "origin",
    "model_key",
    "created_at",
    "completed_at",
    "stop_reason",
    "revision",
    "changed_seq",
    "has_tool_calls",
    "has_reasoning",
    "has_files",
    "text_preview",
    *BUCKETS,
    "exactness",
    "cost",
    "reported_cost",
    "price_key",
    "billed_key",
)
"""All columns of `messages` except the place of the body, `frames.PLACE_COLUMNS`."""

PLAIN_COLUMNS = ("sequence", "type", "media_type", "text_size")
"""The columns of `parts`, after the message's key, for a part that is not a call: sqlite3 binds NULL more slowly than a
number."""

CALL_COLUMNS = (
    "sequence",
    "type",
    "tool_name",
    "tool_kind",
    "tool_call_id",
    "tool_state",
    "exit_code",
    "path",
    "spill",
    "text_size",
    "output_size",
    "started_at",
    "completed_at",
    "duration_ms",
    "command",
)
"""The columns of `parts`, after the message's key, for a call."""


_INPUT_SIZE = CALL_COLUMNS.index("text_size")


class MessageFacts(NamedTuple):
    """What the parts of a message say about it as a whole."""

    plain: list[tuple[Any, ...]]
    """`PLAIN_COLUMNS` of each part that is not a call."""
    calls: list[tuple[Any, ...]]
    """`CALL_COLUMNS` of each call."""
    more_paths: list[tuple[str, int]]
    """Files that calls touched in addition to the first file of each: path, part index."""
    counts: tuple[int | bool, ...]
    preview: str
    has_tool_calls: bool
    has_reasoning: bool
    has_files: bool
    text_size: int
    """Characters of all parts."""
    has_structured: bool
    """A result has the agent's own JSON, which stored bodies do not contain."""


def milliseconds(moment: datetime | None) -> int | None:
    """A time as the store keeps it: Unix milliseconds."""
    return None if moment is None else (moment - _EPOCH) // _MILLISECOND


def moment(value: int | None) -> datetime | None:
    """A stored time as a datetime in UTC."""
    if value is None:
        return None
    try:
        return _EPOCH + value * _MILLISECOND
    except OverflowError:  # no calendar has it: as good as unknown
        return None


def nanos(amount: Decimal | float | None) -> int | None:
    """US dollars as nano-dollars; None if it is not an amount of money."""
    if amount is None or not math.isfinite(amount) or amount < 0 or amount * NANO > _MOST:
        return None
    return round(amount * NANO)


def believable(count: int | None) -> int | None:
    """The count; None if it is not plausible."""
    return count if count is not None and 0 <= count <= _MOST else None


def _number(number: int) -> int | None:
    """Any number that fits a column, below zero too; None for others."""
    return number if abs(number) <= _MOST else None


def quarter_hour_of(created_at: int | None) -> int:
    """The quarter hour of a stored time, in quarter hours since 1970-01-01 UTC; 0 for an unknown time."""
    # Every zone is quarter hours away from UTC, so these add up to the days of each.
    return 0 if created_at is None else created_at // 900_000


def message_facts(message: Message) -> MessageFacts:
    """Part rows, counts and flags of a message. If its contents are in blobs, only counts and flags."""
    plain: list[tuple[Any, ...]] = []
    calls: list[tuple[Any, ...]] = []
    more: list[tuple[str, int]] = []
    texts: list[str] = []
    own: list[str] = []
    failed = reasoning = files = size = 0
    has_structured = False
    for sequence, part in enumerate(message.parts):
        if isinstance(part, ToolCallPart):
            failed += part.state is ToolState.OUTPUT_ERROR
            for result in part.results:
                has_structured = has_structured or result.structured is not UNSET
                for block in result.content:
                    files += isinstance(block, FilePart)
            paths = touched_paths(part)
            more += [(path, sequence) for path in paths[1:]]
            call = _call_row(sequence, part, paths[0] if paths else None)
            size += call[_INPUT_SIZE] + call[_INPUT_SIZE + 1]
            calls.append(call)
            continue
        media_type, length = None, 0
        if isinstance(part, TextPart):
            length = len(part.text)
            texts.append(part.text)
            # Only metadata can say that a part is synthetic, and most parts have none.
            if not part.metadata or not part.is_synthetic:
                own.append(part.text)
        elif isinstance(part, ReasoningPart):
            length = len(part.text)
            reasoning += 1
        elif isinstance(part, FilePart):
            media_type, length = part.media_type, len(part.data or b"")
            files += 1
        size += length
        plain.append((sequence, part.type, media_type, length))
    counts = (1, _is_prompt(message), is_counted_call(message), len(calls), failed, reasoning, files)
    # Context that the agent adds to a prompt appears in previews only if there is nothing else.
    shown = [command_line(message) or ""] if message.origin in _TYPED else own
    preview = _preview(shown) or _preview(texts)
    return MessageFacts(
        plain, calls, more, counts, preview, bool(calls), reasoning > 0, files > 0, size, has_structured
    )


def usage_counts(message: Message, cost: int | None) -> tuple[int, ...] | None:
    """What the message adds to usage totals, in the order of `USAGE_COUNTS`; None if it is not a model call."""
    if not is_counted_call(message):
        return None
    return _usage_counts(message_buckets(message), cost)


def _usage_counts(buckets: Sequence[Any], cost: int | None) -> tuple[int, ...]:
    *counts, exactness = buckets
    # As zeros, a call without any count would pass for one that cost nothing.
    if all([count is None for count in counts]):
        return (1, 1, 0, *_ZERO_BUCKETS, 0, cost or 0, 0, 0)
    return (1, 0, cost is None, *[count or 0 for count in counts], exactness == "lower_bound", cost or 0, 0, 0)


class UsageAdded(NamedTuple):
    """What a model call adds to usage totals."""

    quarter_hour: int
    counts: tuple[int | bool, ...]
    """`USAGE_COUNTS`, and the cost that the log reports."""


def usage_added(
    message: Message, cost: int | None, created_at: int | None, buckets: Sequence[Any]
) -> UsageAdded | None:
    """What the message adds to usage totals; None if it is not a model call.

    Args:
        message: The message.
        cost: In nano-dollars.
        created_at: When it was created, in Unix milliseconds.
        buckets: Its `message_buckets`.
    """
    if not is_counted_call(message):
        return None
    reported = nanos(message.cost.amount) or 0 if message.cost is not None else 0
    return UsageAdded(quarter_hour_of(created_at), (*_usage_counts(buckets, cost), reported))


class MessageColumns(NamedTuple):
    """The columns of a message's row that follow from the message alone, in the order of `MESSAGE_COLUMNS`."""

    who: tuple[Any, ...]
    """Role and origin; the model comes next."""
    when: tuple[Any, ...]
    """Both times and the stop reason; revision and number of the change come next."""
    what: tuple[Any, ...]
    """From `has_tool_calls` to `reported_cost`."""

    @property
    def created_at(self) -> int | None:
        """Unix milliseconds."""
        return self.when[0]


def message_columns(message: Message, facts: MessageFacts, cost: int | None, buckets: Sequence[Any]) -> MessageColumns:
    """The columns of a message's row that follow from the message alone.

    Args:
        message: The message.
        facts: Its `message_facts`.
        cost: In nano-dollars.
        buckets: Its `message_buckets`.
    """
    return MessageColumns(
        (message.role, message.origin),
        (milliseconds(message.created_at), milliseconds(message.completed_at), message.stop_reason),
        (
            facts.has_tool_calls,
            facts.has_reasoning,
            facts.has_files,
            facts.preview,
            *buckets,
            cost,
            nanos(message.cost.amount) if message.cost else None,
        ),
    )


def total_counts(total: SessionTotal, cost: int | None) -> tuple[int, ...]:
    """What a total of a session adds to usage totals, in the order of `USAGE_COUNTS`: its tokens, and no call."""
    buckets = [believable(count) or 0 for count in total.usage.buckets()]
    return (0, 0, cost is None, *buckets, total.usage.exactness == "lower_bound", cost or 0, 0, 1)


_ZERO_BUCKETS = (0,) * len(BUCKETS)

_NO_BUCKETS = (*(None,) * len(BUCKETS), None)


def message_buckets(message: Message) -> tuple[Any, ...]:
    """The usage columns of a message row: the buckets, and how exact they are in a model call that has any."""
    usage = message.usage
    if usage is None:
        return _NO_BUCKETS
    counts = [count if count is None or 0 <= count <= _MOST else None for count in usage.buckets()]
    is_counted = is_counted_call(message) and any([count is not None for count in counts])
    return (*counts, usage.exactness if is_counted else None)


def is_estimated(message: Message) -> bool:
    """Whether it is a model call whose tokens are estimated."""
    return message_buckets(message)[-1] == "estimated"


def _is_prompt(message: Message) -> bool:
    return message.origin in TURN_ORIGINS


def _preview(texts: Iterable[str]) -> str:
    preview = ""
    for text in texts:
        preview = f"{preview}\n{text[:PREVIEW_LENGTH]}" if preview else text[:PREVIEW_LENGTH]
        if len(preview) >= PREVIEW_LENGTH:
            return preview[:PREVIEW_LENGTH]
    return preview


def _call_row(sequence: int, part: ToolCallPart, path: str | None) -> tuple[Any, ...]:
    started = milliseconds(part.started_at)
    completed = duration = exit_code = spill = None
    output_size = 0
    # A call in the background has a result when it starts and one when it ends: what the later one says counts.
    for result in part.results:
        completed = milliseconds(result.completed_at) or completed
        exit_code = exit_code if result.exit_code is None else _number(result.exit_code)
        spill = result.spilled_to or spill
        duration = duration if result.duration_ms is None else believable(result.duration_ms)
        for block in result.content:
            if isinstance(block, TextPart):
                output_size += len(block.text)
    if duration is None and started is not None and completed is not None:
        duration = max(0, completed - started)
    return (
        sequence,
        "tool-call",
        part.tool_name,
        part.kind,
        part.tool_call_id,
        part.state,
        exit_code,
        path,
        spill,
        _input_size(part),
        output_size,
        started,
        completed,
        duration,
        call_head(part),
    )


def _input_size(part: ToolCallPart) -> int:
    if part.input is not UNSET:
        return len(memoryview(part.input))
    return len(part.input_text or "")


_OFTEN_UNTOLD = frozenset({"cache_write", "reasoning", "tool_prompt"})
"""Buckets that many logs include in others: a sum of zero means nothing there."""


def dollars(nanos: int, *, reported: bool = False, price_version: str | None = None) -> Cost:
    """Nano-dollars as a cost."""
    return Cost(amount=Decimal(nanos) / NANO, kind="reported" if reported else "priced", price_version=price_version)


def priced(sums: Mapping[str, int]) -> Cost | None:
    """The cost of several calls, given their sums by `USAGE_COUNTS`; None if none of them could be priced."""
    return dollars(sums["cost"]) if counted(sums) > sums["unpriced_calls"] else None


def usage_total(sums: Mapping[str, int], estimated_calls: int) -> UsageTotal:
    """The usage of several calls, given their sums by `USAGE_COUNTS`, and how many of them are estimated."""
    calls, unknown, covered = sums["calls"], sums["unknown_calls"], sums["covered_calls"]
    if not counted(sums):
        return UsageTotal(calls=calls, unknown_calls=unknown, covered_calls=covered)
    known: dict[str, Any] = {
        name: None if count == 0 and name in _OFTEN_UNTOLD else count for name in BUCKETS for count in [sums[name]]
    }
    exactness = exactness_of(estimated_calls, sums["lower_bound"], sums["session_totals"])
    usage = Usage(**known, exactness=exactness)
    return UsageTotal(usage=usage, calls=calls, unknown_calls=unknown, covered_calls=covered)


def decode_totals(totals: str | None) -> dict[str, SessionTotal]:
    """The column `sessions.totals`: id -> total."""
    return msgspec.json.decode(totals, type=dict[str, SessionTotal]) if totals else {}


def counted_totals(totals: Mapping[str, SessionTotal]) -> tuple[SessionTotal, ...]:
    """The totals that have any tokens. One of none is left when every call has its own at last."""
    return tuple(total for total in totals.values() if total.usage.total != 0)


_FILE_KINDS = frozenset({"read", "edit", "delete", "move"})

CHANGING_KINDS = ("edit", "delete", "move")
"""Kinds of calls that change a file."""

UNDONE = (ToolState.OUTPUT_ERROR, ToolState.OUTPUT_DENIED, ToolState.ABORTED)
"""States of a call that changed nothing, whatever it was for."""

_PATCHED = re.compile(r"^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.+?)\s*$", re.MULTILINE)
"""The lines with file names in a patch of the format that OpenAI's models write."""

_ABSOLUTE = re.compile(r"~|[A-Za-z]:[\\/]|\\\\")
"""The beginning of a path that is absolute on another system or in a home folder, so no folder changes its meaning."""

_DETOUR = re.compile(r"/\.|//|/$")
"""Parts of a path that do not change where it leads."""


class _Named(msgspec.Struct):
    """The fields of a tool's input that may contain file names; all others are skipped."""

    file_path: Any = None
    path: Any = None
    notebook_path: Any = None
    filePath: Any = None
    filename: Any = None
    destination: Any = None
    paths: Any = None
    changes: Any = None
    patch: Any = None
    patchText: Any = None
    input: Any = None


_decoder = msgspec.json.Decoder(_Named)


def touched_paths(part: ToolCallPart) -> tuple[str, ...]:
    """The distinct files in a call's input, as written there; empty if the tool is not about files."""
    if part.kind not in _FILE_KINDS:
        return ()
    if part.input is msgspec.UNSET:
        found = _PATCHED.findall(part.input_text or "")
    else:
        try:
            found = _named(_decoder.decode(part.input))
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return ()
    return tuple(dict.fromkeys([path for path in found if isinstance(path, str) and path]))


def _named(fields: _Named) -> list[Any]:
    found: list[Any] = []
    for path in (fields.file_path, fields.path, fields.notebook_path, fields.filePath, fields.filename):
        if isinstance(path, str) and path:
            found.append(path)
            break
    found.append(fields.destination)
    for paths in (fields.paths, fields.changes):
        if paths is not None:
            found += _several(paths)
    for patch in (fields.patch, fields.patchText, fields.input):
        found += _PATCHED.findall(patch) if isinstance(patch, str) else ()
    return found


def _several(value: Any) -> list[Any]:
    """Paths in a list, in objects of a list, or as the keys of an object."""
    match value:
        case dict():
            return list(cast("dict[Any, Any]", value))
        case list():
            items = cast("list[Any]", value)
            return [cast("dict[str, Any]", item).get("path") if isinstance(item, dict) else item for item in items]
        case _:
            return []


def is_absolute(path: str) -> bool:
    """Whether a path is the same file in every session."""
    return path.startswith("/") or _ABSOLUTE.match(path) is not None


def resolve_path(path: str, folder: str | None) -> str:
    """The absolute path: a relative one is resolved with the session's folder."""
    if path.startswith("/"):
        return posixpath.normpath(path) if _DETOUR.search(path) else path
    if _ABSOLUTE.match(path):
        return path
    return posixpath.normpath(posixpath.join(folder, path)) if folder else posixpath.normpath(path)


def spellings(path: str) -> list[str]:
    """The forms in which sessions may write this absolute path: itself, or relative to each folder above it."""
    pieces = [piece for piece in path.split("/") if piece]
    endings = ["/".join(pieces[start:]) for start in range(len(pieces))]
    return [path, *endings, *(f"./{ending}" for ending in endings)]
