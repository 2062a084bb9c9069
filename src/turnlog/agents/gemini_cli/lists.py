"""The conversation as patches leave it: checkpoints that replace the list, rewinds that cut it, compactions.

Nothing is deleted: what a patch drops keeps its place and its parent, and the newest message that is left tells the
store which branch is the active one.
"""

from __future__ import annotations

from collections.abc import Sequence

from turnlog.agents.gemini_cli.cut_off import note_cut_off
from turnlog.agents.gemini_cli.logged import Logged, Said, is_context, said_by, text_checksum
from turnlog.agents.gemini_cli.messages import read_message
from turnlog.agents.gemini_cli.put_back import note_put_back
from turnlog.agents.gemini_cli.reading import Reading
from turnlog.model import CompactionEvent, Origin, RewindEvent

_Item = tuple[Logged, Said]


def append(reading: Reading, logged: Logged) -> bool:
    """A record of its own: a new message, or a fuller one in the place of what it replaces. Whether it is a message."""
    state = reading.state
    state.reopened = False
    said = said_by(logged)
    if logged.key not in state.entries:
        note_put_back(reading, logged, said)
    joined = note_cut_off(reading, logged, said)
    original = state.aliases.get(logged.key)
    logged = logged._replace(original=original, is_copy=state.put_back > 0 and original is not None)
    is_message = read_message(reading, logged, said)
    if joined is not None:
        state.entries[logged.key].key = joined
    if logged.key not in state.active:
        state.active.append(logged.key)
    return is_message


def replace(reading: Reading, items: Sequence[Logged]) -> None:
    """A checkpoint: the list is this now."""
    state = reading.state
    state.put_back = 0
    said = [(logged, said_by(logged)) for logged in items]
    if state.reopened and all(is_context(logged) for logged in items):
        # A resume begins by writing an empty conversation, and puts everything back right after.
        _read_new(reading, said, None)
        return
    state.reopened = False
    state.open_answer = None
    for logged, words in said:
        note_cut_off(reading, logged, words)
    _find_copies(reading, said)
    keys = [key for logged in items for key in _originals(reading, logged.key)]
    kept = set(keys)
    dropped = [key for key in state.active if key not in kept and state.entries[key].is_message]
    summary = _summary_in(reading, said) if dropped else None
    if summary is not None:
        _tell_compaction(reading, reading.message_id(summary), [key for key in keys if _is_message(reading, key)])
    _read_new(reading, said, summary)
    _set_active(reading, list(dict.fromkeys(keys)), branched=bool(dropped))


def _originals(reading: Reading, key: str) -> list[str]:
    """What the log has had of a message in a list before: mostly itself."""
    state = reading.state
    return state.joined.get(key) or [state.aliases.get(key, key)]


def rewind(reading: Reading, to: str) -> None:
    """The user went back to before a message; without that message, to the start."""
    state = reading.state
    state.reopened, state.put_back, state.open_answer = False, 0, None
    matches = (index for index, key in enumerate(state.active) if _names(reading, key, to))
    cut = next(matches, 0)
    _set_active(reading, state.active[:cut], branched=True)
    leaf = None if state.leaf is None else reading.message_id(state.leaf)
    reading.add_event(RewindEvent(id=reading.own_id(reading.position), to_message_id=leaf, metadata={"target": to}))


def _names(reading: Reading, key: str, record_id: str) -> bool:
    if key.partition(":")[2] == record_id:
        return True
    return any(
        original == key and alias.partition(":")[2] == record_id for alias, original in reading.state.aliases.items()
    )


def _is_message(reading: Reading, key: str) -> bool:
    entry = reading.state.entries.get(key)
    return entry is not None and entry.is_message


def _set_active(reading: Reading, keys: list[str], *, branched: bool) -> None:
    state = reading.state
    state.active = keys
    state.branched = state.branched or branched
    messages = [key for key in keys if _is_message(reading, key)]
    state.leaf = max(messages, key=lambda key: state.entries[key].position, default=None)
    reading.note_times()


def _find_copies(reading: Reading, items: Sequence[_Item]) -> None:
    """A compaction writes what it keeps under new ids: from the end back, the same words are the same message."""
    state = reading.state
    named = {logged.key for logged, _ in items}
    pool = [key for key in state.active if key not in named and _is_message(reading, key)]
    acknowledgement = _acknowledgement_in(reading, items, pool)
    for logged, said in reversed(items):
        if logged.key in state.entries or logged.key in state.aliases or logged.key == acknowledgement:
            continue
        several = _prompts_in(reading, logged, said, pool)
        if several:
            state.joined[logged.key] = several
            state.aliases[logged.key] = several[-1]
            del pool[-len(several) :]
            continue
        wanted = (logged.record.type, said.checksum)
        while pool and (key_type(pool[-1]), state.entries[pool[-1]].key) != wanted:
            if not _is_ahead(reading, pool, wanted):
                break
            pool.pop()
        if pool and (key_type(pool[-1]), state.entries[pool[-1]].key) == wanted:
            state.aliases[logged.key] = pool.pop()


def _acknowledgement_in(reading: Reading, items: Sequence[_Item], pool: Sequence[str]) -> str | None:
    """The key of the answer to a summary that nobody has seen: the same words as those to the summary before."""
    behind = [item for item in items if not is_context(item[0])][:2]
    if len(behind) < 2 or _summary_in(reading, items) is None:
        return None
    (summary, said), (answer, _) = behind
    is_known = _is_ahead(reading, pool, (summary.record.type, said.checksum))
    return answer.key if not is_known and _is_acknowledgement(reading, answer) else None


def _prompts_in(reading: Reading, logged: Logged, said: Said, pool: Sequence[str]) -> list[str]:
    """The last prompts, when a message says just what they said, a piece each: they had no answer between them."""
    texts = [piece.part.text for piece in said.pieces if piece.is_text]
    count = len(texts)
    last = list(pool[-count:])
    if logged.record.type != "user" or count < 2 or count != len(said.pieces) or len(last) < count:
        return []
    found = [(key_type(key), reading.state.entries[key].key) for key in last]
    return last if found == [("user", text_checksum(text or "")) for text in texts] else []


def _is_ahead(reading: Reading, pool: Sequence[str], wanted: tuple[str | None, int]) -> bool:
    return any((key_type(key), reading.state.entries[key].key) == wanted for key in pool)


def key_type(key: str) -> str:
    """The type of the message that a key names."""
    return key.partition(":")[0]


def _summary_in(reading: Reading, items: Sequence[_Item]) -> str | None:
    """The key of the summary that took the place of what was dropped: new, and the first after the context."""
    state = reading.state
    first = next((logged for logged, _ in items if not is_context(logged)), None)
    if first is None or first.record.type != "user":
        return None
    return None if first.key in state.entries or first.key in state.aliases else first.key


def _tell_compaction(reading: Reading, summary_id: str, kept: Sequence[str]) -> None:
    identity = f"{reading.own_id(reading.position)}.compaction"
    reading.add_event(
        CompactionEvent(
            id=identity,
            summary_message_id=summary_id,
            kept_message_ids=tuple(reading.message_id(key) for key in kept),
        )
    )


def _read_new(reading: Reading, items: Sequence[_Item], summary: str | None) -> None:
    """Tell of what the list has that no record had. The answer to a summary is the harness's own."""
    state = reading.state
    previous: str | None = None
    for logged, said in items:
        origin = Origin.COMPACTION if summary is not None and logged.key == summary else None
        if summary is not None and previous == summary and _is_acknowledgement(reading, logged):
            origin = Origin.HARNESS
        read_message(reading, logged._replace(original=state.aliases.get(logged.key)), said, origin=origin)
        previous = logged.key


def _is_acknowledgement(reading: Reading, logged: Logged) -> bool:
    return logged.record.type == "gemini" and logged.record.tokens is None and logged.key not in reading.state.entries
