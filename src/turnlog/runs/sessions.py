"""The session of a run: found by what the run printed, by its name or by its time, and linked to the run's row.

Machine-readable output names its session. Otherwise the session is the one that got the run's prompt, or a prompt in
the run's folder, while the run lasted; if several fit, none is taken. Linking twice changes nothing, and a log that is
missing or cannot be read never changes how the run ended (R-S35).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from turnlog.agents import agent as agent_named
from turnlog.agents import agents as registered_agents
from turnlog.agents import detect
from turnlog.agents.base import Agent, Source, SourceKind
from turnlog.agents.changes import Changes
from turnlog.errors import NotFoundError, TurnlogError
from turnlog.model import Session
from turnlog.pricing import price_nanos, price_version
from turnlog.runs.lifecycle import MAX_TEXT_BYTES, output_path, save
from turnlog.store import open_store
from turnlog.store.base import SessionFilter, Store
from turnlog.store.values import Run, RunFacts
from turnlog.store.writing.batch import reconcile_session
from turnlog.sync.importing import import_file
from turnlog.sync.summary import SourceProblem
from turnlog.sync.syncer import Syncer

_HEAD_BYTES: Final = 1 << 20
"""A stream names its session within so many bytes."""


class RunOutput(NamedTuple):
    """What the kept output, or another log, says about its run."""

    agent: str | None = None
    session_id: str | None = None
    text: str | None = None
    """The beginning of the output if it is no agent's log."""


def read_output(path: Path) -> RunOutput:
    """Read the kept output of a run; an empty RunOutput if there is no such file. Raises OSError."""
    if not path.exists():
        return RunOutput()
    text = _text_of(path)
    # Every stream consists of JSON objects: without a brace, no agent need search thousands of lines.
    return RunOutput(text=text) if text is None or "{" not in text else read_log(path)


def read_log(path: Path) -> RunOutput:
    """Read a log in any form that an agent writes. Raises OSError."""
    found = detect(path)
    if found.agent is None or found.source is None:
        return RunOutput(text=_text_of(path))
    return RunOutput(agent=found.agent, session_id=_session_of(found.source, path))


def _text_of(path: Path) -> str | None:
    with path.open("rb") as file:
        return file.read(MAX_TEXT_BYTES).decode(errors="replace").strip() or None


def _session_of(source: Source, path: Path) -> str | None:
    """The main session of a log: the first that is no subagent's."""
    with path.open("rb") as file:
        data = file.read(_HEAD_BYTES if source.appendable else -1)
        is_whole = not file.read(1)
    lines = data if is_whole else data[: data.rfind(b"\n") + 1]
    changes: Changes = agent_named(source.agent).fold(source).feed(lines, 0)
    children = {link.child_session_id for link in changes.links if link.kind == "subagent"}
    return next((session_id for session_id in changes.sessions if session_id not in children), None)


_MAX_CANDIDATES: Final = 200

_FILE_TIME_PRECISION: Final = timedelta(seconds=1)
"""Some file systems keep modification times no better."""

_ROUNDING: Final = timedelta(milliseconds=2)
"""How far apart two equal times can be that are kept in milliseconds."""

_READ_FROM_OUTPUT: Final = "no log of {} was found: what the run printed was read instead"


class _Found(NamedTuple):
    """The session of a run, if any, and why there is no session or no log."""

    session_id: str | None = None
    log_path: str | None = None
    problem: str | None = None
    is_stream: bool = False
    """Whether the log is the run's own output."""


def link_run(store_path: Path, run: Run, session_id: str | None = None) -> Run:
    """Find and read the log of a run, and save its session and figures; return the run.

    What goes wrong with the log is written to `log_problem`.

    Args:
        store_path: The store.
        run: The run, finished or not.
        session_id: The session, if the agent named it over its protocol.

    Raises:
        StoreError: The run cannot be saved.
    """
    output = output_path(store_path, run.id)
    try:
        linked = _link(store_path, run, output, session_id)
    except (TurnlogError, OSError) as error:
        return save(store_path, msgspec.structs.replace(run, log_problem=str(error)))
    save(store_path, linked)
    if linked.session_id is not None:
        _supersede_chats(store_path, linked.session_id)
    output.unlink(missing_ok=True)
    return linked


def _link(store_path: Path, run: Run, output: Path, named: str | None) -> Run:
    printed = read_output(output)
    run = msgspec.structs.replace(run, agent=run.agent or printed.agent, result=printed.text or run.result)
    problems = _read_new_logs(store_path, run)
    with open_store(store_path, create=True) as store:
        known = named or (run.session_id if run.log_path is not None else None)
        found = _by_name(store, printed.session_id or known, run.log_path) or _by_time(store_path, store, run)
    if found.log_path is None and printed.session_id is not None:
        found = _read_output(store_path, printed.session_id, output)
    if found.log_path is None and problems:
        found = found._replace(problem="; ".join(f"{problem.path}: {problem.reason}" for problem in problems))
    run = msgspec.structs.replace(run, session_id=found.session_id, log_path=found.log_path, log_problem=found.problem)
    return run if found.session_id is None else _with_facts(store_path, run, is_stream=found.is_stream)


def _supersede_chats(store_path: Path, session_id: str) -> None:
    """Let the log supersede the chat that this run answered.

    The store waits with that for the end of the run, and may have read the log before.
    """
    reconcile_session(store_path, session_id, price_nanos, price_version())


# -- reading logs


def _read_new_logs(store_path: Path, run: Run) -> Sequence[SourceProblem]:
    """Read the agent's logs that were written since the run began; return the ones that could not be read."""
    agents = registered_agents() if run.agent is None else [agent_named(run.agent)]
    new = [(agent, source) for agent in agents for source in _written_since(agent, run.created_at)]
    if not new:
        return ()
    with Syncer(store_path, agents=agents) as syncer:
        return syncer.read([], new).problems


def _written_since(agent: Agent, moment: datetime) -> Iterator[Source]:
    since = (moment - _FILE_TIME_PRECISION).timestamp() * 1_000_000_000
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
    """Import the output as the session's log, for a session that left no other."""
    summary = import_file(store_path, output)
    return _Found(session_id, summary.path, _READ_FROM_OUTPUT.format(session_id), is_stream=True)


# -- finding the session


def _by_name(store: Store, session_id: str | None, printed: str | None = None) -> _Found | None:
    """The session of this id, whose log may be the run's own output; None without an id."""
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
        return _Found(session_id, printed, _READ_FROM_OUTPUT.format(session_id), is_stream=True)
    return _Found(session_id, None, f"no log of {session_id} was found")


def _by_time(store_path: Path, store: Store, run: Run) -> _Found:
    """The session that was prompted while the run lasted, if only one fits."""
    candidates = list(_candidates(store, run))
    named = [session for session, _ in candidates if session.id == run.session_id]
    if named:
        fitting = named
    elif run.prompt is not None:
        fitting = [session for session, facts in candidates if _is_same_prompt(run.prompt, facts.prompt)]
    else:
        fitting = [session for session, _ in candidates if run.cwd in _folders(session)]
    begun = [session for session in fitting if _began_with(session, run)]
    for chosen in (fitting, begun):
        if len(chosen) == 1:
            found = _by_name(store, chosen[0].id)
            assert found is not None
            return found
    if fitting:
        return _Found(problem=f"it could be any of {', '.join(session.id for session in fitting)}")
    whose = "an agent" if run.agent is None else run.agent
    return _Found(problem=f"no session of {whose} was found that was prompted while the run lasted")


def _candidates(store: Store, run: Run) -> Iterator[tuple[Session, RunFacts]]:
    since, until = _time_span(run)
    page = store.sessions(SessionFilter(agent=run.agent, since=since, until=until), limit=_MAX_CANDIDATES)
    for session in page.items:
        facts = store.run_facts(session.id, since, until)
        if facts.prompt is not None and not session.native:
            yield session, facts


def _time_span(run: Run) -> tuple[datetime, datetime]:
    """From before the process started until after it ended; until now if nobody saw the end."""
    end = run.ended_at if run.exit_code is not None else None
    return run.created_at, (end or datetime.now(UTC)) + _ROUNDING


def _is_same_prompt(prompt: str, logged: str | None) -> bool:
    """Whether a prompt was logged, perhaps with text from a pipe around it, or in quotes."""
    own, found = " ".join(prompt.split()), " ".join((logged or "").split())
    return bool(own) and own in found


def _folders(session: Session) -> set[str | None]:
    # The project of a session in a worktree is the repository, where it did not run.
    project = None if session.worktree else session.project
    return {session.cwd, project.path if project else None} - {None}


def _began_with(session: Session, run: Run) -> bool:
    since, _ = _time_span(run)
    return session.created_at is not None and session.created_at >= since


# -- the facts of the session


def _with_facts(store_path: Path, run: Run, *, is_stream: bool) -> Run:
    assert run.session_id is not None
    stream = run.log_path if is_stream else None
    with open_store(store_path, create=True) as store:
        facts = store.run_facts(run.session_id, *_time_span(run), stream=stream)
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
