"""The fold of the messages of a task: those that the model got, with tokens, errors and times of those that were shown.

A request is shown before its answer. The answer that follows has its tokens; a request without an answer failed.
"""

from __future__ import annotations

from datetime import datetime

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.cline_tasks.contents import (
    TOOL,
    ApiRequest,
    TaskBlock,
    TaskMetrics,
    UserMessageContent,
    answer_parts,
    cost_of,
    last_call,
    metrics_usage,
    request_in,
    time_of,
    usage_of,
    user_content,
)
from turnlog.agents.cline_tasks.task_files import FORM, MESSAGES, MODEL, SHOWN, SUBAGENT
from turnlog.agents.conversation import ConversationContext, ConversationFold, blocks_of
from turnlog.agents.decoding import object_of, value_of
from turnlog.agents.jsonl import JsonLines
from turnlog.agents.row_files import ROWS, RowLine, json_in, row_of
from turnlog.model import (
    CompactionEvent,
    ErrorEvent,
    InterruptEvent,
    Message,
    MessageError,
    Origin,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResult,
)


class TaskModel(msgspec.Struct, rename="camel"):
    """Which model answered, in newer versions of Cline."""

    model_id: str | None = None
    provider_id: str | None = None
    mode: str | None = None


class TaskMessage(msgspec.Struct, rename="camel"):
    """A message as the model got it."""

    role: str = ""
    content: Raw | UnsetType = UNSET
    ts: float | None = None
    id: str | None = None
    type: str | None = None
    text: str | None = None
    model_info: TaskModel | None = None
    metrics: TaskMetrics | None = None
    is_summary: bool | None = None
    is_truncation_marker: bool | None = None
    reasoning_content: str | None = msgspec.field(name="reasoning_content", default=None)


class ShownMessage(msgspec.Struct, rename="camel"):
    """A message as the user saw it."""

    ts: float | None = None
    type: str = ""
    say: str | None = None
    ask: str | None = None
    text: str | None = None
    partial: bool | None = None
    model_info: TaskModel | None = None


_MESSAGES = JsonLines(TaskMessage, first_keys=(), plausible=lambda message: True)
_SHOWN = JsonLines(ShownMessage, first_keys=(), plausible=lambda message: True)

REQUEST = "api_req_started"

_FAILED = "api_req_failed"

ERRORS = frozenset({"error", _FAILED, "diff_error", "rooignore_error", "clineignore_error", "condense_context_error"})
"""Kinds of shown messages that report an error."""

REPEATED = frozenset(
    {
        *("text", "image", "reasoning", "completion_result", "user_feedback", "user_feedback_diff", "command_output"),
        *("command", "tool", "followup", "use_mcp_server", "browser_action", "browser_action_result"),
        *("browser_action_launch", "mcp_server_request_started", "mcp_server_response", "subtask_result"),
        *("codebase_search_result", "plan_mode_respond", "act_mode_respond", "user_edit_todos", "task_progress"),
        *("condense_context", "condense", "summarize_task", "new_task", "use_subagents", "subagent", "task"),
    }
)
"""Kinds of shown messages that repeat what the model got or said."""

SHOWN_ONLY = frozenset(
    {
        *("api_req_finished", "api_req_retried", "api_req_retry_delayed", "api_req_rate_limited", "api_req_deleted"),
        *("shell_integration_warning", "shell_integration_warning_with_suggestion", "checkpoint_saved"),
        *("checkpoint_created", "browser_session_status", "sliding_window_truncation", "resume_task"),
        *("resume_completed_task", "mistake_limit_reached", "auto_approval_max_req_reached", "deleted_api_reqs"),
        *("info", "load_mcp_documentation", "mcp_notification", "hook_status", "hook_output_stream", "error_retry"),
        *("generate_explanation", "command_permission_denied", "conditional_rules_applied", "report_bug", "compaction"),
        *("subagent_usage", "too_many_tools_warning", "tool_preparation", "payment_required_prompt"),
    }
)
"""Kinds of shown messages about the program itself."""

_STOPPED = "user_cancelled"

_COMPLETION = "completion_result"
"""What is shown of the answer that ends a task."""

_AFTER_ANSWERS = frozenset({_COMPLETION, "resume_task", "resume_completed_task"})
"""What is asked once an answer is whole."""


class TaskFold(ConversationFold[RowLine]):
    """Reads the messages of a task."""

    records = ROWS

    def session_id(self) -> str:
        """The path of a task names it."""
        return self._source.session_id or f"{self._source.agent}:{self._source.path.rpartition('#')[2]}"

    @property
    def _agent(self) -> str:
        return self._source.agent

    def read(self, context: ConversationContext, record: RowLine) -> None:
        """See `ConversationFold.read`."""
        # A restored checkpoint takes messages away; an earlier version of the files has them.
        context.state.is_branched = True
        if record.note == SUBAGENT:
            context.state.notes["subagent"] = "yes"
        if record.table == MESSAGES:
            self._read_message(context, record)
        elif record.table == SHOWN:
            self._read_shown(context, record)
        elif record.table == MODEL:
            used = object_of(value_of(json_in(record, "item") or b"null"))
            context.state.notes["model"] = str(used.get("model_id") or "")
            context.changes.counts.events += 1
        elif record.table == FORM:
            context.changes.counts.events += 1
        else:
            context.report("the line is no part of a task")
            context.changes.counts.unreadable += 1

    def _read_message(self, context: ConversationContext, record: RowLine) -> None:
        found = _MESSAGES.decode(json_in(record, "item") or b"null")
        if isinstance(found, str):
            context.report(found)
            context.changes.counts.unreadable += 1
            return
        for problem in found.problems:
            context.report(problem.reason, problem.severity, problem.json_path)
        message = found.record
        index = row_of(record).get("index")
        identity = f"{context.external_id}.{index if message.ts is None else f'{message.role[:1]}{int(message.ts)}'}"
        at = time_of(message.ts) or _noted_time(context)
        if message.ts is not None:
            context.state.notes["timed"] = "yes"
        if message.role == "assistant" or message.type == "reasoning":
            self._read_answer(context, message, identity, at)
        else:
            self._read_input(context, message, identity, at)

    # -- what the user and the tools said

    def _read_input(
        self, context: ConversationContext, message: TaskMessage, identity: str, at: datetime | None
    ) -> None:
        content = user_content(self._agent, blocks_of(message.content, TaskBlock), identity, at)
        state = context.state
        if content.folder is not None:
            context.session.cwd = context.session.project_path = content.folder
        if content.model is not None:
            state.notes["model"] = content.model
        for call, result in content.results:
            self._add_result(context, call, result)
        is_summary = message.is_summary is True or message.is_truncation_marker is True
        if content.results and not content.is_typed and not is_summary:
            # What is left is what the extension says to the model about the editor.
            context.changes.counts.results += 1
            return
        origin = self._origin_of(context, content, is_summary=is_summary)
        if origin is Origin.COMPACTION:
            context.add_event(CompactionEvent(id=f"{identity}.compaction", created_at=at, summary_message_id=identity))
        context.add(
            Message(
                id=identity,
                role="user" if origin in (Origin.PROMPT, Origin.SUBAGENT_PROMPT) else "developer",
                parts=tuple(content.parts),
                origin=origin,
                created_at=at,
            )
        )

    def _origin_of(self, context: ConversationContext, content: UserMessageContent, *, is_summary: bool) -> Origin:
        if is_summary:
            return Origin.COMPACTION
        if not content.is_typed:
            return Origin.HARNESS
        is_subagent = "subagent" in context.state.notes and not context.state.turn
        return Origin.SUBAGENT_PROMPT if is_subagent else Origin.PROMPT

    def _add_result(self, context: ConversationContext, call: str | None, result: ToolResult) -> None:
        """Add a result. Where only its tool is named, it answers the newest call of that tool."""
        open_calls = {
            name.removeprefix("call:"): tool for name, tool in context.state.notes.items() if name.startswith("call:")
        }
        tool = object_of(result.metadata.get(self._agent)).get(TOOL)
        answered = call or last_call(open_calls, str(tool))
        if answered is not None:
            context.state.notes.pop(f"call:{answered}", None)
        context.add_result(answered or "", result)

    # -- answers

    def _read_answer(
        self, context: ConversationContext, message: TaskMessage, identity: str, at: datetime | None
    ) -> None:
        parts = answer_parts(blocks_of(message.content, TaskBlock), identity, at)
        thought = message.reasoning_content or (message.text if message.type == "reasoning" else None)
        if thought:
            parts.append(ReasoningPart(id=f"{identity}.{len(parts)}", text=thought))
        notes = context.state.notes
        for name in [name for name in notes if name.startswith("call:")]:
            del notes[name]
        for part in parts:
            if isinstance(part, ToolCallPart):
                notes[f"call:{part.tool_call_id}"] = part.tool_name
        request = request_in(notes.pop("request", None))
        notes.pop("completion", None)
        info = message.model_info or TaskModel()
        metrics = message.metrics
        context.add(
            Message(
                id=identity,
                role="assistant",
                parts=tuple(parts),
                created_at=at,
                model=info.model_id or notes.get("model") or None,
                usage=(usage_of(request, info.provider_id) if request is not None else None) or metrics_usage(metrics),
                cost=(cost_of(request.cost) if request is not None else None)
                or cost_of(metrics.cost if metrics is not None else None),
                stop_reason="aborted" if request is not None and request.cancel_reason == _STOPPED else None,
                metadata={self._agent: {"mode": info.mode}} if info.mode else {},
            )
        )
        if request is not None and request.cancel_reason == _STOPPED:
            context.add_event(
                InterruptEvent(id=f"{identity}.interrupt", created_at=at, during="answer", message_id=identity)
            )

    # -- what was shown

    def _read_shown(self, context: ConversationContext, record: RowLine) -> None:
        found = _SHOWN.decode(json_in(record, "item") or b"null")
        if isinstance(found, str):
            context.report(found)
            context.changes.counts.unreadable += 1
            return
        message = found.record
        kind = (message.ask if message.type == "ask" else message.say) or ""
        if message.ts is not None and time_of(message.ts) is not None:
            context.state.notes["time"] = str(message.ts)
        if message.type == "ask" and kind in _AFTER_ANSWERS:
            self._add_completion(context, message)
        if kind == REQUEST:
            self._read_request(context, message)
        elif kind == _FAILED and self._ends_request(context, message):
            context.changes.counts.duplicates += 1
        elif kind in ERRORS and not message.partial:
            at = time_of(message.ts)
            text = message.text or kind
            context.add_event(
                ErrorEvent(id=f"{context.external_id}@{record_id(record)}", created_at=at, error_text=text, kind=kind)
            )
            context.changes.counts.events += 1
        elif kind in REPEATED or kind in ERRORS:
            if kind == _COMPLETION and message.type == "say":
                context.state.notes["completion"] = message.text or ""
            context.changes.counts.duplicates += 1
        else:
            context.add_record(kind, known=kind in SHOWN_ONLY)

    def _ends_request(self, context: ConversationContext, message: ShownMessage) -> bool:
        """Add the answer that failed, if its request says the same as this message."""
        notes = context.state.notes
        request = request_in(notes.get("request"))
        if request is None or not message.text or request.streaming_failed_message != message.text:
            return False
        del notes["request"]
        self._add_failure(context, request, notes.get("request_time", ""))
        return True

    def _read_request(self, context: ConversationContext, message: ShownMessage) -> None:
        """Remember a request until its answer comes. One without an answer is an answer that failed."""
        notes = context.state.notes
        failed = request_in(notes.get("request"))
        if failed is not None and (failed.streaming_failed_message or usage_of(failed) is not None):
            self._add_failure(context, failed, notes.get("request_time", ""))
        notes["request"] = message.text or "{}"
        notes["request_time"] = str(int(message.ts or 0))
        notes["provider"] = (message.model_info or TaskModel()).provider_id or ""
        context.changes.counts.events += 1

    def _add_completion(self, context: ConversationContext, message: ShownMessage) -> None:
        """Add an answer that ended the program before it kept what the model said: only what was shown is left."""
        notes = context.state.notes
        # Without times, an answer is read only before the next request.
        if "request" not in notes or "completion" not in notes or "timed" not in notes:
            return
        request, info = request_in(notes.pop("request")), message.model_info or TaskModel()
        text, identity = notes.pop("completion"), f"{context.external_id}.shown{notes.get('request_time', '')}"
        context.add(
            Message(
                id=identity,
                role="assistant",
                parts=(TextPart(id=f"{identity}.0", text=text),) if text else (),
                created_at=time_of(message.ts),
                model=info.model_id or notes.get("model") or None,
                usage=usage_of(request, notes.get("provider")) if request is not None else None,
                cost=cost_of(request.cost) if request is not None else None,
                metadata={self._agent: {"is_shown_only": True}},
            ),
            is_counted=False,
        )

    def _add_failure(self, context: ConversationContext, request: ApiRequest, time: str) -> None:
        words = request.streaming_failed_message or request.cancel_reason or "the request has no answer"
        context.add(
            Message(
                id=f"{context.external_id}.failed{time}",
                role="assistant",
                created_at=time_of(float(time or 0)),
                model=context.state.notes.get("model") or None,
                usage=usage_of(request),
                cost=cost_of(request.cost),
                error=MessageError(text=words),
                stop_reason="error",
            ),
            is_counted=False,
        )


def record_id(record: RowLine) -> str:
    """What names a shown message within its task."""
    return f"shown{row_of(record).get('index')}"


def _noted_time(context: ConversationContext) -> datetime | None:
    """The time of the newest message that was shown: older versions write none into what was sent."""
    noted = context.state.notes.get("time")
    return None if noted is None else time_of(float(noted))
