"""Records that other programs kept of their runs, as JSON: one line or one item of a list each.

The fields are those of Smithers' `agents` table, in its own spelling or in camel case; what has no field of a run goes
into its metadata. Times are ISO 8601, SQLite's text (UTC, as its `datetime('now')`), or Unix seconds or milliseconds.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final, NamedTuple, cast, get_args

from turnlog.model import Usage
from turnlog.model.codec import parse_json, repair_text
from turnlog.store.runs import Run, RunStatus

_TEXTS: Final = ("id", "prompt", "result", "model", "system_prompt", "status", "error", "log_path", "agent", "cwd")
_NUMBERS: Final = ("duration_ms", "tokens_input", "tokens_output", "tool_calls_count")
_TIMES: Final = ("created_at", "started_at", "completed_at")
_FIELDS: Final = frozenset({*_TEXTS, *_NUMBERS, *_TIMES})
"""What becomes a field of the run."""

_WRAPPERS: Final = ("agents", "executions", "runs")
"""Names under which a list of records may stand in one object."""

_MOST_SECONDS: Final = 100_000_000_000
"""A time that is larger is in milliseconds (as seconds it would be in the year 5138)."""

_MOST_COUNT: Final = 1 << 53


class Record(NamedTuple):
    """A record, or why there is none."""

    place: str
    run: Run | None
    problem: str | None = None
    is_dated: bool = False
    """Whether it tells any time. Else the run was made now, as far as anybody knows."""


def iter_records(data: bytes) -> Iterator[Record]:
    """The runs that a file tells of, in its order; whatever is none is told of with its place."""
    for place, value in _iter_values(data):
        if isinstance(value, _NotJson):
            yield Record(place, None, value.reason)
        elif not isinstance(value, dict):
            yield Record(place, None, "no JSON object")
        else:
            yield _read(place, cast("dict[str, Any]", value))


class _NotJson(NamedTuple):
    reason: str


def _iter_values(data: bytes) -> Iterator[tuple[str, Any]]:
    text = data.decode("utf-8-sig", errors="replace")
    whole = _parse(text)
    if isinstance(whole, list):
        yield from _numbered(cast("list[Any]", whole), "item")
    elif isinstance(whole, dict):
        record = cast("dict[str, Any]", whole)
        inside = next((record[name] for name in _WRAPPERS if isinstance(record.get(name), list)), None)
        yield from _numbered([whole] if inside is None or "prompt" in record else inside, "item")
    else:
        for number, line in enumerate(text.splitlines(), 1):
            if line.strip():
                yield f"line {number}", _parse(line)


def _numbered(values: list[Any], name: str) -> Iterator[tuple[str, Any]]:
    yield from ((f"{name} {number}", value) for number, value in enumerate(values, 1))


def _parse(text: str) -> Any:
    try:
        return parse_json(text)
    except (ValueError, RecursionError) as error:
        return _NotJson(f"not JSON: {error}")


def _read(place: str, record: dict[str, Any]) -> Record:
    fields = {_snake(name): _clean(value) for name, value in record.items()}
    prompt = fields.get("prompt")
    if not isinstance(prompt, str):
        return Record(place, None, "it has no prompt")
    run_id = fields.get("id")
    if isinstance(run_id, int):
        run_id = str(run_id)
    if not isinstance(run_id, str) or not run_id:
        # The same record gives the same id.
        run_id = hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()[:32]
    dated = any(_moment(fields.get(name)) for name in _TIMES)
    return Record(place, _run_of(run_id, prompt, fields), is_dated=dated)


def _run_of(run_id: str, prompt: str, fields: dict[str, Any]) -> Run:
    started_at, ended_at = _moment(fields.get("started_at")), _moment(fields.get("completed_at"))
    created_at = _moment(fields.get("created_at")) or started_at or ended_at
    took = _count(fields.get("duration_ms"))
    if ended_at is None and started_at is not None and took is not None:
        ended_at = started_at + timedelta(milliseconds=took)
    status, error = _status(fields)
    return Run(
        id=run_id,
        origin="import",
        status=status,
        created_at=created_at or _milliseconds(datetime.now(UTC)),
        agent=_text(fields, "agent"),
        cwd=_text(fields, "cwd"),
        prompt=prompt,
        model=_text(fields, "model"),
        system_prompt=_text(fields, "system_prompt"),
        started_at=started_at,
        ended_at=ended_at,
        error=error,
        result=_text(fields, "result"),
        log_path=_text(fields, "log_path"),
        usage=_usage(fields),
        tool_calls=_count(fields.get("tool_calls_count")),
        metadata={name: value for name, value in fields.items() if name not in _FIELDS and value is not None},
    )


def _status(fields: dict[str, Any]) -> tuple[RunStatus, str | None]:
    """How it ended, and why. A run that had not ended when it was told of will not be heard of again."""
    told, error = fields.get("status"), _text(fields, "error")
    if told in ("pending", "running"):
        return "failed", error or f"it was still {told} when its record was written"
    for status in get_args(RunStatus):
        if told == status:
            return status, error
    return ("failed", error) if error else ("completed", None)


def _text(fields: dict[str, Any], name: str) -> str | None:
    value = fields.get(name)
    return value if isinstance(value, str) and value else None


def _usage(fields: dict[str, Any]) -> Usage | None:
    read, written = _count(fields.get("tokens_input")), _count(fields.get("tokens_output"))
    return None if read is None and written is None else Usage(input=read, output=written)


def _count(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value < _MOST_COUNT else None


def _moment(value: Any) -> datetime | None:
    """A time, or None for what is none."""
    try:
        if isinstance(value, str):
            found = datetime.fromisoformat(value.strip())
            return _milliseconds(found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC))
        if type(value) in (int, float):
            seconds = Decimal(value) / (1000 if abs(value) > _MOST_SECONDS else 1)
            return _milliseconds(datetime.fromtimestamp(0, UTC) + timedelta(seconds=float(seconds)))
    except (ValueError, OverflowError, ArithmeticError):
        pass
    return None


def _milliseconds(moment: datetime) -> datetime:
    """As exact as the store keeps it."""
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", repair_text(name)).lower()


def _clean(value: Any) -> Any:
    """The value with text that has a UTF-8 form."""
    if isinstance(value, str):
        return repair_text(value)
    if isinstance(value, list):
        return [_clean(item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {repair_text(str(name)): _clean(item) for name, item in cast("dict[Any, Any]", value).items()}
    return value
