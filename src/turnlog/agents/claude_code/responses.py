"""Which response of the model an `assistant` record belongs to.

The provider gives each response a `message.id`, which the records of all its blocks have. A proxy may write one id for
all responses, and the API itself has done so. What else the records say then shows where another response begins: the
id of its request, its input tokens, a prompt in between. The first response in the file is called by the `message.id`,
a further one by `<message.id>~<uuid of its first record>`.
"""

from __future__ import annotations

from turnlog.agents.claude_code.fold_context import ClaudeContext, SessionContext
from turnlog.agents.claude_code.records import ApiMessage, ClaudeRecord
from turnlog.agents.claude_code.state import ROOT, ClaudePendingMessage


def response_of(context: ClaudeContext, record: ClaudeRecord, message: ApiMessage, session: SessionContext) -> str:
    """The id of the message that a record belongs to, a new one if the record begins a response."""
    named = message.id or record.uuid or context.position_id()
    state = context.state
    newest = state.responses.get(named)
    place = state.messages.get(newest or named)
    if newest is None and place is None:
        return named
    if place is not None and _continues(context, record, message, session, newest or named, place):
        return newest or named
    # Records of two responses may be mixed, as those of parallel agents are.
    for earlier, known in reversed(state.messages.items()):
        if named in (earlier, known.response_id) and _continues(context, record, message, session, earlier, known):
            return earlier
    begun = f"{named}~{record.uuid or context.position_id()}"
    state.remember_response(named, begun)
    return begun


def note_response(place: ClaudePendingMessage, record: ClaudeRecord, message: ApiMessage) -> None:
    """Keep what tells a response from others of its `message.id`."""
    place.request_id = place.request_id or record.request_id
    tokens, is_final = _input_of(message), message.stop_reason is not None
    if tokens and (not place.input or (is_final and not place.is_final)):
        place.input, place.is_final = tokens, is_final
    if record.timestamp is not None:
        place.last_at = max(place.last_at or record.timestamp, record.timestamp)


def _continues(
    context: ClaudeContext,
    record: ClaudeRecord,
    message: ApiMessage,
    session: SessionContext,
    message_id: str,
    place: ClaudePendingMessage,
) -> bool:
    """Whether a record belongs to the response of a message that has its `message.id`."""
    if record.uuid is not None and context.state.nodes.get(record.uuid) == message_id:
        return True
    if place.session != (None if session is context.main else session.id):
        return False
    tokens, is_final = _input_of(message), message.stop_reason is not None
    is_other_count = bool(tokens and place.input and tokens != place.input)
    if record.request_id is not None and place.request_id is not None:
        # While a response streams, its counts may grow: each search that the provider runs adds its results.
        is_counted = is_final and place.is_final
        return record.request_id == place.request_id and not (is_other_count and is_counted)
    if is_other_count:
        return False
    meanwhile = session.state.prompt_during_calls
    if meanwhile is not None and meanwhile[0] == message_id and session.state.turn == (place.turn or 0) + 1:
        return True
    return (
        _has_time_of(place, record)
        or place.turn in (None, session.state.turn or None)
        or context.parent_node(record, session) == message_id
        or follows_repetition(context, place, context.parent_node(record, session), session)
    )


def _has_time_of(place: ClaudePendingMessage, record: ClaudeRecord) -> bool:
    """Whether a record is as old as those of a message, as a copy of one of them is."""
    at = record.timestamp
    return at is not None and place.last_at is not None and at <= place.last_at


def _input_of(message: ApiMessage) -> int:
    usage = message.usage
    if usage is None:
        return 0
    counts = (usage.input_tokens, usage.cache_read_input_tokens, usage.cache_creation_input_tokens)
    return sum(count or 0 for count in counts)


def follows_repetition(context: ClaudeContext, place: ClaudePendingMessage, node: str, session: SessionContext) -> bool:
    """Whether a node is what a message follows, written again: a message that is repeated, or another of that text.

    A prompt, context or another answer that only came between the records of the message is none.
    """
    if node == place.parent:
        parent = context.state.messages.get(node)
        return parent is not None and parent.blocks.repeated is not None
    # A message that follows the anchor has the newest context as its parent: see `ClaudeContext.attach`.
    parent = session.state.leaf if node == session.state.anchor else node
    return place.follows is not None and place.follows == context.state.texts.get(parent or ROOT)
