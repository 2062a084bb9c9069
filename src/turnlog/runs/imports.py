"""Runs that other programs recorded, as JSON: each record becomes a run and a session.

A file holds one record a line, or a list. The fields are those of Smithers' `agents` table, in its own spelling or in
camel case; other fields go into the run's metadata. Times are ISO 8601, SQLite's text (UTC, as its
`datetime('now')`), or Unix seconds or milliseconds. If a record names a log that can be read, its session is the
history. Otherwise prompt and result become a native session of two messages, marked as made from such a record
(R-S36). Importing a file twice changes nothing.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

import msgspec

from turnlog.errors import ConflictError, NotFoundError, SourceError, TurnlogError
from turnlog.model import Message, Origin, TextPart, Usage
from turnlog.model.codec import repair_text
from turnlog.model.lenient_json import parse_json
from turnlog.model.message import MessageError
from turnlog.pricing import price_nanos, price_version
from turnlog.runs.lifecycle import to_milliseconds
from turnlog.runs.sessions import read_log
from turnlog.store import open_store
from turnlog.store.choices import RUN_STATUSES, RunStatus
from turnlog.store.values import CHAT_AGENT, Run
from turnlog.store.writing.native import NativeSessions, open_native
from turnlog.sync.importing import import_file
from turnlog.sync.summary import SourceProblem
from turnlog.sync.workers import indexing

_TEXTS: Final = ("id", "prompt", "result", "model", "system_prompt", "status", "error", "log_path", "agent", "cwd")
_NUMBERS: Final = ("duration_ms", "tokens_input", "tokens_output", "tool_calls_count")
_TIMES: Final = ("created_at", "started_at", "completed_at")
_FIELDS: Final = frozenset({*_TEXTS, *_NUMBERS, *_TIMES})
"""Fields that the run itself has."""

_WRAPPERS: Final = ("agents", "executions", "runs")
"""Keys under which one object may hold a list of records."""

_MAX_SECONDS: Final = 100_000_000_000
"""A larger time is in milliseconds (in seconds it would be in the year 5138)."""

_MAX_COUNT: Final = 1 << 53


class ImportedRun(NamedTuple):
    """The run of a record, or why it has none."""

    place: str
    run: Run | None
    problem: str | None = None
    is_dated: bool = False
    """Whether it holds any time. Otherwise the run counts as created when it is imported."""


def iter_records(data: bytes) -> Iterator[ImportedRun]:
    """The records of a file in order; one that cannot be read has a `problem`."""
    for place, value in _iter_values(data):
        if isinstance(value, _NotJson):
            yield ImportedRun(place, None, value.reason)
        elif not isinstance(value, dict):
            yield ImportedRun(place, None, "no JSON object")
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


def _read(place: str, record: dict[str, Any]) -> ImportedRun:
    fields = {_snake(name): _clean(value) for name, value in record.items()}
    prompt = fields.get("prompt")
    if not isinstance(prompt, str):
        return ImportedRun(place, None, "it has no prompt")
    run_id = fields.get("id")
    if isinstance(run_id, int):
        run_id = str(run_id)
    if not isinstance(run_id, str) or not run_id:
        # A hash of the record: importing it again finds the same run.
        run_id = hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()[:32]
    dated = any(_moment(fields.get(name)) for name in _TIMES)
    return ImportedRun(place, _run_of(run_id, prompt, fields), is_dated=dated)


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
        created_at=created_at or to_milliseconds(datetime.now(UTC)),
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
    """Status and error. A record of a run that was going on will get no update: that run has failed."""
    status, error = fields.get("status"), _text(fields, "error")
    if status in ("pending", "running"):
        return "failed", error or f"it was still {status} when its record was written"
    for known in RUN_STATUSES:
        if status == known:
            return known, error
    return ("failed", error) if error else ("completed", None)


def _text(fields: dict[str, Any], name: str) -> str | None:
    value = fields.get(name)
    return value if isinstance(value, str) and value else None


def _usage(fields: dict[str, Any]) -> Usage | None:
    read, written = _count(fields.get("tokens_input")), _count(fields.get("tokens_output"))
    return None if read is None and written is None else Usage(input=read, output=written)


def _count(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value < _MAX_COUNT else None


def _moment(value: Any) -> datetime | None:
    """A time; None for a value that is not a time."""
    try:
        if isinstance(value, str):
            found = datetime.fromisoformat(value.strip())
            return to_milliseconds(found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC))
        if type(value) in (int, float):
            seconds = Decimal(value) / (1000 if abs(value) > _MAX_SECONDS else 1)
            return to_milliseconds(datetime.fromtimestamp(0, UTC) + timedelta(seconds=float(seconds)))
    except (ValueError, OverflowError, ArithmeticError):
        pass
    return None


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", repair_text(name)).lower()


def _clean(value: Any) -> Any:
    """The value with every text repaired, so that it can be encoded as UTF-8."""
    if isinstance(value, str):
        return repair_text(value)
    if isinstance(value, list):
        return [_clean(item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {repair_text(str(name)): _clean(item) for name, item in cast("dict[Any, Any]", value).items()}
    return value


SYNTHESIZED: Final = {CHAT_AGENT: {"made_from": "prompt and result"}}
"""Metadata of a session of prompt and result, and of both messages."""

_PLAIN_ID: Final = re.compile(r"[\w.-]{1,100}", re.ASCII)


class RunImport(msgspec.Struct, kw_only=True):
    """How the import of a file went."""

    runs: int = 0
    new_runs: int = 0
    linked: int = 0
    """Runs whose log was read."""
    histories: int = 0
    """Runs whose prompt and result became their history."""
    problems: list[SourceProblem] = msgspec.field(default_factory=list[SourceProblem])


def import_runs(store_path: Path, data: bytes) -> RunImport:
    """Read records from JSON or JSON lines into the store, which is created if it does not exist.

    A record that cannot be read is a problem in the result and does not affect the others.

    Raises:
        StoreError: The store cannot be written.
    """
    summary = RunImport()
    native = open_native(store_path, price_nanos, price_version())
    try:
        with indexing(store_path, len(data), lambda pending: None):
            for record in iter_records(data):
                if record.run is None:
                    summary.problems.append(SourceProblem(record.place, record.problem or ""))
                    continue
                try:
                    _import_run(store_path, native, record.run, record.is_dated, summary)
                except ConflictError as error:
                    summary.problems.append(SourceProblem(record.place, str(error)))
    finally:
        native.close()
    return summary


def _import_run(store_path: Path, native: NativeSessions, run: Run, is_dated: bool, summary: RunImport) -> None:
    known = _known(store_path, run)
    if known is not None and not is_dated:
        run = msgspec.structs.replace(run, created_at=known.created_at)
    run = _with_log(store_path, run)
    if run.session_id is None:
        session_id = _save_history(native, run, run.created_at if is_dated else None)
        run = msgspec.structs.replace(run, session_id=session_id)
        summary.histories += 1
    else:
        summary.linked += 1
    with open_store(store_path, create=True) as store:
        facts = store.run_facts(run.session_id or "", None, None)
        store.save_run(
            msgspec.structs.replace(
                run,
                model=run.model or facts.model,
                usage=run.usage or facts.usage,
                cost=facts.cost,
                tool_calls=facts.tool_calls if run.tool_calls is None else run.tool_calls,
            )
        )
    summary.runs += 1
    summary.new_runs += known is None


def _known(store_path: Path, run: Run) -> Run | None:
    """The run as it was imported before. Raises ConflictError if a run of another origin has its id."""
    with open_store(store_path, create=True) as store:
        try:
            known = store.run(run.id)
        except NotFoundError:
            return None
    if known.id != run.id:
        return None
    if known.origin != run.origin:
        raise ConflictError(f"run {run.id} is no record of another program")
    return known


# -- a log


def _with_log(store_path: Path, run: Run) -> Run:
    """The run with the session of its log, or with the reason why it has none."""
    problem = None
    session_id = None
    if run.log_path is not None:
        try:
            session_id = _read_log(store_path, Path(run.log_path))
        except (TurnlogError, OSError) as error:
            problem = str(error)
    return msgspec.structs.replace(
        run, session_id=session_id, agent=run.agent or _agent_of(session_id), log_problem=problem
    )


def _read_log(store_path: Path, path: Path) -> str:
    if not path.is_file():
        raise SourceError("there is no such file", path=path)
    session_id = read_log(path).session_id
    if session_id is None:
        raise SourceError("it is no log of an agent that is read here", path=path)
    import_file(store_path, path)
    return session_id


def _agent_of(session_id: str | None) -> str | None:
    return None if session_id is None else session_id.partition(":")[0]


# -- a history of two messages


def _save_history(native: NativeSessions, run: Run, created_at: datetime | None) -> str:
    name = run.id if _PLAIN_ID.fullmatch(run.id) else hashlib.sha256(run.id.encode()).hexdigest()[:32]
    session_id = f"{CHAT_AGENT}:run-{name}"
    native.save(
        session_id, _history_of(run, f"run-{name}", run.started_at or created_at), metadata=SYNTHESIZED[CHAT_AGENT]
    )
    return session_id


def _history_of(run: Run, name: str, asked_at: datetime | None) -> list[Message]:
    """The prompt as the user's message, the result or error as the model's; ids begin with `name`."""
    prompt = Message(
        id=f"{name}.prompt",
        role="user",
        origin=Origin.PROMPT,
        parts=(TextPart(id=f"{name}.prompt.0", text=run.prompt or ""),),
        created_at=asked_at,
        updated_at=run.ended_at or asked_at,
        metadata=SYNTHESIZED,
    )
    error = MessageError(text=run.error) if run.error else None
    if run.result is None and error is None:
        return [prompt]
    result = Message(
        id=f"{name}.result",
        role="assistant",
        parts=(TextPart(id=f"{name}.result.0", text=run.result),) if run.result is not None else (),
        created_at=asked_at,
        completed_at=run.ended_at,
        updated_at=run.ended_at or asked_at,
        model=run.model,
        usage=run.usage,
        error=error,
        stop_reason="error" if error else "stop",
        metadata=SYNTHESIZED,
    )
    return [prompt, result]
