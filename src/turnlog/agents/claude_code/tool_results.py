"""Results on their way to their calls, and the user's no that has to wait until the log says what it was.

Up to about 2.1.290 the result of a call that was refused and that of one which Escape stopped have the same words. What
tells them apart is the record of the interrupt behind them: it names the message whose tool was running
(`interruptedMessageId`, seen from 2.1.150 on) and none where the question for leave was still open.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.changes import RUN, ResultChange
from turnlog.agents.claude_code import messages_api
from turnlog.agents.claude_code.drafts import MessageDraft
from turnlog.agents.claude_code.fold_context import Reading, Session
from turnlog.agents.claude_code.records import Block, Record, ResultFacts
from turnlog.agents.claude_code.sources import NAME, session_id
from turnlog.agents.claude_code.state import ROOT, HeldAnswer, unresolved
from turnlog.agents.claude_code.tools import (
    approval_of,
    duration_of,
    error_text_of,
    exit_code_of,
    is_users_no,
    result_id,
    spilled_output_of,
    status_of_failure,
    status_of_success,
)
from turnlog.agents.claude_code.user_text import notices_in, unescaped
from turnlog.agents.decoding import raw_at
from turnlog.model import Approval, DataPart, Part, ResultStatus, TextPart, ToolResult


class Answer(NamedTuple):
    """A result, where it stands, and whose it is."""

    session_id: str
    tool_call_id: str
    message_id: str | None
    record: tuple[int, int]
    record_id: str | None
    result: ToolResult
    approval: Approval | None


def tell_answer(reading: Reading, answer: Answer) -> None:
    """Give a result to its call, when this feed has that; else leave it to the store."""
    call = reading.calls.get(answer.tool_call_id)
    record_ids = (answer.record_id,) if answer.record_id is not None else ()
    if call is None:
        reading.changes.results.append(
            ResultChange(
                session_id=answer.session_id,
                tool_call_id=answer.tool_call_id,
                result=answer.result,
                position=answer.record[0],
                record=answer.record,
                record_ids=record_ids,
                message_id=answer.message_id,
                approval=answer.approval,
            )
        )
        return
    call.add_result(answer.result)
    if answer.approval is not None:
        call.approval = answer.approval
    call.draft.records.append((*answer.record, answer.result.id))
    call.draft.record_ids += record_ids


def hold_answer(reading: Reading, answer: Answer) -> None:
    """Keep a user's no until what follows says whether the tool was running."""
    reading.state.held.append(
        HeldAnswer(
            session_id=answer.session_id,
            tool_call_id=answer.tool_call_id,
            message_id=answer.message_id,
            record=answer.record,
            record_id=answer.record_id,
            result=msgspec.Raw(msgspec.json.encode(answer.result)),
            source=answer.approval.source if answer.approval is not None else None,
        )
    )


def settle_answers(reading: Reading, interrupted: str | None = None) -> None:
    """Tell what was kept: the tools of the message `interrupted` were stopped, all others were refused."""
    held, reading.state.held = reading.state.held, []
    for kept in held:
        result = msgspec.json.decode(kept.result, type=ToolResult)
        stopped = interrupted is not None and kept.message_id == interrupted
        answer = Answer(
            session_id=kept.session_id,
            tool_call_id=kept.tool_call_id,
            message_id=kept.message_id,
            record=kept.record,
            record_id=kept.record_id,
            result=msgspec.structs.replace(result, status="aborted") if stopped else result,
            approval=None if stopped else Approval(approved=False, source=kept.source),
        )
        tell_answer(reading, answer)


_TASK_STATUS: dict[str, ResultStatus] = {
    "completed": "success",
    "failed": "error",
    "killed": "aborted",
    # Also what a resume says of a background task that was running when its process ended.
    "stopped": "aborted",
}


def read_result(reading: Reading, record: Record, session: Session, block: Block, index: int) -> None:
    """A `tool_result` block of a user record: the call's answer, or its launch when it goes on in the background."""
    call_id = block.tool_use_id or ""
    call, open_call = reading.calls.get(call_id), reading.state.calls.get(call_id)
    origin = call.draft.origin if call else open_call.origin if open_call else None
    message_id = call.draft.id if call else open_call.message_id if open_call else None
    facts = record.tool_use_result if isinstance(record.tool_use_result, ResultFacts) else None
    has_waited = message_id is not None and message_id == reading.state.stopped
    no_before_run: ResultStatus = "aborted" if has_waited else "denied"
    result = _result_of(reading, record, block, index, facts, origin, no_before_run)
    if result.status == "aborted":
        reading.state.stopped = message_id
    if not result.preliminary:
        reading.state.calls.pop(call_id, None)
    elif open_call is not None:
        open_call.settled = True
    if facts is not None:
        _note_task(reading, session, facts, call_id, message_id, origin)
    if record.uuid is not None:
        _place_result(reading, record, session, message_id)
        if message_id == session.thread.leaf and message_id is not None:
            session.end_at(record.uuid)
    answer = Answer(
        session_id=session.id,
        tool_call_id=call_id,
        message_id=message_id,
        record=(reading.position, reading.length),
        record_id=record.uuid,
        result=result,
        approval=_approval_of(record, result),
    )
    if result.status == "denied" and not reading.state.tells_decisions and is_users_no(record, block.content):
        hold_answer(reading, answer)
    else:
        tell_answer(reading, answer)


def _place_result(reading: Reading, record: Record, session: Session, message_id: str | None) -> None:
    """A result belongs to its call's message, or stands for what hangs between the two."""
    assert record.uuid is not None
    nodes, parent = reading.state.nodes, record.parent_uuid
    node = nodes.get(parent) if isinstance(parent, str) else None
    if node is None:
        node = message_id or (unresolved(parent) if isinstance(parent, str) else ROOT)
    meanwhile = session.thread.meanwhile
    if meanwhile is not None and node == meanwhile[0]:
        node = meanwhile[1]
    reading.state.remember_record(record.uuid, node)


def _result_of(
    reading: Reading,
    record: Record,
    block: Block,
    index: int,
    facts: ResultFacts | None,
    origin: str | None,
    no_before_run: ResultStatus,
) -> ToolResult:
    content, call_id = block.content, block.tool_use_id or ""
    text = content if isinstance(content, str) else messages_api.text_of(content)
    items = content if isinstance(content, list) else None
    is_error = block.is_error is True
    if is_error:
        is_told = reading.state.tells_decisions and record.tool_denial_kind is not None
        no: ResultStatus = "aborted" if reading.state.unasked or is_told else "denied"
        status = status_of_failure(record, text, no=no, no_before_run=no_before_run)
    else:
        status = status_of_success(facts)
    return ToolResult(
        id=result_id(call_id, text, items),
        status=status,
        content=_result_parts(reading, content, index),
        error_text=error_text_of(text) if is_error else None,
        exit_code=exit_code_of(text) if is_error else None,
        preliminary=facts is not None and _goes_on(facts),
        completed_at=record.timestamp,
        duration_ms=duration_of(facts) if facts is not None else None,
        spilled_to=_spill_in(reading, text, origin) if text.startswith("<persisted-output>") else None,
        metadata=_result_metadata(facts) if facts is not None else {},
    )


def _goes_on(facts: ResultFacts) -> bool:
    """Whether the result only says that a subagent, a command, a monitor or a workflow was started."""
    if facts.is_async is True or isinstance(facts.background_task_id, str):
        return True
    return isinstance(facts.task_id, str) and (facts.timeout_ms is not None or isinstance(facts.run_id, str))


def _result_parts(reading: Reading, content: str | list[Block] | Block | None, index: int) -> tuple[Part, ...]:
    if isinstance(content, str):
        return (TextPart(text=content),)
    if not isinstance(content, list):
        return ()
    json = reading.json
    return tuple(
        [
            messages_api.part_of(item, None, lambda at=at: raw_at(json, "message", "content", index, "content", at))
            for at, item in enumerate(content)
        ]
    )


def _result_metadata(facts: ResultFacts) -> dict[str, object]:
    """WebSearch asks another model, whose searches no usage counts; a workflow's run has subagents of its own."""
    if isinstance(facts.search_count, int):
        return {NAME: {"searches": facts.search_count}}
    return {NAME: {RUN: facts.run_id}} if isinstance(facts.run_id, str) else {}


def _approval_of(record: Record, result: ToolResult) -> Approval | None:
    if record.permission_decision is not None:
        return approval_of(record.permission_decision)
    return Approval(approved=False, source=record.tool_denial_kind) if result.status == "denied" else None


def _spill_in(reading: Reading, text: str, origin: str | None) -> str | None:
    """The name of the file that holds the whole output. Its path is looked at, never followed."""
    spilled = spilled_output_of(text)
    if spilled is None:
        return None
    if spilled.name is None:
        reading.tell("the output is said to lie outside the session's own folder", "note", "$.message.content")
    elif spilled.session not in (reading.root, origin):
        reading.tell("the output is said to lie in another session's folder", "note", "$.message.content")
    return spilled.name


def _note_task(
    reading: Reading,
    session: Session,
    facts: ResultFacts,
    call_id: str,
    message_id: str | None,
    origin: str | None,
) -> None:
    """The id of a subagent or background command: links the child, and finds the later report."""
    agent_id, task_id = facts.agent_id, facts.background_task_id
    if isinstance(agent_id, str):
        # A copied call started its subagent in the session that was copied.
        parent = session_id(origin) if origin is not None else session.id
        child = session_id(f"{origin or reading.root}.{agent_id}")
        reading.link_subagent(parent, child, call_id, message_id)
        if facts.is_async is True:
            reading.state.remember_task(agent_id, call_id)
    if isinstance(task_id, str):
        reading.state.remember_task(task_id, call_id)


def add_server_result(reading: Reading, draft: MessageDraft, record: Record, block: Block, index: int) -> None:
    """The provider ran a tool and put its result into the same message."""
    content, call_id = block.content, block.tool_use_id or ""
    items = content if isinstance(content, list) else None
    failure = content.error_code if isinstance(content, Block) else None
    parts = _result_parts(reading, content, index)
    if isinstance(content, Block):
        raw = raw_at(reading.json, "message", "content", index, "content")
        parts = (DataPart(name=block.type, data=raw),)
    result = ToolResult(
        id=result_id(call_id, block.type + messages_api.text_of(content), items),
        status="error" if block.is_error or failure is not None else "success",
        content=parts,
        error_text=failure,
        completed_at=record.timestamp,
    )
    reading.state.calls.pop(call_id, None)
    draft.records.append((reading.position, reading.length, result.id))
    call = reading.calls.get(call_id)
    if call is not None:
        call.add_result(result)
        return
    _add_late(reading, draft.session_id, call_id, result, draft.id)


def add_reports(reading: Reading, record: Record, session: Session, text: str) -> None:
    """What background tasks report: the second and final answer to the calls that started them."""
    for tags in notices_in(text):
        call_id = tags.get("tool-use-id") or reading.state.tasks.get(tags.get("task-id", ""))
        if call_id is not None:
            _add_report(reading, record, session, call_id, tags)


def _add_report(reading: Reading, record: Record, session: Session, call_id: str, tags: dict[str, str]) -> None:
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
    call = reading.calls.get(call_id)
    known = reading.state.calls.pop(call_id, None)
    if call is not None:
        call.add_result(result)
        call.draft.records.append((reading.position, reading.length, result.id))
        return
    _add_late(reading, session.id, call_id, result, known.message_id if known else None)


def _add_late(reading: Reading, session: str, call_id: str, result: ToolResult, message_id: str | None) -> None:
    reading.changes.results.append(
        ResultChange(
            session_id=session,
            tool_call_id=call_id,
            result=result,
            position=reading.position,
            record=(reading.position, reading.length),
            message_id=message_id,
        )
    )


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


def structured_result(record: bytes, tool_call_id: str) -> Raw | None:
    """`toolUseResult` of a record with the call's result, also where a `progress` record carries it.

    In a stream it is called `tool_use_result`.

    A record with several results has one `toolUseResult`, which is then that of the first.
    """
    try:
        found = msgspec.json.decode(record, type=_ResultRecord)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    if found.data is not None and isinstance(found.data.message, Raw):
        return structured_result(bytes(found.data.message), tool_call_id)
    content = found.message.content if found.message else None
    answered = [block.tool_use_id for block in content if block.tool_use_id] if isinstance(content, list) else []
    if answered[:1] != [tool_call_id]:
        return None
    told = (result for result in (found.tool_use_result, found.streamed_result) if isinstance(result, Raw))
    return next((result.copy() for result in told), None)
