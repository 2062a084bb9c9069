"""The fold of a session's updates: pieces of messages, calls, what became of them, and ends of turns.

The pieces of an answer have the time at which its stream began: one model call. The updates have the tokens of a whole
turn only. Those of its calls are looked up in the log of the home (`calls`), and count in place of the turn's if they
come to the same.
"""

from __future__ import annotations

from typing import Final

import msgspec

from turnlog.agents.base import SourceKind
from turnlog.agents.changes import Link, MessageChange, Placement
from turnlog.agents.conversation import ConversationContext, ConversationFold
from turnlog.agents.grok_build import TURN_END
from turnlog.agents.grok_build.calls import Call, call_at
from turnlog.agents.grok_build.contents import (
    STOP_REASONS,
    call_part,
    chunk_part,
    result_of,
    subagent_in,
    time_of,
    usage_of,
)
from turnlog.agents.grok_build.records import UPDATES, Params, TurnUsage, UpdateLine, by_model
from turnlog.agents.grok_build.sources import session_id
from turnlog.model import (
    CompactionEvent,
    ErrorEvent,
    InterruptEvent,
    Message,
    Origin,
    Part,
    RewindEvent,
    SessionTotal,
)

_MODEL, _PROMPT, _ANSWER, _PARTS, _ANSWERS = "model", "prompt", "answer", "parts", "answers"
"""Notes: the newest prompt, by its model and number; the newest answer, how many parts the newest message has, and the
answers of the turn so far."""

_COUNTED = "counted"
"""Note: the newest turn without an end whose calls count."""

_MOST_ANSWERS = 1024
"""Answers of a turn of which the tokens are looked up."""

_BEFORE = "before."
"""The beginning of notes with the message before a prompt, by its number: where a rewind goes back to."""

_MOST_PROMPTS = 512
"""Prompts to which a rewind is followed."""

_NOTICES: Final = frozenset(
    {
        "auto_compact_cancelled",
        "auto_compact_completed",
        "auto_compact_failed",
        "auto_compact_started",
        "auto_continue_completed",
        "auto_recovery_exhausted",
        "auto_recovery_started",
        "available_commands_update",
        "current_mode_update",
        "diff_review",
        "feedback_request",
        "goal_updated",
        "hook_annotation",
        "hook_execution",
        "hooks_changed",
        "image_compressed",
        "image_dropped",
        "last_turn_summary",
        "memory_dream_completed",
        "memory_files",
        "memory_flush_completed",
        "memory_flush_started",
        "memory_session_saved",
        "model_auto_switched",
        "model_changed",
        "monitor_event",
        "plan",
        "plugin_updates_installed",
        "plugins_changed",
        "relay_sync_status",
        "retry_state",
        "scheduled_task_created",
        "scheduled_task_deleted",
        "scheduled_task_fired",
        "session_recap",
        "session_recap_unavailable",
        "session_status",
        "session_summary_generated",
        "subagent_finished",
        "subagent_progress",
        "task_backgrounded",
        "task_completed",
        "tool_call_delta_chunk",
        "user_cancelled",
        "workflow_updated",
    }
)
"""Updates that are facts about the run alone."""


class GrokBuildFold(ConversationFold[UpdateLine]):
    """Reads the updates of a session."""

    records = UPDATES
    says_results = True

    def session_id(self) -> str:
        """The folder of the log names it."""
        return self._source.session_id or session_id("")

    def read(self, context: ConversationContext, record: UpdateLine) -> None:
        """See `ConversationFold.read`."""
        params = record.params
        if params is None:
            context.report("the line has no update")
            context.changes.counts.unreadable += 1
            return
        reader = _READERS.get(params.update.kind)
        if reader is not None:
            reader(self, context, params)
        elif params.update.kind in _NOTICES:
            context.add_run_metadata(params.update.kind)
        else:
            context.add_record(params.update.kind, known=False)

    def is_copied(self, context: ConversationContext, params: Params) -> bool:
        """Whether a fork has the line from another session: it keeps the id of its event."""
        named = params.meta.event_id or ""
        return not named.startswith(f"{context.external_id}-")

    # -- messages

    def read_prompt(self, context: ConversationContext, params: Params) -> None:
        """Read a piece of a prompt. Its text and each of its pictures are lines."""
        notes, number = context.state.notes, str(params.update.meta.prompt_index)
        notes[_MODEL] = params.update.meta.model or ""
        goes_on = notes.get(_PROMPT) == number and _ANSWER not in notes and context.state.leaf is not None
        identity = context.state.leaf if goes_on and context.state.leaf else self._prompt_id(context, params)
        first = int(notes.get(_PARTS, "0")) if goes_on else 0
        message = Message(
            id=identity,
            role="user",
            parts=(chunk_part(params.update, f"{identity}.{first}"),),
            origin=self._origin(context) if not goes_on else Origin.PROMPT,
            created_at=time_of(params.meta.agent_timestamp_ms),
        )
        if goes_on:
            message = msgspec.structs.replace(message, origin=None, created_at=None)
            context.add_again(message)
        else:
            self._count_open_turn(context)
            self._note_prompt(context, number)
            context.add(message, is_copied=self.is_copied(context, params))
        notes[_PARTS] = str(first + 1)

    def _prompt_id(self, context: ConversationContext, params: Params) -> str:
        # Events are numbered anew when a session is resumed, so that the time belongs to the id.
        return f"{params.meta.event_id or context.position_id}@{params.meta.agent_timestamp_ms}"

    def _origin(self, context: ConversationContext) -> Origin:
        is_task = self._source.kind is SourceKind.SUBAGENT and not context.state.turn
        return Origin.SUBAGENT_PROMPT if is_task else Origin.PROMPT

    def _count_open_turn(self, context: ConversationContext) -> None:
        """Count the calls of a turn that the next prompt found without an end: its process was killed."""
        notes = context.state.notes
        answers = notes.pop(_ANSWERS, "").split()[-_MOST_ANSWERS:]
        if answers and self._add_calls(context, answers, None):
            notes[_COUNTED] = _turn_of(answers[-1])

    def _note_prompt(self, context: ConversationContext, number: str) -> None:
        notes = context.state.notes
        notes[_PROMPT] = number
        notes.pop(_ANSWER, None)
        kept = [name for name in notes if name.startswith(_BEFORE)]
        for name in kept[: max(0, len(kept) - _MOST_PROMPTS + 1)]:
            del notes[name]
        notes[f"{_BEFORE}{number}"] = context.state.leaf or ""

    def read_answer(self, context: ConversationContext, params: Params) -> None:
        """Read a thought, a text or a call of an answer."""
        update, notes, at = params.update, context.state.notes, time_of(params.meta.agent_timestamp_ms)
        identity = f"{params.meta.prompt_id or context.external_id}.{params.meta.stream_start_ms}"
        goes_on = notes.get(_ANSWER) == identity and context.state.leaf == identity
        first = int(notes.get(_PARTS, "0")) if goes_on else 0
        part_id = f"{identity}.{first}"
        part: Part
        if update.kind == "tool_call":
            part = call_part(update, part_id, at)
        else:
            part = chunk_part(update, part_id, is_thought=update.kind == "agent_thought_chunk")
        message = Message(
            id=identity,
            role="assistant",
            parts=(part,),
            created_at=time_of(params.meta.stream_start_ms),
            completed_at=at,
            model=notes.get(_MODEL) or None,
        )
        if goes_on:
            context.add_again(message)
        else:
            is_copied = self.is_copied(context, params)
            context.add(message, is_copied=is_copied)
            if not is_copied:
                notes[_ANSWERS] = f"{notes.get(_ANSWERS, '')} {identity}"
        notes[_ANSWER], notes[_PARTS] = identity, str(first + 1)

    def read_call_update(self, context: ConversationContext, params: Params) -> None:
        """Read what became of a call."""
        update = params.update
        call = update.call_id or ""
        result = result_of(update, call, time_of(params.meta.agent_timestamp_ms))
        if result is None:
            # What a call has returned so far is in its result again.
            context.changes.counts.duplicates += 1
            return
        context.add_result(call, result)
        context.changes.counts.results += 1
        child = subagent_in(update)
        if child is not None:
            context.changes.links.append(
                Link(
                    kind="subagent",
                    parent_session_id=context.session_id,
                    child_session_id=session_id(child),
                    tool_call_id=call,
                )
            )

    # -- turns

    def read_turn_end(self, context: ConversationContext, params: Params) -> None:
        """Read the end of a turn, with what it has used."""
        update, state = params.update, context.state
        at = time_of(params.meta.agent_timestamp_ms)
        context.add_run_metadata(TURN_END)
        identity = state.notes.pop(_ANSWER, None)
        if update.stop_reason == "error":
            text = update.agent_result or update.stop_reason
            context.add_event(ErrorEvent(id=f"{context.position_id}.error", created_at=at, error_text=text))
        elif update.stop_reason == "cancelled":
            event = InterruptEvent(id=f"{context.position_id}.interrupt", created_at=at, during="answer")
            context.add_event(event)
        if identity is not None and identity == state.leaf:
            message = Message(
                id=identity,
                role="assistant",
                stop_reason=STOP_REASONS.get(update.stop_reason or ""),
                raw_stop_reason=update.stop_reason,
            )
            context.add_again(message, is_counted=False)
        answers = state.notes.pop(_ANSWERS, "").split()[-_MOST_ANSWERS:]
        if self.is_copied(context, params):
            return
        if update.prompt_id is not None and update.prompt_id == state.notes.get(_COUNTED):
            # The prompt within it was no next turn: what the turn counts has calls in it that count already.
            self._add_calls(context, answers, None)
        elif not self._add_calls(context, answers, update.usage) and update.usage is not None:
            # Another reading of these updates, beside the log of the home, may know the tokens of all answers.
            self._add_totals(context, params, update.usage, answers[0] if answers else None)

    def _add_calls(self, context: ConversationContext, answers: list[str], used: TurnUsage | None) -> bool:
        """Add the tokens of the calls of a turn; False if the turn's own must count, because some are not known."""
        calls = {identity: self._call_of(identity) for identity in answers}
        known = {identity: call.used for identity, call in calls.items() if call is not None}
        if used is not None and not _are_all(list(known.values()), used):
            return False
        for identity, each in known.items():
            message = Message(id=identity, role="assistant", usage=usage_of(each))
            placement = Placement(
                session_id=context.session_id, position=context.position, records=((*context.record, None),)
            )
            context.changes.messages.append(MessageChange(message=message, placement=placement))
        return bool(known)

    def _call_of(self, identity: str) -> Call | None:
        began = identity.rpartition(".")[2]
        return call_at(self._source, int(began)) if began.isdecimal() else None

    def _add_totals(self, context: ConversationContext, params: Params, used: TurnUsage, answer: str | None) -> None:
        # With subagents that ended within the turn it counts their calls too, and their own sessions count them again.
        if used.model_calls is None or used.num_turns is None or used.model_calls > used.num_turns:
            return
        for model, each in (by_model(used) or {"": used}).items():
            usage = usage_of(each)
            if usage is not None:
                name = f"{params.update.prompt_id or context.position_id}:{model}"
                context.session.totals[name] = SessionTotal(
                    model=model or None, usage=usage, calls=each.model_calls, answer=answer
                )

    # -- events

    def read_rewind(self, context: ConversationContext, params: Params) -> None:
        """Read that the user went back to before a prompt."""
        state, at = context.state, time_of(params.meta.agent_timestamp_ms)
        before = state.notes.get(f"{_BEFORE}{params.update.target_prompt_index}")
        context.changes.counts.events += 1
        if before is not None:
            state.leaf = before or None
            state.is_branched = True
        state.notes.pop(_ANSWER, None)
        state.notes.pop(_PROMPT, None)
        context.add_event(
            RewindEvent(
                id=f"{context.position_id}.rewind",
                created_at=at,
                to_message_id=state.leaf,
            )
        )

    def read_compaction(self, context: ConversationContext, params: Params) -> None:
        """Read a compaction. The summary is in a file of its own."""
        name = params.update.checkpoint_id or context.position_id
        at = time_of(params.meta.agent_timestamp_ms)
        context.add_event(CompactionEvent(id=f"{name}.compaction", created_at=at))
        context.state.is_branched = True
        context.changes.counts.events += 1

    def read_subagent(self, context: ConversationContext, params: Params) -> None:
        """Read that a subagent began. The result of its call says which call it was."""
        child = params.update.child_session_id
        if child:
            context.changes.links.append(
                Link(kind="subagent", parent_session_id=context.session_id, child_session_id=session_id(child))
            )
        context.add_run_metadata(params.update.kind)


def _turn_of(answer: str) -> str:
    """The id of the turn in that of an answer."""
    return answer.rpartition(".")[0]


def _are_all(calls: list[TurnUsage], turn: TurnUsage) -> bool:
    """Whether these are all calls of a turn. What it counts itself may have those of subagents in it, too."""
    if len(calls) != turn.num_turns:
        return False
    return turn.model_calls != turn.num_turns or all(
        sum(getattr(call, name) or 0 for call in calls) == (getattr(turn, name) or 0)
        for name in ("input_tokens", "cached_read_tokens", "output_tokens", "reasoning_tokens")
    )


_READERS = {
    "user_message_chunk": GrokBuildFold.read_prompt,
    "agent_thought_chunk": GrokBuildFold.read_answer,
    "agent_message_chunk": GrokBuildFold.read_answer,
    "tool_call": GrokBuildFold.read_answer,
    "tool_call_update": GrokBuildFold.read_call_update,
    "turn_completed": GrokBuildFold.read_turn_end,
    "rewind_marker": GrokBuildFold.read_rewind,
    "compaction_checkpoint": GrokBuildFold.read_compaction,
    "subagent_spawned": GrokBuildFold.read_subagent,
}
"""Kind of an update -> its reader."""

KINDS: Final = frozenset({*_READERS, *_NOTICES})
"""The kinds of updates that are known."""
