"""Messages that the model did not write: prompts, commands, shell escapes, notifications, injected context."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import msgspec

from turnlog.agents.changes import MessageChange, Placement
from turnlog.agents.claude_code import messages_api
from turnlog.agents.claude_code.assistant_messages import abort_pending_calls, prompt_key
from turnlog.agents.claude_code.events import add_interrupt, add_malformed_record, add_record_event, add_rewind
from turnlog.agents.claude_code.fold_context import (
    TURN_ORIGINS,
    ClaudeContext,
    SessionContext,
    position_before_early_replies,
    precedes_early_replies,
    resolve_early_replies,
)
from turnlog.agents.claude_code.records import Attachment, Block, FileSource, Record
from turnlog.agents.claude_code.sources import NAME
from turnlog.agents.claude_code.state import message_of_node, record_of_node
from turnlog.agents.claude_code.tool_results import add_task_reports, read_result, settle_rejections
from turnlog.agents.claude_code.user_text import INTERRUPTS, WARM_UP, command_of, origin_of_text, split_injected
from turnlog.agents.decoding import raw_at
from turnlog.model import Message, Origin, Part, TextPart

_TITLE_LENGTH = 200
_PASTED = re.compile(r"</?pasted_content\b[^>]*>")
"""Tags that 2.1.330 puts around pasted text."""


def read_user(context: ClaudeContext, record: Record) -> None:
    """Read a `user` record: results of tool calls, or a text whose flags and tags say what it is."""
    message = record.message
    if message is None:
        add_malformed_record(context, record)
        return
    if context.is_known(record):
        return
    session = context.session_of(record)
    content = message.content or ""
    items = [] if isinstance(content, str) else content
    results = [(index, block) for index, block in enumerate(items) if block.tool_use_id is not None]
    if results:
        _read_results(context, record, session, items, results)
    elif not _read_interrupt(context, record, session, content):
        settle_rejections(context)
        add_message(context, record, session, content, _origin_by_flags(record))
        context.changes.counts.messages += 1
    else:
        context.changes.counts.events += 1


def _read_results(
    context: ClaudeContext,
    record: Record,
    session: SessionContext,
    content: list[Block],
    results: list[tuple[int, Block]],
) -> None:
    """Read the results of a record. Older versions and imports write several into one, and text as well."""
    for index, block in results:
        read_result(context, record, session, block, index)
    context.changes.counts.results += 1
    if len(results) < len(content) and not _read_interrupt(context, record, session, content):
        add_message(context, record, session, content, _origin_by_flags(record))


def _read_interrupt(
    context: ClaudeContext, record: Record, session: SessionContext, content: str | list[Block]
) -> bool:
    text = content if isinstance(content, str) else messages_api.text_of(content)
    during = INTERRUPTS.get(text.strip())
    if during is None:
        return False
    add_interrupt(context, record, session, during)
    return True


def _origin_by_flags(record: Record) -> Origin | None:
    """The origin by a record's flags; None when only its text can tell."""
    if record.is_compact_summary:
        return Origin.COMPACTION
    kind = record.origin.kind if record.origin else None
    if record.is_meta and kind != "task-notification":
        # A scheduled prompt, written when its time comes (2.1.330).
        return Origin.NOTIFICATION if record.prompt_source == "system" else Origin.HARNESS
    return Origin.NOTIFICATION if kind not in (None, "human") else None


def add_message(
    context: ClaudeContext, record: Record, session: SessionContext, content: str | list[Block], origin: Origin | None
) -> None:
    """Add the message of a record. Without an `origin` its text decides what it is. Blocks of results are skipped."""
    message_id = record.uuid or context.position_id()
    parts, user_text = _parts_of(context, record, content, message_id)
    if origin is None:
        origin = _origin_of(parts, user_text)
    if origin is Origin.PROMPT and (context.is_subagent or record.is_sidechain):
        origin = Origin.SUBAGENT_PROMPT
    # The same prompt must not begin a second turn.
    if origin is Origin.PROMPT and _continues_previous(context, record, session, user_text):
        origin = Origin.HARNESS
    if record.permission_mode is not None:
        context.state.permissions_bypassed = record.permission_mode == "bypassPermissions"
    comes_before_replies = precedes_early_replies(record, session)
    is_first = session.state.leaf is None
    if comes_before_replies:
        parent, branches = context.parent_node(record, session), False
    else:
        parent, branches = context.attach(record, session)
    if origin in TURN_ORIGINS and comes_before_replies:
        _begin_turn_of_early_replies(record, session, user_text)
    elif origin in TURN_ORIGINS:
        _note_prompt_during_calls(context, session, message_of_node(parent), message_id)
        _begin_turn(context, record, session, user_text, origin, is_first=is_first)
        session.state.prompted_at, session.state.prompted_by_command = record.timestamp, origin is Origin.COMMAND
        if branches:
            add_rewind(context, record, session, message_of_node(parent), record_of_node(parent))
    message = Message(
        id=message_id,
        role="user" if origin in TURN_ORIGINS else "developer",
        parts=parts,
        origin=origin,
        created_at=record.timestamp,
        metadata=_metadata_of(record, user_text, origin),
    )
    # A prompt that the log has after its reply is placed before the reply, which stays the newest message.
    position = position_before_early_replies(session) if comes_before_replies else context.position
    place = _placement_of(context, record, session, parent, position)
    context.new_messages.append(MessageChange(message=message, placement=place))
    if comes_before_replies and record.uuid is not None:
        context.state.remember_record(record.uuid, message_id)
        resolve_early_replies(context, record, session, message_id)
    else:
        context.advance(record, session, message_id, origin)
    if origin is Origin.NOTIFICATION:
        add_task_reports(context, record, session, user_text)


def _continues_previous(context: ClaudeContext, record: Record, session: SessionContext, user_text: str) -> bool:
    """Whether a record belongs to the prompt just before, which has the same time.

    Up to 2.0.21 a resume copies each block of a prompt into a record of its own. It also copies the text that a command
    expands to without the flag that marks it as injected.
    """
    state = session.state
    if record.timestamp is None or record.timestamp != state.prompted_at or state.leaf != state.anchor:
        return False
    return (state.prompted_by_command or not user_text.strip()) and context.parent_node(record, session) == state.leaf


def _placement_of(
    context: ClaudeContext, record: Record, session: SessionContext, parent: str, position: int
) -> Placement:
    return Placement(
        session_id=session.id,
        position=position,
        records=((context.position, context.length, None),),
        record_ids=(record.uuid,) if record.uuid is not None else (),
        parent_id=message_of_node(parent),
        parent_record=record_of_node(parent),
        turn=session.state.turn or None,
        fate=session.fate,
        copied=context.copied_from(record) is not None,
    )


def _parts_of(
    context: ClaudeContext, record: Record, content: str | list[Block], message_id: str
) -> tuple[tuple[Part, ...], str]:
    """The parts of a text or of blocks, and the user's text: without the wrappers in front of it."""
    parts: list[Part] = []
    user_text: list[str] = []
    for index, block in enumerate([Block(type="text", text=content)] if isinstance(content, str) else content):
        if block.tool_use_id is not None:
            continue
        if block.type != "text" or block.text is None:
            raw = partial(_exact_block, context.json, record, block, index)
            parts.append(messages_api.part_of(block, f"{message_id}.{len(parts)}", raw))
            continue
        injected, text = split_injected(block.text) if not user_text else ("", block.text)
        if injected:
            metadata = {NAME: {"synthetic": True}}
            parts.append(TextPart(id=f"{message_id}.{len(parts)}", text=injected, metadata=metadata))
        if text:
            parts.append(TextPart(id=f"{message_id}.{len(parts)}", text=text))
            user_text.append(text)
    return tuple(parts), "\n".join(user_text)


def _exact_block(json: bytes, record: Record, block: Block, index: int) -> msgspec.Raw:
    """The exact JSON of a block. An attachment's record does not have it, so the block is encoded."""
    if record.message is not None:
        return raw_at(json, "message", "content", index)
    return msgspec.Raw(msgspec.json.encode(block))


def _origin_of(parts: tuple[Part, ...], user_text: str) -> Origin:
    """The origin by a message's text. Wrappers alone are injected context; images or files alone are a prompt."""
    if user_text.strip():
        return origin_of_text(user_text)
    return Origin.HARNESS if parts and all(part.type == "text" for part in parts) else Origin.PROMPT


def _metadata_of(record: Record, user_text: str, origin: Origin) -> dict[str, Any]:
    facts: dict[str, Any] = dict(record.others or {})
    command = command_of(user_text, origin)
    if command is not None:
        facts["command"] = {"name": command.name, "arguments": command.arguments}
    if record.permission_mode is not None:
        facts["permission_mode"] = record.permission_mode
    if record.prompt_source is not None:
        facts["prompt_source"] = record.prompt_source
    if record.attachment is not None:
        facts["attachment"] = record.attachment.type
    return {NAME: facts} if facts else {}


def _begin_turn(
    context: ClaudeContext, record: Record, session: SessionContext, user_text: str, origin: Origin, *, is_first: bool
) -> None:
    abort_pending_calls(context, session)
    state = session.state
    state.turn += 1
    state.step = 0
    state.early_replies = None
    if is_first and origin is Origin.SUBAGENT_PROMPT:
        state.warm_up = user_text.strip() == WARM_UP
        if not context.is_subagent:
            _link_sidechain(context, session, user_text)
    if origin in (Origin.PROMPT, Origin.SUBAGENT_PROMPT):
        _set_title(record, session, user_text)


def _begin_turn_of_early_replies(record: Record, session: SessionContext, user_text: str) -> None:
    """Begin the turn of the assistant messages that stand before this prompt."""
    session.state.turn += 1
    _set_title(record, session, user_text)


def _set_title(record: Record, session: SessionContext, user_text: str) -> None:
    if not session.state.titled:
        title = " ".join(_PASTED.sub(" ", user_text).split())[:_TITLE_LENGTH]
        if title:
            session.change.titles["prompt"] = title
            session.change.titled_at = record.timestamp
            session.state.titled = True


def _note_prompt_during_calls(
    context: ClaudeContext, session: SessionContext, parent: str | None, message_id: str
) -> None:
    """Note a prompt that was sent while calls run. It stops them, but stands before their results in the log."""
    if parent is not None and any(
        call.message_id == parent and not call.settled for call in context.state.calls.values()
    ):
        session.state.prompt_during_calls = parent, message_id


def _link_sidechain(context: ClaudeContext, session: SessionContext, prompt: str) -> None:
    """Link a sidechain with its call. Up to 1.0.x no record names it: it is the first one with the same prompt."""
    key = prompt_key(prompt)
    for call_id, call in context.state.calls.items():
        if call.prompt == key:
            call.prompt = None
            context.link_subagent(context.main.id, session.id, call_id, call.message_id, inferred=True)
            return
    context.link_subagent(context.main.id, session.id, inferred=True)


def read_attachment(context: ClaudeContext, record: Record) -> None:
    """Read an `attachment` record: injected context that becomes a message when the log has its text, else an event."""
    attachment = record.attachment
    if attachment is None:
        add_malformed_record(context, record)
        return
    if context.is_known(record):
        return
    session = context.session_of(record)
    content: str | list[Block] = _rendered_blocks(record) or _file_blocks(attachment)
    origin: Origin | None = Origin.HARNESS
    if attachment.type == "queued_command" and attachment.prompt:
        # A prompt that was typed while a tool ran. No `user` record has it.
        content = attachment.prompt
        origin = Origin.NOTIFICATION if _is_notification(attachment) else None
    if content:
        add_message(context, record, session, content, origin)
        context.changes.counts.messages += 1
    else:
        add_record_event(context, record, session)


def _is_notification(attachment: Attachment) -> bool:
    kind = attachment.origin.kind if attachment.origin else None
    return kind not in (None, "human") or attachment.command_mode == "task-notification"


def _rendered_blocks(record: Record) -> list[Block]:
    found: list[Block] = []
    for rendered in record.rendered or ():
        if isinstance(rendered.content, str):
            found.append(Block(type="text", text=rendered.content))
        elif rendered.content:
            found.extend(rendered.content)
    return found


def _file_blocks(attachment: Attachment) -> list[Block]:
    """The content of a file that the user mentioned, in versions that log the file and not the text the model got."""
    content = attachment.content
    if attachment.type != "file" or content is None or isinstance(content, str | list) or content.file is None:
        return []
    file = content.file
    if file.content is not None:
        return [Block(type="text", text=file.content)]
    if file.base64 is not None:
        source = FileSource(type="base64", media_type=file.type, data=file.base64)
        return [Block(type="image", source=source, title=attachment.filename)]
    return []
