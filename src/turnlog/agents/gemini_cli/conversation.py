"""The conversation as the records of a log leave it: appended messages, checkpoints, rewinds, compactions.

The log patches one list of messages. A record appends or replaces a message by its id, a checkpoint replaces the whole
list, a rewind cuts it. Nothing is deleted here: a message that a patch drops keeps its position and its parent, and the
newest message that is left names the active branch for the store.

The same message may come back under another id: see `_match_rewritten_message`, `_join_interrupted_calls` and
`_match_copies`. Such a copy becomes an alias of its original, which is recognised by its type and its checksum.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from turnlog.agents.gemini_cli.fold_context import GeminiContext, GeminiPendingMessage
from turnlog.agents.gemini_cli.messages import (
    LoggedMessage,
    MessageContent,
    content_crc,
    is_session_context,
    parse_content,
    read_message,
    text_checksum,
    text_crc,
)
from turnlog.model import CompactionEvent, Origin, RewindEvent

_NOTICES = frozenset({"info", "warning", "error"})

_Fingerprint: TypeAlias = tuple[str | None, int]
"""Type and checksum of a message: equal for a message and its copies."""


class _Item(NamedTuple):
    """A message in a checkpoint, and its content."""

    logged: LoggedMessage
    content: MessageContent

    @property
    def fingerprint(self) -> _Fingerprint:
        return self.logged.record.type, self.content.checksum


# -- records of their own


def append_message(context: GeminiContext, logged: LoggedMessage) -> bool:
    """Read a message that has its own record: it is new, or replaces an earlier record with its id.

    Returns:
        Whether it is a message, and not only results or a notice.
    """
    state = context.state
    state.reopened = False
    item = _Item(logged, parse_content(logged))
    if logged.key not in state.entries:
        _match_rewritten_message(context, item)
    joined_checksum = _join_interrupted_calls(context, item)
    original = state.aliases.get(logged.key)
    logged = logged._replace(original=original, is_copy=state.rewritten > 0 and original is not None)
    is_message = read_message(context, logged, item.content)
    if joined_checksum is not None:
        state.entries[logged.key].checksum = joined_checksum
    if logged.key not in state.active:
        state.active.append(logged.key)
    return is_message


def _join_interrupted_calls(context: GeminiContext, item: _Item) -> int | None:
    """Make a record that only holds calls an alias of the answer that it belongs to.

    When Escape is pressed while calls run, Gemini CLI logs a notice between the answer and its calls. The answer then
    has text and tokens and no calls; the record of the calls has neither text nor tokens.

    Returns:
        The checksum of answer and calls together; None for any other record.
    """
    state, logged, content = context.state, item.logged, item.content
    answer = state.pending_message
    if logged.record.type in _NOTICES:
        return None
    state.pending_message = None
    if logged.record.type != "gemini":
        return None
    if logged.record.tokens is not None:
        if not content.calls:
            state.pending_message = GeminiPendingMessage(logged.key, text_crc(content.text))
        return None
    if answer is None or not content.calls or content.text or logged.record.thoughts:
        return None
    state.aliases[logged.key] = answer.key
    return content_crc(answer.text_crc, content)


# -- a history that is written again, record by record


def _match_rewritten_message(context: GeminiContext, item: _Item) -> None:
    """Make a record with a new id an alias of the message in the list that it repeats.

    0.61 writes the whole history again under new ids when the user leaves an approval prompt by Escape: one record
    after the other, before the checkpoint that lists them. The first record joins the session context and the prompt
    after it (before 0.61 it has the context alone); the others follow in the order of the list. `/chat resume` brings
    another conversation in the same way: what is new in it follows the last message that was recognised.
    """
    state, logged = context.state, item.logged
    if is_session_context(logged):
        _begin_rewrite(context, item)
    elif state.rewritten and logged.record.tokens is None:
        # An answer with tokens is a new one of the model: rewritten records have none.
        index = _find_in_list(context, item.fingerprint)
        if index is not None:
            _mark_copy(context, logged.key, index)
    else:
        state.rewritten = 0


def _begin_rewrite(context: GeminiContext, item: _Item) -> None:
    """Read the session context that comes again, joined with the prompts after it."""
    state = context.state
    state.rewritten = 0
    texts = [part.wire.text or "" for part in item.content.parts if part.is_text]
    originals = [key for key in state.active if state.entries[key].is_message][: len(texts)]
    if not originals:
        return
    if [state.entries[key].checksum for key in originals[1:]] != [text_checksum(text) for text in texts[1:]]:
        # Other prompts than those of the list: another conversation takes the place of this one.
        state.active, state.leaf, state.branched = [], None, True
    else:
        # A checkpoint lists the joined record as one message, which takes the place of all of these.
        state.joined[item.logged.key] = originals
        _mark_copy(context, item.logged.key, state.active.index(originals[-1]))


def _mark_copy(context: GeminiContext, key: str, index: int) -> None:
    """Make `key` an alias of the entry at `index` of the list; what is new after it follows that entry."""
    state = context.state
    original = state.active[index]
    state.aliases[key], state.rewritten = original, index + 1
    if state.entries[original].is_message:
        state.leaf, state.branched = original, True


def _find_in_list(context: GeminiContext, fingerprint: _Fingerprint) -> int | None:
    """The index of the next entry with this fingerprint, among those that were not repeated yet."""
    state = context.state
    for index in range(state.rewritten, len(state.active)):
        if _fingerprint(context, state.active[index]) == fingerprint:
            return index
    return None


# -- patches of the whole list


def apply_checkpoint(context: GeminiContext, messages: Sequence[LoggedMessage]) -> None:
    """Replace the list by these messages. What it drops was compacted if a summary replaces it."""
    state = context.state
    state.rewritten = 0
    items = [_Item(logged, parse_content(logged)) for logged in messages]
    if state.reopened and all(is_session_context(logged) for logged in messages):
        # A resume begins by writing an empty conversation, and writes everything back right after.
        _read_items(context, items, None)
        return
    state.reopened = False
    state.pending_message = None
    for item in items:
        _join_interrupted_calls(context, item)
    _match_copies(context, items)
    keys = [key for logged in messages for key in _original_keys(context, logged.key)]
    kept = set(keys)
    dropped = [key for key in state.active if key not in kept and state.entries[key].is_message]
    summary = _summary_key(context, items) if dropped else None
    # No record says that it was a compaction: a list that drops messages and begins with a new one is.
    if summary is not None:
        _add_compaction(context, context.message_id(summary), [key for key in keys if is_message_key(context, key)])
    _read_items(context, items, summary)
    _set_list(context, list(dict.fromkeys(keys)), branched=bool(dropped))


def apply_rewind(context: GeminiContext, record_id: str) -> None:
    """Cut the list before the message with this id; to the very start when no message has it."""
    state = context.state
    state.reopened, state.rewritten, state.pending_message = False, 0, None
    matches = (index for index, key in enumerate(state.active) if _has_record_id(context, key, record_id))
    # The CLI empties its list when it does not know the id.
    cut = next(matches, 0)
    _set_list(context, state.active[:cut], branched=True)
    leaf = None if state.leaf is None else context.message_id(state.leaf)
    event_id = context.position_id(context.position)
    context.add_event(RewindEvent(id=event_id, to_message_id=leaf, metadata={"target": record_id}))


def is_message_key(context: GeminiContext, key: str) -> bool:
    """Whether a key is that of a message, and not of results or a notice."""
    entry = context.state.entries.get(key)
    return entry is not None and entry.is_message


def _original_keys(context: GeminiContext, key: str) -> list[str]:
    """The keys of the messages that a message in a checkpoint repeats; mostly its own."""
    state = context.state
    return state.joined.get(key) or [state.aliases.get(key, key)]


def _has_record_id(context: GeminiContext, key: str, record_id: str) -> bool:
    """Whether a message, or a copy of it, was logged with this id."""
    if key.partition(":")[2] == record_id:
        return True
    return any(
        original == key and alias.partition(":")[2] == record_id for alias, original in context.state.aliases.items()
    )


def _set_list(context: GeminiContext, keys: list[str], *, branched: bool) -> None:
    state = context.state
    state.active = keys
    state.branched = state.branched or branched
    messages = [key for key in keys if is_message_key(context, key)]
    state.leaf = max(messages, key=lambda key: state.entries[key].position, default=None)
    context.update_times()


def _add_compaction(context: GeminiContext, summary_id: str, kept: Sequence[str]) -> None:
    context.add_event(
        CompactionEvent(
            id=f"{context.position_id(context.position)}.compaction",
            summary_message_id=summary_id,
            kept_message_ids=tuple(context.message_id(key) for key in kept),
        )
    )


def _read_items(context: GeminiContext, items: Sequence[_Item], summary: str | None) -> None:
    """Read what the list has that no record had. The CLI itself wrote the summary and the answer right after it."""
    state = context.state
    previous: str | None = None
    for logged, content in items:
        origin = Origin.COMPACTION if summary is not None and logged.key == summary else None
        if summary is not None and previous == summary and _is_acknowledgement(context, logged):
            origin = Origin.HARNESS
        read_message(context, logged._replace(original=state.aliases.get(logged.key)), content, origin=origin)
        previous = logged.key


# -- copies that a compaction makes


def _match_copies(context: GeminiContext, items: Sequence[_Item]) -> None:
    """Make messages with new ids aliases of those in the list that they repeat.

    A compaction keeps the newest messages and gives them new ids. So both lists are compared from the end back.
    """
    state = context.state
    named = {logged.key for logged, _ in items}
    candidates = [key for key in state.active if key not in named and is_message_key(context, key)]
    acknowledgement = _new_acknowledgement(context, items, candidates)
    for item in reversed(items):
        key = item.logged.key
        if key in state.entries or key in state.aliases or key == acknowledgement:
            continue
        prompts = _joined_prompts(context, item, candidates)
        if prompts:
            state.joined[key] = prompts
            state.aliases[key] = prompts[-1]
            del candidates[-len(prompts) :]
            continue
        fingerprint = item.fingerprint
        if _is_among(context, candidates, fingerprint):
            # The messages between the copy's original and the end of the list were dropped.
            while _fingerprint(context, candidates[-1]) != fingerprint:
                candidates.pop()
            state.aliases[key] = candidates.pop()


def _joined_prompts(context: GeminiContext, item: _Item, candidates: Sequence[str]) -> list[str]:
    """The keys of the last prompts, if one message has them as its parts because no answer came between them."""
    texts = [part.wire.text or "" for part in item.content.parts if part.is_text]
    count = len(texts)
    last = list(candidates[-count:])
    if item.logged.record.type != "user" or count < 2 or count != len(item.content.parts) or len(last) < count:
        return []
    wanted: list[_Fingerprint] = [("user", text_checksum(text)) for text in texts]
    return last if [_fingerprint(context, key) for key in last] == wanted else []


def _summary_key(context: GeminiContext, items: Sequence[_Item]) -> str | None:
    """The key of the summary that replaces what was dropped: a new prompt, the first after the session context."""
    state = context.state
    first = next((logged for logged, _ in items if not is_session_context(logged)), None)
    if first is None or first.record.type != "user":
        return None
    return None if first.key in state.entries or first.key in state.aliases else first.key


def _new_acknowledgement(context: GeminiContext, items: Sequence[_Item], candidates: Sequence[str]) -> str | None:
    """The key of the answer to a new summary.

    It has the same text as the answer to the summary before, and must not be taken for its copy.
    """
    first = [item for item in items if not is_session_context(item.logged)][:2]
    if len(first) < 2 or _summary_key(context, items) is None:
        return None
    summary, answer = first
    is_known = _is_among(context, candidates, summary.fingerprint)
    return answer.logged.key if not is_known and _is_acknowledgement(context, answer.logged) else None


def _is_acknowledgement(context: GeminiContext, logged: LoggedMessage) -> bool:
    """Whether a message is an answer that no model gave, and is new."""
    return logged.record.type == "gemini" and logged.record.tokens is None and logged.key not in context.state.entries


def _is_among(context: GeminiContext, keys: Sequence[str], fingerprint: _Fingerprint) -> bool:
    return any(_fingerprint(context, key) == fingerprint for key in keys)


def _fingerprint(context: GeminiContext, key: str) -> _Fingerprint:
    """The fingerprint of a message that was read; its key begins with its type."""
    return key.partition(":")[0], context.state.entries[key].checksum
