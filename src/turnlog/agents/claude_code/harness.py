"""Records that the harness writes into the chain: attachments, system records, progress of what runs."""

from __future__ import annotations

import msgspec
from msgspec import UNSET

from turnlog.agents.claude_code.assistant import read_assistant
from turnlog.agents.claude_code.compaction import open_compaction
from turnlog.agents.claude_code.events import add_api_error, add_hook_error, add_odd_record, add_record
from turnlog.agents.claude_code.lines import decode_record
from turnlog.agents.claude_code.reading import Reading
from turnlog.agents.claude_code.records import Attachment, Block, FileSource, Record
from turnlog.agents.claude_code.user import add_message, read_user
from turnlog.model import Origin


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


def read_system(reading: Reading, record: Record) -> None:
    """Notices, errors, compactions, and the slash commands that run without the model."""
    if reading.is_known(record):
        return
    session = reading.session_of(record)
    if record.subtype == "compact_boundary":
        open_compaction(reading, record, session)
    elif record.subtype == "api_error":
        add_api_error(reading, record, session)
    elif record.subtype == "local_command" and record.content:
        add_message(reading, record, session, record.content, None)
        reading.changes.counts.messages += 1
    elif record.hook_errors:
        add_hook_error(reading, record, session)
    else:
        add_record(reading, record, session)


_COPIES = {"assistant": read_assistant, "user": read_user}


def read_progress(reading: Reading, record: Record) -> None:
    """Signs of life of a hook, a command or a subagent; of the latter, a copy of its record, perhaps the only one."""
    copy = _copy_in(reading, record)
    if copy is None or copy.type not in _COPIES:
        add_record(reading, record, reading.session_of(record))
        return
    parent = reading.session_of(record)
    if record.uuid is not None:
        reading.state.remember_record(record.uuid, reading.parent_node(record, parent))
    child = reading.child(copy.agent_id or "")
    if record.parent_tool_use_id is not None and child.thread.leaf is None:
        reading.link_subagent(parent.id, child.id, record.parent_tool_use_id)
    _COPIES[copy.type](reading, copy)


def _copy_in(reading: Reading, record: Record) -> Record | None:
    data = record.data
    if data is None or data.agent_id is None or data.message is UNSET:
        return None
    try:
        copy = decode_record(data.message)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        reading.tell("the copied record has another shape", "error", "$.data.message")
        return None
    copy.is_sidechain, copy.agent_id = True, data.agent_id
    copy.session_id = copy.session_id or record.session_id
    copy.timestamp = copy.timestamp or record.timestamp
    reading.json = bytes(data.message)
    return copy
