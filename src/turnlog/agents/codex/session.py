"""Facts about the thread: which thread a log is, where its history comes from, and the model and settings of its turns.

A fork up to 0.13x begins with a copy of another thread's records, with new times. The ids of turns, which have a time
in them, or a pause show where the copy ends.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

from turnlog.agents.changes import NAMED_AFTER
from turnlog.agents.codex.fold_context import CodexContext
from turnlog.agents.codex.records import Item, Meta, read_communication, read_meta, read_turn_context
from turnlog.agents.codex.sources import NAME, session_id, thread_of
from turnlog.agents.codex.state import CodexState
from turnlog.agents.codex.tool_results import end_calls
from turnlog.agents.codex.tools import metadata_of

_VERSION_7 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
_MIGRATED_TURN = re.compile(r"rollout-\d+")
"""Id that `codex migrate-rollouts` (0.169) gives to a turn that had none. It has no time in it."""

_USAGE_RECORD_MODE, _USAGE_RECORDS_SINCE = "paginated", (0, 146)
"""`history_mode` of logs with a `token_usage_record` for each response, and the first such version. A log with this
mode and an older version was migrated and has none."""

_CLOCK_TOLERANCE = 2.0
"""Seconds by which the id of a thread's first turn may be older than the time in its `session_meta`."""

_COPY_PAUSE = 1.0
"""Seconds between two records that end a copy where turns have no ids: a copy is written all at once."""

_PAIRWISE_BELOW = (0, 40)
"""Versions below this write each call with its output."""

_TEXTS_FIRST_BELOW = (0, 73)
"""Versions below this log the events of all texts of a response before its items (seen up to 0.65, not in 0.73)."""


def read_session_meta(context: CodexContext) -> None:
    """Read `session_meta`. The first is the thread's own; another one is of the thread whose history is copied."""
    meta = read_meta(context.payload, context.report)
    state = context.state
    if not state.named:
        state.named = True
        _read_own_meta(context, meta)
    elif meta.id is not None and meta.id != thread_of(context.external_id):
        state.origin = meta.id
        state.last_written_at = None
        _set_layout(state, meta.cli_version)
    else:
        _update_session(context, meta)
    context.add_record_event("session_meta", context.payload)


def read_bare_meta(context: CodexContext, item: Item) -> None:
    """Read the first line of a log without envelopes."""
    state = context.state
    state.named = state.pairwise = True
    if item.git is not None:
        context.session.git_branch = item.git.branch
        context.session.git_commit = item.git.commit_hash
    context.add_record_event("session_meta", context.payload)


def _read_own_meta(context: CodexContext, meta: Meta) -> None:
    state = context.state
    state.provider = meta.model_provider
    is_paginated = meta.history_mode == _USAGE_RECORD_MODE
    state.usage_recorded = is_paginated and _version(meta.cli_version) >= _USAGE_RECORDS_SINCE
    state.version = meta.cli_version
    _set_layout(state, meta.cli_version)
    moment = meta.timestamp or context.written_at
    state.created_at = _time_in(context.external_id)
    if state.created_at is None and moment is not None:
        state.created_at = moment.timestamp() - _CLOCK_TOLERANCE
    spawn = _spawn_of(meta.source)
    parent = meta.parent_thread_id or spawn.get("parent_thread_id")
    state.is_subagent = meta.thread_source == "subagent" or _is_subagent(meta.source)
    if isinstance(parent, str):
        context.link("subagent", parent, context.external_id)
    _link_fork(context, meta, is_spawned=isinstance(parent, str))
    # Only in a migrated log with a copy: the migration leaves out the line with the version of the copied thread.
    state.layout_unknown = is_paginated and state.origin is not None
    _update_session(context, meta)
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
    context.session.metadata = {NAME: metadata_of(facts)}
    thread = thread_of(context.external_id)
    if thread != context.external_id:
        context.session.metadata[NAMED_AFTER] = session_id(thread)
    _set_task_title(context, facts["agent_path"], facts["agent_nickname"])


def _set_task_title(context: CodexContext, path: Any, nickname: Any) -> None:
    """Title a subagent with a path by the task in it. The task itself is encrypted, so no prompt can be the title."""
    task = path.rpartition("/")[2] if isinstance(path, str) else ""
    if task:
        context.session.titles["generated"] = f"{task} ({nickname})" if isinstance(nickname, str) else task


def _link_fork(context: CodexContext, meta: Meta, *, is_spawned: bool) -> None:
    """Link the thread whose history this one continues: a reference since 0.14x, before that a copy that follows."""
    base = meta.history_base
    thread = meta.forked_from_id
    if base is not None and base.thread_id is not None:
        # The base is the id in a file's name: the thread's own, or that of a branch.
        owner = thread or thread_of(context.external_id)
        thread = owner if base.thread_id == owner else f"{owner}_{base.thread_id}"
    if thread is None:
        return
    before = base.end_ordinal_exclusive if base is not None else None
    before = meta.forked_from_ordinal_exclusive if before is None else before
    if before is None:
        context.state.origin = thread
    else:
        context.state.base_threads = tuple(dict.fromkeys((thread, thread_of(thread))))
    if before is not None or not is_spawned:
        context.link("fork", thread, context.external_id, shares_before=before)


def _update_session(context: CodexContext, meta: Meta) -> None:
    session = context.session
    _set_folder(context, meta.cwd)
    session.agent_version = meta.cli_version or session.agent_version
    if meta.git is not None:
        session.git_branch = meta.git.branch or session.git_branch
        session.git_commit = meta.git.commit_hash or session.git_commit


def _set_folder(context: CodexContext, folder: str | None) -> None:
    if folder:
        context.session.cwd = folder
        if context.session.project_path is None:
            context.session.project_path = folder


def read_context(context: CodexContext) -> None:
    """Read `turn_context`, which stands before each turn; up to about 0.9x before each response."""
    # A call without an output by now will get none.
    end_calls(context, aborted=True)
    settings = read_turn_context(context.payload, context.report)
    state = context.state
    read_turn_id(context, settings.turn_id)
    state.model = settings.model or state.model
    state.effort = settings.effort
    if context.is_own:
        _set_folder(context, settings.cwd)
    context.close_message()
    context.add_record_event("turn_context", context.payload)


def read_trigger(context: CodexContext) -> None:
    """Read `inter_agent_communication_metadata`: whether the message that follows begins a turn."""
    context.state.trigger_turn = bool(read_communication(context.payload, context.report).trigger_turn)
    context.add_record_event("inter_agent_communication_metadata", context.payload)


def read_turn_id(context: CodexContext, turn_id: str | None) -> None:
    """Take over the turn id of a record. A turn that began after the thread did ends the copy."""
    state = context.state
    if turn_id is None or _MIGRATED_TURN.fullmatch(turn_id) is not None:
        return
    if state.origin is not None and state.created_at is not None:
        began = _time_in(turn_id)
        if began is not None and began >= state.created_at:
            end_copy(context)
    context.set_turn(turn_id, None)


def set_review(context: CodexContext, *, under_way: bool) -> None:
    """Begin or end a review. A review that was killed has no end: it ends with the next item of the thread."""
    context.state.reviewing, context.state.reviewed_elsewhere = under_way, False


def check_pause(context: CodexContext) -> None:
    """End a copy at a pause between two records, where no turn has an id."""
    state = context.state
    now = context.written_at.timestamp() if context.written_at is not None else None
    if (
        now is not None
        and state.last_written_at is not None
        and now - state.last_written_at > _COPY_PAUSE
        and state.turn_id is None
    ):
        end_copy(context)
    state.last_written_at = now if now is not None else state.last_written_at


def end_copy(context: CodexContext) -> None:
    """End the copy: the records that follow are the thread's own."""
    context.state.origin = None
    _set_layout(context.state, context.state.version)
    context.close_message()


def _time_in(identifier: str) -> float | None:
    """The time in a UUID of version 7, in Unix seconds; None for any other identifier."""
    if _VERSION_7.fullmatch(identifier) is None:
        return None
    return int(identifier[:8] + identifier[9:13], 16) / 1000


def _set_layout(state: CodexState, version: str | None) -> None:
    """Set the layout of the next records: that of the version which wrote them first, in a copy too."""
    number = _version(version)
    state.layout_unknown = False
    state.pairwise, state.texts_first = number < _PAIRWISE_BELOW, number < _TEXTS_FIRST_BELOW


def _version(text: str | None) -> tuple[int, ...]:
    found = re.match(r"(\d+)\.(\d+)", text or "")
    return (int(found[1]), int(found[2])) if found else (1, 0)


def _is_subagent(source: Any) -> bool:
    return isinstance(source, Mapping) and "subagent" in source


def _spawn_of(source: Any) -> dict[str, Any]:
    """`source.subagent.thread_spawn` of a `session_meta`: who spawned the thread; empty when nobody did."""
    if not isinstance(source, Mapping):
        return {}
    subagent = cast("Mapping[str, Any]", source).get("subagent")
    spawn = cast("Mapping[str, Any]", subagent).get("thread_spawn") if isinstance(subagent, Mapping) else None
    return dict(cast("Mapping[str, Any]", spawn)) if isinstance(spawn, Mapping) else {}
