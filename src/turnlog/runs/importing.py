"""Bringing in runs that another program kept as records: each becomes a row, and a history.

Where the record names a log that can be read, its session is the history. Else the prompt and the result become a
native session of two messages, marked as made from such a record (R-S36). Doing it again changes nothing.
"""

from __future__ import annotations

import hashlib
import re
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec

from turnlog.errors import ConflictError, NotFoundError, SourceError, TurnlogError
from turnlog.model import Message, Origin, TextPart
from turnlog.model.message import MessageError
from turnlog.pricing import price_nanos, price_version
from turnlog.runs.output import read_log
from turnlog.runs.records import iter_records
from turnlog.store.connection import connect, write_transaction
from turnlog.store.native import AGENT, NativeSessions
from turnlog.store.run_facts import load_run_facts
from turnlog.store.runs import Run, load_run, save_run
from turnlog.sync.importing import import_file
from turnlog.sync.summary import Problem
from turnlog.sync.workers import indexing

MARK: Final = {AGENT: {"made_from": "prompt and result"}}
"""In the metadata of a session of two messages, and of both of them."""

_PLAIN_ID: Final = re.compile(r"[\w.-]{1,100}", re.ASCII)


class RunImport(msgspec.Struct, kw_only=True):
    """What became of a file of records."""

    runs: int = 0
    new_runs: int = 0
    linked: int = 0
    """Runs whose log was read."""
    histories: int = 0
    """Runs of which the prompt and the result are the history."""
    problems: list[Problem] = msgspec.field(default_factory=list[Problem])


def import_runs(store_path: Path, data: bytes) -> RunImport:
    """Read records from JSON or JSON lines into the store, which is made when it is not there.

    A record that cannot be read is a problem in the result and does not hold up the others. Raises StoreError when
    the store cannot be written.
    """
    summary = RunImport()
    native = NativeSessions(store_path, price_nanos, price_version())
    try:
        with indexing(store_path, len(data), lambda pending: None):
            for record in iter_records(data):
                if record.run is None:
                    summary.problems.append(Problem(record.place, record.problem or ""))
                    continue
                try:
                    _import_run(store_path, native, record.run, record.is_dated, summary)
                except ConflictError as error:
                    summary.problems.append(Problem(record.place, str(error)))
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
    with closing(connect(store_path)) as connection, write_transaction(connection):
        facts = load_run_facts(connection, run.session_id or "", None, None)
        save_run(
            connection,
            msgspec.structs.replace(
                run,
                model=run.model or facts.model,
                usage=run.usage or facts.usage,
                cost=facts.cost,
                tool_calls=facts.tool_calls if run.tool_calls is None else run.tool_calls,
            ),
        )
    summary.runs += 1
    summary.new_runs += known is None


def _known(store_path: Path, run: Run) -> Run | None:
    """The run as it was imported before; raise ConflictError when another kind of run has its id."""
    with closing(connect(store_path)) as connection:
        try:
            known = load_run(connection, run.id)
        except NotFoundError:
            return None
    if known.id != run.id:
        return None
    if known.origin != run.origin:
        raise ConflictError(f"run {run.id} is no record of another program")
    return known


# -- a log


def _with_log(store_path: Path, run: Run) -> Run:
    """The run with the session that its log tells of, or with the reason why there is none."""
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
    session_id = f"{AGENT}:run-{name}"
    native.save(session_id, _history_of(run, f"run-{name}", run.started_at or created_at), metadata=MARK[AGENT])
    return session_id


def _history_of(run: Run, name: str, asked_at: datetime | None) -> list[Message]:
    """The prompt as the user's message, the result (or why there is none) as the model's; ids begin with `name`."""
    prompt = Message(
        id=f"{name}.prompt",
        role="user",
        origin=Origin.PROMPT,
        parts=(TextPart(id=f"{name}.prompt.0", text=run.prompt or ""),),
        created_at=asked_at,
        updated_at=run.ended_at or asked_at,
        metadata=MARK,
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
        metadata=MARK,
    )
    return [prompt, result]
