"""Messages that no model wrote: prompts, commands, shell escapes, notifications, what the harness injected."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import msgspec

from turnlog.agents.changes import MessageChange, Placement
from turnlog.agents.claude_code import messages_api
from turnlog.agents.claude_code.assistant_messages import give_up_calls, prompt_key
from turnlog.agents.claude_code.events import add_interrupt, add_odd_record, add_record, add_rewind
from turnlog.agents.claude_code.fold_context import SAID, Reading, Session, is_late, late_position, settle_late
from turnlog.agents.claude_code.records import Attachment, Block, FileSource, Record
from turnlog.agents.claude_code.sources import NAME
from turnlog.agents.claude_code.state import message_in, record_in
from turnlog.agents.claude_code.tool_results import add_reports, read_result, settle_answers
from turnlog.agents.claude_code.user_text import INTERRUPTS, WARM_UP, command_of, origin_of_text, split_injected
from turnlog.agents.decoding import raw_at
from turnlog.model import Message, Origin, Part, TextPart

_TITLE_LENGTH = 200
_PASTED = re.compile(r"</?pasted_content\b[^>]*>")
"""Tags that 2.1.330 puts around what was pasted."""


def read_user(reading: Reading, record: Record) -> None:
    """A record of type `user`: results of tool calls, or text that only its flags and tags tell apart."""
    message = record.message
    if message is None:
        add_odd_record(reading, record)
        return
    if reading.is_known(record):
        return
    session = reading.session_of(record)
    content = message.content or ""
    items = [] if isinstance(content, str) else content
    answers = [(index, block) for index, block in enumerate(items) if block.tool_use_id is not None]
    if answers:
        _read_results(reading, record, session, items, answers)
    elif not _read_interrupt(reading, record, session, content):
        settle_answers(reading)
        add_message(reading, record, session, content, _flagged_origin(record))
        reading.changes.counts.messages += 1
    else:
        reading.changes.counts.events += 1


def _read_results(
    reading: Reading, record: Record, session: Session, content: list[Block], answers: list[tuple[int, Block]]
) -> None:
    """Mostly one result a record; older versions and imports have several, and text beside them."""
    for index, block in answers:
        read_result(reading, record, session, block, index)
    reading.changes.counts.results += 1
    if len(answers) < len(content) and not _read_interrupt(reading, record, session, content):
        add_message(reading, record, session, content, _flagged_origin(record))


def _read_interrupt(reading: Reading, record: Record, session: Session, content: str | list[Block]) -> bool:
    text = content if isinstance(content, str) else messages_api.text_of(content)
    during = INTERRUPTS.get(text.strip())
    if during is None:
        return False
    add_interrupt(reading, record, session, during)
    return True


def _flagged_origin(record: Record) -> Origin | None:
    """The origin that a record's own flags tell."""
    if record.is_compact_summary:
        return Origin.COMPACTION
    kind = record.origin.kind if record.origin else None
    if record.is_meta and kind != "task-notification":
        # What was scheduled is said when its time comes (2.1.330).
        return Origin.NOTIFICATION if record.prompt_source == "system" else Origin.HARNESS
    return Origin.NOTIFICATION if kind not in (None, "human") else None


def add_message(
    reading: Reading, record: Record, session: Session, content: str | list[Block], origin: Origin | None
) -> None:
    """Put a message where its record stands; without an `origin` its text tells what it is. Results are no part."""
    message_id = record.uuid or reading.own_id()
    parts, spoken = _parts_of(reading, record, content, message_id)
    if origin is None:
        origin = _origin_of(parts, spoken)
    if origin is Origin.PROMPT and (reading.is_subagent or record.is_sidechain):
        origin = Origin.SUBAGENT_PROMPT
    if origin is Origin.PROMPT and _goes_with(reading, record, session, spoken):
        origin = Origin.HARNESS
    if record.permission_mode is not None:
        reading.state.unasked = record.permission_mode == "bypassPermissions"
    late = is_late(record, session)
    is_first = session.thread.leaf is None
    parent, branches = (reading.parent_node(record, session), False) if late else reading.attach(record, session)
    if origin in SAID and late:
        _begin_early_turn(record, session, spoken)
    elif origin in SAID:
        _note_running_calls(reading, session, message_in(parent), message_id)
        _begin_turn(reading, record, session, spoken, origin, is_first=is_first)
        session.thread.said_at, session.thread.commanded = record.timestamp, origin is Origin.COMMAND
        if branches:
            add_rewind(reading, record, session, message_in(parent), record_in(parent))
    message = Message(
        id=message_id,
        role="user" if origin in SAID else "developer",
        parts=parts,
        origin=origin,
        created_at=record.timestamp,
        metadata=_metadata_of(record, spoken, origin),
    )
    position = late_position(session) if late else reading.position
    place = _placement_of(reading, record, session, parent, position)
    reading.order.append(MessageChange(message=message, placement=place))
    if late and record.uuid is not None:
        reading.state.remember_record(record.uuid, message_id)
        settle_late(reading, record, session, message_id)
    else:
        reading.advance(record, session, message_id, origin)
    if origin is Origin.NOTIFICATION:
        add_reports(reading, record, session, spoken)


def _goes_with(reading: Reading, record: Record, session: Session, spoken: str) -> bool:
    """Whether a record goes with what was said just before, at the same time.

    Up to 2.0.21 a resume copies each block of a prompt into a record of its own, and what a command stands for without
    the flag that says so.
    """
    thread = session.thread
    if record.timestamp is None or record.timestamp != thread.said_at or thread.leaf != thread.anchor:
        return False
    return (thread.commanded or not spoken.strip()) and reading.parent_node(record, session) == thread.leaf


def _placement_of(reading: Reading, record: Record, session: Session, parent: str, position: int) -> Placement:
    return Placement(
        session_id=session.id,
        position=position,
        records=((reading.position, reading.length, None),),
        record_ids=(record.uuid,) if record.uuid is not None else (),
        parent_id=message_in(parent),
        parent_record=record_in(parent),
        turn=session.thread.turn or None,
        fate=session.fate,
        copied=reading.origin_of(record) is not None,
    )


def _parts_of(
    reading: Reading, record: Record, content: str | list[Block], message_id: str
) -> tuple[tuple[Part, ...], str]:
    """The parts of a text or of messages_api, and the text without what was glued in front of it."""
    parts: list[Part] = []
    spoken: list[str] = []
    for index, block in enumerate([Block(type="text", text=content)] if isinstance(content, str) else content):
        if block.tool_use_id is not None:
            continue
        if block.type != "text" or block.text is None:
            raw = partial(_exact_block, reading.json, record, block, index)
            parts.append(messages_api.part_of(block, f"{message_id}.{len(parts)}", raw))
            continue
        injected, text = split_injected(block.text) if not spoken else ("", block.text)
        if injected:
            metadata = {NAME: {"synthetic": True}}
            parts.append(TextPart(id=f"{message_id}.{len(parts)}", text=injected, metadata=metadata))
        if text:
            parts.append(TextPart(id=f"{message_id}.{len(parts)}", text=text))
            spoken.append(text)
    return tuple(parts), "\n".join(spoken)


def _exact_block(json: bytes, record: Record, block: Block, index: int) -> msgspec.Raw:
    """The JSON of a block: the record's own, or for what was made of an attachment that of the block."""
    if record.message is not None:
        return raw_at(json, "message", "content", index)
    return msgspec.Raw(msgspec.json.encode(block))


def _origin_of(parts: tuple[Part, ...], spoken: str) -> Origin:
    """Nothing but wrappers came from the harness; images or files alone are a prompt."""
    if spoken.strip():
        return origin_of_text(spoken)
    return Origin.HARNESS if parts and all(part.type == "text" for part in parts) else Origin.PROMPT


def _metadata_of(record: Record, spoken: str, origin: Origin) -> dict[str, Any]:
    facts: dict[str, Any] = dict(record.others or {})
    command = command_of(spoken, origin)
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
    reading: Reading, record: Record, session: Session, spoken: str, origin: Origin, *, is_first: bool
) -> None:
    give_up_calls(reading, session)
    thread = session.thread
    thread.turn += 1
    thread.step = 0
    thread.early = None
    if is_first and origin is Origin.SUBAGENT_PROMPT:
        thread.warm_up = spoken.strip() == WARM_UP
        if not reading.is_subagent:
            _link_sidechain(reading, session, spoken)
    if origin in (Origin.PROMPT, Origin.SUBAGENT_PROMPT):
        _title(record, session, spoken)


def _begin_early_turn(record: Record, session: Session, spoken: str) -> None:
    """The turn that the answers at the log's very beginning are of: its prompt comes only now."""
    session.thread.turn += 1
    _title(record, session, spoken)


def _title(record: Record, session: Session, spoken: str) -> None:
    if not session.thread.titled:
        title = " ".join(_PASTED.sub(" ", spoken).split())[:_TITLE_LENGTH]
        if title:
            session.change.titles["prompt"] = title
            session.change.titled_at = record.timestamp
            session.thread.titled = True


def _note_running_calls(reading: Reading, session: Session, parent: str | None, message_id: str) -> None:
    """A prompt that is sent with Escape stands before the results of the calls that this stops, and beside them."""
    if parent is not None and any(
        call.message_id == parent and not call.settled for call in reading.state.calls.values()
    ):
        session.thread.meanwhile = parent, message_id


def _link_sidechain(reading: Reading, session: Session, prompt: str) -> None:
    """Up to 1.0.x no record says which call started a sidechain: it is the first open one with the same prompt."""
    key = prompt_key(prompt)
    for call_id, call in reading.state.calls.items():
        if call.prompt == key:
            call.prompt = None
            reading.link_subagent(reading.main.id, session.id, call_id, call.message_id, inferred=True)
            return
    reading.link_subagent(reading.main.id, session.id, inferred=True)


def read_attachment(reading: Reading, record: Record) -> None:
    """What was put beside a prompt: a message when the model got it, else an event."""
    attachment = record.attachment
    if attachment is None:
        add_odd_record(reading, record)
        return
    if reading.is_known(record):
        return
    session = reading.session_of(record)
    content: str | list[Block] = _rendered_blocks(record) or _file_blocks(attachment)
    origin: Origin | None = Origin.HARNESS
    if attachment.type == "queued_command" and attachment.prompt:
        # Typed while a tool ran: no user record exists for it.
        content = attachment.prompt
        origin = Origin.NOTIFICATION if _is_notification(attachment) else None
    if content:
        add_message(reading, record, session, content, origin)
        reading.changes.counts.messages += 1
    else:
        add_record(reading, record, session)


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
    """A mentioned file, where the log has the file and not what was made of it."""
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
