"""Facts about the thread: whose log it is, from what it came, with which model its turns run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

from turnlog.agents.changes import NAMED_AFTER
from turnlog.agents.codex.fold_context import Reading
from turnlog.agents.codex.records import Item, Meta, read_communication, read_meta, read_turn_context
from turnlog.agents.codex.sources import NAME, session_id, thread_of
from turnlog.agents.codex.state import State
from turnlog.agents.codex.tool_results import end_calls
from turnlog.agents.codex.tools import metadata_of

_VERSION_7 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
_MIGRATED_TURN = re.compile(r"rollout-\d+")
"""The id that `codex migrate-rollouts` (0.169) gives to a turn that had none: of its line, and no younger than it."""

_WITH_RECORDS, _WITH_RECORDS_FROM = "paginated", (0, 146)
"""Mode of a log that has a `token_usage_record` for each response, and since when: an older one was migrated."""

_SKEW = 2.0
"""Seconds that a turn's id may be older than the thread that it is the first of, by the time that the thread tells."""

_PAUSE = 1.0
"""Seconds between two records that end a copy, where turns have no ids: a copy is written at one go."""

_PAIRWISE_BELOW = (0, 40)
"""Versions that write each call with its output."""

_TOLD_FIRST_BELOW = (0, 73)
"""Versions that log a response when a user interface was told all its texts: seen up to 0.65, in 0.73 no more."""


def read_session_meta(reading: Reading) -> None:
    """`session_meta`: the first is the thread's own; another is that of the thread whose history was copied."""
    meta = read_meta(reading.payload, reading.tell)
    state = reading.state
    if not state.named:
        state.named = True
        _read_own_meta(reading, meta)
    elif meta.id is not None and meta.id != thread_of(reading.external_id):
        state.origin = meta.id
        state.last = None
        _note_layout(state, meta.cli_version)
    else:
        _note_facts(reading, meta)
    reading.add_record_event("session_meta", reading.payload)


def read_bare_meta(reading: Reading, item: Item) -> None:
    """The first line of a log without envelopes."""
    state = reading.state
    state.named = state.pairwise = True
    if item.git is not None:
        reading.session.git_branch = item.git.branch
        reading.session.git_commit = item.git.commit_hash
    reading.add_record_event("session_meta", reading.payload)


def _read_own_meta(reading: Reading, meta: Meta) -> None:
    state = reading.state
    state.provider = meta.model_provider
    is_paginated = meta.history_mode == _WITH_RECORDS
    state.recorded = is_paginated and _version(meta.cli_version) >= _WITH_RECORDS_FROM
    state.version = meta.cli_version
    _note_layout(state, meta.cli_version)
    moment = meta.timestamp or reading.at
    state.created = _time_in(reading.external_id)
    if state.created is None and moment is not None:
        state.created = moment.timestamp() - _SKEW
    spawn = _spawn_of(meta.source)
    parent = meta.parent_thread_id or spawn.get("parent_thread_id")
    state.is_subagent = meta.thread_source == "subagent" or _is_subagent(meta.source)
    if isinstance(parent, str):
        reading.link("subagent", parent, reading.external_id)
    _link_fork(reading, meta, is_spawned=isinstance(parent, str))
    # Only a log of old copies: a migration leaves out the line that tells which version's they are.
    state.layout_open = is_paginated and state.origin is not None
    _note_facts(reading, meta)
    facts = {
        "originator": meta.originator,
        "source": meta.source if isinstance(meta.source, str) else None,
        "thread_source": meta.thread_source,
        "model_provider": meta.model_provider,
        "history_mode": meta.history_mode,
        "agent_nickname": meta.agent_nickname or spawn.get("agent_nickname"),
        "agent_role": meta.agent_role or spawn.get("agent_role"),
        "agent_path": spawn.get("agent_path"),
        "repository_url": meta.git.repository_url if meta.git else None,
    }
    reading.session.metadata = {NAME: metadata_of(facts)}
    thread = thread_of(reading.external_id)
    if thread != reading.external_id:
        reading.session.metadata[NAMED_AFTER] = session_id(thread)
    _name_by_task(reading, facts["agent_path"], facts["agent_nickname"])


def _name_by_task(reading: Reading, path: Any, nickname: Any) -> None:
    """A subagent with a path was given a task by that name; the task itself is sealed, and no prompt names it."""
    task = path.rpartition("/")[2] if isinstance(path, str) else ""
    if task:
        reading.session.titles["generated"] = f"{task} ({nickname})" if isinstance(nickname, str) else task


def _link_fork(reading: Reading, meta: Meta, *, is_spawned: bool) -> None:
    """The thread whose history this one goes on from: by reference since 0.14x, before by a copy that follows."""
    base = meta.history_base
    thread = meta.forked_from_id
    if base is not None and base.thread_id is not None:
        # The base is named by its file: a thread's first, or a branch.
        owner = thread or thread_of(reading.external_id)
        thread = owner if base.thread_id == owner else f"{owner}_{base.thread_id}"
    if thread is None:
        return
    before = base.end_ordinal_exclusive if base is not None else None
    before = meta.forked_from_ordinal_exclusive if before is None else before
    if before is None:
        reading.state.origin = thread
    else:
        reading.state.bases = tuple(dict.fromkeys((thread, thread_of(thread))))
    if before is not None or not is_spawned:
        reading.link("fork", thread, reading.external_id, shares_before=before)


def _note_facts(reading: Reading, meta: Meta) -> None:
    session = reading.session
    _note_folder(reading, meta.cwd)
    session.agent_version = meta.cli_version or session.agent_version
    if meta.git is not None:
        session.git_branch = meta.git.branch or session.git_branch
        session.git_commit = meta.git.commit_hash or session.git_commit


def _note_folder(reading: Reading, folder: str | None) -> None:
    if folder:
        reading.session.cwd = folder
        if reading.session.project_path is None:
            reading.session.project_path = folder


def read_context(reading: Reading) -> None:
    """`turn_context`: before each turn, up to about 0.9x before each response: what has no output by then gets none."""
    end_calls(reading, aborted=True)
    context = read_turn_context(reading.payload, reading.tell)
    state = reading.state
    note_turn(reading, context.turn_id)
    state.model = context.model or state.model
    state.effort = context.effort
    if reading.is_own:
        _note_folder(reading, context.cwd)
    reading.close_message()
    reading.add_record_event("turn_context", reading.payload)


def read_trigger(reading: Reading) -> None:
    """`inter_agent_communication_metadata`: whether the message that follows begins a turn."""
    reading.state.trigger = bool(read_communication(reading.payload, reading.tell).trigger_turn)
    reading.add_record_event("inter_agent_communication_metadata", reading.payload)


def note_turn(reading: Reading, turn_id: str | None) -> None:
    """A record names its turn. One that began after the thread ends what was copied."""
    state = reading.state
    if turn_id is None or _MIGRATED_TURN.fullmatch(turn_id) is not None:
        return
    if state.origin is not None and state.created is not None:
        began = _time_in(turn_id)
        if began is not None and began >= state.created:
            end_copy(reading)
    reading.begin_turn_key(turn_id, None)


def note_review(reading: Reading, *, under_way: bool) -> None:
    """A review begins or ends; it also ends where the thread itself goes on, when it was killed."""
    reading.state.reviewing, reading.state.reviewed_apart = under_way, False


def note_pause(reading: Reading) -> None:
    """Where no turn has an id, a pause in what was copied at one go ends it."""
    state = reading.state
    now = reading.at.timestamp() if reading.at is not None else None
    if now is not None and state.last is not None and now - state.last > _PAUSE and state.turn_id is None:
        end_copy(reading)
    state.last = now if now is not None else state.last


def end_copy(reading: Reading) -> None:
    """What follows is the thread's own."""
    reading.state.origin = None
    _note_layout(reading.state, reading.state.version)
    reading.close_message()


def _time_in(identifier: str) -> float | None:
    """The time in a UUID of version 7, in seconds."""
    if _VERSION_7.fullmatch(identifier) is None:
        return None
    return int(identifier[:8] + identifier[9:13], 16) / 1000


def _note_layout(state: State, version: str | None) -> None:
    """In which order what follows was logged: a copy is in that of the version that wrote what it copies."""
    number = _version(version)
    state.layout_open = False
    state.pairwise, state.told_first = number < _PAIRWISE_BELOW, number < _TOLD_FIRST_BELOW


def _version(text: str | None) -> tuple[int, ...]:
    found = re.match(r"(\d+)\.(\d+)", text or "")
    return (int(found[1]), int(found[2])) if found else (1, 0)


def _is_subagent(source: Any) -> bool:
    return isinstance(source, Mapping) and "subagent" in source


def _spawn_of(source: Any) -> dict[str, Any]:
    """What `source` tells of who spawned the thread."""
    if not isinstance(source, Mapping):
        return {}
    subagent = cast("Mapping[str, Any]", source).get("subagent")
    spawn = cast("Mapping[str, Any]", subagent).get("thread_spawn") if isinstance(subagent, Mapping) else None
    return dict(cast("Mapping[str, Any]", spawn)) if isinstance(spawn, Mapping) else {}
