"""Results of tool calls, and when they are emitted.

A result is in a user record, in the assistant message itself if the provider ran the tool, or in the later report of a
background task.

Up to about 2.1.290 the result of a call that the user denied and that of a call which Escape aborted have the same
words. Only the interrupt record after them distinguishes the two: it names the message whose tool was running
(`interruptedMessageId`, since 2.1.150), and none if the permission request was still open. So such results are deferred
until the next record that decides it.
"""

from __future__ import annotations

import re

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.changes import RUN, ResultChange
from turnlog.agents.claude_code import NAME, contents
from turnlog.agents.claude_code.contents import (
    approval_of,
    duration_of,
    error_text_of,
    exit_code_of,
    is_user_rejection,
    result_id,
    spilled_output_of,
    status_of_failure,
    status_of_success,
)
from turnlog.agents.claude_code.fold_context import ClaudeContext, SessionContext
from turnlog.agents.claude_code.records import ClaudeRecord, ContentBlock, ResultFacts
from turnlog.agents.claude_code.sources import session_id
from turnlog.agents.claude_code.state import ROOT, ClaudeMessageDraft, DeferredRejection, unresolved_node
from turnlog.agents.decoding import raw_at
from turnlog.model import Approval, DataPart, Part, ResultStatus, TextPart, ToolResult


def read_result(
    context: ClaudeContext, record: ClaudeRecord, session: SessionContext, block: ContentBlock, index: int
) -> None:
    """Read a `tool_result` block of a user record.

    It is the call's result, or only a preliminary one when the tool was started in the background.
    """
    call_id = block.tool_use_id or ""
    call, pending_call = context.calls.get(call_id), context.state.calls.get(call_id)
    # The result's record does not say whether the call is a copy; the call's own does.
    copied_from = call.draft.copied_from if call else pending_call.copied_from if pending_call else None
    message_id = call.draft.id if call else pending_call.message_id if pending_call else None
    facts = record.tool_use_result if isinstance(record.tool_use_result, ResultFacts) else None
    waited_for_aborted = message_id is not None and message_id == context.state.aborted_message
    # Of parallel calls one runs and the others wait: Escape stops it, and the rest were never refused.
    rejection_before_run: ResultStatus = "aborted" if waited_for_aborted else "denied"
    result = _result_of(context, record, block, index, facts, copied_from, rejection_before_run)
    if result.status == "aborted":
        context.state.aborted_message = message_id
    # A background task's first result only says that it was started; the report comes in a notification.
    if not result.preliminary:
        context.state.calls.pop(call_id, None)
    elif pending_call is not None:
        pending_call.settled = True
    if facts is not None:
        _remember_task(context, session, facts, call_id, message_id, copied_from)
    if record.uuid is not None:
        _place_result(context, record, session, message_id)
        # Results do not move the end of the conversation to an older message.
        if message_id == session.state.leaf and message_id is not None:
            session.set_newest_record(record.uuid)
    change = ResultChange(
        session_id=session.id,
        tool_call_id=call_id,
        result=result,
        position=context.position,
        record=(context.position, context.length),
        record_ids=(record.uuid,) if record.uuid is not None else (),
        message_id=message_id,
        approval=_approval_of(record, result),
    )
    is_told = record.turnlog is not None or context.state.logs_decisions
    if result.status == "denied" and not is_told and is_user_rejection(record, block.content):
        defer_rejection(context, change)
    else:
        emit_result(context, change)


def _place_result(
    context: ClaudeContext, record: ClaudeRecord, session: SessionContext, message_id: str | None
) -> None:
    """Give a result its node: what names the result as its parent follows the call's message, or what came between."""
    assert record.uuid is not None
    nodes, parent = context.state.nodes, record.parent_uuid
    node = nodes.get(parent) if isinstance(parent, str) else None
    if node is None:
        node = message_id or (unresolved_node(parent) if isinstance(parent, str) else ROOT)
    # A prompt that was sent while the calls ran comes before their results, but the conversation continues after it.
    overtaken = session.state.prompt_during_calls
    if overtaken is not None and node == overtaken[0]:
        node = overtaken[1]
    context.state.remember_record(record.uuid, node)


def _result_of(
    context: ClaudeContext,
    record: ClaudeRecord,
    block: ContentBlock,
    index: int,
    facts: ResultFacts | None,
    copied_from: str | None,
    rejection_before_run: ResultStatus,
) -> ToolResult:
    content, call_id = block.content, block.tool_use_id or ""
    text = content if isinstance(content, str) else contents.text_of(content)
    items = content if isinstance(content, list) else None
    is_error = block.is_error is True
    carried = context.carried(record)
    if carried is not None and carried.status is not None:
        status = carried.status
    elif is_error:
        # Versions with `permissionDecision` write a denial into that field, so words alone mean Escape there.
        denial_is_logged = context.state.logs_decisions and record.tool_denial_kind is not None
        rejection: ResultStatus = "aborted" if context.state.permissions_bypassed or denial_is_logged else "denied"
        status = status_of_failure(record, text, rejection=rejection, rejection_before_run=rejection_before_run)
    else:
        status = status_of_success(facts)
    return ToolResult(
        id=result_id(call_id, text, items),
        status=status,
        content=_result_parts(context, content, index),
        error_text=error_text_of(text) if is_error else None,
        exit_code=exit_code_of(text) if is_error else None,
        preliminary=facts is not None and _is_launch(facts),
        completed_at=record.timestamp,
        duration_ms=duration_of(facts) if facts is not None else None,
        # The text after the tag is only a preview.
        spilled_to=_spill_in(context, text, copied_from) if text.startswith("<persisted-output>") else None,
        metadata=_result_metadata(facts) if facts is not None else {},
    )


def _is_launch(facts: ResultFacts) -> bool:
    """Whether a result only says that a subagent, a command, a monitor or a workflow was started."""
    if facts.is_async is True or isinstance(facts.background_task_id, str):
        return True
    # A `taskId` alone starts nothing: a monitor has `timeoutMs` too, a workflow `runId`.
    return isinstance(facts.task_id, str) and (facts.timeout_ms is not None or isinstance(facts.run_id, str))


def _result_parts(
    context: ClaudeContext, content: str | list[ContentBlock] | ContentBlock | None, index: int
) -> tuple[Part, ...]:
    if isinstance(content, str):
        return (TextPart(text=content),)
    if not isinstance(content, list):
        return ()
    json = context.json
    return tuple(
        [
            contents.part_of(item, None, lambda at=at: raw_at(json, "message", "content", index, "content", at))
            for at, item in enumerate(content)
        ]
    )


def _result_metadata(facts: ResultFacts) -> dict[str, object]:
    """Facts that nothing else holds: WebSearch runs searches that no usage counts, a workflow's run has subagents."""
    if isinstance(facts.search_count, int):
        return {NAME: {"searches": facts.search_count}}
    return {NAME: {RUN: facts.run_id}} if isinstance(facts.run_id, str) else {}


def _approval_of(record: ClaudeRecord, result: ToolResult) -> Approval | None:
    if record.permission_decision is not None:
        return approval_of(record.permission_decision)
    return Approval(approved=False, source=record.tool_denial_kind) if result.status == "denied" else None


def _spill_in(context: ClaudeContext, text: str, copied_from: str | None) -> str | None:
    """The name of the file that holds the whole output. Its path is compared, but never opened."""
    spilled = spilled_output_of(text)
    if spilled is None:
        return None
    if spilled.name is None:
        context.report("the output is said to lie outside the session's own folder", "note", "$.message.content")
    elif spilled.session not in (context.root, copied_from):
        context.report("the output is said to lie in another session's folder", "note", "$.message.content")
    return spilled.name


def _remember_task(
    context: ClaudeContext,
    session: SessionContext,
    facts: ResultFacts,
    call_id: str,
    message_id: str | None,
    copied_from: str | None,
) -> None:
    """Link a subagent with its call, and remember a background task until its report comes."""
    agent_id, task_id = facts.agent_id, facts.background_task_id
    if isinstance(agent_id, str):
        # The subagent of a copied call belongs to the session that the call was copied from.
        # A fork copies the call and its result, but not the subagent's files.
        parent = session_id(copied_from) if copied_from is not None else session.id
        child = session_id(f"{copied_from or context.root}.{agent_id}")
        context.link_subagent(parent, child, call_id, message_id)
        if facts.is_async is True:
            context.state.remember_task(agent_id, call_id)
    if isinstance(task_id, str):
        context.state.remember_task(task_id, call_id)


def add_server_result(
    context: ClaudeContext, draft: ClaudeMessageDraft, record: ClaudeRecord, block: ContentBlock, index: int
) -> None:
    """Add the result of a tool that the provider ran: a block in the same assistant message as its call."""
    content, call_id = block.content, block.tool_use_id or ""
    items = content if isinstance(content, list) else None
    failure = content.error_code if isinstance(content, ContentBlock) else None
    parts = _result_parts(context, content, index)
    if isinstance(content, ContentBlock):
        raw = raw_at(context.json, "message", "content", index, "content")
        parts = (DataPart(name=block.type, data=raw),)
    result = ToolResult(
        id=result_id(call_id, block.type + contents.text_of(content), items),
        status="error" if block.is_error or failure is not None else "success",
        content=parts,
        error_text=failure,
        completed_at=record.timestamp,
    )
    context.state.calls.pop(call_id, None)
    draft.records.append((context.position, context.length, result.id))
    call = context.calls.get(call_id)
    if call is not None:
        call.add_result(result)
        return
    _add_late_result(context, draft.session_id, call_id, result, draft.id)


# -- results whose record leaves open whether the call was denied or aborted


def settle_rejections(context: ClaudeContext, interrupted: str | None = None) -> None:
    """Emit the deferred results: calls of the message `interrupted` were aborted, all others were denied."""
    deferred, context.state.deferred_rejections = context.state.deferred_rejections, []
    for rejection in deferred:
        result = msgspec.json.decode(rejection.result, type=ToolResult)
        was_running = interrupted is not None and rejection.message_id == interrupted
        change = ResultChange(
            session_id=rejection.session_id,
            tool_call_id=rejection.tool_call_id,
            result=msgspec.structs.replace(result, status="aborted") if was_running else result,
            position=rejection.record[0],
            record=rejection.record,
            record_ids=(rejection.record_id,) if rejection.record_id is not None else (),
            message_id=rejection.message_id,
            approval=None if was_running else Approval(approved=False, source=rejection.source),
        )
        emit_result(context, change)


def defer_rejection(context: ClaudeContext, change: ResultChange) -> None:
    """Keep the result of a rejected call until a later record shows whether the tool was running."""
    context.state.deferred_rejections.append(
        DeferredRejection(
            session_id=change.session_id,
            tool_call_id=change.tool_call_id,
            message_id=change.message_id,
            record=change.record,
            record_id=next(iter(change.record_ids), None),
            result=msgspec.Raw(msgspec.json.encode(change.result)),
            source=change.approval.source if change.approval is not None else None,
        )
    )


def emit_result(context: ClaudeContext, change: ResultChange) -> None:
    """Add a result to its call's draft when this feed has that; else leave it to the store."""
    call = context.calls.get(change.tool_call_id)
    if call is None:
        context.changes.results.append(change)
        return
    call.add_result(change.result)
    if change.approval is not None:
        call.approval = change.approval
    call.draft.records.append((*change.record, change.result.id))
    call.draft.record_ids += change.record_ids


def _add_late_result(
    context: ClaudeContext, session: str, call_id: str, result: ToolResult, message_id: str | None
) -> None:
    context.changes.results.append(
        ResultChange(
            session_id=session,
            tool_call_id=call_id,
            result=result,
            position=context.position,
            record=(context.position, context.length),
            message_id=message_id,
        )
    )


# -- reports of background tasks

_TASK_STATUS: dict[str, ResultStatus] = {
    "completed": "success",
    "failed": "error",
    "killed": "aborted",
    # Also what a resume says of a background task that was running when its process ended.
    "stopped": "aborted",
}


def add_task_reports(context: ClaudeContext, record: ClaudeRecord, session: SessionContext, text: str) -> None:
    """Add what background tasks report in a notification: the final results of the calls that started them."""
    for tags in notifications_in(text):
        # Some notifications name only the task, which the first result of the call did too.
        call_id = tags.get("tool-use-id") or context.state.tasks.get(tags.get("task-id", ""))
        if call_id is not None:
            _add_task_report(context, record, session, call_id, tags)


def _add_task_report(
    context: ClaudeContext, record: ClaudeRecord, session: SessionContext, call_id: str, tags: dict[str, str]
) -> None:
    # A notification without a `result` says in its `summary` how the task ended.
    report = unescaped(tags.get("result") or tags.get("summary") or "")
    status = _TASK_STATUS.get(tags.get("status", ""), "success")
    result = ToolResult(
        id=result_id(call_id, report, None),
        status=status,
        content=(TextPart(text=report),) if report else (),
        error_text=report if status == "error" else None,
        exit_code=exit_code_of(report),
        completed_at=record.timestamp,
    )
    call = context.calls.get(call_id)
    known = context.state.calls.pop(call_id, None)
    if call is not None:
        call.add_result(result)
        call.draft.records.append((context.position, context.length, result.id))
        return
    _add_late_result(context, session.id, call_id, result, known.message_id if known else None)


def notifications_in(text: str) -> list[dict[str, str]]:
    """The tags of each notification in a text. A subagent (2.1.330) gets several in one record."""
    return [
        inner_tags(notice, "task-notification") or inner_tags(notice, "bash-notification")
        for notice in _BETWEEN_NOTIFICATIONS.split(text)
    ]


_BETWEEN_NOTIFICATIONS = re.compile(r"(?<=</task-notification>)\s+(?=<task-notification>)")


def inner_tags(text: str, tag: str) -> dict[str, str]:
    """The tags inside the outermost `<tag>…</tag>` of a text, up to its last closing tag."""
    start, end = text.find(f"<{tag}>"), text.rfind(f"</{tag}>")
    return tags_of(text[start + len(tag) + 2 : end if end > start else len(text)]) if start >= 0 else {}


_TAG = re.compile(r"<(?P<tag>[a-z-]+)>(?P<text>.*?)</(?P=tag)>", re.DOTALL)


def tags_of(text: str) -> dict[str, str]:
    """Tag -> content, of a text of tags such as a notification. Of two equal tags the first counts."""
    found: dict[str, str] = {}
    for match in _TAG.finditer(text):
        found.setdefault(match["tag"], match["text"].strip())
    return found


_BARE = re.compile(r"&(?!amp;|lt;|gt;)")


def unescaped(text: str) -> str:
    """A text that a notification quotes, without entities: since 2.1.120 or earlier `&`, `<` and `>` are escaped.

    A text with an unescaped one of them was not escaped at all.
    """
    if "<" in text or ">" in text or _BARE.search(text):
        return text
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


# -- the agent's own JSON of a result


def structured_result(record: bytes, tool_call_id: str) -> Raw | None:
    """`toolUseResult` of a record that has the call's result; None if the record has none.

    In a stream it is `tool_use_result`. A `progress` record holds it in its copy of a record. A record with several
    results has one `toolUseResult`, that of the first result.
    """
    try:
        found = msgspec.json.decode(record, type=_ResultRecord)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    if found.data is not None and isinstance(found.data.message, Raw):
        return structured_result(bytes(found.data.message), tool_call_id)
    content = found.message.content if found.message else None
    call_ids = [block.tool_use_id for block in content if block.tool_use_id] if isinstance(content, list) else []
    # Imports write several results into one record, whose `toolUseResult` is that of the first.
    if call_ids[:1] != [tool_call_id]:
        return None
    present = (result for result in (found.tool_use_result, found.streamed_result) if isinstance(result, Raw))
    return next((result.copy() for result in present), None)


class _ResultBlock(msgspec.Struct):
    tool_use_id: str | None = None


class _ResultMessage(msgspec.Struct):
    content: list[_ResultBlock] | str | None = None


class _ResultProgress(msgspec.Struct):
    message: Raw | UnsetType = UNSET


class _ResultRecord(msgspec.Struct, rename="camel"):
    message: _ResultMessage | None = None
    tool_use_result: Raw | UnsetType = UNSET
    streamed_result: Raw | UnsetType = msgspec.field(name="tool_use_result", default=UNSET)
    data: _ResultProgress | None = None
