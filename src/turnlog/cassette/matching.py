"""Whether a request is the recorded one, and if not, a diff that shows where it leaves the recording.

Rules are in docs/how-to/cassettes.md. Compares conversations; knows no API.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from re import Pattern
from typing import NamedTuple

from turnlog.cassette.conversation import Call, Conversation, Turn, bare, same_result
from turnlog.cassette.tape import AskedText, Entry

_MOST_LINES = 60
"""Of a diff: the rest is counted."""


class Mismatch(NamedTuple):
    """Where a request leaves the recording."""

    turn: int
    """Index of the first turn that differs: how far the two are the same."""
    diff: str


def compare(entries: Iterable[Entry], sent: Conversation, ignored: Sequence[Pattern[str]] = ()) -> Mismatch | None:
    """None where a request is the recorded one.

    Args:
        entries: The context that was recorded.
        sent: The conversation of the request.
        ignored: What is not looked at in any text.
    """
    recorded = _relevant(entries, sent, ignored)
    most = max(len(recorded.turns), len(sent.turns))
    for index in range(most):
        if not _is_same(_at(recorded.turns, index), _at(sent.turns, index)):
            return Mismatch(index, _diff(recorded, sent, index))
    return None


def _relevant(entries: Iterable[Entry], sent: Conversation, ignored: Sequence[Pattern[str]]) -> Conversation:
    """The recording without additions of the agent that the request has nowhere; a turn may hold nothing else."""
    said = bare(*[text for turn in sent.turns if turn.side == "user" for text in turn.texts])
    recorded = Conversation(ignored)
    for entry in entries:
        if not (isinstance(entry, AskedText) and entry.optional and bare(entry.text or "") not in said):
            recorded.add(entry)
    return recorded


def _at(turns: list[Turn], index: int) -> Turn | None:
    return turns[index] if index < len(turns) else None


def _is_same(recorded: Turn | None, sent: Turn | None) -> bool:
    if recorded is None or sent is None:
        return False
    return recorded.side == sent.side and all(check(recorded, sent) for check in _CHECKS)


def _same_texts(recorded: Turn, sent: Turn) -> bool:
    """Additions of the agent may stand anywhere in the turn, or be missing."""
    if recorded.anything:
        return True
    said = bare(*sent.texts)
    for text in recorded.optional:
        said = said.replace(bare(text), "", 1)
    return said == bare(*[text for text in recorded.texts if text not in recorded.optional])


def _texts_of(recorded: Turn, sent: Turn) -> list[str]:
    """The recorded texts without additions of the agent that this turn lacks."""
    said = bare(*sent.texts)
    return [text for text in recorded.texts if text not in recorded.optional or bare(text) in said]


def _same_files(recorded: Turn, sent: Turn) -> bool:
    return recorded.anything or sorted(recorded.files) == sorted(sent.files)


def _same_calls(recorded: Turn, sent: Turn) -> bool:
    return [_key(call) for call in recorded.calls] == [_key(call) for call in sent.calls]


def _key(call: Call) -> tuple[str, str]:
    return call.name, json.dumps(call.arguments, sort_keys=True)


def _same_results(recorded: Turn, sent: Turn) -> bool:
    """One result a call. What was never answered, or was aborted, may be answered in any way, or not at all."""
    answers = {result.call: result.text or "" for result in sent.results}
    wanted = {result.call: result.text for result in recorded.results}
    open_calls = {call for call, text in wanted.items() if text is None}
    if len(answers) < len(sent.results) or None in answers or not set(wanted) - open_calls <= set(answers):
        return False
    return set(answers) <= set(wanted) and all(same_result(wanted[call], answers[call]) for call in answers)


_CHECKS: tuple[Callable[[Turn, Turn], bool], ...] = (_same_texts, _same_files, _same_calls, _same_results)


def _diff(recorded: Conversation, sent: Conversation, first: int) -> str:
    """From the turn before the first that differs."""
    start = max(0, first - 1)
    before, after = _lines(recorded, sent, start), _lines(sent, None, start)
    lines = list(difflib.unified_diff(before, after, "recorded", "requested", lineterm="", n=2))
    shown = [line for line in lines if not line.startswith("@@")][:_MOST_LINES]
    more = len(lines) - _MOST_LINES
    return "\n".join([*shown, *([f"… and {more} more lines"] if more > 0 else [])])


def _lines(told: Conversation, other: Conversation | None, start: int) -> list[str]:
    """The turns as lines, without white space and without what is not compared."""
    lines: list[str] = []
    for index in range(start, len(told.turns)):
        turn = told.turns[index]
        twin = _at(other.turns, index) if other is not None else None
        lines += _turn_lines(told, turn, twin)
    return lines


def _turn_lines(told: Conversation, turn: Turn, twin: Turn | None) -> Iterator[str]:
    texts = turn.texts if twin is None else _texts_of(turn, twin)
    for result in sorted(turn.results, key=lambda result: -1 if result.call is None else result.call):
        said = "(anything)" if result.text is None else result.text
        yield from _labelled(f"result of {told.name_of(result.call)}", said)
    for text in ["(anything)"] if turn.anything else texts:
        yield from _labelled(turn.side, text)
    for kind in sorted(turn.files):
        yield f"{turn.side}: ({kind})"
    for call in turn.calls:
        yield f"call of {call.name}: {json.dumps(call.arguments, sort_keys=True, ensure_ascii=False)}"


def _labelled(label: str, text: str) -> Iterator[str]:
    lines = [" ".join(line.split()) for line in text.splitlines()]
    for index, line in enumerate([line for line in lines if line]):
        yield f"{label}: {line}" if index == 0 else f"    {line}"
