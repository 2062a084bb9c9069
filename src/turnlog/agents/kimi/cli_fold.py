"""The fold of one Kimi CLI log: a line for each message that the program sends to its surface, appended only.

Its pieces become the same steps as Kimi Code's, whose context (`fold_context`) it shares. Records have no ids.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePath

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnlog.agents.base import Source, SourceKind
from turnlog.agents.decoding import clean_json
from turnlog.agents.jsonl import UNREADABLE
from turnlog.agents.kimi import KIMI_CLI
from turnlog.agents.kimi.cli_records import (
    CLI_CALLS,
    CLI_LINES,
    CLI_RECORD_KINDS,
    PAYLOADS,
    CliPayload,
    CliRecord,
    CliRecordOutcome,
)
from turnlog.agents.kimi.cli_sources import cli_folder_of, model_of_cli_subagent
from turnlog.agents.kimi.contents import part_of, parts_of, result_of, time_of, usage_of
from turnlog.agents.kimi.fold_context import KimiContext, KimiState, Step, decode_state, encode_state
from turnlog.agents.kimi.messages import call_part, input_message
from turnlog.agents.kimi.records import KimiTokenUsage
from turnlog.agents.line_fold import LineFold
from turnlog.model import CompactionEvent, InterruptEvent, Message, Origin, ResultStatus

_REJECTED = "The tool call is rejected by the user."
"""How the program says that the user refused a call (1.49)."""


class KimiCliFold(LineFold[KimiState, KimiContext, CliRecord]):
    """Reads one log."""

    def __init__(self, source: Source, state: bytes | None) -> None:
        """Begin at the start of the log, or where `state` left off."""
        # No record names the model, except that of a subagent in its `meta.json`.
        known = decode_state(state) if state is not None else KimiState(alias=model_of_cli_subagent(source))
        super().__init__(source, known, encode_state, CLI_LINES)

    def begin(self, data: bytes, offset: int) -> KimiContext:
        """See `LineFold.begin`."""
        source = self._source
        external = (source.session_id or "").partition(":")[2] or PurePath(source.path).stem
        context = KimiContext(self._state, external, agent=KIMI_CLI, is_subagent=source.kind is SourceKind.SUBAGENT)
        if offset == 0:
            context.set_folder(cli_folder_of(source))
        return context

    def read(self, context: KimiContext, record: CliRecord) -> None:
        """See `LineFold.read`."""
        context.begin(time_of(record.timestamp * 1000 if record.timestamp is not None else None))
        _read(context, record)


def _read(context: KimiContext, record: CliRecord) -> None:
    outcome = CLI_RECORD_KINDS.get(record.kind)
    raw = record.message.payload if record.message is not None else UNSET
    payload = _payload_of(context, raw)
    if outcome is None:
        context.add_record(record.kind, known=False)
        return
    if record.protocol_version is not None:
        context.session.metadata = {KIMI_CLI: {"protocol_version": record.protocol_version}}
    reader = _READERS.get(outcome)
    if reader is None or not reader(context, payload, raw):
        context.add_run_metadata(record.kind)


def _payload_of(context: KimiContext, raw: Raw | UnsetType) -> CliPayload:
    found = PAYLOADS.decode(clean_json(bytes(raw))) if isinstance(raw, Raw) else CliPayload()
    if isinstance(found, CliPayload):
        return found
    if isinstance(found, str):
        context.report(found, json_path="$.message.payload")
        return CliPayload()
    for problem in found.problems:
        context.report(problem.reason, problem.severity, f"$.message.payload{problem.json_path or ''}")
    return found.record


# -- the conversation. Each function says whether the record became something.


def _read_prompt(context: KimiContext, payload: CliPayload, raw: Raw | UnsetType) -> bool:
    origin = Origin.SUBAGENT_PROMPT if context.is_subagent else Origin.PROMPT
    input_message(context, context.record_id(), payload.user_input, origin, {})
    return True


def _read_step(context: KimiContext, payload: CliPayload, raw: Raw | UnsetType) -> bool:
    state, message_id = context.state, context.record_id()
    state.steps += 1
    state.step = Step(message=message_id, position=context.position, number=state.steps)
    context.add_message(
        Message(id=message_id, role="assistant", created_at=context.at, model=state.alias), step=state.steps
    )
    return True


def _read_part(context: KimiContext, payload: CliPayload, raw: Raw | UnsetType) -> bool:
    step = context.state.step
    if step is None or not isinstance(raw, Raw):
        return False
    context.add_piece(step, parts=(part_of(raw, f"{step.message}.{step.parts}"),))
    step.parts += 1
    return True


def _read_call(context: KimiContext, payload: CliPayload, raw: Raw | UnsetType) -> bool:
    step = context.state.step
    if step is None or not isinstance(raw, Raw):
        return False
    try:
        call = CLI_CALLS.decode(clean_json(bytes(raw)))
    except UNREADABLE:
        return False
    context.add_piece(step, parts=(call_part(context, call, f"{step.message}.{step.parts}", step.message),))
    step.parts += 1
    return True


def _read_status(context: KimiContext, payload: CliPayload, raw: Raw | UnsetType) -> bool:
    """Read the tokens of a step. Most of these records say only how full the context is."""
    step, tokens = context.state.step, payload.token_usage
    if tokens is None:
        return False
    usage = usage_of(KimiTokenUsage(**msgspec.structs.asdict(tokens)))
    # The first tokens after `StepBegin` are the step's. Further ones belong to a call that no record describes.
    if step is not None and not step.counted:
        step.counted = True
        context.add_piece(step, usage=usage, response_id=payload.message_id)
        return True
    message_id = context.record_id()
    context.add_side_call(
        Message(
            id=message_id,
            role="assistant",
            created_at=context.at,
            usage=usage,
            response_id=payload.message_id,
            metadata=context.metadata_of({"side_call": "unknown"}),
        )
    )
    return True


def _read_result(context: KimiContext, payload: CliPayload, raw: Raw | UnsetType) -> bool:
    value, call_id = payload.return_value, payload.tool_call_id
    if value is None or not call_id:
        return False
    call = context.state.calls.pop(call_id, None)
    decision = context.state.decisions.pop(call_id, None)
    message = value.message or ""
    status: ResultStatus = "error" if value.is_error else "success"
    if value.is_error and (decision == "reject" or message.startswith(_REJECTED)):
        status = "denied"
    result = result_of(
        call_id,
        tuple(parts_of(value.output, f"{call_id}.result")),
        status,
        name=None if call is None else call.tool,
        at=context.at,
        message=message,
        metadata=context.metadata_of({"message": message or None}),
    )
    context.add_result(call_id, result, None if call is None else call.message)
    return True


def _read_compaction(context: KimiContext, payload: CliPayload, raw: Raw | UnsetType) -> bool:
    """Read the end of a compaction. The summary is only in the context, which the program rewrites."""
    step = context.state.step
    # A step begins before its context is compacted, and asks the model after that.
    kept = () if step is None or step.parts or step.counted else (step.message,)
    context.add_event(CompactionEvent(id=context.record_id(), created_at=context.at, kept_message_ids=kept))
    context.state.branched = True
    return True


def _read_interrupt(context: KimiContext, payload: CliPayload, raw: Raw | UnsetType) -> bool:
    state = context.state
    during = "tool" if state.calls else "answer"
    context.add_event(
        InterruptEvent(id=context.record_id(), created_at=context.at, during=during, message_id=state.leaf)
    )
    return True


def _read_request(context: KimiContext, payload: CliPayload, raw: Raw | UnsetType) -> bool:
    # The response names the request and not the call.
    if payload.id and payload.tool_call_id in context.state.calls:
        context.state.requests[payload.id] = payload.tool_call_id or ""
    return False


def _read_approval(context: KimiContext, payload: CliPayload, raw: Raw | UnsetType) -> bool:
    call_id = context.state.requests.pop(payload.request_id or "", None)
    if call_id is not None and payload.response:
        context.state.decisions[call_id] = payload.response
    return False


def _read_subagent(context: KimiContext, payload: CliPayload, raw: Raw | UnsetType) -> bool:
    """Read a copy of what a subagent's own log has. Without the subagent's name there is no such log."""
    if not payload.agent_id:
        return False
    # Each record of the subagent is copied into its parent's log, and one link is enough.
    if payload.agent_id not in context.state.subagents:
        context.state.subagents.append(payload.agent_id)
        context.link_subagent(payload.agent_id, payload.parent_tool_call_id)
    context.changes.counts.duplicates += 1
    return True


_READERS: dict[CliRecordOutcome, Callable[[KimiContext, CliPayload, Raw | UnsetType], bool]] = {
    CliRecordOutcome.PROMPT: _read_prompt,
    CliRecordOutcome.STEP: _read_step,
    CliRecordOutcome.PART: _read_part,
    CliRecordOutcome.CALL: _read_call,
    CliRecordOutcome.STATUS: _read_status,
    CliRecordOutcome.RESULT: _read_result,
    CliRecordOutcome.COMPACTION: _read_compaction,
    CliRecordOutcome.INTERRUPT: _read_interrupt,
    CliRecordOutcome.APPROVAL_REQUEST: _read_request,
    CliRecordOutcome.APPROVAL: _read_approval,
    CliRecordOutcome.SUBAGENT: _read_subagent,
}
