"""The fold of a thread: facts about it, and its messages with results of calls between them."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from urllib.parse import unquote, urlsplit

from turnlog.agents.amp import NAME
from turnlog.agents.amp.contents import block_in, call_of, part_of, result_of, time_in, time_of, usage_of
from turnlog.agents.amp.records import MESSAGES, THREADS, Thread, ThreadBlock, ThreadMessage
from turnlog.agents.amp.sources import session_id
from turnlog.agents.base import Source, StatelessFold
from turnlog.agents.changes import Changes
from turnlog.agents.conversation import ConversationContext
from turnlog.agents.decoding import branch_of
from turnlog.agents.json_file import locate_items, read_object
from turnlog.model import InterruptEvent, Message, Origin, StopReason
from turnlog.model.session import title_given

STOP_REASONS: dict[str, StopReason] = {
    "end_turn": "stop",
    "max_tokens": "length",
    "refusal": "refusal",
    "tool_use": "tool_use",
}
"""`stopReason` of an answer -> why the model stopped."""

_CANCELLED = "cancelled"
_HEADS = "refs/heads/"


class AmpFold(StatelessFold):
    """Reads a thread."""

    def __init__(self, source: Source) -> None:
        """Read one thread."""
        self._session_id = source.session_id or session_id("")

    def feed(self, data: bytes, offset: int) -> Changes:
        """See `turnlog.agents.base.Fold.feed`."""
        context = ConversationContext(self._session_id, says_results=True)
        thread = read_object(context, data, THREADS, _is_message)
        if thread is None:
            return context.finish()
        if thread.messages is None:
            context.report("the file has no messages")
            context.changes.counts.unreadable += 1
            return context.finish()
        _read_facts(context, thread)
        items = locate_items(thread.messages, context.json, context.position)
        for number, (raw, position, length) in enumerate(items):
            context.take(bytes(raw), position, length)
            found = MESSAGES.decode(context.json)
            if isinstance(found, str):
                context.report(found)
                context.changes.counts.unreadable += 1
                continue
            for problem in found.problems:
                context.report(problem.reason, problem.severity, problem.json_path)
            _read_message(context, found.record, number)
        return context.finish()


def _is_message(value: dict[str, Any]) -> bool:
    return "role" in value and "content" in value


def _read_facts(context: ConversationContext, thread: Thread) -> None:
    change = context.session
    initial = thread.env.initial if thread.env is not None else None
    tree = initial.trees[0] if initial is not None and initial.trees else None
    if tree is not None:
        change.cwd = change.project_path = _path_of(tree.uri)
        if tree.repository is not None:
            change.git_branch = branch_of((tree.repository.ref or "").removeprefix(_HEADS))
            change.git_commit = tree.repository.sha
    if initial is not None and initial.platform is not None:
        change.agent_version = initial.platform.client_version
    context.extend_times(time_of(thread.created))
    if thread.title and title_given(thread.title):
        change.titles["generated"] = title_given(thread.title)
    if thread.agent_mode:
        change.metadata = {NAME: {"agentMode": thread.agent_mode}}
    context.changes.counts.events += 1


def _path_of(uri: str | None) -> str | None:
    """The folder that a `file:` address names."""
    try:
        parts = urlsplit(uri or "")
    except ValueError:
        return None
    return unquote(parts.path) or None if parts.scheme == "file" else None


def _time_of(message: ThreadMessage, blocks: list[ThreadBlock]) -> datetime | None:
    """When a message was sent, or a call of the model was made."""
    sent = message.meta.sent_at if message.meta is not None else None
    begun = next((block.start_time for block in blocks if block.start_time is not None), None)
    counted = message.usage.timestamp if message.usage is not None else None
    return time_in(message.created_at) or time_of(sent) or time_of(begun) or time_in(counted)


def _read_message(context: ConversationContext, message: ThreadMessage, number: int) -> None:
    # Messages are numbered in their thread alone.
    identity = f"{context.external_id}.{number if message.message_id is None else message.message_id}"
    blocks = [(block_in(raw), raw) for raw in message.content or ()]
    results = [block for block, _ in blocks if call_of(block) is not None]
    others = [(block, raw) for block, raw in blocks if call_of(block) is None]
    counts = context.changes.counts
    at = _time_of(message, [block for block, _ in others])
    for place, block in enumerate(results, 1):
        result = result_of(block, f"{identity}.result{place}", at)
        if result is not None:
            position = context.position + place
            context.add_result(call_of(block) or "", result, position=position, record_ids=(f"{identity}.{place}",))
    if results and not others:
        counts.results += 1
        return
    parts = tuple(part_of(block, raw, f"{identity}.{place}", at) for place, (block, raw) in enumerate(others))
    if message.role == "assistant":
        state, used = message.state, message.usage
        reason = state.stop_reason if state is not None else None
        context.add(
            Message(
                id=identity,
                role="assistant",
                parts=parts,
                created_at=at,
                model=used.model if used is not None else None,
                stop_reason=STOP_REASONS.get(reason or ""),
                raw_stop_reason=reason,
                usage=usage_of(used),
            )
        )
        if state is not None and state.type == _CANCELLED:
            event = InterruptEvent(id=f"{identity}.interrupt", created_at=at, during="answer", message_id=identity)
            context.add_event(event)
    elif message.role == "user":
        context.add(Message(id=identity, role="user", parts=parts, origin=Origin.PROMPT, created_at=at))
    else:
        context.add_record(message.role, known=False)
