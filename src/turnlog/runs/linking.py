"""Joining a run with the session of its agent: its log is found, read, and what it tells goes into the run's row.

The output of the run names its session, where it is made for machines. Else the session is the one that got a prompt
while the run lasted: the same prompt, or in the same folder. One that could be another is not taken. Doing it again
does no harm, and a log that is missing or cannot be read changes nothing of how the run ended (R-S35).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from turnlog.agents import agent as agent_named
from turnlog.agents import agents as registered_agents
from turnlog.agents.base import Agent, Source, SourceKind
from turnlog.errors import NotFoundError, TurnlogError
from turnlog.model import Session
from turnlog.pricing import price_nanos, price_version
from turnlog.runs.output import output_path, read_output
from turnlog.runs.recording import save
from turnlog.store import open_store
from turnlog.store.base import SessionFilter, Store
from turnlog.store.connection import connect, write_transaction
from turnlog.store.run_facts import RunFacts, load_run_facts
from turnlog.store.runs import Run
from turnlog.store.writing.writer import Batch
from turnlog.sync.importing import import_file
from turnlog.sync.summary import Problem
from turnlog.sync.syncer import Syncer

_MOST_CANDIDATES: Final = 200

_SLACK: Final = timedelta(seconds=1)
"""Some file systems tell times no better."""

_ROUNDING: Final = timedelta(milliseconds=2)
"""Between two times that are kept in milliseconds."""

_PRINTED: Final = "no log of {} was found: what the run printed was read instead"


class _Found(NamedTuple):
    """The session of a run, if any, and why there is none or no log of it."""

    session_id: str | None = None
    log_path: str | None = None
    problem: str | None = None
    is_stream: bool = False
    """The log is what the run printed."""


def link_run(store_path: Path, run: Run, session_id: str | None = None) -> Run:
    """Find and read the log of a run, and save what it tells; the run as it is then.

    Whatever goes wrong with the log stands in `log_problem`. Raises StoreError when the run cannot be saved.

    Args:
        store_path: The store.
        run: What is known of it.
        session_id: The session, where the agent has told it to whoever asks.
    """
    output = output_path(store_path, run.id)
    try:
        linked = _link(store_path, run, output, session_id)
    except (TurnlogError, OSError) as error:
        return save(store_path, msgspec.structs.replace(run, log_problem=str(error)))
    save(store_path, linked)
    if linked.session_id is not None:
        _settle_chats(store_path, linked.session_id)
    output.unlink(missing_ok=True)
    return linked


def _link(store_path: Path, run: Run, output: Path, told: str | None) -> Run:
    printed = read_output(output)
    run = msgspec.structs.replace(run, agent=run.agent or printed.agent, result=printed.text or run.result)
    problems = _read_new_logs(store_path, run)
    with open_store(store_path) as store:
        known = told or (run.session_id if run.log_path is not None else None)
        found = _by_name(store, printed.session_id or known, run.log_path) or _by_time(store_path, store, run)
    if found.log_path is None and printed.session_id is not None:
        found = _read_output(store_path, printed.session_id, output)
    if found.log_path is None and problems:
        found = found._replace(problem="; ".join(f"{problem.path}: {problem.reason}" for problem in problems))
    run = msgspec.structs.replace(run, session_id=found.session_id, log_path=found.log_path, log_problem=found.problem)
    return run if found.session_id is None else _with_facts(store_path, run, is_stream=found.is_stream)


def _settle_chats(store_path: Path, session_id: str) -> None:
    """Let chats give way that this run answered: they wait for its end, and the log may have been read before."""
    with closing(connect(store_path, checked=False)) as connection, write_transaction(connection):
        batch = Batch(connection, price_nanos, price_version())
        batch.look_at(session_id)
        batch.close()


# -- reading


def _read_new_logs(store_path: Path, run: Run) -> Sequence[Problem]:
    """Read the agent's logs that were written since the run began; those that could not be read."""
    agents = registered_agents() if run.agent is None else [agent_named(run.agent)]
    new = [(agent, source) for agent in agents for source in _written_since(agent, run.created_at)]
    if not new:
        return ()
    with Syncer(store_path, agents=agents) as syncer:
        return syncer.read([], new).problems


def _written_since(agent: Agent, moment: datetime) -> Iterator[Source]:
    since = (moment - _SLACK).timestamp() * 1_000_000_000
    for source in agent.discover():
        if source.version is not None:
            written = source.version[1]
        else:
            try:
                written = Path(source.path).stat().st_mtime_ns
            except OSError:
                continue
        if written >= since:
            yield source


def _read_output(store_path: Path, session_id: str, output: Path) -> _Found:
    """Where a session left no log, what was printed of it is its log."""
    summary = import_file(store_path, output)
    return _Found(session_id, summary.path, _PRINTED.format(session_id), is_stream=True)


# -- finding


def _by_name(store: Store, session_id: str | None, printed: str | None = None) -> _Found | None:
    """The session of this id, which may have what the run printed for a log; None where there is no id."""
    if session_id is None:
        return None
    try:
        sources = store.sources(session_id)
    except NotFoundError:
        return _Found(problem=f"no log of {session_id} was found")
    logs = [source.path for source in sources if source.kind == SourceKind.SESSION]
    if logs:
        return _Found(session_id, logs[0])
    if any(source.path == printed for source in sources):
        return _Found(session_id, printed, _PRINTED.format(session_id), is_stream=True)
    return _Found(session_id, None, f"no log of {session_id} was found")


def _by_time(store_path: Path, store: Store, run: Run) -> _Found:
    """The session that was prompted while the run lasted, if there is only one that it can be."""
    candidates = list(_candidates(store_path, store, run))
    named = [session for session, _ in candidates if session.id == run.session_id]
    if named:
        fitting = named
    elif run.prompt is not None:
        fitting = [session for session, facts in candidates if _is_same(run.prompt, facts.prompt)]
    else:
        fitting = [session for session, _ in candidates if run.cwd in _folders(session)]
    fresh = [session for session in fitting if _is_fresh(session, run)]
    for chosen in (fitting, fresh):
        if len(chosen) == 1:
            found = _by_name(store, chosen[0].id)
            assert found is not None
            return found
    if fitting:
        return _Found(problem=f"it could be any of {', '.join(session.id for session in fitting)}")
    whose = "an agent" if run.agent is None else run.agent
    return _Found(problem=f"no session of {whose} was found that was prompted while the run lasted")


def _candidates(store_path: Path, store: Store, run: Run) -> Iterator[tuple[Session, RunFacts]]:
    since, until = _lasted(run)
    page = store.sessions(SessionFilter(agent=run.agent, since=since, until=until), limit=_MOST_CANDIDATES)
    with closing(connect(store_path, read_only=True)) as connection:
        for session in page.items:
            facts = load_run_facts(connection, session.id, since, until)
            if facts.prompt is not None and not session.native:
                yield session, facts


def _lasted(run: Run) -> tuple[datetime, datetime]:
    """From before its process was there, until it had ended; where nobody saw the end, until now."""
    end = run.ended_at if run.exit_code is not None else None
    return run.created_at, (end or datetime.now(UTC)) + _ROUNDING


def _is_same(prompt: str, logged: str | None) -> bool:
    """Whether a prompt is the one that was logged, perhaps with what came through a pipe, or in quotes."""
    mine, its = " ".join(prompt.split()), " ".join((logged or "").split())
    return bool(mine) and mine in its


def _folders(session: Session) -> set[str | None]:
    return {session.cwd, session.project.path if session.project else None} - {None}


def _is_fresh(session: Session, run: Run) -> bool:
    since, _ = _lasted(run)
    return session.created_at is not None and session.created_at >= since


# -- what the session tells


def _with_facts(store_path: Path, run: Run, *, is_stream: bool) -> Run:
    assert run.session_id is not None
    stream = run.log_path if is_stream else None
    with closing(connect(store_path, read_only=True)) as connection:
        facts = load_run_facts(connection, run.session_id, *_lasted(run), stream=stream)
    return msgspec.structs.replace(
        run,
        agent=run.agent or run.session_id.partition(":")[0],
        prompt=run.prompt or facts.prompt,
        model=facts.model or run.model,
        result=facts.result or run.result,
        error=(facts.error or run.error) if run.status == "failed" else run.error,
        usage=facts.usage or run.usage,
        cost=facts.cost if facts.cost is not None else run.cost,
        tool_calls=facts.tool_calls,
    )
