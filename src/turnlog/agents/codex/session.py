"""The thread around its messages: who it is, its turns and their settings, tokens, rollbacks, compactions, failures.

A fork up to 0.13x begins with a copy of another thread's records, with new times. The ids of turns, which have a time
in them, or a pause show where the copy ends.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, cast

import msgspec
from msgspec import Raw, UnsetType

from turnlog.agents.changes import NAMED_AFTER
from turnlog.agents.codex import NAME
from turnlog.agents.codex.assistant_messages import draft_for
from turnlog.agents.codex.fold_context import TURN_ORIGINS, CodexContext, CodexMessageDraft
from turnlog.agents.codex.records import (
    CodexEvent,
    CodexUsage,
    Compacted,
    Item,
    Meta,
    read_communication,
    read_compacted,
    read_item,
    read_meta,
    read_turn_context,
    read_usage_record,
)
from turnlog.agents.codex.responses_api import counts_key, parts_of, usage_of, usage_of_count
from turnlog.agents.codex.sources import session_id, thread_of
from turnlog.agents.codex.state import (
    CodexPendingCall,
    CodexState,
    CopiedThread,
    derived_id,
    id_in_thread,
    length_of_key,
    next_turn_key,
    resolve_layout,
    text_key,
)
from turnlog.agents.codex.tool_results import end_calls
from turnlog.agents.codex.tools import metadata_of
from turnlog.agents.codex.user_messages import origin_of_text, prompt_text
from turnlog.agents.decoding import branch_of, fields_of, raw_at
from turnlog.agents.handoffs import continuation, handed_over_facts, read_mark
from turnlog.model import CompactionEvent, ErrorEvent, InterruptEvent, Message, Origin, RewindEvent, TextPart, Usage

# -- the thread, and the model and settings of its turns


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
        # A legacy fork, or a subagent with its parent's history: the copy follows the thread's own first line.
        state.origin = meta.id
        state.last_written_at = None
        state.copied_threads.append(CopiedThread(meta.id, _created_at(meta.id, meta.timestamp), meta.cli_version))
        _set_layout(state, meta.cli_version)
    else:
        _update_session(context, meta)
    context.add_record_event("session_meta", context.payload)


def read_bare_meta(context: CodexContext, item: Item) -> None:
    """Read the first line of a log without envelopes."""
    state = context.state
    state.named = state.pairwise = True
    if item.git is not None:
        context.session.git_branch = branch_of(item.git.branch)
        context.session.git_commit = item.git.commit_hash
    context.add_record_event("session_meta", context.payload)


def _read_own_meta(context: CodexContext, meta: Meta) -> None:
    state = context.state
    state.provider = meta.model_provider
    is_paginated = meta.history_mode == _USAGE_RECORD_MODE
    state.usage_recorded = is_paginated and _version(meta.cli_version) >= _USAGE_RECORDS_SINCE
    state.version = meta.cli_version
    _set_layout(state, meta.cli_version)
    state.created_at = _created_at(context.external_id, meta.timestamp or context.written_at)
    spawn = _spawn_of(meta.source)
    state.is_subagent = meta.thread_source in _SUBAGENT_SOURCES or _subagent_of(meta.source) is not None
    parent = _parent_of(context, meta, spawn)
    state.lacks_parent = state.is_subagent and parent is None
    if parent is not None:
        context.link("subagent", parent, context.external_id)
    _link_fork(context, meta, is_spawned=parent is not None)
    carried = read_mark(meta.turnlog)
    if carried is not None:
        state.carried_lines = carried.records or 0
        context.changes.links.append(continuation(carried, context.session_id))
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
    context.session.metadata = {NAME: metadata_of(facts)} | (handed_over_facts(carried) if carried else {})
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
    context.state.inherits_totals = True
    before = base.end_ordinal_exclusive if base is not None else None
    before = meta.forked_from_ordinal_exclusive if before is None else before
    # Without an ordinal (before 0.14x) the file itself holds a copy of what came before.
    if before is None:
        context.state.origin = thread
    else:
        context.state.base_threads = tuple(dict.fromkeys((thread, thread_of(thread))))
    # A subagent's copy of its parent's history is no fork: the link to its parent says all.
    if before is not None or not is_spawned:
        context.link("fork", thread, context.external_id, shares_before=before)


def _update_session(context: CodexContext, meta: Meta) -> None:
    session = context.session
    _set_folder(context, meta.cwd)
    session.agent_version = meta.cli_version or session.agent_version
    if meta.git is not None:
        session.git_branch = branch_of(meta.git.branch) or session.git_branch
        session.git_commit = meta.git.commit_hash or session.git_commit


_SUBAGENT_SOURCES = frozenset({"subagent", "guardian_review"})
"""`thread_source` of threads that another thread started."""


def _subagent_of(source: Any) -> Any:
    """`source.subagent` of a `session_meta`: a word (`review`), or `{"thread_spawn": …}`, `{"other": "guardian"}`.

    None for a thread that no other one started. The app server writes `subAgent`.
    """
    if not isinstance(source, Mapping):
        return None
    found = cast("Mapping[str, Any]", source)
    return found.get("subagent", found.get("subAgent"))


def _spawn_of(source: Any) -> dict[str, Any]:
    """`source.subagent.thread_spawn` of a `session_meta`: who spawned the thread; empty if nobody did."""
    subagent = _subagent_of(source)
    spawn = cast("Mapping[str, Any]", subagent).get("thread_spawn") if isinstance(subagent, Mapping) else None
    return dict(cast("Mapping[str, Any]", spawn)) if isinstance(spawn, Mapping) else {}


def _parent_of(context: CodexContext, meta: Meta, spawn: Mapping[str, Any]) -> str | None:
    """The thread that started this one; of a subagent that names none, the one whose session it belongs to."""
    parent = meta.parent_thread_id or spawn.get("parent_thread_id")
    if isinstance(parent, str):
        return parent
    own = (None, meta.id, thread_of(context.external_id))
    return meta.session_id if context.state.is_subagent and meta.session_id not in own else None


def _set_folder(context: CodexContext, folder: str | None) -> None:
    if folder:
        context.session.cwd = folder
        if context.session.project_path is None:
            context.session.project_path = folder


def read_context(context: CodexContext) -> None:
    """Read `turn_context`, which comes before each turn; up to about 0.9x before each response."""
    # A call without an output by now will get none.
    end_calls(context, aborted=True)
    settings = read_turn_context(context.payload, context.report)
    state = context.state
    read_turn_id(context, settings.turn_id)
    state.model = settings.model or state.model
    state.effort = settings.effort
    if not isinstance(settings.service_tier, UnsetType):
        state.service_tier = settings.service_tier
    # In a copy this is the folder of the thread that was copied.
    if context.is_own:
        _set_folder(context, settings.cwd)
    context.close_message()
    context.add_record_event("turn_context", context.payload)


def read_settings(context: CodexContext, event: CodexEvent) -> None:
    """Read `thread_settings_applied` or `session_configured`: the tier of the requests that follow."""
    if context.is_about_this_thread(event.thread_id):
        state, settings = context.state, event.thread_settings
        state.service_tier = event.service_tier if settings is None else settings.service_tier
        # `turn_context` has the model of its turn, which may go on when another one is chosen.
        state.model = state.model or (None if settings is None else settings.model)
    context.add_record_event(f"event_msg/{event.type}", context.payload)


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
        elif began is not None:
            _set_origin(context, began)
    context.set_turn(turn_id, None)


# -- a copy: whose records it has, and where it ends


def _created_at(thread: str, logged_at: datetime | None) -> float | None:
    """When a thread began: the time in its id, which only UUID version 7 has; else a little before its first record."""
    created_at = _time_in(thread)
    return logged_at.timestamp() - _CLOCK_TOLERANCE if created_at is None and logged_at is not None else created_at


def _set_origin(context: CodexContext, began: float) -> None:
    """Set the thread that wrote a copied turn: the youngest that existed when the turn began.

    A thread's turns after the fork are not in the copy.
    """
    state = context.state
    older = [thread for thread in state.copied_threads if thread.created_at is not None and thread.created_at <= began]
    owner = max(older, key=lambda thread: thread.created_at or 0, default=None)
    if owner is not None and owner.id != state.origin:
        state.origin = owner.id
        _set_layout(state, owner.version)
        context.close_message()


def check_pause(context: CodexContext) -> None:
    """End a copy at a pause between two records, where no id of a turn has a time in it."""
    state = context.state
    now = context.written_at.timestamp() if context.written_at is not None else None
    if (
        now is not None
        and state.last_written_at is not None
        and now - state.last_written_at > _COPY_PAUSE
        and (state.turn_id is None or _time_in(state.turn_id) is None)
    ):
        end_copy(context)
    state.last_written_at = now if now is not None else state.last_written_at


def end_copy(context: CodexContext) -> None:
    """End the copy: the records that follow are the thread's own."""
    context.state.origin = None
    context.state.copied_threads = []
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


# -- turns and their ends


_USER_STOPPED = "interrupted"


def set_review(context: CodexContext, *, under_way: bool) -> None:
    """Begin or end a review. A review that was killed has no end: it ends with the next item of the thread."""
    context.state.reviewing, context.state.reviewed_elsewhere = under_way, False


def read_task_started(context: CodexContext, event: CodexEvent) -> None:
    """Read `task_started` or `turn_started`: a turn begins."""
    # Calls of the turn before that have no output ended with its process.
    end_calls(context, aborted=True)
    # No record ended the turn before: its process was killed, and with it the threads that it had started.
    if context.state.in_turn and context.is_own:
        context.end_process()
    context.state.in_turn = True
    if context.state.is_subagent:
        context.state.begun_by_user = _is_by_user(context)
    read_turn_id(context, event.turn_id)
    context.close_message()
    context.add_record_event("event_msg/task_started", context.payload)


def _is_by_user(context: CodexContext) -> bool:
    """Whether a person began this turn of a subagent, and no turn of its parent (`turn_attribution`, since 0.16x)."""
    attribution = fields_of(context.payload).get("turn_attribution")
    return attribution is not None and bytes(fields_of(attribution).get("parent_turn_id", b"")) == b"null"


def read_task_complete(context: CodexContext, event: CodexEvent) -> None:
    """Read `task_complete` or `turn_complete`: a turn is over. Only this record has the failures of the provider."""
    end_calls(context, aborted=False)
    context.state.in_turn = context.state.is_imported = False
    context.close_message()
    context.add_record_event("event_msg/task_complete", context.payload)
    error = event.error
    if error is None:
        return
    text = error if isinstance(error, str) else error.message
    kind = None if isinstance(error, str) else _error_word(error.codex_error_info)
    context.add_extra_event(
        ErrorEvent(
            id=f"{context.position_id()}/error",
            position=context.position,
            created_at=context.written_at,
            error_text=text or "",
            kind=kind or "turn",
        )
    )


def read_turn_aborted(context: CodexContext, event: CodexEvent) -> None:
    """Read `turn_aborted`: an interrupt by the user. For any other reason it is only an event."""
    state = context.state
    state.in_turn = False
    during_tool = any(_was_interrupted(context, call) for call in state.calls.values())
    end_calls(context, aborted=True)
    context.close_message()
    if event.reason not in (None, _USER_STOPPED):
        context.add_record_event("event_msg/turn_aborted", context.payload)
        return
    context.add_event(
        InterruptEvent(
            id=context.position_id(),
            position=context.position,
            created_at=context.written_at,
            during="tool" if during_tool else "answer",
            message_id=state.assistant_message,
        )
    )


def _was_interrupted(context: CodexContext, call: CodexPendingCall) -> bool:
    place = context.state.messages.get(call.message_id)
    return (not call.has_output or call.aborted) and place is not None and place.turn == (context.state.turn or None)


def read_error(context: CodexContext, event: CodexEvent) -> None:
    """Read `error` or `stream_error`."""
    context.add_event(
        ErrorEvent(
            id=context.position_id(),
            position=context.position,
            created_at=context.written_at,
            error_text=event.message or "",
            kind=_error_word(event.codex_error_info) or event.type,
            # "Reconnecting... 2/5": after the last try comes an `error`.
            will_retry=event.type == "stream_error",
        )
    )


def _error_word(info: Raw | UnsetType) -> str | None:
    """The word of `codex_error_info`, which is a string or an object with one field of that name."""
    if not isinstance(info, Raw):
        return None
    return bytes(info).decode(errors="replace").strip('{"').partition('"')[0] or None


# -- rollbacks


def read_rollback(context: CodexContext, event: CodexEvent) -> None:
    """Read `thread_rolled_back`: the user went back some turns, and the next message follows what was before them."""
    state = context.state
    count = event.num_turns or 0
    context.close_message()
    if count > 0:
        target = state.turns[-count] if count <= len(state.turns) else None
        del state.turns[-count:]
        state.leaf = target
        state.rolled_back = context.session.has_branches = True
    context.add_event(
        RewindEvent(
            id=context.position_id(), position=context.position, created_at=context.written_at, to_message_id=state.leaf
        )
    )


# -- tokens


def read_token_count(context: CodexContext, event: CodexEvent) -> None:
    """Read `token_count`: the tokens of a response when the total has changed, else a repetition."""
    info = event.info
    total = info.total_token_usage if info is not None else None
    if info is None or total is None:
        context.add_record_event("event_msg/token_count", context.payload)
        return
    state = context.state
    # Records repeat the totals of before, also where a response broke off. Only changed totals are a response.
    before, state.totals = state.totals, total
    if before is None and info.last_token_usage is None and state.inherits_totals:
        _add_unknown_usage(context)
        return
    usage = usage_of_count(info, before) if total != before and not state.usage_recorded else None
    if usage is None:
        # A response that broke off also has this record, with the totals of before. Another attempt follows.
        context.close_message()
        context.changes.counts.duplicates += 1
        return
    _add_usage(context, usage, total)


def _add_unknown_usage(context: CodexContext) -> None:
    """End a response of a fork whose total is the first one: how much of it its parent used is not known."""
    draft = context.current_draft()
    if draft is not None:
        draft.pending.has_usage = True
        draft.records.append((context.position, context.length, None))
        draft.add_time(context.written_at)
    context.close_message()
    context.changes.counts.duplicates += 1


def read_token_usage_record(context: CodexContext) -> None:
    """Read `token_usage_record`: the exact tokens of one response, which is complete with it."""
    record = read_usage_record(context.payload, context.report)
    if record.thread_token_usage is not None:
        context.state.totals = record.thread_token_usage
    if record.usage is None:
        context.add_record_event("token_usage_record", context.payload)
        return
    draft = context.current_draft()
    if draft is not None and context.state.model is None:
        draft.model = record.model
    _add_usage(context, usage_of(record.usage), record.usage, record.response_id, tier=record.service_tier)
    context.state.usage_recorded = True
    context.close_message()


def _add_usage(
    context: CodexContext, usage: Usage, counts: CodexUsage, response_id: str | None = None, *, tier: str | None = None
) -> None:
    """Add tokens to the current response, or to a new message if no message lacks them.

    A response of which nothing else is logged, because the user stopped it, is billed too.
    """
    draft = context.current_draft()
    if draft is None or draft.pending.has_usage:
        if context.state.is_subagent and not context.is_own:
            # Since 0.13x the copy for a subagent leaves out calls. Their responses are in the parent's log.
            context.changes.counts.duplicates += 1
            return
        context.close_message()
        draft = draft_for(context, response_id, counts_key(counts))
    draft.pending.has_usage = True
    # Up to about 0.7x the tokens of a response come before its items.
    draft.pending.usage_first = draft.pending.items == 0
    resolve_layout(context.state, draft.pending, texts_first=True)
    tier = tier or draft.pending.service_tier
    if tier is not None:
        usage = msgspec.structs.replace(usage, service_tier=tier)
    draft.usage = usage if context.is_own or not context.state.is_subagent else None
    draft.response_id = context.state.assistant_response = response_id
    draft.records.append((context.position, context.length, None))
    draft.add_time(context.written_at)
    context.changes.counts.messages += 1


# -- compactions


def read_compaction(context: CodexContext) -> None:
    """Read `compacted`: another history replaces this one.

    The assistant message just before is the summary. In older logs only this record has it.
    """
    record = read_compacted(context.payload, context.report)
    state = context.state
    summary_id = _summary_of(context, record)
    kept = _kept(context, record)
    if summary_id is not None:
        kept.append(summary_id)
    context.close_message()
    context.session.has_branches = True
    context.add_event(
        CompactionEvent(
            id=context.position_id(),
            position=context.position,
            created_at=context.written_at,
            summary_message_id=summary_id,
            kept_message_ids=tuple(dict.fromkeys(kept)),
            replacement=_replacement(context, record),
        )
    )
    # Texts from here on may repeat texts of before in the same turn, so their ids need another turn key.
    state.turn_key, state.text_counts = next_turn_key(state.turn_key, record.message or ""), {}


def _summary_of(context: CodexContext, record: Compacted) -> str | None:
    state = context.state
    text = record.message or ""
    if state.assistant_message is not None and _is_summary(context, record, text):
        draft = context.draft_of(state.assistant_message)
        if draft is not None:
            draft.origin = Origin.COMPACTION
        return state.assistant_message
    if not text:
        return None
    counted = _usage_only_message(context)
    if counted is not None:
        # Up to 0.14x the summary is only in `compacted`, and its response only in `token_count`.
        counted.origin = Origin.COMPACTION
        counted.parts[0] = TextPart(id=f"{counted.id}.0", text=text)
        counted.pending.parts = 1
        counted.records.append((context.position, context.length, None))
        return counted.id
    message_id = derived_id(context.id_prefix, state.turn_key, "compaction", text, state.text_counts)
    context.add_message(
        Message(
            id=message_id,
            role="developer",
            parts=(TextPart(id=f"{message_id}.0", text=text),),
            origin=Origin.COMPACTION,
            created_at=context.written_at,
        )
    )
    return message_id


def _usage_only_message(context: CodexContext) -> CodexMessageDraft | None:
    """The newest message, when only its tokens are logged: up to 0.14x the response with the summary."""
    message_id = context.state.assistant_message
    place = context.state.messages.get(message_id) if message_id is not None else None
    if message_id is None or place is None or place.parts or message_id != context.state.leaf:
        return None
    return context.draft_of(message_id)


def _is_summary(context: CodexContext, record: Compacted, text: str) -> bool:
    """Whether the newest assistant message is the summary: by its response's id, else because `text` ends with it."""
    state = context.state
    if record.compaction_response_id is not None and state.assistant_response is not None:
        return record.compaction_response_id == state.assistant_response
    key = state.assistant_text_key
    length = length_of_key(key) if key is not None else 0
    return length > 0 and text_key(text[-length:]) == key


def _kept(context: CodexContext, record: Compacted) -> list[str]:
    """Ids of the messages that the model still gets. Prompts with another id or with none are found by their text."""
    known = context.state.prompts
    prompts: dict[str, list[str]] = {}
    for message_id, key in known.items():
        prompts.setdefault(key, []).append(message_id)
    found: list[str] = []
    # Backwards: of several prompts with the same text the model keeps the newest.
    for raw in reversed(record.replacement_history or ()):
        item = read_item(raw, context.report)
        name = id_in_thread(context.id_prefix, item.id) if item.id is not None else None
        if item.role == "user" and name not in known:
            same = prompts.get(text_key(prompt_text(item.content)))
            name = same.pop() if same else name
        if name is not None:
            found.append(name)
        if item.id is not None and name not in known:
            # Of a fork: no record says which of the threads before it has the message, so it is named in each.
            found.extend(id_in_thread(base, item.id) for base in context.state.base_threads)
    return found[::-1]


def _replacement(context: CodexContext, record: Compacted) -> tuple[Message, ...]:
    """The messages that the model gets instead of the history."""
    found: list[Message] = []
    for number, raw in enumerate(record.replacement_history or ()):
        item = read_item(raw, context.report)
        if item.type != "message":
            continue
        message_id = f"{context.position_id()}.{number}"
        origin = None
        if item.role != "assistant":
            text = item.content if isinstance(item.content, str) else "".join(p.text or "" for p in item.content or ())
            origin = Origin.HARNESS if item.role != "user" else origin_of_text(text) or Origin.PROMPT
        found.append(
            Message(
                id=message_id,
                role="assistant" if origin is None else "user" if origin in TURN_ORIGINS else "developer",
                origin=origin,
                parts=parts_of(item.content, message_id, lambda index, raw=raw: raw_at(raw, "content", index)),
            )
        )
    return tuple(found)
