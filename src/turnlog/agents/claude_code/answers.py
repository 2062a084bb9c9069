"""Results on their way to their calls, and the user's no that has to wait until the log says what it was.

Up to about 2.1.290 the result of a call that was refused and that of one which Escape stopped have the same words. What
tells them apart is the record of the interrupt behind them: it names the message whose tool was running
(`interruptedMessageId`, seen from 2.1.150 on) and none where the question for leave was still open.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from turnlog.agents.changes import ResultChange
from turnlog.agents.claude_code.reading import Reading
from turnlog.agents.claude_code.state import HeldAnswer
from turnlog.model import Approval, ToolResult


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
