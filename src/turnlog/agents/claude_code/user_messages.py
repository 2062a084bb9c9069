"""Messages that the model did not write: prompts, commands, shell escapes, notifications, injected context.

Claude Code sends all of these to the model as user messages and tells them apart by flags on the record and by tags in
the text. The order of the rules matters: flags first, then the tag that the text begins with.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple, cast

import msgspec

from turnlog.agents.changes import MessageChange, Placement
from turnlog.agents.claude_code import NAME, contents
from turnlog.agents.claude_code.assistant_messages import abort_pending_calls, prompt_key
from turnlog.agents.claude_code.fold_context import (
    TURN_ORIGINS,
    ClaudeContext,
    SessionContext,
    add_malformed_record,
    add_record_event,
    position_before_early_replies,
    precedes_early_replies,
    resolve_early_replies,
)
from turnlog.agents.claude_code.records import AttachedContent, Attachment, ClaudeRecord, ContentBlock, FileSource
from turnlog.agents.claude_code.state import message_of_node, record_of_node
from turnlog.agents.claude_code.tool_results import (
    add_task_reports,
    notifications_in,
    read_result,
    settle_rejections,
    tags_of,
)
from turnlog.agents.decoding import raw_at
from turnlog.model import Fate, InterruptEvent, Message, Origin, Part, RewindEvent, TextPart
from turnlog.model.session import title_from, title_line


def read_user(context: ClaudeContext, record: ClaudeRecord) -> None:
    """Read a `user` record: results of tool calls, or a text whose flags and tags say what it is."""
    message = record.message
    if message is None:
        add_malformed_record(context, record)
        return
    if context.note_text(record):
        _read_other_record(context, record)
        return
    # Of a record that is read again, nothing but its age counts.
    if record.uuid is not None and record.uuid in context.state.nodes and context.is_of_main(record):
        context.note_age(record, context.main)
    if context.is_known(record):
        return
    session = context.session_of(record)
    context.note_age(record, session)
    content = message.content or ""
    items = [] if isinstance(content, str) else content
    # Results come as blocks of user records, because the Messages API has no role of their own for them.
    results = [(index, block) for index, block in enumerate(items) if block.tool_use_id is not None]
    if results:
        _read_results(context, record, session, items, results)
    # The words of an interrupt are where a prompt would be, but must not begin a turn.
    elif record.turnlog is not None or not _read_interrupt(context, record, session, content):
        # Another prompt than the interrupt's: the rejected calls were denied.
        settle_rejections(context)
        carried = context.carried(record)
        origin = carried.origin if carried else _origin_by_flags(record)
        add_message(context, record, session, content, origin)
        context.changes.counts.messages += 1
    else:
        context.changes.counts.events += 1


def _read_other_record(context: ClaudeContext, record: ClaudeRecord) -> None:
    """Read a record that has the id of another one: its message is named by its place too, so that they do not mix.

    What follows that id follows this record, as Claude Code reads the log.
    """
    shared, record.uuid = record.uuid, f"{record.uuid}~{context.position}"
    read_user(context, record)
    node = context.state.nodes.get(record.uuid)
    if shared is not None and node is not None:
        context.state.remember_record(shared, node)


def _read_results(
    context: ClaudeContext,
    record: ClaudeRecord,
    session: SessionContext,
    content: list[ContentBlock],
    results: list[tuple[int, ContentBlock]],
) -> None:
    """Read the results of a record. Older versions and imports write several into one, and text as well."""
    for index, block in results:
        read_result(context, record, session, block, index)
    context.changes.counts.results += 1
    if len(results) < len(content) and not _read_interrupt(context, record, session, content):
        add_message(context, record, session, content, _origin_by_flags(record))


def _read_interrupt(
    context: ClaudeContext, record: ClaudeRecord, session: SessionContext, content: str | list[ContentBlock]
) -> bool:
    text = content if isinstance(content, str) else contents.text_of(content)
    # To take white space off a text copies it, and a prompt may be of any size.
    during = INTERRUPTS.get(text.strip()) if len(text) <= _LONGEST_INTERRUPT else None
    if during is None:
        return False
    add_interrupt(context, record, session, during)
    return True


def add_interrupt(context: ClaudeContext, record: ClaudeRecord, session: SessionContext, during: str) -> None:
    """Add the interrupt for an Esc of the user, which the log has in the place of a prompt."""
    stopped = record.interrupted_message_id
    stopped = context.state.responses.get(stopped or "", stopped)
    settle_rejections(context, stopped)
    event = InterruptEvent(
        id=record.uuid or context.position_id(),
        position=context.position,
        created_at=record.timestamp,
        during="tool" if during == "tool" else "answer",
        message_id=stopped or session.state.anchor,
    )
    context.add_event(event, record, session)


def _origin_by_flags(record: ClaudeRecord) -> Origin | None:
    """The origin by a record's flags; None if only its text decides."""
    if record.is_compact_summary:
        return Origin.COMPACTION
    kind = record.origin.kind if record.origin else None
    if record.is_meta and kind != "task-notification":
        # A scheduled prompt, written when its time comes (2.1.330).
        return Origin.NOTIFICATION if record.prompt_source == "system" else Origin.HARNESS
    return Origin.NOTIFICATION if kind not in (None, "human") else None


# -- a text or blocks -> a message in its place


def add_message(
    context: ClaudeContext,
    record: ClaudeRecord,
    session: SessionContext,
    content: str | list[ContentBlock],
    origin: Origin | None,
) -> None:
    """Add the message of a record. Without an `origin` its text decides what it is. Blocks of results are skipped."""
    message_id = record.uuid or context.position_id()
    parts, user_text = _parts_of(context, record, content, message_id)
    # What a `user` record says was noted when it was read.
    if record.message is None and record.uuid is not None:
        text = "".join([part.text for part in parts if isinstance(part, TextPart)])
        if text:
            context.state.remember_text(record.uuid, text)
    if origin is None:
        by_text = _origin_of(parts, user_text, is_entered=_is_entered(record))
        origin = _origin_in_session(context, record, session, by_text, user_text)
    if record.permission_mode is not None:
        context.state.permissions_bypassed = record.permission_mode == "bypassPermissions"
    # 2.1.120 to 2.1.300 write the first prompt after a quick reply: see `fold_context`.
    comes_before_replies = precedes_early_replies(record, session)
    is_first = session.state.leaf is None
    if comes_before_replies:
        parent, branches = context.parent_node(record, session), False
    else:
        parent, branches = context.attach(record, session)
    # The replies are in the log already, so none of their calls may be aborted and no step counted again.
    if origin in TURN_ORIGINS and comes_before_replies:
        _begin_turn_of_early_replies(record, session, user_text, origin)
    elif origin in TURN_ORIGINS:
        _note_prompt_during_calls(context, session, message_of_node(parent), message_id)
        _begin_turn(context, record, session, user_text, origin, is_first=is_first)
        session.state.prompted_at, session.state.prompted_by_command = record.timestamp, origin is Origin.COMMAND
        # A branch that another message begins was not made by the user.
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
    if not session.state.opened and origin in _OPENING_ORIGINS:
        session.state.opening = _opening_title(user_text, origin) or session.state.opening
    # What a carried report says is in the result of the carried call.
    if origin is Origin.NOTIFICATION and record.turnlog is None:
        add_task_reports(context, record, session, user_text)


def add_recap(context: ClaudeContext, record: ClaudeRecord, session: SessionContext, text: str) -> None:
    """Add a recap for the user who comes back to the session. The model never gets it, and nothing follows it."""
    message_id, node = record.uuid or context.position_id(), context.event_node(record, session)
    message = Message(
        id=message_id,
        role="developer",
        parts=(TextPart(id=f"{message_id}.0", text=text),),
        origin=Origin.HARNESS,
        created_at=record.timestamp,
        metadata=_metadata_of(record, text, Origin.HARNESS),
    )
    place = _placement_of(context, record, session, node, context.position)
    # Later records may name it as their parent, and then follow what it follows.
    place = msgspec.structs.replace(place, record_ids=(), fate=Fate.SIDECAR)
    context.new_messages.append(MessageChange(message=message, placement=place))
    if record.uuid is not None:
        context.state.remember_record(record.uuid, node)


def _origin_in_session(
    context: ClaudeContext, record: ClaudeRecord, session: SessionContext, origin: Origin, user_text: str
) -> Origin:
    """The origin of a text in its place, given the origin by its words."""
    if context.is_subagent or record.is_sidechain:
        # Another agent of the team may have started this one.
        is_request = session.state.leaf is None and _is_from_teammate(user_text)
        return Origin.SUBAGENT_PROMPT if origin is Origin.PROMPT or is_request else origin
    # The same prompt must not begin a second turn.
    if origin is Origin.PROMPT and _continues_previous(context, record, session, user_text):
        return Origin.HARNESS
    return origin


def _continues_previous(context: ClaudeContext, record: ClaudeRecord, session: SessionContext, user_text: str) -> bool:
    """Whether a record belongs to the prompt just before, which has the same time.

    Up to 2.0.21 a resume copies each block of a prompt into its own record. It also copies the text that a command
    expands to without the flag that marks it as injected.
    """
    state = session.state
    if record.timestamp is None or record.timestamp != state.prompted_at or state.leaf != state.anchor:
        return False
    is_blank = not user_text or user_text.isspace()
    return (state.prompted_by_command or is_blank) and context.parent_node(record, session) == state.leaf


def _placement_of(
    context: ClaudeContext, record: ClaudeRecord, session: SessionContext, parent: str, position: int
) -> Placement:
    is_carried = context.carried(record) is not None
    return Placement(
        session_id=session.id,
        position=position,
        records=((context.position, context.length, None),),
        record_ids=(record.uuid,) if record.uuid is not None else (),
        parent_id=message_of_node(parent),
        parent_record=record_of_node(parent),
        turn=session.state.turn or None,
        fate=session.fate,
        copied=is_carried or context.copied_from(record) is not None,
        handed_over=is_carried,
    )


def _parts_of(
    context: ClaudeContext, record: ClaudeRecord, content: str | list[ContentBlock], message_id: str
) -> tuple[tuple[Part, ...], str]:
    """The parts of a text or of blocks, and the user's text: without the wrappers in front of it."""
    parts: list[Part] = []
    user_text: list[str] = []
    for index, block in enumerate([ContentBlock(type="text", text=content)] if isinstance(content, str) else content):
        # Text next to results is a separate message; the results are read already.
        if block.tool_use_id is not None:
            continue
        if block.type != "text" or block.text is None:
            raw = partial(_exact_block, context.json, record, block, index)
            parts.append(contents.part_of(block, f"{message_id}.{len(parts)}", raw))
            continue
        injected, text = split_injected(block.text) if not user_text else ("", block.text)
        if injected:
            metadata = {NAME: {"synthetic": True}}
            parts.append(TextPart(id=f"{message_id}.{len(parts)}", text=injected, metadata=metadata))
        if text:
            parts.append(TextPart(id=f"{message_id}.{len(parts)}", text=text))
            user_text.append(text)
    return tuple(parts), "\n".join(user_text)


def _exact_block(json: bytes, record: ClaudeRecord, block: ContentBlock, index: int) -> msgspec.Raw:
    """The exact JSON of a block. An attachment's record does not have it, so the block is encoded."""
    if record.message is not None:
        return raw_at(json, "message", "content", index)
    return msgspec.Raw(msgspec.json.encode(block))


def _is_entered(record: ClaudeRecord) -> bool:
    """Whether a record says that somebody entered its text."""
    attachment = record.attachment
    if attachment is not None and attachment.type == "queued_command":
        kind = attachment.origin.kind if attachment.origin else None
        return kind == "human" and attachment.command_mode == "prompt"
    return record.prompt_source in _ENTERED


def _origin_of(parts: tuple[Part, ...], user_text: str, *, is_entered: bool) -> Origin:
    """The origin by a message's text. Wrappers alone are injected context; images or files alone are a prompt."""
    if user_text and not user_text.isspace():
        return Origin.PROMPT if is_entered else origin_of_text(user_text)
    # An image pasted without a word is a prompt; a lone reminder is not.
    return Origin.HARNESS if parts and all(part.type == "text" for part in parts) else Origin.PROMPT


def _metadata_of(record: ClaudeRecord, user_text: str, origin: Origin) -> dict[str, Any]:
    facts: dict[str, Any] = dict(record.others or {})
    command = command_of(user_text, origin)
    if command is not None:
        facts["command"] = {"name": command.name, "arguments": command.arguments}
    if record.permission_mode is not None:
        facts["permission_mode"] = record.permission_mode
    if record.prompt_source is not None:
        facts["prompt_source"] = record.prompt_source
    if record.attachment is not None:
        facts |= _attachment_facts(record.attachment)
    return {NAME: facts} if facts else {}


# -- turns


def _begin_turn(
    context: ClaudeContext,
    record: ClaudeRecord,
    session: SessionContext,
    user_text: str,
    origin: Origin,
    *,
    is_first: bool,
) -> None:
    abort_pending_calls(context, session)
    state = session.state
    state.turn += 1
    state.step = 0
    state.early_replies = None
    # 2.0.x starts subagents with the prompt `Warmup` to fill the cache: no user asked for them.
    if is_first and origin is Origin.SUBAGENT_PROMPT:
        state.warm_up = user_text.strip() == WARM_UP
        # A subagent's session that was handed over is no sidechain of a log, but a log of its own.
        if session is not context.main:
            _link_sidechain(context, session, user_text)
    if origin in (Origin.PROMPT, Origin.SUBAGENT_PROMPT):
        _set_title(record, session, user_text)


def _begin_turn_of_early_replies(record: ClaudeRecord, session: SessionContext, user_text: str, origin: Origin) -> None:
    """Begin the turn of the assistant messages that come before this prompt."""
    session.state.turn += 1
    if origin in _OPENING_ORIGINS:
        session.change.titles["opening"] = _opening_title(user_text, origin)
    else:
        _set_title(record, session, user_text)


_WRAPPERS = re.compile(r"</?(?:pasted_content|teammate-message)\b[^>]*>")
"""Tags around pasted text (2.1.330) and around what another agent of a team wrote (2.1.39)."""


def _set_title(record: ClaudeRecord, session: SessionContext, user_text: str) -> None:
    if not session.state.titled:
        title = title_from(_WRAPPERS.sub(" ", user_text))
        if title:
            session.change.titles["prompt"] = title
            session.change.titled_at = record.timestamp
            session.state.titled = True


_OPENING_ORIGINS = frozenset({Origin.COMMAND, Origin.SHELL, Origin.NOTIFICATION})
"""Of what a session without a prompt may begin with, and be called after."""


def _opening_title(user_text: str, origin: Origin) -> str:
    if user_text.lstrip(_BOM + " \t\r\n").startswith(_TASK_TAGS):
        # Ids and paths come before what a notification says.
        return title_line(notifications_in(user_text)[0].get("summary", ""))
    command = command_of(user_text, origin)
    if command is None:
        return title_from(_WRAPPERS.sub(" ", user_text))
    # Some versions write the name without its slash.
    slash = "/" if origin is Origin.COMMAND and command.name and not command.name.startswith("/") else ""
    return title_line(f"{slash}{command.name} {command.arguments}")


def add_rewind(
    context: ClaudeContext, record: ClaudeRecord, session: SessionContext, to: str | None, to_record: str | None
) -> None:
    """Add a rewind: a prompt follows an older message, `to`. Where that is unknown, `to_record` is its record."""
    event = RewindEvent(
        id=f"{record.uuid or context.position_id()}.rewind",
        position=context.position,
        created_at=record.timestamp,
        to_message_id=to,
        metadata={"to_record": to_record} if to_record is not None else {},
    )
    context.changes.events.append(context.extra_event(event, session))


def _note_prompt_during_calls(
    context: ClaudeContext, session: SessionContext, parent: str | None, message_id: str
) -> None:
    """Note a prompt that was sent while calls run. It stops them, but comes before their results in the log."""
    if parent is not None and any(
        call.message_id == parent and not call.settled for call in context.state.calls.values()
    ):
        session.state.prompt_during_calls = parent, message_id


def _link_sidechain(context: ClaudeContext, session: SessionContext, prompt: str) -> None:
    """Link a sidechain with its call. Up to 1.0.x no record names it: it is the first one with the same prompt."""
    key = prompt_key(prompt)
    # Two calls may have the same prompt: each sidechain takes the first one that is left.
    for call_id, call in context.state.calls.items():
        if call.prompt == key:
            call.prompt = None
            context.link_subagent(context.main.id, session.id, call_id, call.message_id, inferred=True)
            return
    context.link_subagent(context.main.id, session.id, inferred=True)


# -- attachments


def read_attachment(context: ClaudeContext, record: ClaudeRecord) -> None:
    """Read an `attachment` record: injected context that becomes a message when the log has its text, else an event."""
    attachment = record.attachment
    if attachment is None:
        add_malformed_record(context, record)
        return
    if context.is_known(record):
        return
    session = context.session_of(record)
    # `rendered` (2.1.280 and later) is what the model got, word for word.
    content: str | list[ContentBlock] = (
        _rendered_blocks(record) or _file_blocks(attachment) or _attached_text(attachment)
    )
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


def _rendered_blocks(record: ClaudeRecord) -> list[ContentBlock]:
    found: list[ContentBlock] = []
    for rendered in record.rendered or ():
        if isinstance(rendered.content, str):
            found.append(ContentBlock(type="text", text=rendered.content))
        elif rendered.content:
            found.extend(rendered.content)
    return found


def _file_blocks(attachment: Attachment) -> list[ContentBlock]:
    """The content of a file that the user mentioned, in versions that log the file and not the text the model got."""
    content = attachment.content
    if attachment.type != "file" or content is None or isinstance(content, str | list) or content.file is None:
        return []
    file = content.file
    if file.content is not None:
        return [ContentBlock(type="text", text=file.content)]
    if file.base64 is not None:
        source = FileSource(type="base64", media_type=file.type, data=file.base64)
        return [ContentBlock(type="image", source=source, title=attachment.filename)]
    return []


def _attached_text(attachment: Attachment) -> str:
    """What the model saw of an attachment, in versions that log its fields and not its text (2.1.96 to 2.1.260).

    The words that Claude Code puts around it are missing.
    """
    found = _ATTACHED_TEXTS.get(attachment.type)
    value = None if found is None else found(attachment)
    if isinstance(value, list):
        return "\n".join([line for line in cast("list[Any]", value) if isinstance(line, str)])
    return value if isinstance(value, str) else ""


def _memory_of(attachment: Attachment) -> Any:
    content = attachment.content
    return content.content if isinstance(content, AttachedContent) else content


_ATTACHED_TEXTS: dict[str, Callable[[Attachment], Any]] = {
    "agent_listing_delta": attrgetter("added_lines"),
    "deferred_tools_delta": attrgetter("added_lines"),
    "edited_text_file": attrgetter("snippet"),
    "mcp_instructions_delta": attrgetter("added_blocks"),
    "nested_memory": _memory_of,
    "plan_file_reference": attrgetter("plan_content"),
    "skill_listing": attrgetter("content"),
    "total_tokens_reminder": attrgetter("text"),
}
"""Type of an attachment -> its text, or the lines of it."""


def _attachment_facts(attachment: Attachment) -> dict[str, Any]:
    """The facts of an attachment besides its text."""
    removed = attachment.removed_names or attachment.removed_types
    facts = {
        "attachment": attachment.type,
        "path": attachment.path or attachment.filename or attachment.plan_file_path,
        "removed": removed,
    }
    return {name: value for name, value in facts.items() if value}


# -- what a text is

INTERRUPTS = {
    "[Request interrupted by user]": "answer",
    "[Request interrupted by user for tool use]": "tool",
}
"""Texts that replace a prompt when the user pressed Esc -> what was stopped."""

_ENTERED = frozenset({"typed", "queued", "sdk"})
"""Sources of a prompt that is just that, also if it begins with a tag. Commands and what they print have no source."""

_LONGEST_INTERRUPT = 1000
"""Characters, white space around it included."""

WARM_UP = "Warmup"
"""The prompt of sidechains that 2.0.x ran only to fill the cache."""

TEAMMATE_TAG = "<teammate-message "
"""How a message from another agent of a team begins (2.1.39 to 2.1.42); later ones begin with words: see `PHRASES`."""

_TASK_TAGS = ("<task-notification>", "<bash-notification>")
"""How notifications about background tasks begin; those of 2.0 are about commands only."""

TAGGED: tuple[tuple[str, Origin], ...] = (
    *((tag, Origin.NOTIFICATION) for tag in _TASK_TAGS),
    (TEAMMATE_TAG, Origin.NOTIFICATION),
    ("<command-name>", Origin.COMMAND),
    ("<command-message>", Origin.COMMAND),
    ("<local-command-stdout>", Origin.COMMAND_OUTPUT),
    ("<local-command-stderr>", Origin.COMMAND_OUTPUT),
    ("<local-command-caveat>", Origin.HARNESS),
    ("<post-tool-use-hook>", Origin.HARNESS),
    ("<session-start-hook>", Origin.HARNESS),
    ("<user-prompt-submit-hook>", Origin.HARNESS),
    ("<bash-input>", Origin.SHELL),
    ("<bash-stdout>", Origin.SHELL_OUTPUT),
    ("<bash-stderr>", Origin.SHELL_OUTPUT),
)
"""Opening tags, and the origin of a text that begins with one."""

PHRASES: tuple[tuple[str, Origin], ...] = (
    ("Stop hook feedback:\n", Origin.HARNESS),
    ("Caveat: The messages below were generated by the user while running local commands.", Origin.HARNESS),
    ("This session is being continued from a previous conversation that ran out of context.", Origin.COMPACTION),
    ("Unknown slash command: ", Origin.COMMAND_OUTPUT),
    ("Another Claude session sent a message:\n", Origin.NOTIFICATION),
    ("[Workflow harness — user request] ", Origin.HARNESS),
)
"""Beginnings of texts that no flag marks: of a hook before 2.1, of what a resume of 1.0 copies without its flags, of a
message from another agent of a team, and of the user's request that a workflow's subagents get (2.1.330)."""

_BOM = "\ufeff"


def origin_of_text(text: str) -> Origin:
    """The origin by a text's opening tag or words. Any other text is a prompt."""
    body = text.lstrip(_BOM + " \t\r\n")
    beginnings = TAGGED if body.startswith("<") else PHRASES
    return next((origin for beginning, origin in beginnings if body.startswith(beginning)), Origin.PROMPT)


def _is_from_teammate(text: str) -> bool:
    return text.lstrip(_BOM + " \t\r\n").startswith(TEAMMATE_TAG)


_INJECTED = re.compile(
    r"\s*<(?P<tag>system-reminder|ide_opened_file|ide_selection|ide_diagnostics)\b[^>]*>.*?</(?P=tag)>\s*", re.DOTALL
)


def split_injected(text: str) -> tuple[str, str]:
    """The wrappers that an editor or Claude Code put in front of a text, and the rest of the text."""
    end = 0
    while match := _INJECTED.match(text, end):
        end = match.end()
    return text[:end], text[end:]


class Command(NamedTuple):
    """A command that the user typed after `/` or `!`."""

    name: str
    arguments: str


def command_of(text: str, origin: Origin) -> Command | None:
    """The command in the text of a `COMMAND` or `SHELL` message."""
    if origin is Origin.SHELL:
        return Command("!", tags_of(text).get("bash-input", ""))
    if origin is Origin.COMMAND:
        tags = tags_of(text)
        return Command(tags.get("command-name", ""), tags.get("command-args", ""))
    return None
