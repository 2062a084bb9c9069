"""Which messages of a session are handed over: all, the active branch, a range of messages, or what fits.

A window in tokens is cut from the front, at a turn: the model gets whole turns. Only if the last turn alone is too
long, it keeps its prompt and its last steps. A token is counted as four bytes, which is an estimate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from turnlog.errors import HandoffError
from turnlog.model import Fate, FilePart, Message, Origin, Part, ReasoningPart, TextPart, ToolCallPart
from turnlog.providers.context import PlacedHistory, select_context
from turnlog.store.base import Store
from turnlog.store.values import PlacedMessage

BYTES_PER_TOKEN: Final = 4
_TOKENS_OF_FILE: Final = 1500
"""About what models count for an image of a screen."""


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """What to hand over. By default the active branch: what the model would get if the session went on."""

    whole: bool = False
    """Also what was compacted or rewound, in the order in which it was said."""
    since: str | None = None
    """Id of a message: its turn is the first."""
    until: str | None = None
    """Id of a message: it is the last."""
    tokens: int | None = None
    """At most so many, by estimate. Turns are left out from the front."""


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """The messages of a window, and what is left out, in sentences."""

    messages: tuple[Message, ...]
    notes: tuple[str, ...] = ()


_KEPT_FATES: Final = frozenset({Fate.ACTIVE, Fate.COMPACTED, Fate.REWOUND})


def select(store: Store, session_id: str, window: Window) -> Selection:
    """The messages of a session in a window, with large contents as references.

    Raises HandoffError for a message that the window does not have, or a number of tokens below 1.
    """
    if window.tokens is not None and window.tokens < 1:
        raise HandoffError(f"a window cannot have {window.tokens} tokens")
    placed = store.messages(session_id, resolve_blobs=False)
    messages = _whole(placed) if window.whole else _active(store, session_id, placed)
    notes = [] if window.whole else _not_active(placed, messages, window)
    if window.until is not None:
        at = _index(messages, window.until)
        notes += [_left_out(len(messages) - at - 1, "after it")] if at < len(messages) - 1 else []
        messages = messages[: at + 1]
    if window.since is not None:
        at = _turn_start(messages, _index(messages, window.since))
        notes += [_left_out(at, "before its turn")] if at else []
        messages = messages[at:]
    return Selection(messages=tuple(messages), notes=tuple(notes))


def _whole(placed: Sequence[PlacedMessage]) -> list[Message]:
    """All messages but those of other sources and side talks. A summary is left out: what it sums up is there."""
    return [
        each.message
        for each in placed
        if each.membership.fate in _KEPT_FATES and each.message.origin is not Origin.COMPACTION
    ]


def _active(store: Store, session_id: str, placed: Sequence[PlacedMessage]) -> list[Message]:
    history = PlacedHistory(
        [each.message for each in placed], [each.membership for each in placed], store.events(session_id)
    )
    return list(select_context(history).messages)


def _not_active(placed: Sequence[PlacedMessage], active: Sequence[Message], window: Window) -> list[str]:
    """What was compacted or rewound within the window, as a sentence."""
    carried = {message.id for message in active}
    places = {each.message.id: each.membership.position for each in placed}
    first, last = (_position(active, wanted, places) for wanted in (window.since, window.until))
    left = [
        each
        for each in placed
        if each.message.id not in carried
        and each.membership.fate in _KEPT_FATES
        and each.message.role in ("user", "assistant")
        and each.message.origin is not Origin.COMPACTION
        and (first is None or each.membership.position >= first)
        and (last is None or each.membership.position <= last)
    ]
    rewound = [each.message for each in left if each.membership.fate is Fate.REWOUND]
    compacted = [each.message for each in left if each.membership.fate is not Fate.REWOUND]
    left = [
        *([f"{_turns_or_messages(compacted)} before the compaction"] if compacted else []),
        *([_turns_or_messages(rewound, "rewound ")] if rewound else []),
    ]
    pronoun = "it" if len(left) == 1 and left[0].startswith("1 ") else "them"
    return [f"Left out: {', '.join(left)}; --whole carries {pronoun}"] if left else []


def _position(messages: Sequence[Message], wanted: str | None, places: Mapping[str, int]) -> int | None:
    return None if wanted is None else places.get(messages[_index(messages, wanted)].id)


def _turns_or_messages(messages: Sequence[Message], adjective: str = "") -> str:
    """How many turns these messages begin, or how many they are if they are only parts of one."""
    turns = sum(map(begins_turn, messages))
    count, noun = (turns, "turn") if turns else (len(messages), "message")
    return f"{count:,} {adjective}{noun}{'' if count == 1 else 's'}"


def _index(messages: Sequence[Message], wanted: str) -> int:
    """Where the message with this id is, or the only one whose id begins or ends so."""
    found = [index for index, message in enumerate(messages) if message.id == wanted] or [
        index for index, message in enumerate(messages) if message.id.startswith(wanted) or message.id.endswith(wanted)
    ]
    if len(found) != 1:
        if found:
            raise HandoffError(f"{len(found)} messages have an id that begins or ends with {wanted!r}")
        raise HandoffError(
            f"there is no message {wanted!r} in this part of the session;"
            " one that was rewound or compacted is only in the whole session"
        )
    return found[0]


def _turn_start(messages: Sequence[Message], index: int) -> int:
    return next((at for at in range(index, -1, -1) if begins_turn(messages[at])), 0)


def begins_turn(message: Message) -> bool:
    """Whether a message is a user's own, and no report or summary."""
    return message.role == "user" and message.origin not in (Origin.COMPACTION, Origin.NOTIFICATION)


def cut_to_tokens(messages: Sequence[Message], tokens: int | None) -> Selection:
    """The last turns that fit. Raises HandoffError if not even the last prompt and one step do."""
    sizes = [tokens_of(message) for message in messages]
    if tokens is None or sum(sizes) <= tokens:
        return Selection(messages=tuple(messages))
    starts = [index for index, message in enumerate(messages) if begins_turn(message)]
    for start in starts:
        if sum(sizes[start:]) <= tokens:
            note = f"{_first_turns(starts.index(start))} left out, to fit into {tokens:,} tokens"
            return Selection(messages=tuple(messages[start:]), notes=(note,))
    last = starts[-1] if starts else 0
    # The prompt stays whatever else goes: steps without it would be answers to nothing.
    room = tokens - sizes[last]
    first = len(messages)
    while first > last + 1 and sizes[first - 1] <= room:
        first -= 1
        room -= sizes[first]
    # A report between steps is not where a window begins: its first message is an answer.
    while first < len(messages) and messages[first].role != "assistant":
        first += 1
    if first == len(messages):
        raise HandoffError(f"the last turn does not fit into {tokens:,} tokens: it has about {sum(sizes[last:]):,}")
    left = first - last - 1
    note = f"only the last turn is carried, without its first {left:,} steps, to fit into {tokens:,} tokens"
    return Selection(messages=(messages[last], *messages[first:]), notes=(note,))


def _first_turns(count: int) -> str:
    if count > 1:
        return f"the first {count:,} turns are"
    return "the first turn is" if count else "what is before the first turn is"


def tokens_of(message: Message) -> int:
    """About how many tokens a message has."""
    return sum(_size(part) for part in message.parts) // BYTES_PER_TOKEN + 1


def _size(part: Part) -> int:
    if isinstance(part, TextPart | ReasoningPart):
        return len(part.text.encode(errors="replace"))
    if isinstance(part, FilePart):
        return _TOKENS_OF_FILE * BYTES_PER_TOKEN
    if isinstance(part, ToolCallPart):
        given = len(part.input) if isinstance(part.input, msgspec.Raw) else len(part.input_text or "")
        return given + sum(_size(each) for result in part.results for each in result.content)
    return 0


def _left_out(count: int, where: str) -> str:
    return f"1 message {where} is left out" if count == 1 else f"{count:,} messages {where} are left out"
